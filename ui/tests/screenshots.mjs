// Writes pictures of the main pages in both themes, and of three of them on a phone: node tests/screenshots.mjs FOLDER
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { fill } from './demo.mjs';
import { serveFromDisk } from './disk.mjs';
import { Server } from './server.mjs';

const folder = process.argv[2] ?? 'screenshots';
mkdirSync(folder, { recursive: true });
const server = await Server.start();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const { form, loop, approval, broken } = await fill(server);
  const pages = {
    home: '/',
    executions: '/executions',
    graph: `/executions/${loop.execution}?step=book`,
    timeline: `/executions/${loop.execution}/timeline`,
    approval: `/executions/${approval.execution}`,
    start: `/workflows/${form.workflow}/start`,
    source: `/workflows/${form.workflow}/source`,
    schedule: `/schedules/${broken}`,
  };
  const takeAll = async (options, shown, nameOf) => {
    const context = await browser.newContext(options);
    await serveFromDisk(context);
    const page = await context.newPage();
    await page.goto(server.link());
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    for (const [name, path] of Object.entries(shown)) {
      await page.goto(server.url + path);
      await page.locator('h1').waitFor();
      await page.locator('main [aria-busy]').first().waitFor({ state: 'detached' });
      if (['graph', 'approval', 'source'].includes(name)) await page.locator('.step').first().waitFor();
      await page.screenshot({ path: join(folder, nameOf(name)) });
    }
    await context.close();
  };
  for (const colorScheme of ['light', 'dark']) await takeAll({ colorScheme, viewport: { width: 1180, height: 760 } }, pages, (name) => `${name}-${colorScheme}.png`);
  const { home, approval: ask, graph } = pages;
  await takeAll({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }, { home, approval: ask, graph }, (name) => `${name}-phone.png`);
} finally {
  await browser.close();
  await server.close();
}
