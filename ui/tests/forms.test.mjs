// Forms, dialogs and lists: their messages, the text they keep, and the focus.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import typescript from 'typescript';
import { FORM, LONG } from './demo.mjs';
import { harness } from './harness.mjs';
import { APPROVAL, FAILING } from './server.mjs';

const at = harness();

async function register(definition) {
  const { status, body } = await at.server.api('POST', '/workflows', definition);
  assert.equal(status, 201, JSON.stringify(body));
  return body.id;
}

const SMALL = (name) => `name: ${name}\nnodes: [{id: a, type: trigger}]\n`;

test('a form says which field is missing and what is wrong, to screen readers too', async () => {
  const workflow = await register(FORM);
  await at.signedIn(async (page) => {
    await at.open(page, `/workflows/${workflow}/start`);
    await page.getByText('Still required: Name.').waitFor();
    const name = page.getByLabel('Name');
    assert.equal(await name.getAttribute('aria-required'), 'true');
    assert.equal(await name.evaluate((field) => document.getElementById(field.getAttribute('aria-describedby')).textContent), 'Name of the new colleague');
    await name.fill('Ann');
    await page.getByText('Still required').waitFor({ state: 'detached' });
    const skills = page.getByLabel('skills');
    assert.match(await skills.evaluate((field) => document.getElementById(field.getAttribute('aria-describedby')).textContent), /One item per line/);
    await skills.fill('[1');
    await page.getByText('skills is not JSON').waitFor();
    for (const name of ['Copy as a command', 'Copy as curl', 'edit as JSON']) assert.ok(await page.getByRole('button', { name }).isDisabled(), name);
    assert.equal(await skills.getAttribute('aria-invalid'), 'true');
    assert.match(await skills.evaluate((field) => document.getElementById(field.getAttribute('aria-describedby')).textContent), /is not JSON/);
  });
});

test('a choice of numbers is sent as a number, and the copied request has tags and the tenant', async () => {
  const trigger = { id: 'start', type: 'trigger', config: { manualConfig: { inputPayload: { type: 'object', properties: { deck: { enum: [1, 2, 'upper'] } } } } } };
  const workflow = await register({ name: 'decks', nodes: [trigger], edges: [] });
  await at.server.api('POST', '/tenants', { name: 'second fleet' });
  await at.signedIn(
    async (page) => {
      await at.open(page, `/workflows/${workflow}/start`);
      await page.getByLabel('deck').selectOption('2');
      await page.getByRole('button', { name: 'Copy as a command' }).waitFor();
      await page.getByLabel('Tags').fill('nightly');
      await page.getByText('The command has no option for tags').waitFor();
      assert.equal(await page.getByRole('button', { name: 'Copy as a command' }).count(), 0);
      await page.evaluate(() => sessionStorage.setItem('windlass.tenant', 'default'));
      await page.getByLabel('Tags').fill('nightly, test');
      await page.getByRole('button', { name: 'Copy as curl' }).click();
      await page.getByRole('status', { name: 'Results' }).getByText('Copied.').waitFor();
      const request = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(request, /"deck":2/);
      assert.match(request, /"tags":\["nightly","test"\]/);
      assert.match(request, /-H 'X-Tenant-ID: default'/);
      await page.getByRole('button', { name: 'Start' }).click();
      await page.waitForURL(/executions\/exec_/);
      const { body } = await at.server.api('GET', `/executions/${new URL(page.url()).pathname.split('/')[2]}`);
      assert.deepEqual(body.inputs, { deck: 2 });
    },
    { permissions: ['clipboard-read', 'clipboard-write'] },
  );
});

/** Defaults of several types. */
const DEFAULTS = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: defaults}
workload: {orders: [1, 2], shop: Rotterdam, dryRun: false, crew: [Ann]}
workflow: [{step: rest, tool: {kind: noop}}]
`;

test('an execution is run again with the same inputs and tags, also those that no field shows', async () => {
  const workflow = await register(DEFAULTS.trimStart());
  const given = { shop: '', orders: [1], extra: 'kept', dryRun: null, crew: ['Ann'] };
  const start = async (inputs) => (await at.server.api('POST', `/workflows/${workflow}/execute`, { inputs, options: { tags: ['nightly', 'test'] } })).body.executionId;
  const startAgain = async (page) => {
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.waitForURL(/executions\/exec_/);
    return (await at.server.api('GET', `/executions/${new URL(page.url()).pathname.split('/')[2]}`)).body;
  };
  const [odd, plain] = [await start(given), await start({ orders: [3], crew: [], extra: 7 })];
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${odd}`);
    await page.getByRole('button', { name: 'Run again …' }).click();
    assert.deepEqual(JSON.parse(await page.getByLabel('Inputs as JSON').inputValue()), given);
    assert.equal(await page.getByLabel('Tags').inputValue(), 'nightly, test');
    await page.getByRole('button', { name: 'edit as a form' }).click();
    await page.getByText(/Also sent, as before: (shop, extra|extra, shop)\./).waitFor();
    assert.equal(await page.getByLabel('dryRun').inputValue(), 'null');
    await page.getByRole('button', { name: 'edit as JSON' }).click();
    assert.deepEqual(JSON.parse(await page.getByLabel('Inputs as JSON').inputValue()), given);
    await page.getByRole('button', { name: 'edit as a form' }).click();
    await page.getByLabel('crew').fill('Bob\nCleo');
    const again = await startAgain(page);
    assert.deepEqual(again.inputs, { ...given, crew: ['Bob', 'Cleo'] });
    assert.deepEqual(again.metadata.tags, ['nightly', 'test']);
    await at.open(page, `/workflows/${workflow}/start?from=${plain}`);
    await page.getByText('Also sent, as before: extra.').waitFor();
    assert.equal(await page.getByLabel('crew').inputValue(), '[]');
    assert.deepEqual((await startAgain(page)).inputs, { orders: [3], shop: 'Rotterdam', dryRun: false, crew: [], extra: 7 });
  });
});

test('an execution with large inputs is run again with the inputs themselves', async () => {
  const workflow = await register('name: large-inputs\nnodes: [{id: start, type: trigger}]\n');
  const inputs = { text: 'x'.repeat(1_200_000) };
  const first = await at.server.api('POST', `/workflows/${workflow}/execute`, { inputs, options: { async: false } });
  assert.equal(first.status, 200, JSON.stringify(first.body).slice(0, 200));
  const read = async (id) => (await at.server.api('GET', `/executions/${id}`)).body;
  const before = await read(first.body.executionId);
  assert.ok(before.inputs.url, 'the inputs are a reference');
  await at.signedIn(async (page) => {
    await at.open(page, `/workflows/${workflow}/start?from=${before.executionId}`);
    assert.deepEqual(JSON.parse(await page.getByLabel('Inputs as JSON').inputValue()), inputs);
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.waitForURL(/\/executions\//);
    const again = await read(new URL(page.url()).pathname.split('/')[2]);
    assert.equal(again.inputs.$artifact, before.inputs.$artifact);
    // A reference within the inputs has no value here.
    await page.route(`**/api/v1/executions/${before.executionId}`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), inputs: { photo: { $omitted: true, bytes: 70_000, url: before.inputs.url } } } });
    });
    await at.open(page, `/workflows/${workflow}/start?from=${before.executionId}`);
    await page.getByText(/cannot be used again here: photo is a reference/).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Start', exact: true }).count(), 0);
  });
});

test('text typed into a form is kept across tabs, pages and views', async () => {
  const workflow = await register(FORM);
  await at.signedIn(async (page) => {
    await at.open(page, `/workflows/${workflow}/start`);
    await page.getByLabel('Name').fill('Ann');
    await page.getByLabel('Tags').fill('nightly');
    for (const leave of ['Source', 'Versions']) {
      await page.getByRole('link', { name: leave }).click();
      await page.getByRole('link', { name: 'Start', exact: true }).click();
      assert.equal(await page.getByLabel('Name').inputValue(), 'Ann');
    }
    await page.getByRole('link', { name: 'Home' }).click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.goBack();
    assert.equal(await page.getByLabel('Name').inputValue(), 'Ann');
    assert.equal(await page.getByLabel('Tags').inputValue(), 'nightly');
    await page.getByRole('button', { name: 'edit as JSON' }).click();
    const json = page.getByLabel('Inputs as JSON');
    await json.fill('{"name": "Ann", "extra": 1,');
    assert.ok(await page.getByRole('button', { name: 'edit as a form' }).isDisabled(), 'an invalid text would be lost');
    await json.fill('{"name": "Ann", "extra": 1}');
    await page.getByRole('button', { name: 'edit as a form' }).click();
    await page.getByLabel('shifts').fill('3');
    await page.getByRole('button', { name: 'edit as JSON' }).click();
    assert.deepEqual(JSON.parse(await json.inputValue()), { name: 'Ann', extra: 1, shifts: 3 });
    await page.getByRole('button', { name: 'reset' }).click();
    assert.equal(await page.getByLabel('Name').inputValue(), '');
  });
});

const editor = (page) => page.getByRole('textbox', { name: 'Source' });

const typeAtEnd = async (page, text) => {
  await editor(page).click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type(text);
};

test('an unsaved text of the editor stays over tabs, pages and a reload, until it is discarded or saved', async () => {
  const workflow = await register(SMALL('drafted'));
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await at.open(page, `/workflows/${workflow}/source`);
    await page.getByRole('region', { name: 'Graph of version 1' }).waitFor();
    await typeAtEnd(page, '# mine');
    const source = editor(page);
    const isKept = async () => {
      await page.getByText('unsaved draft').waitFor();
      await source.getByText('# mine').waitFor();
    };
    await isKept();
    await page.getByRole('heading', { name: 'Graph of the edited text' }).waitFor();
    await page.getByRole('link', { name: 'Versions' }).click();
    await page.getByRole('link', { name: 'Source' }).click();
    await isKept();
    await page.getByRole('link', { name: 'Home' }).click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.goBack();
    await isKept();
    await page.reload();
    await isKept();
    await page.getByRole('button', { name: 'discard' }).click();
    await page.getByText('unsaved draft').waitFor({ state: 'detached' });
    assert.ok(!(await source.innerText()).includes('mine'));
    await page.reload();
    await source.getByText('drafted').waitFor();
    assert.ok(!(await source.innerText()).includes('mine'));
    // A draft is saved against the version that it began with.
    await typeAtEnd(page, '# mine');
    await page.getByRole('link', { name: 'Versions' }).click();
    await at.server.api('PUT', `/workflows/${workflow}`, `${SMALL('drafted')}# other\n`);
    await page.reload();
    await page.getByRole('link', { name: 'Source' }).click();
    await isKept();
    await page.getByText('Version 2 was saved meanwhile.').waitFor();
    await page.getByRole('button', { name: 'Load it' }).click();
    await source.getByText('# other').waitFor();
    await page.getByText('unsaved draft').waitFor({ state: 'detached' });
  });
});

test('a sign-out forgets the drafts, after the browser has asked', async () => {
  const workflow = await register(SMALL('forgotten'));
  await at.signedIn(
    async (page) => {
      let asked;
      page.on('dialog', (dialog) => {
        asked = dialog.type();
        return dialog.accept();
      });
      await at.open(page, `/workflows/${workflow}/source`);
      await typeAtEnd(page, '# mine');
      await page.getByText('unsaved draft').waitFor();
      const drafts = () => page.evaluate(() => Object.keys(sessionStorage).filter((key) => key.includes('draft')).length);
      assert.equal(await drafts(), 1);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Token').waitFor();
      assert.equal(await drafts(), 0);
      assert.equal(asked, 'beforeunload');
    },
    // Requests of the page may be refused before it is left.
    { mayFail: true },
  );
});

test('a new workflow and a new schedule keep the typed text', async () => {
  await at.signedIn(async (page) => {
    await at.open(page, '/workflows/new');
    const source = editor(page);
    await page.getByLabel('Example').selectOption('playbook');
    await typeAtEnd(page, '# mine');
    await page.getByLabel('Example').selectOption('actions');
    await source.getByText('greeting:write').first().waitFor();
    await page.getByLabel('Example').selectOption('playbook');
    await source.getByText('# mine').waitFor();
    await page.getByRole('link', { name: 'Home' }).click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.goBack();
    await source.getByText('# mine').waitFor();
    await at.open(page, '/schedules/new');
    const schedule = page.getByLabel('YAML or JSON');
    await schedule.fill('name: kept\nschedule: {kind: cron, expr: "0 3 1 1 *"}\ntarget: {kind: shell, command: echo}\n');
    await page.getByRole('link', { name: 'Home' }).click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.goBack();
    assert.match(await schedule.inputValue(), /name: kept/);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'kept' }).waitFor();
    await at.open(page, '/schedules/new');
    assert.match(await schedule.inputValue(), /name: nightly-report/);
  });
});

test('a selection in the editor is replaced by typing, under the policy of the page', async () => {
  await at.signedIn(async (page) => {
    await at.open(page, '/workflows/new');
    const source = editor(page);
    await source.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('Shift+ArrowDown');
    await page.keyboard.press('Shift+ArrowDown');
    await page.keyboard.type('x');
    await source.getByText('x  - id: start').waitFor();
    await page.keyboard.press('Control+A');
    await page.keyboard.type('(');
    // Brackets are closed, as for text without a selection.
    await page.waitForFunction(() => /^\(x[^]*\)$/.test(document.querySelector('.editor').shadowRoot.querySelector('.cm-content').innerText.trim()));
    await page.keyboard.press('Control+A');
    await page.keyboard.type('name: typed');
    await page.waitForFunction(() => document.querySelector('.editor').shadowRoot.querySelector('.cm-content').innerText.trim() === 'name: typed');
  });
});

test('a change that the server does not confirm is not said to be tried again', async () => {
  const workflow = await register(SMALL('unreached'));
  await at.signedIn(
    async (page) => {
      await at.open(page, `/workflows/${workflow}/start`);
      await page.route('**/execute', (route) => route.abort());
      await page.getByRole('button', { name: 'Start', exact: true }).click();
      await page.getByRole('alert').getByText('Nothing was confirmed; try again.').waitFor();
      assert.equal(await page.getByRole('alert').getByText('by itself').count(), 0);
    },
    { mayFail: true },
  );
});

test('a patch that is not an object is refused by the page, and an error is written once', async () => {
  const { execution } = await at.server.run(APPROVAL);
  await at.signedIn(
    async (page) => {
      await at.open(page, `/executions/${execution}`);
      await page.getByRole('button', { name: 'Patch …' }).click();
      await page.getByLabel('Keys as JSON').fill('[1]');
      await page.getByRole('button', { name: 'Patch', exact: true }).click();
      await page.getByText('The keys are an object: {"name": "value"}').waitFor();
      const wrong = await register(FORM);
      await page.route('**/execute', (route) => route.continue({ postData: '{"inputs": [1]}' }));
      await at.open(page, `/workflows/${wrong}/start`);
      await page.getByLabel('Name').fill('Ann');
      await page.getByRole('button', { name: 'Start', exact: true }).click();
      await page.getByRole('alert').getByText(/must be an object/).waitFor();
      assert.equal(await page.getByText(/must be an object/).count(), 1);
    },
    { mayFail: true },
  );
});

test('a copy that the browser refuses says so', async () => {
  const { execution } = await at.server.run(APPROVAL);
  await at.signedIn(async (page) => {
    await page.addInitScript(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error('refused'));
    });
    await at.open(page, `/executions/${execution}`);
    await page.locator('.title').getByRole('button', { name: /^…/ }).click();
    await page.getByRole('button', { name: 'not copied' }).waitFor();
    await page.getByRole('status', { name: 'Results' }).getByText('did not allow the page to copy').waitFor();
  });
});

test('approvals are distinguished by their questions, and an answer is announced', async () => {
  await at.server.run(APPROVAL);
  await at.server.run(APPROVAL.replace('name: release', 'name: other').replace('May it go out?', 'May it come in?'));
  await at.signedIn(async (page) => {
    await page.getByRole('group', { name: 'May it come in?' }).getByRole('button', { name: 'Reject' }).click();
    await page.getByRole('status', { name: 'Results' }).getByText('Rejected.').waitFor();
    await page.getByRole('group', { name: 'May it come in?' }).waitFor({ state: 'detached' });
    await page.getByRole('group', { name: 'May it go out?' }).first().waitFor();
  });
});

test('text that is typed while a version is saved stays, and is not taken for saved', async () => {
  const workflow = await register(SMALL('typing'));
  await at.signedIn(async (page) => {
    await at.open(page, `/workflows/${workflow}/source`);
    let release;
    const isReleased = new Promise((done) => (release = done));
    await page.route(`**/api/v1/workflows/${workflow}`, async (route) => {
      if (route.request().method() === 'PUT') await isReleased;
      await route.continue();
    });
    const source = page.getByLabel('Source', { exact: true });
    assert.match(await source.evaluate((editor) => editor.getRootNode().getElementById(editor.getAttribute('aria-describedby')).textContent), /press Escape and then Tab/);
    await source.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.type('# one');
    await page.getByText('No problems found.').waitFor();
    const save = page.getByRole('button', { name: 'Save as new version' });
    await save.click();
    await source.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.type(' two');
    release();
    await page.getByText('Source of version 2').waitFor();
    await page.getByRole('status', { name: 'Results' }).getByText('Version 2 was saved.').waitFor();
    assert.ok((await source.innerText()).includes('# one two'));
    await page.keyboard.type(' three');
    await save.click();
    await page.getByText('Source of version 3').waitFor();
    const { body } = await at.server.api('GET', `/workflows/${workflow}`);
    assert.ok(body.source.includes('# one two three'), body.source);
    const second = await at.server.api('GET', `/workflows/${workflow}/versions/2`);
    assert.ok(!second.body.source.includes('two'));
  });
});

test('a text that could not be checked is not called free of problems', async () => {
  await at.signedIn(
    async (page) => {
      await page.route('**/api/v1/validate', (route) => route.fulfill({ status: 500, json: { error: { code: 'INTERNAL', message: 'the checks are away' } } }));
      await at.open(page, '/workflows/new');
      await page.getByText('The text was not checked: the checks are away').waitFor();
      assert.equal(await page.getByText('No problems found.').count(), 0);
      await page.unroute('**/api/v1/validate');
      await page.getByLabel('Example').selectOption('actions');
      await page.getByText('No problems found.').waitFor();
    },
    { mayFail: true },
  );
});

test('a change of many executions is stopped, and its result stays', async () => {
  const { workflow } = await at.server.start(LONG, {}, { tags: ['many'] });
  for (let count = 0; count < 2; count += 1) await at.server.api('POST', `/workflows/${workflow}/execute`, { options: { tags: ['many'] } });
  await at.signedIn(async (page) => {
    await at.open(page, '/executions?tag=many');
    await page.locator('tbody tr').nth(2).waitFor();
    await page.getByRole('checkbox').first().check();
    await page.getByLabel('Status').selectOption('failed');
    await page.getByText('No execution matches.').waitFor();
    await page.getByRole('button', { name: 'Cancel 1 selected …' }).click();
    await page.getByText('1 execution will be cancelled').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^Cancel 1 selected/, 'the focus returns');
    await page.getByRole('button', { name: 'clear selection' }).click();
    await page.getByLabel('Status').selectOption('open');
    await page.locator('tbody tr').nth(2).waitFor();
    let release;
    const isReleased = new Promise((done) => (release = done));
    await page.route('**/cancel', async (route) => {
      await isReleased;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Cancel all of this list …' }).click();
    await page.getByRole('button', { name: 'Cancel 3 executions' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Stop' }).click();
    release();
    await dialog.getByText('Stopped: 1 of 3 done').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });
  for (const { executionId } of (await at.server.api('GET', '/executions?tag=many&status=open')).body.executions) await at.server.api('POST', `/executions/${executionId}/cancel`, { force: true });
});

test('a list keeps its pages while the time of its period passes', async () => {
  const workflow = await register(SMALL('counted'));
  for (let count = 0; count < 60; count += 1) await at.server.api('POST', `/workflows/${workflow}/execute`, {});
  await at.signedIn(async (page) => {
    await at.open(page, `/executions?since=1h&workflow=${workflow}`);
    await page.locator('tbody tr').nth(49).waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.locator('tbody tr').nth(59).waitFor();
    await page.evaluate(() => {
      const real = Date.now;
      Date.now = () => real() + 90_000;
    });
    const read = () => page.waitForResponse((response) => response.url().includes('/executions?') && response.url().includes(workflow));
    await read();
    await read();
    assert.equal(await page.locator('tbody tr').count(), 60);
  });
});

test('filters of the address are shown, those of unlisted workflows and correlations, too', async () => {
  const workflow = await register(SMALL('unlisted'));
  await at.signedIn(async (page) => {
    // The response claims that there are more workflows than the list has.
    await page.route(/\/api\/v1\/workflows\?/, (route) => route.fulfill({ json: { workflows: [], pagination: { limit: 100, offset: 0, hasMore: false } } }));
    await at.open(page, `/executions?workflow=${workflow}&correlation=tide-7`);
    await page.getByText('No execution matches.').waitFor();
    await page.getByLabel(/^Workflow/).locator('option:checked', { hasText: 'unlisted' }).waitFor({ state: 'attached' });
    await page.getByRole('button', { name: 'correlation tide-7 ✕' }).click();
    assert.ok(!page.url().includes('correlation'));
  });
});

test('all versions of a workflow are listed', async () => {
  const workflow = await register(SMALL('often'));
  for (let version = 2; version <= 102; version += 1) await at.server.api('PUT', `/workflows/${workflow}`, `${SMALL('often')}# ${version}\n`);
  await at.signedIn(async (page) => {
    await at.open(page, `/workflows/${workflow}/versions`);
    await page.locator('tbody tr').first().waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByRole('region', { name: 'Versions' }).getByRole('row', { name: /^1 / }).waitFor();
  });
});

test('open dead letters are found behind many resolved ones, and those of one schedule from its page', async () => {
  const { body: schedule } = await at.server.api('POST', '/schedules', { name: 'broken', schedule: { kind: 'cron', expr: '0 3 1 1 *' }, target: { kind: 'shell', command: 'false', args: [] } });
  await at.server.api('POST', `/schedules/${schedule.id}/trigger`, { reason: 'one' });
  await at.server.until(async () => (await at.server.api('GET', '/dead-letters')).body.items.length === 1);
  const [letter] = (await at.server.api('GET', '/dead-letters')).body.items;
  const resolved = Array.from({ length: 200 }, (_, place) => ({ ...letter, id: `dlq_${place}`, resolved_at: letter.created_at, resolution: 'discarded' }));
  await at.signedIn(async (page) => {
    await page.route(/\/dead-letters\?/, (route) => (route.request().url().includes('cursor=') ? route.fulfill({ json: { items: [letter], next_cursor: null } }) : route.fulfill({ json: { items: resolved, next_cursor: 'next' } })));
    await page.reload();
    await page.getByRole('link', { name: '1 dead letter', exact: true }).click();
    await page.locator('tbody tr').first().waitFor();
    assert.equal(await page.locator('tbody tr').count(), 1);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await at.open(page, `/schedules/${schedule.id}`);
    const past = page.getByRole('region', { name: 'Past occurrences' });
    await past.locator('.marks button').first().click();
    await page.waitForURL(/occurrence=/);
    await page.getByRole('link', { name: 'dead letters', exact: true }).click();
    await page.getByRole('button', { name: 'schedule broken ✕' }).waitFor();
    page.on('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.getByRole('status', { name: 'Results' }).getByText('Discarded.').waitFor();
    await page.getByText('There is no open dead letter.').waitFor();
  });
});

test('the focus goes to the heading of another page, and stays on the tabs of one', async () => {
  const { execution } = await at.server.run(FAILING);
  await at.signedIn(async (page) => {
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Workflows' }).click();
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1' && document.activeElement.textContent === 'Workflows');
    await at.open(page, `/executions/${execution}`);
    await page.getByRole('link', { name: 'Steps' }).click();
    await page.waitForURL(/steps$/);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Steps');
  });
});

test('keys of one letter are turned off, and stay off', async () => {
  await at.signedIn(async (page) => {
    await page.keyboard.press('?');
    await page.getByLabel('Keys without Ctrl').uncheck();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.reload();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('w');
    await page.keyboard.press('?');
    assert.equal(new URL(page.url()).pathname, '/');
    assert.equal(await page.getByRole('dialog').count(), 0);
    await page.keyboard.press('Control+K');
    await page.getByRole('dialog', { name: 'Command palette' }).waitFor();
  });
});

test('values that are equal in two responses stay the same object', async () => {
  const source = readFileSync(new URL('../src/api/share.ts', import.meta.url), 'utf8');
  const { share } = await import(`data:text/javascript,${encodeURIComponent(typescript.transpileModule(source, { compilerOptions: { module: 'esnext', target: 'esnext' } }).outputText)}`);
  const before = { steps: [{ id: 'a', output: { n: 1 } }, { id: 'b' }], status: 'running', gone: 1 };
  const after = share(before, { steps: [{ id: 'a', output: { n: 1 } }, { id: 'b', done: true }], status: 'completed' });
  assert.deepEqual(after, { steps: [{ id: 'a', output: { n: 1 } }, { id: 'b', done: true }], status: 'completed' });
  assert.equal(after.steps[0], before.steps[0]);
  assert.notEqual(after.steps[1], before.steps[1]);
  assert.equal(share(before, structuredClone(before)), before);
  assert.deepEqual(share([1, 2], { 0: 1, 1: 2 }), { 0: 1, 1: 2 });
});
