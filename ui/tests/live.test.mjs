// Pages that follow an execution while something goes wrong: lines that arrive late, errors, slow responses, a server that is down.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG } from './demo.mjs';
import { harness } from './harness.mjs';
import { APPROVAL } from './server.mjs';

const at = harness();

const completed = (page) => page.locator('.title .status.completed').waitFor();
const approve = (execution, headers) =>
  fetch(`${at.server.url}/api/v1/executions/${execution}/actions/ask/complete`, {
    method: 'POST',
    headers: { authorization: `Bearer ${at.server.token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ outcome: 'Succeeded' }),
  });

test('a line that arrives late is shown after the end, within the lines before it', async () => {
  const { execution } = await at.server.start(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: late-line}
workflow:
  - step: talk
    tool: {kind: shell, command: 'for n in $(seq 1 700); do echo "line $n."; done; until test -e go; do sleep 0.1; done'}
`);
  await at.signedIn(async (page) => {
    let isHeld = true;
    await page.route(/\/logs\?/, async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      if (isHeld) body.logs = body.logs.filter(({ message }) => message !== 'line 7.');
      await route.fulfill({ response, json: body });
    });
    await at.open(page, `/executions/${execution}/logs`);
    await page.getByRole('log').getByText('line 700.').waitFor();
    await page.getByLabel('Search in the logs').fill('line 7.');
    await page.getByText('No line matches.').waitFor();
    isHeld = false;
    at.server.write('go', '');
    await completed(page);
    await page.getByRole('log').getByText('line 7.').waitFor();
    at.server.remove('go');
  });
});

test('a part that the server fails to answer shows its error, and the rest stays live', async () => {
  const { execution } = await at.server.run(APPROVAL);
  await at.signedIn(
    async (page) => {
      await page.route(/\/logs\?/, (route) => route.fulfill({ status: 500, json: { error: { code: 'INTERNAL', message: 'the lines cannot be read' } } }));
      await at.open(page, `/executions/${execution}/logs`);
      await page.getByRole('alert').getByText('the lines cannot be read').waitFor();
      await approve(execution);
      await completed(page);
      await page.unroute(/\/logs\?/);
      // The end of the execution may have read the lines again already.
      const lines = page.getByRole('log').getByText('Workflow execution started');
      const again = page.getByRole('alert').getByRole('button', { name: 'Try again' });
      await lines.or(again).first().waitFor();
      if (await again.isVisible()) await again.click();
      await lines.waitFor();
    },
    { mayFail: true },
  );
});

test('an execution of another tenant is followed, even if each answer takes longer than the time between two reads', async () => {
  const tenant = (await at.server.api('POST', '/tenants', { name: 'slow fleet' })).body.id;
  const headers = { 'x-tenant-id': tenant };
  const send = async (path, body, type) => {
    const response = await fetch(`${at.server.url}/api/v1${path}`, { method: 'POST', headers: { authorization: `Bearer ${at.server.token}`, 'content-type': type, ...headers }, body });
    assert.ok(response.ok, await response.clone().text());
    return response.json();
  };
  const { id } = await send('/workflows', 'name: ask\nnodes:\n  - {id: start, type: trigger}\n  - {id: ask, type: approval, config: {message: May it sail?}}\nedges: [{source: start, target: ask}]\n', 'application/yaml');
  const { executionId } = await send(`/workflows/${id}/execute`, JSON.stringify({ options: { async: false } }), 'application/json');
  await at.signedIn(async (page) => {
    await page.getByLabel('Tenant').selectOption({ label: 'slow fleet' });
    await page.getByText('May it sail?').waitFor();
    await at.open(page, `/executions/${executionId}/evidence`);
    await page.locator('.title .status.paused').waitFor();
    // A link has no headers: the page reads the file itself.
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'download the chain' }).click()]);
    assert.equal(file.suggestedFilename(), `${executionId}.evidence.jsonl`);
    await page.route(`**/api/v1/executions/${executionId}`, async (route) => {
      const response = await route.fetch();
      // The response takes longer than the page waits between two reads.
      await new Promise((arrived) => setTimeout(arrived, 4_000));
      await route.fulfill({ response }).catch(() => undefined);
    });
    assert.ok((await approve(executionId, headers)).ok);
    await completed(page);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });
});

test('while the server is away the page says so, and after its return no longer', async () => {
  await at.signedIn(
    async (page) => {
      await at.open(page, '/executions');
      await page.getByRole('heading', { name: 'Executions' }).waitFor();
      await at.server.kill();
      await page.getByText('The server does not answer.').first().waitFor();
      await at.server.open();
      await page.getByText('What is shown may be old').waitFor({ state: 'detached' });
    },
    { mayFail: true },
  );
});

test('a tab in the background has no stream, and reads what it missed when it is seen again', async () => {
  const { execution } = await at.server.run(APPROVAL);
  await at.signedIn(async (page) => {
    await page.addInitScript(() => {
      window.streams = [];
      const Real = window.EventSource;
      window.EventSource = class extends Real {
        constructor(url) {
          super(url);
          window.streams.push(this);
        }
      };
      window.isSeen = true;
      Object.defineProperty(document, 'visibilityState', { get: () => (window.isSeen ? 'visible' : 'hidden') });
    });
    const open = (count) => page.waitForFunction((wanted) => window.streams.filter(({ readyState }) => readyState === EventSource.OPEN).length === wanted, count);
    const see = (isSeen) =>
      page.evaluate((is) => {
        window.isSeen = is;
        document.dispatchEvent(new Event('visibilitychange'));
      }, isSeen);
    await at.open(page, `/executions/${execution}`);
    await page.locator('.title .status.paused').waitFor();
    await open(1);
    await see(false);
    await open(0);
    await approve(execution);
    assert.equal(await page.locator('.title .status.paused').count(), 1);
    await see(true);
    await completed(page);
  });
});

test('a page receives messages of later changes only, and log lines in the view of the log only', async () => {
  const { execution } = await at.server.start(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: quiet-stream}
workflow:
  - step: before
    tool: {kind: shell, command: 'seq -f "before %.0f" 1 50'}
    next: {step: talk}
  - step: talk
    tool: {kind: shell, command: 'echo ready; until test -e one; do sleep 0.1; done; echo first; until test -e two; do sleep 0.1; done; echo second'}
    next: {step: after}
  - step: after
    tool: {kind: noop}
`);
  await at.server.until(async () => (await at.server.api('GET', `/executions/${execution}/logs`)).body.logs.some(({ message }) => message === 'ready'));
  await at.signedIn(async (page) => {
    await page.addInitScript(() => {
      window.streams = [];
      window.messages = [];
      const Real = window.EventSource;
      window.EventSource = class extends Real {
        constructor(url) {
          super(url);
          window.streams.push(this);
          for (const kind of ['status_update', 'node_started', 'node_completed', 'log', 'execution_completed']) this.addEventListener(kind, ({ data }) => window.messages.push(JSON.parse(data)));
        }
      };
    });
    const open = () => page.waitForFunction(() => window.streams.at(-1)?.readyState === EventSource.OPEN && window.streams.filter(({ readyState }) => readyState === EventSource.OPEN).length === 1);
    await at.open(page, `/executions/${execution}`);
    await open();
    await page.getByRole('link', { name: 'Logs' }).click();
    const log = page.getByRole('log');
    await log.getByText('ready').waitFor();
    await page.waitForFunction(() => window.streams.length === 2);
    await open();
    at.server.write('one', '');
    await page.waitForFunction(() => window.messages.some(({ data }) => data.message === 'first'));
    await log.getByText('first').waitFor();
    await page.getByRole('link', { name: 'Steps' }).click();
    await page.waitForFunction(() => window.streams.length === 3);
    await open();
    at.server.write('two', '');
    await completed(page);
    await page.waitForFunction(() => window.messages.some(({ type }) => type === 'execution_completed'));
    const messages = await page.evaluate(() => window.messages);
    assert.deepEqual(messages.filter(({ type }) => type === 'log').map(({ data }) => data.message), ['first']);
    assert.ok(messages.every(({ data }) => data.nodeId !== 'before'), JSON.stringify(messages));
    assert.ok(messages.every(({ data }) => data.status !== 'queued'), JSON.stringify(messages));
  });
  for (const name of ['one', 'two']) at.server.remove(name);
});

test('a reader who drags the scroll bar leaves the end of the log', async () => {
  const { execution } = await at.server.start(LONG.replace('seq 1 600', 'seq 1 60000').replace('sleep 1', 'test $hour -lt 300 || sleep 1'));
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/logs`);
    const log = page.getByRole('log');
    await log.getByText('tide 300').waitFor();
    const follow = page.getByLabel('Follow');
    assert.ok(await follow.isChecked());
    const box = await log.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await log.evaluate((element) => (element.scrollTop = 0));
    await page.waitForFunction(() => !document.querySelector('.filters input[type=checkbox]').checked);
    await page.mouse.up();
    await log.getByText('tide 1', { exact: false }).first().waitFor();
  });
  await at.server.api('POST', `/executions/${execution}/cancel`, { force: true });
});
