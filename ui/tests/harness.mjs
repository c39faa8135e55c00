// A browser and a server for the tests of a file. Every test watches for errors of the console and for requests that leave the
// server.
import { AxeBuilder } from '@axe-core/playwright';
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { chromium } from 'playwright-core';
import { serveFromDisk } from './disk.mjs';
import { Server } from './server.mjs';

// Generous, because the machine may do other work.
const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 60_000);

/** Starts a server and a browser for the tests of a file. Settings of the server are variables of its environment. */
export function harness(settings = {}) {
  const at = {
    /** Opens a browser of its own, signed in by a link, and checks at the end that nothing went wrong in it. */
    async signedIn(work, options = {}) {
      const { mayFail, ...wanted } = options;
      const { context, page, wrong } = await at.visit(wanted, mayFail);
      await page.goto(at.server.link());
      await page.getByRole('heading', { name: 'Home' }).waitFor();
      await work(page, context);
      assert.deepEqual(wrong, []);
      await context.close();
    },

    async visit(options = {}, mayFail = false) {
      const context = await at.browser.newContext(options);
      context.setDefaultTimeout(PATIENCE_MS);
      await serveFromDisk(context);
      const page = await context.newPage();
      const wrong = [];
      page.on('console', (message) => message.type() === 'error' && !mayFail && wrong.push(message.text()));
      page.on('pageerror', (error) => wrong.push(String(error)));
      page.on('request', (request) => !request.url().startsWith(at.server.url) && !request.url().startsWith('data:') && wrong.push(`left: ${request.url()}`));
      return { context, page, wrong };
    },

    open: (page, path) => page.goto(at.server.url + path),
  };
  before(async () => {
    at.server = await Server.start(settings);
    at.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  });
  after(async () => {
    await at.browser?.close();
    await at.server?.close();
  });
  return at;
}

/** Fails if axe finds something serious on the page. */
export async function checkAccess(page, path) {
  const { violations } = await new AxeBuilder({ page }).options({ rules: { 'target-size': { enabled: true } } }).analyze();
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(serious.map(({ id, nodes }) => `${path}: ${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`), []);
}
