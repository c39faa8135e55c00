// Views of an execution: children, stops, pauses, omitted parts, errors and evidence.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GATE, IMPORT, LONG, SAGA } from './demo.mjs';
import { harness } from './harness.mjs';
import { FAILING } from './server.mjs';

const at = harness();

const ended = (execution) => at.server.until(async () => (await at.server.api('GET', `/executions/${execution}`)).body.completedAt);

/** Changes the answers of an address. */
const change = (page, pattern, edit) =>
  page.route(pattern, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    edit(body, new URL(route.request().url()).searchParams);
    // Cursors that a test invents are unknown to the server.
    await route.fulfill({ response, status: 200, json: body });
  });

test('the timeline shows a failed child, a stopped step, and the pauses of the execution', async () => {
  await at.server.api('POST', '/workflows', FAILING.replace('name: fragile', 'name: part'));
  const parent = await at.server.run(`
name: parent
nodes:
  - {id: start, type: trigger}
  - {id: sub, type: workflow, config: {workflowId: part}}
edges: [{source: start, target: sub}]
`);
  const long = await at.server.start(LONG);
  await at.server.until(async () => (await at.server.api('GET', `/executions/${long.execution}`)).body.status === 'running');
  for (const action of ['pause', 'resume', 'cancel']) await at.server.api('POST', `/executions/${long.execution}/${action}`, action === 'cancel' ? { force: true } : {});
  await ended(long.execution);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${parent.execution}/timeline`);
    await page.getByRole('img', { name: /^child execution: failed/ }).waitFor();
    await at.open(page, `/executions/${long.execution}/timeline`);
    await page.getByRole('img', { name: /^attempt 1: stopped/ }).waitFor();
    await page.locator('.line-row', { hasText: 'execution' }).getByRole('img', { name: /paused.*: waits/ }).waitFor();
    await at.open(page, `/executions/${parent.execution}`);
    await page.getByRole('link', { name: 'Child execution of sub' }).click();
    await page.getByRole('heading', { name: 'part' }).waitFor();
  });
});

test('a timeline of more events than are read says up to when, and reads on', async () => {
  const { execution } = await at.server.run(IMPORT);
  await at.signedIn(async (page) => {
    let hasMore = true;
    let pages = 0;
    await change(page, /\/events\?/, (body, query) => {
      if (query.get('cursor')) body.events = [];
      body.pagination = hasMore ? { hasMore: true, cursor: `c${(pages += 1)}` } : { hasMore: false };
    });
    await at.open(page, `/executions/${execution}/timeline`);
    await page.getByText(/^The first \d+ events are shown, up to /).waitFor();
    await page.getByRole('heading', { name: /^Where the time went, up to / }).waitFor();
    hasMore = false;
    await page.getByRole('button', { name: 'Read more events' }).click();
    await page.getByRole('heading', { name: 'Where the time went', exact: true }).waitFor();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });
});

test('firings that an answer leaves out are not called unreached', async () => {
  const { execution } = await at.server.run(FAILING);
  await at.signedIn(async (page) => {
    await change(page, `**/api/v1/executions/${execution}`, (body) => {
      body.nodeExecutions = body.nodeExecutions.filter(({ nodeId }) => nodeId !== 'first');
      body.shortened = { values: 0, bytes: 0, nodeExecutions: 1, journal: '' };
    });
    await at.open(page, `/executions/${execution}/steps`);
    await page.getByText(/The oldest 1 firing or iteration of this execution is not listed here/).waitFor();
    await page.getByRole('region', { name: 'Steps' }).locator('summary', { hasText: 'second' }).waitFor();
    assert.equal(await page.getByText('not run').count(), 0);
    await at.open(page, `/executions/${execution}?step=first`);
    const panel = page.getByRole('region', { name: 'first' });
    await panel.getByText('It ran: 1 firing.').waitFor();
    await panel.getByRole('link', { name: 'Its events' }).click();
    await page.getByText('step.done').first().waitFor();
  });
});

test('two waits that are alike have a form each', async () => {
  const { execution } = await at.server.run(GATE);
  await at.signedIn(async (page) => {
    let copies = 2;
    await change(page, `**/api/v1/executions/${execution}`, (body) => {
      body.waitingFor = Array.from({ length: copies }, () => body.waitingFor[0]);
    });
    await at.open(page, `/executions/${execution}`);
    const forms = page.getByRole('group', { name: 'Waiting for people' }).getByRole('group');
    await forms.nth(1).waitFor();
    await forms.first().getByLabel('window').fill('half');
    copies = 1;
    await forms.nth(1).waitFor({ state: 'detached' });
    assert.equal(await forms.getByLabel('window').inputValue(), 'half');
  });
});

test('an error is a tree with all of its fields, and colours are left out', async () => {
  const { execution } = await at.server.run(FAILING);
  const saga = await at.server.run(SAGA.replace('echo no cabin is free', `printf "\\\\033[31mno cabin\\\\033[0m is free"`));
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    await page.locator('.failures').getByText('details of the error').click();
    await page.getByLabel('Search in the error').fill('exit_code');
    await page.locator('.failures .leaf', { hasText: 'exit_code' }).getByText('3').waitFor();
    await at.open(page, `/executions/${saga.execution}/actions`);
    const row = page.getByRole('region', { name: 'Actions', exact: true }).locator('tr', { hasText: 'ship' });
    await row.getByText('no cabin is free').waitFor();
    assert.ok(!(await row.innerText()).includes('[31m'));
  });
});

test('large results of iterations are downloaded', async () => {
  const { execution } = await at.server.run(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: bulky-loop}
workflow:
  - step: load
    loop: {in: "{{ [1, 2] }}", iterator: part}
    tool: {kind: shell, command: 'head -c 90000 /dev/zero | tr "\\0" x'}
`);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/values`);
    const row = page.getByRole('region', { name: 'Large values' }).locator('tr', { hasText: 'load[1]' });
    const [file] = await Promise.all([page.waitForEvent('download'), row.getByRole('link', { name: 'download' }).click()]);
    assert.match(file.suggestedFilename(), /^load_1_/);
  });
});

test('a log is searched as it is shown, its data included, and says how far', async () => {
  const { execution } = await at.server.run(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: colours}
workflow:
  - step: paint
    tool: {kind: shell, command: 'printf "\\\\033[31mred\\\\033[0m berth\\\\n10%%\\\\r20%%\\\\n"'}
`);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/logs`);
    const log = page.getByRole('log');
    await log.getByText('10%').waitFor();
    assert.match(await log.locator('.line', { hasText: '10%' }).innerText(), /10%\s*\n\s*20%/);
    const search = page.getByLabel('Search in the logs');
    await search.fill('red berth');
    await page.waitForFunction(() => document.querySelectorAll('.line').length === 1);
    await search.fill('durationms=');
    await log.getByText('Node completed').waitFor();
    await page.waitForURL(/find=durationms/);
    let pages = 0;
    // Not the page's own address, which ends in the same way.
    await change(page, /\/api\/.*\/logs\?/, (body, query) => {
      if (query.get('cursor')) body.logs = [];
      body.pagination = { hasMore: true, cursor: `c${(pages += 1)}` };
    });
    await page.reload();
    await page.getByText(/^The newest \d+ lines were searched; there are earlier ones\./).waitFor();
    assert.equal(await search.inputValue(), 'durationms=');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });
});

test('a level of the log is shown with the levels above it', async () => {
  const { execution } = await at.server.run(FAILING);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/logs`);
    const log = page.getByRole('log');
    const info = log.getByText('Workflow execution started');
    await info.waitFor();
    await page.getByLabel('Level').selectOption({ label: 'warn and above' });
    await info.waitFor({ state: 'detached' });
    await log.locator('.line.warn', { hasText: 'the part is missing' }).waitFor();
    await log.locator('.line.error', { hasText: 'Workflow execution failed' }).waitFor();
    await page.getByLabel('Level').selectOption('error');
    await log.locator('.line.warn').waitFor({ state: 'detached' });
    await log.locator('.line.error').first().waitFor();
  });
});

test('a record of evidence is hashed once while the chain grows', async () => {
  const { execution } = await at.server.run(`
name: two-parts
nodes:
  - {id: first, type: shell, config: {command: echo one}}
  - {id: ask, type: approval, config: {message: Go on?}}
  - {id: second, type: shell, config: {command: echo two}}
edges: [{source: first, target: ask}, {source: ask, target: second}]
`);
  await at.signedIn(async (page) => {
    await page.addInitScript(() => {
      window.hashed = 0;
      const real = crypto.subtle.digest.bind(crypto.subtle);
      crypto.subtle.digest = (...given) => ((window.hashed += 1), real(...given));
    });
    await at.open(page, `/executions/${execution}/evidence`);
    await page.getByText(/\d+ records? verified/).waitFor();
    await at.server.api('POST', `/executions/${execution}/actions/ask/complete`, { outcome: 'Succeeded' });
    await ended(execution);
    const { length } = (await at.server.api('GET', `/executions/${execution}/evidence`)).body.evidence;
    await page.getByText(`${length} records verified`).waitFor();
    assert.equal(await page.evaluate(() => window.hashed), length);
  });
});

test('a chain of evidence is verified to its beginning and its end', async () => {
  const { execution } = await at.server.run(FAILING);
  const cases = [
    [(body) => body.evidence.shift(), /is not record number 1/],
    [(body) => body.evidence.splice(1, 1), /is not record number 2/],
    [(body) => (body.anchor.hashSha256 = '00'), /the anchor of the server is about another record/],
    [(body) => (body.evidence.pop(), delete body.anchor), /the rest was cut off/],
  ];
  await at.signedIn(async (page) => {
    for (const [edit, reason] of cases) {
      await change(page, /\/evidence\?/, edit);
      await at.open(page, `/executions/${execution}/evidence`);
      await page.getByText(reason).waitFor();
      await page.unroute(/\/evidence\?/);
    }
    await page.addInitScript(() => {
      crypto.subtle.digest = () => Promise.reject(new Error('no digest'));
    });
    await page.reload();
    await page.getByText('The records could not be verified: no digest').waitFor();
  });
});

test('what is chosen in a view is in the address', async () => {
  const { execution } = await at.server.run(IMPORT);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/timeline`);
    await page.getByRole('button', { name: 'Zoom in' }).click();
    await page.getByRole('button', { name: 'Zoom in' }).click();
    await page.getByRole('button', { name: 'fetch', exact: true }).waitFor({ state: 'detached' });
    await page.reload();
    await page.getByRole('button', { name: 'All', exact: true }).and(page.locator(':enabled')).waitFor();
    assert.equal(await page.getByRole('button', { name: 'fetch', exact: true }).count(), 0);
    await at.open(page, `/executions/${execution}/steps`);
    await page.getByLabel('Search steps').fill('apolo');
    await page.getByLabel('Status').selectOption('failed');
    await page.waitForURL(/find=apolo/);
    await page.reload();
    const steps = page.getByRole('region', { name: 'Steps' });
    await steps.locator('summary', { hasText: 'apologise' }).waitFor();
    assert.equal(await steps.locator('xpath=./details').count(), 1);
    await page.getByLabel('Status').selectOption('skipped');
    await page.getByRole('button', { name: 'Show all steps' }).click();
    await steps.locator('summary', { hasText: 'fetch' }).first().waitFor();
    await at.open(page, `/executions/${execution}/events?find=loop.started`);
    const events = page.getByRole('region', { name: 'Events' });
    await events.locator('summary', { hasText: 'loop.started' }).waitFor();
    assert.equal(await events.locator('summary').count(), 1);
  });
});
