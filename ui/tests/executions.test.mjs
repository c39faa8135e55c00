import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GATE, IMPORT, LONG, MANUAL, SAGA } from './demo.mjs';
import { harness } from './harness.mjs';
import { APPROVAL, FAILING, HOSTILE } from './server.mjs';

const at = harness();

test('home lists what waits, runs and failed, and an approval is answered there', async () => {
  const asked = await at.server.run(APPROVAL);
  const failed = await at.server.run(FAILING);
  const long = await at.server.start(LONG);
  await at.signedIn(async (page) => {
    const waiting = page.getByRole('region', { name: 'Waiting for you' });
    await waiting.getByText('May it go out?').waitFor();
    await page.getByRole('region', { name: 'Running' }).getByRole('link', { name: 'watch-tides' }).waitFor();
    await page.getByRole('region', { name: 'Failed in the last day' }).locator(`a[href$="${failed.execution}"]`).waitFor();
    await page.getByRole('region', { name: 'Server' }).getByText(/ready/).waitFor();
    await page.getByText(/\d+ of \d+ in use/).waitFor();
    await waiting.getByLabel('Notes').fill('looks good');
    await waiting.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('Nothing waits for an answer of yours.').waitFor();
    const { body } = await at.server.api('GET', `/executions/${asked.execution}/evidence`);
    assert.ok(body.evidence.some(({ notes }) => notes === 'looks good'), 'the notes are evidence');
  });
  await at.server.api('POST', `/executions/${long.execution}/cancel`, {});
});

test('home lists executions at a gate and paused ones, and lets them go on', async () => {
  const gate = await at.server.run(GATE);
  const long = await at.server.start(LONG);
  await at.server.api('POST', `/executions/${long.execution}/pause`, { reason: 'fog' });
  await at.signedIn(async (page) => {
    const waiting = page.getByRole('region', { name: 'Waiting for you' });
    await waiting.getByText(/It was paused by .*: fog/).waitFor();
    await waiting.getByRole('button', { name: 'Resume' }).click();
    await waiting.getByText(/It was paused by/).waitFor({ state: 'detached' });
    await waiting.locator(`a[href$="${gate.execution}"]`).waitFor();
    await waiting.getByRole('textbox', { name: 'window' }).fill('open');
    await waiting.getByRole('button', { name: 'Set in the context' }).click();
    await waiting.locator(`a[href$="${gate.execution}"]`).waitFor({ state: 'detached' });
    await at.server.until(async () => (await at.server.api('GET', `/executions/${gate.execution}/status`)).body.status === 'completed');
  });
  await at.server.api('POST', `/executions/${long.execution}/cancel`, { force: true });
});

test('home lists a gate beside a running branch', async () => {
  const { execution } = await at.server.start(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: half-open}
workflow:
  - step: begin
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: watch}, {step: deploy}]}
  - step: watch
    tool: {kind: shell, command: sleep 600}
  - step: deploy
    spec: {policy: {admit: {rules: [{when: "{{ ctx.tide == 'high' }}", then: {allow: true}}, {else: {then: {allow: false}}}]}}}
    tool: {kind: shell, command: echo deployed}
`);
  const tell = async () => (await at.server.api('GET', `/executions/${execution}/status`)).body;
  await at.server.until(async () => (await tell()).waitingFor?.length > 0);
  assert.equal((await tell()).status, 'running');
  await at.signedIn(async (page) => {
    const requests = [];
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    const waiting = page.getByRole('region', { name: 'Waiting for you' });
    await waiting.locator(`a[href$="${execution}"]`).waitFor();
    await waiting.getByRole('textbox', { name: 'tide' }).fill('high');
    await waiting.getByRole('button', { name: 'Set in the context' }).click();
    await waiting.locator(`a[href$="${execution}"]`).waitFor({ state: 'detached' });
    assert.ok(requests.filter((path) => path.endsWith('/status')).length <= 1, 'no execution is asked what it waits for, besides that of the answer');
  });
  await at.server.api('POST', `/executions/${execution}/cancel`, { force: true });
});

test('home does not show measurements that the server does not report', async () => {
  await at.server.api('PUT', '/runner-groups/dock', {});
  await at.signedIn(
    async (page) => {
      const server = page.getByRole('region', { name: 'Server' });
      await server.getByText(/\d+ of \d+ in use/).waitFor();
      await server.getByText('dock: 0 workers, 0 waiting and 0 claimed calls').waitFor();
      await page.route('**/metrics', (route) => route.fulfill({ status: 503, body: 'busy' }));
      await server.getByText('it answered 503').waitFor();
      assert.equal(await server.getByText(/of \d+ in use|free/).count(), 0);
      assert.equal(await server.getByText('unknown').count(), 3);
      assert.equal(await server.getByRole('meter').count(), 0);
      await at.open(page, '/administration/workers');
      await page.getByText('Slots: unknown').waitFor();
      await page.unroute('**/metrics');
      await page.getByText(/Slots: \d+ of \d+ in use/).waitFor();
    },
    { mayFail: true },
  );
});

test('executions that begin to run are listed and counted among those that run', async () => {
  const listed = { executions: [{ executionId: `exec_${'7'.repeat(32)}`, status: 'initializing', workflowName: 'early', createdAt: new Date().toISOString(), updatedAt: new Date().toISOString(), metadata: { tags: [] } }], pagination: { hasMore: false } };
  await at.signedIn(async (page) => {
    const isAsked = (url) => url.pathname === '/api/v1/executions' && url.searchParams.get('status') === 'initializing';
    await page.route(isAsked, (route) => route.fulfill({ json: listed }));
    await page.reload();
    const running = page.getByRole('region', { name: 'Running' });
    await running.getByRole('link', { name: 'early' }).waitFor();
    await running.getByRole('link', { name: '1 initializing' }).click();
    await page.getByRole('heading', { name: 'Executions' }).waitFor();
    assert.equal(await page.getByLabel('Status').inputValue(), 'initializing');
    await page.getByRole('link', { name: 'early' }).waitFor();
  });
});

test('a failure names its place, and a retry shows first what runs again', async () => {
  const { execution } = await at.server.run(FAILING);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/steps`);
    await page.locator('.failures').getByText('second').waitFor();
    await page.locator('.failures').getByText('the part is missing').waitFor();
    at.server.write('repaired', '');
    await page.getByRole('button', { name: 'Retry …' }).click();
    await page.getByText('1 result is kept. 1 firing runs again').waitFor();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForURL((url) => !url.pathname.includes(execution));
    await page.locator('.title .status.completed').waitFor();
    await page.getByText('retry of').waitFor();
    at.server.remove('repaired');
    const retried = new URL(page.url()).pathname.split('/')[2];
    await at.open(page, `/executions/${execution}/children`);
    await page.getByRole('region', { name: 'Children and retries' }).locator(`a[href$="${retried}"]`).waitFor();
  });
});

test('a retry runs under the latest version of the workflow when it is chosen', async () => {
  const { workflow, execution } = await at.server.run(FAILING.replace('name: fragile', 'name: mended'));
  await at.server.api('PUT', `/workflows/${workflow}`, FAILING.replace('name: fragile', 'name: mended').replace(/test -e repaired.*'/, "echo mended'"));
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    await page.getByRole('button', { name: 'Retry …' }).click();
    await page.getByLabel('Definition').selectOption('latest');
    await page.getByText('1 result is kept. 1 firing runs again').waitFor();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForURL((url) => !url.pathname.includes(execution));
    await page.locator('.title .status.completed').waitFor();
    await page.getByText('playbook version 2').waitFor();
  });
});

test('the graph shows every step with its state; a step is chosen in the address and run again from there', async () => {
  const { execution } = await at.server.run(FAILING);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    await page.locator('.step.completed', { hasText: 'first' }).waitFor();
    await page.locator('.step.failed', { hasText: 'second' }).click();
    await page.getByRole('region', { name: 'second' }).getByText('SHELL_EXIT').first().waitFor();
    assert.equal(new URL(page.url()).searchParams.get('step'), 'second');
    await page.reload();
    await page.getByRole('region', { name: 'second' }).waitFor();
    await page.getByRole('button', { name: 'Run again from second …' }).click();
    await page.getByText('1 result is kept').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });
});

test('a loop is a counter with iterations to look into, and a route that was not taken says why', async () => {
  const { execution } = await at.server.run(IMPORT);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}?step=book`);
    await page.locator('.step', { hasText: '8 iterations, 2 failed' }).waitFor();
    const loop = page.getByRole('group', { name: 'Iterations of book' });
    await loop.getByText('2 failed').waitFor();
    await loop.getByRole('button', { name: 'iteration 2' }).click();
    await loop.getByText('no stock for 1003').first().waitFor();
    await at.open(page, `/executions/${execution}/steps`);
    await page.getByText('The route from book needs event.payload.failed == 0; event.payload.failed was 2.').waitFor();
  });
});

/** Returns the sentence next to a step in the tab of steps. */
const reason = async (page, name) => page.getByRole('region', { name: 'Steps' }).locator('summary', { has: page.locator('strong', { hasText: new RegExp(`^${name}$`) }) }).first().innerText();

test('a conditional, a failure and an error route are explained with the values that they saw', async () => {
  const { execution } = await at.server.run(
    `
name: choices
nodes:
  - {id: start, type: trigger, config: {manualConfig: {inputPayload: {type: object, properties: {size: {type: integer}}}}}}
  - {id: weigh, type: conditional, config: {conditions: [{id: heavy, variable: inputs.size, operator: greater_than, value: 10}], defaultBranch: light}}
  - {id: crane, type: shell, config: {command: 'true'}}
  - {id: hook, type: shell, config: {command: exit 4}}
  - {id: sorry, type: shell, config: {command: 'true'}}
  - {id: stow, type: shell, config: {command: 'true'}}
edges:
  - {source: start, target: weigh}
  - {source: weigh, target: crane, sourceHandle: heavy}
  - {source: weigh, target: hook, sourceHandle: light}
  - {source: crane, target: sorry, sourceHandle: error}
  - {source: hook, target: stow}
settings: {failureMode: continue_on_error}
`,
    { size: 3 },
  );
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/steps`);
    await page.getByText('weigh chose light, not heavy: “inputs.size greater than 10” was false; inputs.size was 3.').waitFor();
    assert.match(await reason(page, 'sorry'), /No taken route leads to it\. crane before it was skipped\./);
    assert.match(await reason(page, 'stow'), /· hook before it failed\./);
    await at.open(page, `/executions/${execution}/graph?step=crane`);
    await page.getByRole('region', { name: 'crane' }).getByText('inputs.size was 3').waitFor();
  });
});

test('a step that waits says for what: a limit, a delay, a backoff, a release', async () => {
  const limited = await at.server.start(`
name: limited
settings: {maxParallel: 1}
nodes:
  - {id: start, type: trigger}
  - {id: one, type: shell, config: {command: sleep 600}}
  - {id: two, type: shell, config: {command: sleep 600}}
edges:
  - {source: start, target: one}
  - {source: start, target: two}
`);
  const waits = await at.server.start(`
name: patient
nodes:
  - {id: start, type: trigger}
  - {id: ebb, type: delay, config: {duration: 600000}}
  - {id: flaky, type: http_api, config: {url: 'http://127.0.0.1:1/', method: GET}, retryPolicy: {maxRetries: 3, initialDelayMs: 600000, maxDelayMs: 600000}}
edges:
  - {source: start, target: ebb}
  - {source: start, target: flaky}
`);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${limited.execution}/steps`);
    await page.getByText('It waits for the end of other steps: the limit on parallel steps of the execution is reached.').waitFor();
    await at.server.api('POST', `/executions/${limited.execution}/pause`, {});
    await page.getByText('The execution is paused: it begins after someone resumes it.').first().waitFor();
    await at.open(page, `/executions/${waits.execution}/steps`);
    await page.getByText(/It waits until \w+ \d+, \d{4}/).waitFor();
    await page.getByText(/Attempt 1 failed; another one follows at /).waitFor();
  });
  for (const { execution } of [limited, waits]) await at.server.api('POST', `/executions/${execution}/cancel`, { force: true });
});

test('the timeline has a row for each iteration, and a part of it can be enlarged', async () => {
  const { execution } = await at.server.run(IMPORT);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/timeline`);
    await page.getByRole('button', { name: 'book[2]', exact: true }).waitFor();
    await page.getByRole('img', { name: /try 3 of .* failed: failed/ }).first().waitFor();
    await page.getByRole('heading', { name: 'Where the time went' }).waitFor();
    await page.getByRole('button', { name: 'Zoom in' }).click();
    await page.getByRole('button', { name: 'Zoom in' }).click();
    await page.getByRole('button', { name: 'fetch', exact: true }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await page.getByRole('button', { name: 'fetch', exact: true }).waitFor();
    const axis = await page.locator('.axis').boundingBox();
    await page.mouse.move(axis.x + axis.width * 0.9, axis.y + 5);
    await page.mouse.down();
    await page.mouse.move(axis.x + axis.width - 1, axis.y + 5, { steps: 3 });
    await page.mouse.up();
    await page.getByRole('button', { name: 'fetch', exact: true }).waitFor({ state: 'detached' });
  });
});

test('a gate is opened in place', async () => {
  const { execution } = await at.server.run(GATE);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    await page.getByText("It waits at its gate, which needs ctx.window == 'open'; ctx.window is not set.").waitFor();
    await page.getByRole('textbox', { name: 'window' }).fill('open');
    await page.getByRole('button', { name: 'Set in the context' }).click();
    await page.locator('.title .status.completed').waitFor();
  });
});

test('an execution is followed, paused, patched, resumed and cancelled', async () => {
  const { execution } = await at.server.start(LONG);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/logs`);
    const log = page.getByRole('log');
    await log.getByText('tide 3').waitFor();
    await page.getByLabel('Search in the logs').fill('tide 2');
    await log.getByText('tide 3', { exact: true }).waitFor({ state: 'detached' });
    await page.getByLabel('Search in the logs').fill('');
    await page.getByLabel('Level').selectOption('error');
    await page.getByText('There are no log lines.').waitFor();
    await page.getByRole('button', { name: 'Patch …' }).click();
    await page.getByLabel('Keys as JSON').fill('{"tide": "high"}');
    await page.getByRole('button', { name: 'Patch', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Values' }).click();
    await page.getByRole('region', { name: 'Context' }).getByText('high').waitFor();
    await page.getByRole('button', { name: 'Pause …' }).click();
    await page.getByLabel('Reason').fill('low water');
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByText(/It was paused by .*: low water/).waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText(/It was paused by/).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Cancel …' }).click();
    await page.getByRole('button', { name: 'Cancel the execution' }).click();
    await page.locator('.title .status.cancelled').waitFor();
  });
});

test('values are a tree with search, and large ones are downloaded', async () => {
  const { execution } = await at.server.run(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: bulky}
workload: {harbour: {name: Bergen, berths: [1, 2]}}
workflow:
  - step: load
    tool: {kind: shell, command: 'head -c 90000 /dev/zero | tr "\\0" x'}
`);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/values`);
    const input = page.getByRole('region', { name: 'Input' });
    await input.getByText('Bergen').waitFor();
    await input.getByLabel('Search in the input').fill('berths');
    await input.getByText('Bergen').waitFor({ state: 'detached' });
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'download' }).first().click()]);
    assert.match(file.suggestedFilename(), /load.*\.json$/);
  });
});

test('a retried step says why, and its events are searched', async () => {
  const { execution } = await at.server.run(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: second-try}
workflow:
  - step: try
    tool:
      kind: shell
      command: 'test -e tried || { touch tried; exit 1; }'
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3, delay: 0.1}}, {else: {then: {do: continue}}}]}}
`);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/steps`);
    await page.getByText('It succeeded after 1 retry.').waitFor();
    await page.getByRole('link', { name: 'Events' }).click();
    const events = page.getByRole('region', { name: 'Events' });
    await events.locator('summary').nth(2).waitFor();
    const all = await events.locator('summary').count();
    await page.getByLabel('Search events').fill('completed');
    await page.waitForFunction((before) => document.querySelectorAll('.steps summary').length < before, all);
    await events.locator('summary').first().click();
    await events.getByLabel(/^Search in event/).first().waitFor();
    await page.getByLabel('Search events').fill('no such event');
    await page.getByText('No event matches.').waitFor();
  });
});

test('evidence is verified in the browser, and a changed record is found', async () => {
  const { execution } = await at.server.run(FAILING);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/evidence`);
    await page.getByText(/\d+ records verified/).waitFor();
    await page.route('**/evidence?*', async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      body.evidence[1].summary = 'nothing happened';
      await route.fulfill({ response: answer, json: body });
    });
    await page.reload();
    await page.getByText(/is wrong: its content does not have its hash/).waitFor();
  });
});

test('an execution is run again with other inputs', async () => {
  const { execution } = await at.server.run(IMPORT, { shop: 'Bergen' });
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    await page.getByRole('button', { name: 'Run again …' }).click();
    assert.equal(await page.getByLabel('shop').inputValue(), 'Bergen');
    await page.getByLabel('shop').fill('Oslo');
    await page.getByLabel('orders').fill('[1001]');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForURL(/executions\/exec_/);
    await page.locator('.title .status.completed').waitFor();
    await page.getByRole('link', { name: 'Values' }).click();
    await page.getByRole('region', { name: 'Input' }).getByText('Oslo').waitFor();
  });
});

test('filters are in the address, and many executions are cancelled after a preview', async () => {
  const tags = { tags: ['bulk'] };
  const { workflow } = await at.server.start(LONG, {}, tags);
  await at.server.api('POST', `/workflows/${workflow}/execute`, { options: tags });
  await at.signedIn(async (page) => {
    await at.open(page, '/executions');
    await page.getByLabel('Tag').fill('bulk');
    await page.getByLabel('Status').selectOption('open');
    assert.equal(new URL(page.url()).search, '?tag=bulk&status=open');
    // Until the server answers, the list shows what it showed before.
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2);
    await page.getByRole('button', { name: 'Cancel all of this list …' }).click();
    await page.getByText('2 executions will be cancelled').waitFor();
    await page.getByRole('button', { name: 'Cancel 2 executions' }).click();
    await page.getByText('2 of 2 done').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByText('No execution matches.').waitFor();
    await page.getByLabel('Status').selectOption('cancelled');
    await page.getByLabel('Dialect').selectOption('workflow');
    await page.getByText('No execution matches.').waitFor();
    await page.getByLabel('Dialect').selectOption('playbook');
    await page.getByLabel('Trigger').selectOption('api');
    await page.getByLabel('Search executions').fill('TIDES');
    await page.locator('tbody tr').nth(1).waitFor();
    await page.getByLabel('Search executions').fill('no such name');
    await page.getByText('No execution matches.').waitFor();
    await page.getByLabel('Search executions').fill('watch');
    await page.getByRole('checkbox').first().check();
    await page.getByRole('button', { name: 'Retry 1 selected …' }).click();
    await page.getByText('1 execution will be retried').waitFor();
  });
});

test('a bulk retry skips what has a retry', async () => {
  const { workflow } = await at.server.start('name: sinks\nnodes: [{id: in, type: trigger}, {id: sink, type: shell, config: {command: exit 1}}]\nedges: [{source: in, target: sink}]\n', {}, { async: false, tags: ['wreck'] });
  const ids = [];
  for (let number = 0; number < 4; number += 1) ids.push((await at.server.api('POST', `/workflows/${workflow}/execute`, { options: { async: false, tags: ['wreck'] } })).body.executionId);
  const ended = async (id) => (await at.server.api('GET', `/executions/${id}/status`)).body.status === 'failed';
  const first = await at.server.api('POST', `/executions/${ids[0]}/retry`, {});
  await at.server.until(() => ended(first.body.executionId));
  const listed = async () => (await at.server.api('GET', '/executions?tag=wreck&limit=100')).body.executions;
  // The five that were started, and the retry of one of them.
  assert.equal((await listed()).length, 6);
  await at.signedIn(async (page) => {
    // A page of the list for each execution: the dialog must keep its place.
    await page.route(/api\/v1\/executions\?.*limit=100/, (route) => route.continue({ url: route.request().url().replace('limit=100', 'limit=2') }));
    await at.open(page, '/executions?tag=wreck');
    await page.locator('tbody tr').nth(5).waitFor();
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Retry all of this list …' }).click();
    await dialog.getByText('5 executions will be retried').waitFor();
    await dialog.getByText('1 execution was skipped: each has a retry already.').waitFor();
    await dialog.getByRole('button', { name: 'Retry 5 executions' }).click();
    await dialog.getByText('5 of 5 done').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await at.server.until(async () => (await listed()).length === 11 && (await listed()).every(({ status }) => status === 'failed'));
    const retried = (await listed()).map(({ retriedBy }) => retriedBy).filter(Boolean);
    assert.equal(new Set(retried).size, 6, 'each has one retry');
    await page.reload();
    await page.locator('tbody tr').nth(10).waitFor();
    await page.getByRole('button', { name: 'Retry all of this list …' }).click();
    await dialog.getByText('6 executions were skipped').waitFor();
    await dialog.getByRole('button', { name: 'Retry 5 executions' }).waitFor();
  });
});

test('a bulk retry of more than 1,000 executions continues with the rest, and retries none twice', async () => {
  const name = (number) => `exec_${String(number).padStart(32, '0')}`;
  const at0 = new Date(0).toISOString();
  const failed = (number) => ({ executionId: name(number), status: 'failed', workflowName: 'wreck', createdAt: at0, updatedAt: at0, completedAt: at0, metadata: { tags: [] }, ...(number % 100 === 7 && { retriedBy: name(9_999) }) });
  const total = 1_100;
  await at.signedIn(async (page) => {
    const sent = [];
    await page.route(/\/api\/v1\/executions\?/, (route) => {
      const query = new URL(route.request().url()).searchParams;
      const [from, limit] = [Number(query.get('cursor') ?? 0), Number(query.get('limit'))];
      const end = Math.min(from + limit, total);
      const executions = Array.from({ length: end - from }, (_, place) => failed(from + place));
      return route.fulfill({ json: { executions, pagination: { hasMore: end < total, ...(end < total && { cursor: String(end) }) } } });
    });
    await page.route(/\/executions\/exec_0+\d+\/retry/, (route) => {
      sent.push(route.request().url().match(/exec_0+(\d*)/)[1]);
      return route.fulfill({ status: 202, json: {} });
    });
    await at.open(page, '/executions?status=failed');
    await page.getByRole('button', { name: 'Retry all of this list …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('There are more than these').waitFor();
    await dialog.getByRole('button', { name: 'Retry 1,000 executions' }).click();
    await dialog.getByRole('button', { name: 'Continue with the rest …' }).click();
    await dialog.getByRole('button', { name: 'Retry 89 executions' }).click();
    await dialog.getByText('89 of 89 done').waitFor();
    assert.deepEqual([sent.length, new Set(sent).size], [1_089, 1_089]);
    assert.equal(await dialog.getByRole('button', { name: 'Continue with the rest …' }).count(), 0);
  });
});

test('a child is a link from its parent, and the parent from its child', async () => {
  await at.server.api('POST', '/workflows', FAILING.replace('name: fragile', 'name: part'));
  const { execution } = await at.server.run(`
name: parent
nodes:
  - {id: start, type: trigger}
  - {id: sub, type: workflow, config: {workflowId: part}}
edges: [{source: start, target: sub}]
`);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/children`);
    await page.getByRole('region', { name: 'Children and retries' }).getByRole('link', { name: 'part' }).click();
    await page.getByRole('heading', { name: 'part' }).waitFor();
    await page.getByRole('link', { name: 'parent', exact: true }).click();
    await page.getByRole('heading', { name: 'parent' }).waitFor();
    await page.locator('.step', { hasText: 'sub' }).click();
    await page.getByRole('region', { name: 'sub' }).getByRole('link', { name: 'a child execution' }).click();
    await page.getByRole('heading', { name: 'part' }).waitFor();
  });
});

test('a run of actions has its own words, and says what was undone', async () => {
  const { execution } = await at.server.run(SAGA);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/actions`);
    const actions = page.getByRole('region', { name: 'Actions' });
    await actions.locator('tr', { hasText: 'hotel' }).getByText('Succeeded').waitFor();
    await actions.locator('tr', { hasText: 'ship' }).getByText('Failed').waitFor();
    await page.getByText('1 action was to be undone: 1 succeeded, 0 failed').waitFor();
    await page.getByRole('region', { name: 'Compensation' }).getByText('hotel:cancel').waitFor();
  });
});

test('a manual step is completed with evidence', async () => {
  const { execution } = await at.server.run(MANUAL);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    await page.getByText('A person has to confirm its end.').waitFor();
    await page.getByLabel('Notes').fill('left the dock');
    await page.getByLabel('References of evidence').fill('doc-7');
    await page.getByRole('button', { name: 'Complete', exact: true }).click();
    await page.locator('.title .status.completed').waitFor();
    const { body } = await at.server.api('GET', `/executions/${execution}/evidence`);
    assert.ok(body.evidence.some(({ notes, evidenceRefs }) => notes === 'left the dock' && evidenceRefs?.[0] === 'doc-7'));
  });
});

test('markup in names, results, logs and errors is shown as text', async () => {
  const { execution, workflow } = await at.server.run(HOSTILE);
  await at.signedIn(async (page) => {
    const dialogs = [];
    page.on('dialog', (dialog) => (dialogs.push(dialog.message()), dialog.dismiss()));
    for (const tab of ['graph', 'timeline', 'steps', 'values', 'logs', 'children', 'events', 'evidence']) {
      await at.open(page, `/executions/${execution}/${tab}`);
      await page.getByRole('heading', { name: '<img src=x onerror=alert(1)>' }).waitFor();
      await page.locator('main [aria-busy]').waitFor({ state: 'detached' });
      assert.equal(await page.locator('main img, main script, main svg[onload], a[href^="javascript:"]').count(), 0, tab);
    }
    await at.open(page, `/executions/${execution}/logs`);
    await page.getByText('<svg onload=alert(4)>').first().waitFor();
    await at.open(page, `/executions/${execution}/steps`);
    await page.getByText(/The route from <b>bold<\/b> needs event\.name == '<i>x<\/i>'; event\.name was “step\.failed”/).waitFor();
    await at.open(page, `/executions/${execution}/logs`);
    await page.getByText('<svg onload=alert(4)>').first().waitFor();
    assert.ok(!(await page.locator('.logs').innerText()).includes('\u001b'));
    await at.open(page, `/executions/${execution}/values`);
    await page.getByText('javascript:alert(2)').first().waitFor();
    for (const tab of ['overview', 'start', 'source', 'versions']) {
      await at.open(page, `/workflows/${workflow}/${tab}`);
      await page.getByRole('heading', { name: '<img src=x onerror=alert(1)>' }).waitFor();
      assert.equal(await page.locator('main img, main script, a[href^="javascript:"]').count(), 0, tab);
    }
    assert.deepEqual(dialogs, []);
  });
});
