import assert from 'node:assert/strict';
import { test } from 'node:test';
import { harness } from './harness.mjs';

const at = harness();

async function create(schedule) {
  const { status, body } = await at.server.api('POST', '/schedules', { schedule: { kind: 'cron', expr: '0 3 1 1 *' }, ...schedule });
  assert.equal(status, 201, JSON.stringify(body));
  return body.id;
}

test('a schedule is created, triggered, paused, resumed and deleted, and explains itself', async () => {
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await at.open(page, '/schedules');
    await page.getByText('There is no schedule.').waitFor();
    await page.getByRole('link', { name: 'New schedule' }).click();
    await page.getByLabel('YAML or JSON').fill('name: tides\ntimezone: Europe/Berlin\nschedule: {kind: cron, expr: "0 6 * * *"}\ntarget: {kind: shell, command: echo, args: [high]}\n');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'tides' }).waitFor();
    const next = page.getByRole('region', { name: 'Next occurrences' });
    await next.locator('tbody tr').nth(4).waitFor();
    await next.getByText(/0 6 \* \* \*/).first().waitFor();
    await page.getByRole('button', { name: 'Trigger …' }).click();
    await page.getByLabel('Reason').fill('a first try');
    await page.getByRole('button', { name: 'Trigger', exact: true }).click();
    const past = page.getByRole('region', { name: 'Past occurrences' });
    await past.locator('.note .status.succeeded').waitFor();
    await past.getByRole('link', { name: 'run 1' }).click();
    await page.locator('.title .status.succeeded').waitFor();
    await page.getByRole('link', { name: /^exec_/ }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('It is paused: no occurrence is planned.').waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await next.locator('tbody tr').first().waitFor();
    await page.getByRole('link', { name: 'Edit' }).click();
    const text = page.getByLabel('YAML or JSON');
    await text.fill((await text.inputValue()).replace('0 6 * * *', '0 7 * * *'));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('0 7 * * * (Europe/Berlin)').waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There is no schedule.').waitFor();
  });
});

test('a change of a schedule that another user changed meanwhile is refused', async () => {
  const document = { name: 'ebb', schedule: { kind: 'cron', expr: '0 3 1 1 *' }, target: { kind: 'shell', command: 'true', args: [] } };
  const id = await create(document);
  await at.signedIn(
    async (page) => {
      await at.open(page, `/schedules/new?from=${id}`);
      const text = page.getByLabel('YAML or JSON');
      await text.fill((await text.inputValue()).replace('0 3 1 1 *', '0 4 1 1 *'));
      const other = await at.server.api('PUT', `/schedules/${id}`, { ...document, timezone: 'Europe/Berlin' });
      assert.equal(other.status, 200, JSON.stringify(other.body));
      await page.getByText('The schedule was changed meanwhile.').waitFor();
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('alert').getByText('the schedule was changed meanwhile').waitFor();
      assert.equal((await at.server.api('GET', `/schedules/${id}`)).body.timezone, 'Europe/Berlin');
      page.on('dialog', (dialog) => dialog.accept());
      await page.getByRole('button', { name: 'Load it' }).click();
      assert.match(await text.inputValue(), /Europe\/Berlin/);
      await text.fill((await text.inputValue()).replace('0 3 1 1 *', '0 4 1 1 *'));
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('0 4 1 1 * (Europe/Berlin)').waitFor();
    },
    { mayFail: true },
  );
});

test('a wrong schedule is refused with the place of its mistake', async () => {
  await at.signedIn(
    async (page) => {
      await at.open(page, '/schedules/new');
      await page.getByLabel('YAML or JSON').fill('name: wrong\nschedule: {kind: cron, expr: "0 0 30 2 *"}\ntarget: {kind: shell, command: echo}\n');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('alert').getByText(/schedule\.expr.*: has no occurrence/).waitFor();
      assert.equal(await page.getByText(/has no occurrence/).count(), 1);
    },
    { mayFail: true },
  );
});

test('home shows the next schedules and dead letters, which are run again or discarded', async () => {
  const good = await create({ name: 'yearly', target: { kind: 'shell', command: 'true', args: [] } });
  const bad = await create({ name: 'broken', target: { kind: 'shell', command: 'false', args: [] } });
  for (const reason of ['one', 'two']) await at.server.api('POST', `/schedules/${bad}/trigger`, { reason });
  await at.server.until(async () => (await at.server.api('GET', '/dead-letters')).body.items.length === 2);
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await page.getByRole('region', { name: 'Next schedules' }).locator(`a[href$="${good}"]`).waitFor();
    await page.getByRole('link', { name: '2 dead letters' }).click();
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor();
    await page.getByText('the command ended with exit code 1').first().waitFor();
    await page.getByRole('button', { name: 'Discard' }).first().click();
    await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.getByLabel('Resolved ones, too').check();
    await page.getByText(/^discard/).waitFor();
    await page.getByText(/^redrive|^redriven/).waitFor();
    // The server keeps the time of the last success only: these runs have failed.
    await at.open(page, '/schedules');
    await page.getByRole('columnheader', { name: 'Last success' }).waitFor();
    await page.getByRole('link', { name: 'broken' }).click();
    await page.getByText('last success –').waitFor();
  });
});

test('the calendar has older occurrences, and those that were skipped or retried say why', async () => {
  const command = (script) => ({ kind: 'shell', command: 'sh', args: ['-c', script] });
  const gate = `${at.server.folder}/gate`;
  const runs = async (id, status) => (await at.server.api('GET', `/schedules/${id}/runs?status=${status}`)).body.items;
  const busy = await create({ name: 'busy', schedule: { kind: 'cron', expr: '* * * * * *' }, target: command(`while [ ! -e ${gate} ]; do sleep 0.05; done`), policy: { overlap: 'queue_latest' } });
  await at.server.until(async () => (await runs(busy, 'skipped')).length > 0);
  await at.server.api('POST', `/schedules/${busy}/pause`, {});
  at.server.write('gate', '');
  const again = await create({ name: 'again', target: command(`test -e ${at.server.folder}/tried || { touch ${at.server.folder}/tried; printf '\\033[31mno tide\\033[0m' >&2; exit 1; }`), retry: { max_attempts: 2, initial_delay_seconds: 1, max_delay_seconds: 1 } });
  await at.server.api('POST', `/schedules/${again}/trigger`, { reason: 'a try' });
  await at.server.until(async () => (await runs(again, 'succeeded')).length === 1);
  const old = await create({ name: 'old', schedule: { kind: 'cron', expr: '0 * * * *' }, target: { kind: 'shell', command: 'true', args: [] }, policy: { overlap: 'allow', max_concurrency: 20 } });
  // More than a page of the calendar has.
  const filled = await at.server.api('POST', `/schedules/${old}/backfill`, { from: '2026-01-01T00:30:00Z', to: '2026-01-06T00:30:00Z' });
  assert.equal(filled.body.created, 120);
  await at.signedIn(async (page) => {
    const past = page.getByRole('region', { name: 'Past occurrences' });
    await at.open(page, `/schedules/${busy}`);
    await past.getByRole('button', { name: /skipped$/ }).first().click();
    await past.locator('.note .status.skipped').waitFor();
    await past.locator('.note').getByText('superseded by newer queued occurrence').waitFor();
    await at.open(page, `/schedules/${again}`);
    await past.locator('.note .status.succeeded').waitFor();
    await past.getByText('run 1 · run 2').waitFor();
    await past.getByText(/attempt 1 had failed/).waitFor();
    assert.ok(!(await past.innerHTML()).includes('[31m'));
    await past.getByRole('link', { name: 'run 1' }).click();
    await page.locator('.title .status.failed').waitFor();
    await at.open(page, `/schedules/${old}`);
    await past.locator('.marks button').nth(99).waitFor();
    assert.equal(await past.locator('.marks button').count(), 100);
    const keys = (await at.server.api('GET', `/schedules/${old}/runs?limit=200`)).body.items.map(({ occurrence_key }) => occurrence_key);
    const key = keys.find((one) => one.includes('2026-01-01T01:00'));
    await at.open(page, `/schedules/${old}?occurrence=${encodeURIComponent(key)}`);
    await past.getByText('The chosen occurrence is older than those shown.').waitFor();
    await past.getByRole('button', { name: 'Show older' }).click();
    await past.locator('.marks button').nth(119).waitFor();
    await past.getByText('The chosen occurrence is older than those shown.').waitFor({ state: 'detached' });
    assert.equal(await past.locator('.marks button[aria-pressed=true]').evaluate((mark) => [...document.querySelectorAll('.marks button')].indexOf(mark)), 119);
    await past.getByRole('button', { name: 'Show older' }).waitFor({ state: 'detached' });
  });
});

test('a backfill shows first which occurrences would run', async () => {
  const id = await create({ name: 'hourly', schedule: { kind: 'cron', expr: '0 * * * *' }, target: { kind: 'shell', command: 'true', args: [] }, policy: { overlap: 'allow', max_concurrency: 5 } });
  await at.signedIn(
    async (page) => {
      await at.open(page, `/schedules/${id}`);
      await page.getByRole('button', { name: 'Backfill …' }).click();
      await page.getByLabel('From').fill('2026-01-05T00:30');
      await page.getByLabel('To', { exact: true }).fill('2026-01-05T03:30');
      await page.getByRole('button', { name: 'Preview' }).click();
      await page.getByText('3 occurrences would run:').waitFor();
      assert.equal((await at.server.api('GET', `/schedules/${id}/runs`)).body.items.length, 0);
      await page.getByRole('button', { name: 'Run 3 occurrences' }).click();
      await page.getByText('3 runs were created.').waitFor();
      await page.getByRole('button', { name: 'Close' }).click();
      await page.getByRole('region', { name: 'Runs' }).locator('.status.succeeded').nth(2).waitFor();
    },
    { timezoneId: 'UTC' },
  );
});
