import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FORM } from './demo.mjs';
import { harness } from './harness.mjs';
import { FAILING } from './server.mjs';

const at = harness();

async function register(definition) {
  const { status, body } = await at.server.api('POST', '/workflows', definition);
  assert.equal(status, 201, JSON.stringify(body));
  return body.id;
}

test('a form is made from the input schema, and its commands can be copied', async () => {
  const workflow = await register(FORM);
  await at.signedIn(
    async (page) => {
      await at.open(page, `/workflows/${workflow}/start`);
      assert.equal(await page.getByLabel('team').inputValue(), 'deck');
      assert.equal(await page.getByLabel('begins').getAttribute('type'), 'date');
      assert.ok(await page.getByRole('button', { name: 'Start' }).isDisabled(), 'a required input is missing');
      await page.getByLabel('Name').fill("O'Neill");
      await page.getByLabel('shifts').fill('3');
      await page.getByLabel('skills').fill('["rope"');
      await page.getByText('skills is not JSON: expected a list such as [1, 2]').waitFor();
      await page.getByLabel('skills').fill('rope\n');
      await page.getByRole('button', { name: 'Copy as a command' }).click();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(command, new RegExp(`^windlass workflows run ${workflow} --inputs '\\{"name":"O'\\\\''Neill"`));
      await page.getByRole('button', { name: 'Copy as curl' }).click();
      assert.match(await page.evaluate(() => navigator.clipboard.readText()), new RegExp(`/workflows/${workflow}/execute$`));
      await page.getByRole('button', { name: 'edit as JSON' }).click();
      assert.deepEqual(JSON.parse(await page.getByLabel('Inputs as JSON').inputValue()).skills, ['rope']);
      await page.getByRole('button', { name: 'Start' }).click();
      await page.waitForURL(/executions\/exec_/);
      const id = new URL(page.url()).pathname.split('/')[2];
      const { body } = await at.server.api('GET', `/executions/${id}`);
      assert.deepEqual(body.inputs, { name: "O'Neill", team: 'deck', shifts: 3, remote: false, skills: ['rope'] });
    },
    { permissions: ['clipboard-read', 'clipboard-write'] },
  );
});

test('a file is sent as base64, a secret by its name, and a time with its zone', async () => {
  await at.server.api('PUT', '/secrets/harbour-key', { value: 'never shown' });
  const properties = {
    chart: { type: 'string', format: 'binary' },
    key: { type: 'string', format: 'secret' },
    sails: { type: 'string', format: 'date-time' },
    side: { type: 'string', enum: ['port', 'starboard'] },
  };
  const trigger = { id: 'start', type: 'trigger', config: { manualConfig: { inputPayload: { type: 'object', properties } } } };
  const workflow = await register({ name: 'with files', nodes: [trigger], edges: [] });
  await at.signedIn(
    async (page) => {
      await at.open(page, `/workflows/${workflow}/start`);
      await page.getByLabel('chart').setInputFiles({ name: 'chart.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 255, 7]) });
      await page.locator('datalist option[value="harbour-key"]').waitFor({ state: 'attached' });
      await page.getByLabel('key', { exact: true }).fill('harbour-key');
      await page.getByLabel('sails').fill('2026-03-01T08:30');
      await page.getByLabel('side').selectOption('port');
      await page.getByRole('button', { name: 'Start' }).click();
      await page.waitForURL(/executions\/exec_/);
      const { body } = await at.server.api('GET', `/executions/${new URL(page.url()).pathname.split('/')[2]}`);
      assert.deepEqual(body.inputs, { chart: 'AP8H', key: 'harbour-key', sails: '2026-02-28T23:30:00.000Z', side: 'port' });
    },
    { timezoneId: 'Asia/Tokyo' },
  );
});

test('inputs without a schema are JSON, and wrong ones are explained', async () => {
  const workflow = await register(FAILING.replace('name: fragile', 'name: plain'));
  await at.signedIn(async (page) => {
    await at.open(page, `/workflows/${workflow}/start`);
    await page.getByLabel('Inputs as JSON').fill('[1]');
    await page.getByText('The inputs are an object').waitFor();
    await page.getByLabel('Inputs as JSON').fill('{}');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForURL(/executions\/exec_/);
  });
});

test('the editor completes keys, marks problems at their place, and saves a new version with a diff', async () => {
  const workflow = await register('name: edited\nnodes:\n  - {id: start, type: trigger}\n  - id: say\n    type: shell\n    config: {command: echo one}\nedges:\n  - {source: start, target: say}\n');
  await at.signedIn(async (page) => {
    await at.open(page, `/workflows/${workflow}/source`);
    const source = page.getByLabel('Source', { exact: true });
    await source.getByText('echo one').click();
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await page.keyboard.type('descr');
    await page.getByRole('option', { name: 'description' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.type('ipton: x');
    await page.getByText(/line 7: .*descripton/).first().waitFor();
    await page.locator('.cm-lint-marker').waitFor();
    for (let count = 0; count < 'descripton: x'.length; count += 1) await page.keyboard.press('Backspace');
    await page.keyboard.type('type: shel');
    await page.getByText(/1 error|2 errors/).waitFor();
    assert.ok(await page.getByRole('button', { name: 'Save as new version' }).isDisabled());
    await page.keyboard.press('Control+A');
    await page.keyboard.press('Backspace');
    await page.keyboard.insertText('name: edited\nnodes:\n  - {id: start, type: trigger}\n  - id: say\n    type: shell\n    config: {command: echo two}\nedges:\n  - {source: start, target: say}\n');
    await page.getByText('No problems found.').waitFor();
    await page.getByRole('button', { name: 'Save as new version' }).click();
    await page.getByText('Source of version 2').waitFor();
    await page.getByRole('link', { name: 'Versions' }).click();
    await page.getByText('1 line added, 1 line removed').waitFor();
    await page.locator('.diff .added', { hasText: 'echo two' }).waitFor();
    await page.locator('.diff .removed', { hasText: 'echo one' }).waitFor();
  });
});

const said = (command) => `name: drawn\nnodes:\n  - {id: start, type: trigger}\n  - id: say\n    type: shell\n    config: {command: ${command}}\nedges:\n  - {source: start, target: say}\n`;

/** Replaces the text of the editor. */
async function write(page, text) {
  await page.getByLabel('Source', { exact: true }).click();
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Backspace');
  await page.keyboard.insertText(text);
}

test('a late answer about an older text does not replace the findings of the newer one', async () => {
  const workflow = await register(said('echo one'));
  await at.signedIn(async (page) => {
    let answer;
    const isHeld = new Promise((resolve) => (answer = resolve));
    let asked;
    const isAsked = new Promise((resolve) => (asked = resolve));
    await page.route(/\/api\/v1\/validate/, async (route) => {
      if (route.request().postData()?.includes('older')) {
        asked();
        await isHeld;
      }
      await route.continue();
    });
    await at.open(page, `/workflows/${workflow}/source`);
    await page.getByText('No problems found.').waitFor();
    await write(page, said('echo older').replace('type: shell', 'type: shel'));
    await isAsked;
    const about = (word) => page.waitForResponse((response) => response.request().postData()?.includes(word) ?? false);
    const newer = about('newer');
    await write(page, said('echo newer'));
    await (await newer).finished();
    await page.getByText('No problems found.').waitFor();
    const old = about('older');
    answer();
    await (await old).finished();
    // Another request of the page is answered after it.
    await page.evaluate(() => fetch('/api/v1/me').then((response) => response.text()));
    await page.getByText('No problems found.').waitFor();
    assert.ok(await page.getByRole('button', { name: 'Save as new version' }).isEnabled());
  });
});

test('the graph beside the source is that of the edited text, or else of the last valid one', async () => {
  const workflow = await register(said('echo one'));
  await at.signedIn(async (page) => {
    await at.open(page, `/workflows/${workflow}/source`);
    const graph = page.locator('section', { has: page.locator('.graph') });
    await graph.getByRole('heading', { name: 'Graph of version 1' }).waitFor();
    await write(page, said('echo two').replaceAll('say', 'shout'));
    await graph.getByRole('heading', { name: 'Graph of the edited text' }).waitFor();
    await graph.locator('.step', { hasText: 'shout' }).waitFor();
    await write(page, said('echo two').replaceAll('say', 'whisper').replace('type: shell', 'type: shel'));
    await graph.getByRole('heading', { name: 'Graph of the last valid text' }).waitFor();
    await graph.getByText('The edited text has errors.').waitFor();
    await graph.locator('.step', { hasText: 'shout' }).waitFor();
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'discard' }).click();
    await graph.getByRole('heading', { name: 'Graph of version 1' }).waitFor();
    await graph.locator('.step', { hasText: 'say' }).waitFor();
  });
});

test('a version that another user saved meanwhile is not overwritten', async () => {
  const workflow = await register(FAILING.replace('name: fragile', 'name: shared'));
  await at.signedIn(
    async (page) => {
      await at.open(page, `/workflows/${workflow}/source`);
      const source = page.getByLabel('Source', { exact: true });
      await source.getByText('shared').click();
      await page.keyboard.press('Control+End');
      await page.keyboard.type('# mine');
      const done = await at.server.api('PUT', `/workflows/${workflow}`, FAILING.replace('name: fragile', 'name: shared').replace('echo one', 'echo two'));
      assert.equal(done.status, 200, JSON.stringify(done.body));
      await page.getByRole('button', { name: 'Save as new version' }).click();
      await page.getByText(/changed or deleted meanwhile/).waitFor();
      const { body } = await at.server.api('GET', `/workflows/${workflow}`);
      assert.equal(body.version, 2);
    },
    // The browser reports the refusal.
    { mayFail: true },
  );
});

test('a workflow is written from an example, paused, duplicated and deleted', async () => {
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await at.open(page, '/workflows?search=nothing-like-this');
    await page.getByText('No workflow matches.').waitFor();
    await page.getByRole('link', { name: 'New workflow' }).click();
    for (const dialect of ['actions', 'playbook', 'workflow']) {
      await page.getByLabel('Example').selectOption(dialect);
      await page.getByText('No problems found.').waitFor();
    }
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'hello' }).waitFor();
    await page.locator('.step', { hasText: 'greet' }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.locator('.title .status.paused').waitFor();
    await page.getByRole('button', { name: 'Activate' }).click();
    await page.locator('.title .status.active').waitFor();
    const first = page.url();
    await page.getByRole('button', { name: 'Duplicate' }).click();
    await page.waitForURL((url) => !first.includes(url.pathname.split('/')[2]));
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Workflows' }).waitFor();
  });
});
