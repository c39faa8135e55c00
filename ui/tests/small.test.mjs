// Small things: the order of answers, errors that are shown, colours, plurals and times.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IMPORT, SMOKE } from './demo.mjs';
import { harness } from './harness.mjs';
import { APPROVAL } from './server.mjs';

const at = harness();

const refusal = (message) => (route) => route.fulfill({ status: 400, json: { error: { code: 'INVALID_REQUEST', message } } });

async function withInputs(properties) {
  const trigger = { id: 'start', type: 'trigger', config: { manualConfig: { inputPayload: { type: 'object', properties } } } };
  const { status, body } = await at.server.api('POST', '/workflows', { name: `inputs ${Object.keys(properties)}`, nodes: [trigger], edges: [] });
  assert.equal(status, 201, JSON.stringify(body));
  return body.id;
}

test('of two files, the one that was chosen last is sent, and one that cannot be read says so', async () => {
  const workflow = await withInputs({ chart: { type: 'string', format: 'binary' } });
  await at.signedIn(async (page) => {
    await page.addInitScript(() => {
      const { arrayBuffer } = File.prototype;
      window.isReleased = new Promise((resolve) => (window.release = resolve));
      File.prototype.arrayBuffer = async function () {
        if (this.name === 'broken') throw new Error('the disk is gone');
        if (this.name === 'slow') await window.isReleased;
        return arrayBuffer.call(this);
      };
    });
    await at.open(page, `/workflows/${workflow}/start`);
    const field = page.getByLabel('chart');
    const choose = (name, length) => field.setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.alloc(length, 'x') });
    await choose('slow', 4_000);
    await choose('fast', 7);
    await page.getByText('7 B are sent').waitFor();
    await page.evaluate(() => window.release());
    // The slow file is read after this one.
    await page.evaluate(() => new File(['x'], 'other').arrayBuffer().then(() => new Promise(requestAnimationFrame)));
    await page.getByText('7 B are sent').waitFor();
    await choose('broken', 3);
    await page.getByText('broken could not be read: the disk is gone').waitFor();
    assert.equal(await page.getByText(/are sent/).count(), 0);
    await choose('fast', 9);
    await page.getByText('9 B are sent').waitFor();
    assert.equal(await page.getByText(/could not be read/).count(), 0);
  });
});

test('what a form or a view could not read is said, and is read again', async () => {
  const workflow = await withInputs({ key: { type: 'string', format: 'secret' } });
  const plan = await at.server.plan(SMOKE.replace('cluster: {fromSandbox: box}', '').replace('runner: dock', ''));
  const { execution } = await at.server.run(IMPORT);
  const cases = [
    [`/workflows/${workflow}/start`, '**/api/v1/secrets', 'The names of secrets could not be read.', 'Start'],
    [`/plans/${plan}/start`, '**/api/v1/runner-groups', undefined, 'Start'],
    [`/plans/${plan}/start`, '**/api/v1/clusters?*', undefined, 'Start'],
    [`/workflows/${workflow}/source`, '**/api/v1/schemas/*', 'the schema could not be read', 'Save as new version'],
    [`/executions/${execution}/steps`, '**/graph?*', 'The graph or the definition could not be read', 'Run again …'],
  ];
  await at.signedIn(
    async (page) => {
      for (const [path, pattern, text, button] of cases) {
        await page.route(pattern, refusal('the harbour is closed'));
        await at.open(page, path);
        await page.getByText('the harbour is closed').first().waitFor();
        if (text) await page.getByText(text).first().waitFor();
        await page.getByRole('button', { name: button, exact: true }).waitFor();
        await page.unroute(pattern);
        await page.getByRole('button', { name: 'Try again' }).first().click();
        await page.getByText('the harbour is closed').waitFor({ state: 'detached' });
      }
    },
    // The browser reports the refusals.
    { mayFail: true },
  );
});

test('colours of terminals are left out of values, questions and reasons, and one character more is one', async () => {
  const red = '\u001b[31mred\u001b[0m tide';
  const asked = await at.server.run(APPROVAL.replace("'May it go out?'", JSON.stringify(red)));
  const valued = await at.server.run('name: valued\nnodes: [{id: start, type: trigger}]\n', { note: red, long: 'x'.repeat(2_001) });
  const { body: letter } = await at.server.api('POST', '/schedules', { name: 'red', schedule: { kind: 'cron', expr: '0 3 1 1 *' }, target: { kind: 'shell', command: 'sh', args: ['-c', `printf '\\033[31mred\\033[0m tide' >&2; exit 1`] } });
  await at.server.api('POST', `/schedules/${letter.id}/trigger`, { reason: 'one' });
  await at.server.until(async () => (await at.server.api('GET', '/dead-letters')).body.items.length === 1);
  await at.signedIn(async (page) => {
    for (const path of ['/', `/executions/${asked.execution}`, '/dead-letters', `/schedules/${letter.id}`, `/executions/${valued.execution}/values`]) {
      await at.open(page, path);
      await page.locator('main').getByText(/red tide/).first().waitFor();
      assert.ok(!(await page.locator('main').innerText()).includes('[31m'), path);
    }
    await page.getByRole('button', { name: '… 1 more character', exact: true }).first().waitFor();
  });
});

test('one failure more than are shown is one', async () => {
  const { execution } = await at.server.run(IMPORT);
  await at.signedIn(async (page) => {
    let count = 6;
    await page.route(`**/api/v1/executions/${execution}`, async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      await route.fulfill({ response, json: { ...body, errors: Array.from({ length: count }, () => body.errors[0]) } });
    });
    await at.open(page, `/executions/${execution}`);
    await page.getByText('1 more failure is listed with its step.').waitFor();
    count = 7;
    await page.reload();
    await page.getByText('2 more failures are listed with their steps.').waitFor();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });
});

test('times of schedules are in the zone of the viewer', async () => {
  const target = { kind: 'shell', command: 'true', args: [] };
  const { body: once } = await at.server.api('POST', '/schedules', { name: 'once', schedule: { kind: 'once', at: '2099-01-01T20:00:00Z' }, target });
  const { body: spread } = await at.server.api('POST', '/schedules', { name: 'spread', schedule: { kind: 'cron', expr: '0 3 * * *' }, target, policy: { jitter_seconds: 3_600 } });
  await at.signedIn(
    async (page) => {
      await at.open(page, '/schedules');
      await page.getByText(/^once at Jan 2, 2099.*5:00:00\sAM/).waitFor();
      await at.open(page, `/schedules/${once.id}`);
      await page.getByText(/^once at Jan 2, 2099/).waitFor();
      await at.open(page, `/schedules/${spread.id}`);
      const reason = page.getByText(/its jitter lets it start at/).first();
      await reason.waitFor();
      assert.doesNotMatch(await reason.innerText(), /\d\dT\d\d:/);
    },
    { timezoneId: 'Asia/Tokyo', locale: 'en-US' },
  );
});

test('a rotated signing secret is shown, hidden, and read again', async () => {
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await at.open(page, '/administration/webhooks');
    const secret = page.getByText(/^whsec_/);
    await page.getByRole('button', { name: 'Rotate' }).click();
    await secret.waitFor();
    const first = await secret.innerText();
    await page.getByRole('button', { name: 'Hide' }).click();
    await secret.waitFor({ state: 'detached' });
    // It is rotated elsewhere.
    await at.server.api('POST', '/webhook-secret/rotate', {});
    await page.getByRole('button', { name: 'Show' }).click();
    await secret.waitFor();
    assert.notEqual(await secret.innerText(), first);
  });
});

test('on a phone, the role and the tenant are shown', async () => {
  await at.signedIn(
    async (page) => {
      await page.getByText('owner of default').waitFor();
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
    },
    { viewport: { width: 390, height: 800 } },
  );
});
