// Writes pictures of the main pages in both themes: node tests/screenshots.mjs FOLDER
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { APPROVAL, FAILING, Server } from './server.mjs';

const folder = process.argv[2] ?? 'screenshots';
mkdirSync(folder, { recursive: true });
const server = await Server.start();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const { execution, workflow } = await server.run(FAILING);
  const asked = await server.run(APPROVAL);
  const pages = {
    home: '/',
    executions: '/executions',
    graph: `/executions/${execution}`,
    timeline: `/executions/${execution}/timeline`,
    steps: `/executions/${execution}/steps`,
    logs: `/executions/${execution}/logs`,
    approval: `/executions/${asked.execution}`,
    workflow: `/workflows/${workflow}`,
  };
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 860 } });
    const page = await context.newPage();
    await page.goto(server.link());
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(server.url + path);
      await page.locator('h1').waitFor();
      await page.waitForLoadState('networkidle').catch(() => undefined);
      await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
    }
    await context.close();
  }
} finally {
  await browser.close();
  await server.close();
}
