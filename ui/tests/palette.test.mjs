// What the command palette finds, and how it is closed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GREET, SMOKE } from './demo.mjs';
import { harness } from './harness.mjs';

const at = harness();

const named = (name) => `name: ${name}\nnodes: [{id: start, type: trigger}]\n`;

/** More executions than a page of a list has. */
const NEWER = 51;

test('the palette finds an execution that is not among the newest ones', async () => {
  const { execution } = await at.server.run(named('needle'));
  const { workflow } = await at.server.run(named('hay'));
  for (let count = 0; count < NEWER; count += 1) await at.server.api('POST', `/workflows/${workflow}/execute`, {});
  await at.signedIn(async (page) => {
    for (const search of ['needle', execution.slice(-8)]) {
      await page.keyboard.press('Control+K');
      await page.getByLabel('Go to').fill(search);
      await page.getByRole('option', { name: `needle …${execution.slice(-8)}` }).click();
      await page.waitForURL(`**/executions/${execution}`);
    }
    await page.keyboard.press('Control+K');
    await page.getByLabel('Go to').fill('hay');
    await page.getByRole('option', { name: 'Executions with “hay” in their name or id' }).click();
    await page.waitForURL(/executions\?text=hay$/);
    await page.keyboard.press('Control+K');
    await page.getByLabel('Go to').fill('no such thing');
    await page.getByText('Nothing matches.').waitFor();
  });
});

test('the palette finds plans, schedules and actions, and shows workflows of one name apart', async () => {
  const plan = await at.server.plan(SMOKE);
  await at.server.api('PUT', '/actions/greet', GREET);
  const target = { kind: 'shell', command: 'true', args: [] };
  const schedule = await at.server.api('POST', '/schedules', { name: 'tide-table', schedule: { kind: 'cron', expr: '0 3 1 1 *' }, target });
  const twins = [];
  for (let count = 0; count < 2; count += 1) twins.push((await at.server.api('POST', '/workflows', named('twin'))).body.id);
  await at.signedIn(async (page) => {
    const cases = [
      ['smoke test', 'Smoke test of a sandbox', `/plans/${plan}`],
      ['tide', 'tide-table', `/schedules/${schedule.body.id}`],
      ['gree', 'greet', '/actions/greet'],
      ...twins.map((id) => ['twin', `…${id.slice(-8)}`, `/workflows/${id}`]),
    ];
    for (const [search, name, path] of cases) {
      await page.keyboard.press('Control+K');
      await page.getByLabel('Go to').fill(search);
      await page.getByRole('option', { name }).click();
      await page.waitForURL(`**${path}`);
    }
  });
});

test('the palette is closed by touch', async () => {
  await at.signedIn(
    async (page) => {
      const palette = page.getByRole('dialog', { name: 'Command palette' });
      const open = () => page.getByRole('button', { name: 'Go to …' }).tap();
      await open();
      await palette.getByRole('button', { name: 'Close' }).tap();
      await palette.waitFor({ state: 'detached' });
      await open();
      await palette.locator('input').tap();
      assert.ok(await palette.isVisible());
      await page.touchscreen.tap(195, 10);
      await palette.waitFor({ state: 'detached' });
    },
    { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true },
  );
});
