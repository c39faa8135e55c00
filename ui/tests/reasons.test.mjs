// Why steps are in their states: the conditions in full, and the values that they saw.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IMPORT, MANUAL } from './demo.mjs';
import { harness } from './harness.mjs';
import { FAILING } from './server.mjs';

const at = harness();

const playbook = (name, steps, workload = '{}') => `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: ${name}}
workload: ${workload}
workflow:${steps}`;

test('a long condition is shown whole, with the values of its names only', async () => {
  const guard = "event.name == 'step.done' and ctx.window == 'open' and workload.allowance > 1000 and workload.tonnage < workload.allowance";
  const { execution } = await at.server.run(
    playbook(
      'long-guard',
      `
  - step: weigh
    tool: {kind: noop}
    next: {step: load, when: "{{ ${guard} }}"}
  - step: load
    tool: {kind: noop}
`,
      '{allowance: 70, tonnage: 12}',
    ),
  );
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/steps`);
    await page.getByText(`The route from weigh needs ${guard}; event.name was “step.done”, ctx.window is not set, workload.allowance was 70, workload.tonnage was 12.`).waitFor();
  });
});

test('a loop without items is a loop to the conditions after it', async () => {
  const { execution } = await at.server.run(
    playbook(
      'empty-loop',
      `
  - step: each
    loop: {in: "{{ workload.items }}", iterator: item}
    tool: {kind: noop}
    next: {step: after, when: "{{ event.name == 'step.done' }}"}
  - step: after
    tool: {kind: noop}
`,
      '{items: []}',
    ),
  );
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/steps`);
    await page.getByText("The route from each needs event.name == 'step.done'; event.name was “loop.done”.").waitFor();
  });
});

test('a step at a join waits for the branches that have not arrived', async () => {
  const { execution } = await at.server.run(
    playbook(
      'berths',
      `
  - step: begin
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: left}, {step: right}]}
  - step: left
    tool: {kind: noop}
    next: {step: both}
  - step: right
    spec: {policy: {admit: {rules: [{when: "{{ ctx.go }}", then: {allow: true}}]}}}
    tool: {kind: noop}
    next: {step: both}
  - step: both
    spec: {join: all}
    tool: {kind: noop}
`,
    ),
  );
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/steps`);
    const both = page.getByRole('region', { name: 'Steps' }).locator('summary', { hasText: 'both' });
    await both.getByText('left has arrived; it waits for right.').waitFor();
    await both.locator('.status.waiting').waitFor();
    await page.getByLabel('Status').selectOption('waiting');
    await both.waitFor();
    await at.open(page, `/executions/${execution}?step=both`);
    await page.getByRole('region', { name: 'both' }).getByText('left has arrived; it waits for right.').waitFor();
  });
});

test('a gate says what opens it, and that it is still closed', async () => {
  const { execution } = await at.server.run(
    playbook(
      'lock-gate',
      `
  - step: pass
    spec: {policy: {admit: {rules: [{when: "{{ ctx.size == 'small' and ctx.window == 'open' }}", then: {allow: true}}, {else: {then: {allow: false}}}]}}}
    tool: {kind: noop}
`,
    ),
  );
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    const waiting = page.getByRole('group', { name: 'Waiting for people' });
    await waiting.getByText("It waits at its gate, which needs ctx.size == 'small' and ctx.window == 'open'; ctx.size is not set, ctx.window is not set.").waitFor();
    await waiting.getByRole('textbox', { name: 'size' }).fill('ten');
    await waiting.getByRole('button', { name: 'Set in the context' }).click();
    await waiting.getByText("The gate is still closed.", { exact: true }).waitFor();
    await page.getByRole('status', { name: 'Results' }).getByText('Set in the context; the gate is still closed.').waitFor();
    await waiting.getByText('ctx.size is “ten”, ctx.window is not set.').waitFor();
    await waiting.getByRole('textbox', { name: 'size' }).fill('small');
    await waiting.getByRole('textbox', { name: 'window' }).fill('open');
    await waiting.getByRole('button', { name: 'Set in the context' }).click();
    await page.locator('.title .status.completed').waitFor();
  });
});

test('a retry marks what it keeps, and counts no time of the execution that it retries', async () => {
  const { execution } = await at.server.run(FAILING.replace('echo one >> ran', 'sleep 0.2'));
  const { body } = await at.server.api('POST', `/executions/${execution}/retry`, {});
  await at.server.until(async () => (await at.server.api('GET', `/executions/${body.executionId}`)).body.completedAt);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${body.executionId}/steps`);
    const first = page.getByRole('region', { name: 'Steps' }).locator('summary', { hasText: 'first' });
    await first.getByText('Kept from the execution that this one retries.').waitFor();
    await page.getByText('retry of').waitFor();
    assert.equal(await page.getByRole('link', { name: 'parent', exact: true }).count(), 0);
    await at.open(page, `/executions/${body.executionId}/timeline`);
    const costs = page.getByRole('table');
    await costs.getByRole('cell', { name: 'second' }).waitFor();
    assert.equal(await costs.getByRole('cell', { name: 'first' }).count(), 0);
  });
});

test('the tries of a task and the backoffs between them are parts of the timeline', async () => {
  const { execution } = await at.server.run(IMPORT);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/timeline`);
    const row = page.locator('.line-row', { has: page.getByRole('button', { name: 'book[2]', exact: true }) });
    await row.getByRole('img', { name: /try 1 of \w+ failed: failed.*backoff before try 2 of \w+: backoff.*try 2 of \w+ failed: failed.*backoff before try 3 of \w+: backoff.*try 3 of \w+ failed: failed/ }).waitFor();
    assert.equal(await row.locator('rect.segment.failed').count(), 3);
    assert.equal(await row.locator('rect.segment.backoff').count(), 2);
    const cells = page.getByRole('row', { name: /^book/ }).getByRole('cell');
    assert.match(await cells.nth(2).innerText(), /\d/, 'the backoff of book');
  });
});

test('one of several answers is not announced as the end of the step', async () => {
  const { execution } = await at.server.run(
    MANUAL.replace('name: loading', 'name: loading-twice\npolicy: {sodConstraints: [{kind: DistinctApprovers, minimumApprovers: 2}]}'),
  );
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    const waiting = page.getByRole('group', { name: 'Waiting for people' });
    await waiting.getByLabel('Notes').fill('seen');
    await waiting.getByRole('button', { name: 'Complete', exact: true }).click();
    await page.getByRole('status', { name: 'Results' }).getByText('Counted: 1 of 2; another person has to answer.').waitFor();
    await waiting.getByText('Counted: 1 of 2; another person has to answer.').waitFor();
    await waiting.getByRole('button', { name: 'Complete', exact: true }).waitFor({ state: 'detached' });
    assert.notEqual((await at.server.api('GET', `/executions/${execution}`)).body.status, 'completed');
  });
});

test('an iteration beyond the first ones is opened by its number, and more are shown on request', async () => {
  const { execution } = await at.server.run(
    playbook(
      'many',
      `
  - step: count
    loop: {in: "{{ range(305) | list }}", iterator: n, spec: {mode: parallel, max_in_flight: 50}}
    tool: {kind: noop}
`,
    ),
  );
  await at.server.until(async () => (await at.server.api('GET', `/executions/${execution}`)).body.completedAt);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}?step=count`);
    const loop = page.getByRole('group', { name: 'Iterations of count' });
    await loop.getByRole('button', { name: 'iteration 299', exact: true }).waitFor();
    assert.equal(await loop.getByRole('button', { name: 'iteration 304', exact: true }).count(), 0);
    await loop.getByLabel('Number of an iteration of count').fill('304');
    await loop.getByText('count[304]').waitFor();
    await loop.getByLabel('Number of an iteration of count').fill('999');
    await loop.getByText('No iteration 999 of count is known here.').waitFor();
    await loop.getByRole('button', { name: 'Show more: 5 iterations are not shown' }).click();
    await loop.getByRole('button', { name: 'iteration 304', exact: true }).click();
    await loop.getByText('count[304]').waitFor();
  });
});

test('a large result is a download where it is shown, and events are found by their data', async () => {
  const { execution } = await at.server.run(
    playbook(
      'bulky-step',
      `
  - step: load
    tool: {kind: shell, command: 'head -c 90000 /dev/zero | tr "\\0" x'}
`,
    ),
  );
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}?step=load`);
    const panel = page.getByRole('region', { name: 'load' });
    await panel.getByText(/^a large value, \d+ KiB$/).waitFor();
    assert.equal(await panel.getByText('$artifact').count(), 0);
    const [file] = await Promise.all([page.waitForEvent('download'), panel.getByRole('link', { name: /^Download the output of load/ }).click()]);
    assert.match(file.suggestedFilename(), /load.*\.json$/);
    await at.open(page, `/executions/${execution}/events`);
    await page.getByLabel('Search events').fill('$ARTIFACT');
    const events = page.getByRole('region', { name: 'Events' });
    await events.locator('summary', { hasText: 'execution.created' }).waitFor({ state: 'detached' });
    await events.locator('summary', { hasText: 'step.done' }).waitFor();
  });
});

test('a missing object says so, and leads to the others', async () => {
  const { execution } = await at.server.run(FAILING);
  const absent = '0'.repeat(32);
  const paths = [
    ['executions', 'execution', `exec_${absent}`],
    ['workflows', 'workflow', `wf_${absent}`],
    ['plans', 'plan', `pl_${absent}`],
    ['actions', 'action', 'nope'],
    ['schedules', 'schedule', absent.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')],
    ['executions', 'execution', 'nope'],
  ];
  await at.signedIn(
    async (page) => {
      for (const [list, what, id] of paths) {
        await at.open(page, `/${list}/${id}`);
        await page.getByRole('heading', { name: `There is no such ${what}` }).waitFor();
        assert.equal(await page.title(), `There is no such ${what} · Windlass`);
        await page.getByText('it may be in another tenant').waitFor();
        assert.equal(await page.locator('main').getByRole('link', { name: `All ${what}s` }).getAttribute('href'), `/${list}`);
      }
      await at.open(page, `/executions/${execution}?step=ghost`);
      await page.getByText('The definition has no such step.').waitFor();
      assert.equal(await page.getByRole('button', { name: /^Run again from/ }).count(), 0);
    },
    { mayFail: true },
  );
});
