// Executions with many steps, lines and rows, and pages that change while they are open.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG } from './demo.mjs';
import { harness } from './harness.mjs';
import { APPROVAL } from './server.mjs';

// One step at a time, so that a second one has to wait.
const at = harness({ WINDLASS_SLOTS: '1' });

const STEPS = 1_000;
const LINES = 3_000;

function wide() {
  const id = (number) => `s${number}`;
  const nodes = Array.from({ length: STEPS }, (_, number) => ({ id: id(number), type: number === 0 ? 'trigger' : 'delay', config: number === 0 ? {} : { duration: 0 } }));
  const edges = nodes.slice(1).map((node, place) => ({ source: id(Math.max(place + 1 - 20, 0)), target: node.id }));
  return JSON.stringify({ name: 'wide', nodes, edges });
}

test('a graph of 1,000 steps draws what is in view, and is moved and zoomed', async () => {
  const { status, body } = await at.server.api('POST', '/workflows', wide());
  assert.equal(status, 201, JSON.stringify(body));
  await at.signedIn(async (page) => {
    await at.open(page, `/workflows/${body.id}`);
    await page.locator('.step').first().waitFor();
    await page.locator('.react-flow__edge').first().waitFor();
    const drawn = await page.locator('.step').count();
    assert.ok(drawn < 200, `${drawn} steps are drawn`);
    assert.equal(await page.locator('.react-flow__minimap-node').count(), STEPS);
    const transform = () => page.locator('.react-flow__viewport').evaluate((element) => getComputedStyle(element).transform);
    const before = await transform();
    await page.locator('.react-flow__controls-zoomout').click();
    await page.waitForFunction((old) => getComputedStyle(document.querySelector('.react-flow__viewport')).transform !== old, before);
    const first = await page.locator('.react-flow__node').first().getAttribute('data-id');
    const pane = await page.locator('.react-flow__pane').boundingBox();
    await page.mouse.move(pane.x + pane.width - 20, pane.y + 20);
    await page.mouse.down();
    await page.mouse.move(pane.x + pane.width - 20, pane.y - 4_000, { steps: 4 });
    await page.mouse.up();
    await page.locator(`.react-flow__node[data-id="${first}"]`).waitFor({ state: 'detached' });
  });
});

test('a step of a large graph is found by its name, and one step is a stop of the Tab key', async () => {
  const { body } = await at.server.api('POST', '/workflows', wide().replace('"wide"', '"searched"'));
  await at.signedIn(async (page) => {
    await page.keyboard.press('/');
    await page.getByRole('dialog', { name: 'Command palette' }).waitFor();
    await page.keyboard.press('Escape');
    await at.open(page, `/workflows/${body.id}`);
    await page.locator('.step').first().waitFor();
    const stops = page.locator('.react-flow__node[tabindex="0"]');
    await stops.waitFor();
    await page.keyboard.press('/');
    const field = page.getByLabel('Find a step');
    assert.ok(await field.evaluate((input) => input === document.activeElement));
    await field.fill('s99');
    await page.getByText('1 of 11: s99').waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('2 of 11: s990').waitFor();
    const found = page.locator('.step.found');
    await found.getByText('s990').waitFor();
    await page.waitForFunction(() => {
      const [step, graph] = ['.step.found', '.graph'].map((place) => document.querySelector(place)?.getBoundingClientRect());
      return step && graph && Math.abs(step.x + step.width / 2 - graph.x - graph.width / 2) < 5 && Math.abs(step.y + step.height / 2 - graph.y - graph.height / 2) < 5;
    });
    assert.equal(await stops.getAttribute('data-id'), 's990');
    await stops.focus();
    await page.keyboard.press('ArrowUp');
    await page.waitForFunction(() => document.activeElement?.getAttribute('data-id') === 's970');
    assert.equal(await stops.count(), 1);
    await field.fill('nothing');
    await page.getByText('No step matches.').waitFor();
  });
});

test('the graph keeps its layout while the states of its steps change', async () => {
  const { execution } = await at.server.run(APPROVAL);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    await page.locator('.step', { hasText: 'Ask the captain' }).waitFor();
    assert.equal(await page.locator('.step.completed', { hasText: 'publish' }).count(), 0);
    const places = () => page.locator('.react-flow__node').evaluateAll((nodes) => nodes.map((node) => `${node.dataset.id} ${node.style.transform}`).sort());
    const before = await places();
    assert.equal(before.length, 3);
    assert.equal(await page.locator('.react-flow__edge').count(), 2);
    await at.server.api('POST', `/executions/${execution}/actions/ask/complete`, { outcome: 'Succeeded' });
    await page.locator('.step.completed', { hasText: 'publish' }).waitFor();
    assert.deepEqual(await places(), before);
    // The state is a shape, too.
    assert.equal(await page.locator('.step.completed', { hasText: 'publish' }).locator('.shape').innerText(), '✓');
  });
});

test('a long log begins with its newest lines, earlier ones follow on request, and only those near the view are in the document', async () => {
  const { execution } = await at.server.run(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: chatty}
workflow:
  - step: talk
    tool: {kind: shell, command: 'for n in $(seq 1 ${LINES}); do echo "line $n."; done'}
`);
  await at.signedIn(async (page) => {
    const requests = [];
    page.on('request', (request) => /\/api\/.*\/logs\?/.test(request.url()) && requests.push(request.url()));
    await at.open(page, `/executions/${execution}/logs`);
    const log = page.getByRole('log');
    await log.getByText(`line ${LINES}.`).waitFor();
    assert.equal(requests.length, 1, requests.join('\n'));
    await page.waitForFunction(() => {
      const box = document.querySelector('.logs');
      return box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    });
    await log.evaluate((box) => (box.scrollTop = 0));
    const earlier = log.getByRole('button', { name: 'Earlier lines' });
    await earlier.click();
    await log.getByText(`line ${LINES - 510}.`).waitFor();
    assert.equal(requests.length, 2, requests.join('\n'));
    await page.getByLabel('Follow').check();
    await log.getByText(`line ${LINES}.`).waitFor();
    const drawn = await page.locator('.line').count();
    assert.ok(drawn < 800, `${drawn} lines are in the document`);
    await page.getByLabel('Follow').uncheck();
    // A search reads the rest.
    await page.getByLabel('Search in the logs').fill('line 1500.');
    await log.getByText('line 1500.').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('.line').length === 1);
    await page.getByLabel('Search in the logs').fill('');
    await page.getByLabel('Step').selectOption('talk');
    assert.match(page.url(), /step=talk/);
    await log.getByText(`line ${LINES}.`).waitFor();
  });
});

test('a page that follows a log keeps its newest lines only', async () => {
  const [batches, lines] = [6, 4_500];
  const { execution } = await at.server.start(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: endless}
workflow:
  - step: talk
    tool: {kind: shell, command: 'for batch in $(seq 1 ${batches}); do until test -e go$batch; do sleep 0.1; done; seq -f "batch $batch line %.0f." 1 ${lines}; done; until test -e end; do sleep 0.1; done'}
`);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/logs`);
    const log = page.getByRole('log');
    await log.getByText('Node started').waitFor();
    for (let batch = 1; batch <= batches; batch += 1) {
      at.server.write(`go${batch}`, '');
      await log.getByText(`batch ${batch} line ${lines}.`).waitFor();
    }
    await page.getByLabel('Search in the logs').fill('batch 1 line 7.');
    const said = await page.getByText(/No line matches among the newest [\d,]+ lines; earlier ones may\./).innerText();
    const kept = Number(said.match(/newest ([\d,]+)/)[1].replaceAll(',', ''));
    assert.ok(kept >= 20_000 && kept < 22_000, `${kept} lines are kept`);
    await page.getByRole('button', { name: 'Search on' }).click();
    await log.getByText('batch 1 line 7.').waitFor();
    at.server.write('end', '');
    await page.locator('.title .status.completed').waitFor();
  });
});

test('many events are rendered in parts, and the data of an event when it is opened', async () => {
  const { execution } = await at.server.run(APPROVAL);
  const count = 1_200;
  await at.signedIn(async (page) => {
    await page.route(/\/events\?/, async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      const [first] = body.events;
      body.events = Array.from({ length: count }, (_, place) => ({ ...first, sequence: place + 1 }));
      await route.fulfill({ response, json: body });
    });
    await at.open(page, `/executions/${execution}/events`);
    const events = page.getByRole('region', { name: 'Events' });
    await events.getByText('1 to 500 of 1,200 events').waitFor();
    assert.equal(await events.locator('details').count(), 500);
    assert.equal(await events.locator('.json').count(), 0);
    await events.locator('summary').first().click();
    await events.locator('.json').waitFor();
    await events.getByRole('button', { name: 'Next rows' }).click();
    await events.getByText('501 to 1,000 of 1,200 events').waitFor();
    await events.getByRole('button', { name: 'Next rows' }).click();
    await events.getByText('1,001 to 1,200 of 1,200 events').waitFor();
    assert.equal(await events.locator('details').count(), 200);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });
});

test('a loop of many iterations is one row of the timeline until it is opened, and a chosen step is shown alone', async () => {
  const loop = (step, count, next) => `
  - step: ${step}
    loop: {in: "{{ range(${count}) | list }}", iterator: n}
    tool: {kind: shell, command: 'true'}${next ? `\n    next: {step: ${next}}` : ''}`;
  const { execution } = await at.server.run(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: rounds}
workflow:${loop('many', 21, 'few')}${loop('few', 3, 'last')}
  - step: last
    tool: {kind: shell, command: 'true'}
`);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/timeline`);
    const row = (name) => page.getByRole('button', { name, exact: true });
    await row('last').waitFor();
    await row('few[2]').waitFor();
    assert.equal(await row('many[0]').count(), 0);
    const toggle = page.getByRole('button', { name: '21 iterations of many' });
    assert.equal(await toggle.getAttribute('aria-expanded'), 'false');
    await toggle.click();
    await row('many[0]').waitFor();
    await toggle.click();
    await row('many[0]').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: '3 iterations of few' }).click();
    await row('few[2]').waitFor({ state: 'detached' });
    await at.open(page, `/executions/${execution}/timeline?step=last`);
    await page.getByText('Only the rows of last are shown.').waitFor();
    assert.equal(await page.locator('.timeline li').count(), 1);
    await page.getByRole('button', { name: 'Show all steps' }).click();
    await row('many').waitFor();
  });
});

test('a step that waits for a slot says so, and the list and home change without a reload', async () => {
  const first = await at.server.start(LONG);
  await at.server.until(async () => (await at.server.api('GET', `/executions/${first.execution}/logs`)).body.logs.some(({ message }) => message === 'tide 1'));
  await at.signedIn(async (page, context) => {
    await at.open(page, '/executions?status=open');
    await page.locator('tbody tr').first().waitFor();
    const home = await context.newPage();
    await at.open(home, '/');
    const running = home.getByRole('region', { name: 'Running' });
    await running.getByRole('link', { name: 'watch-tides' }).first().waitFor();
    const second = await at.server.start(LONG.replace('watch-tides', 'second-watch'));
    await page.getByRole('link', { name: 'second-watch' }).waitFor();
    await at.open(page, `/executions/${second.execution}/steps`);
    await page.getByText('The execution is queued: its first steps wait for free slots of a worker.').waitFor();
    await at.server.api('POST', `/executions/${first.execution}/cancel`, { force: true });
    await running.getByRole('link', { name: 'second-watch' }).waitFor();
    await at.server.api('POST', `/executions/${second.execution}/cancel`, { force: true });
    await page.locator('.title .status.cancelled').waitFor();
    await running.getByRole('link', { name: 'second-watch' }).waitFor({ state: 'detached' });
  });
});

test('a list with several pages reads the first one again, and new executions come without gaps', async () => {
  const { body } = await at.server.api('POST', '/workflows', 'name: polled\nnodes: [{id: a, type: trigger}]\n');
  const start = async () => (await at.server.api('POST', `/workflows/${body.id}/execute`, {})).body.executionId;
  const started = [];
  for (let count = 0; count < 70; count += 1) started.unshift(await start());
  await at.signedIn(async (page) => {
    await at.open(page, `/executions?workflow=${body.id}`);
    const rows = page.locator('tbody a[data-row]');
    await rows.nth(49).waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await rows.nth(69).waitFor();
    const later = [];
    page.on('request', (request) => request.url().includes('/executions?') && request.url().includes('cursor=') && later.push(request.url()));
    const poll = () => page.waitForResponse((response) => response.url().includes('/executions?') && response.url().includes(body.id));
    await poll();
    started.unshift(await start());
    await rows.nth(70).waitFor();
    await poll();
    assert.deepEqual(later, []);
    assert.deepEqual(await rows.evaluateAll((links) => links.map((link) => link.getAttribute('href').split('/').at(-1))), started);
    // A change by the user may concern every row.
    await at.open(page, `/workflows/${body.id}`);
    await rows.nth(19).waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await rows.nth(39).waitFor();
    const all = page.waitForResponse((response) => response.url().includes('cursor='));
    await page.getByRole('button', { name: 'Pause' }).click();
    await all;
  });
});

test('the list has pages without gaps, and filters by workflow, time and parent', async () => {
  const { status, body } = await at.server.api('POST', '/workflows', 'name: counted\nnodes: [{id: a, type: trigger}]\n');
  assert.equal(status, 201);
  for (let count = 0; count < 120; count += 1) await at.server.api('POST', `/workflows/${body.id}/execute`, { options: { tags: ['counted'] } });
  await at.signedIn(async (page) => {
    await at.open(page, '/executions?tag=counted');
    await page.locator('tbody tr').nth(49).waitFor();
    const more = page.getByRole('button', { name: 'Show more' });
    await more.click();
    await page.locator('tbody tr').nth(99).waitFor();
    await more.click();
    await page.locator('tbody tr').nth(119).waitFor();
    await more.waitFor({ state: 'detached' });
    const links = await page.locator('tbody a[data-row]').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    assert.equal(new Set(links).size, 120);
    await page.getByLabel(/^Workflow/).selectOption({ label: 'counted' });
    await page.getByLabel('Created').selectOption('1h');
    assert.equal(new URL(page.url()).search, `?tag=counted&workflow=${body.id}&since=1h`);
    await page.locator('tbody tr').first().waitFor();
    await page.getByLabel('Created').selectOption('other');
    await page.getByLabel('to', { exact: true }).fill('2020-01-01T00:00');
    await page.getByText('No execution matches.').waitFor();
    assert.match(page.url(), /until=20(19-12-31|20-01-01)T/);
    await at.open(page, `/executions?parent=${links[0].split('/').at(-1)}`);
    await page.getByText('No execution matches.').waitFor();
    await page.getByRole('button', { name: /^children of/ }).click();
    await page.locator('tbody tr').first().waitFor();
  });
});
