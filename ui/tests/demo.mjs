// A server with executions in every state, for screenshots and manual inspection.
import { APPROVAL, FAILING } from './server.mjs';

/** A loop with retries and two iterations that fail. */
export const IMPORT = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: import-orders}
workload: {orders: [1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008], shop: Rotterdam, dryRun: false}
workflow:
  - step: fetch
    desc: Reads the list of orders
    tool: {kind: shell, command: 'echo "read {{ workload.orders | length }} orders of {{ workload.shop }}"; sleep 0.2'}
    next: {step: book, when: "{{ event.name == 'step.done' }}"}
  - step: book
    desc: Books each order
    loop: {in: "{{ workload.orders }}", iterator: order, spec: {mode: parallel, max_in_flight: 3}}
    tool:
      kind: shell
      command: 'echo "booking {{ iter.order }}"; sleep 0.1; test {{ iter.order % 4 }} -ne 3 || { echo "no stock for {{ iter.order }}" >&2; exit 4; }'
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3, backoff: exponential, delay: 0.3}}, {else: {then: {do: continue}}}]}}
    next:
      arcs:
        - {step: report, when: "{{ event.payload.failed == 0 }}"}
        - {step: apologise, when: "{{ event.payload.failed > 0 }}"}
  - step: report
    tool: {kind: shell, command: echo all orders are booked}
  - step: apologise
    tool: {kind: shell, command: 'echo "some orders could not be booked" >&2; exit 1'}
`;

/** Waits at a gate until the context is patched. */
export const GATE = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: night-deploy}
workflow:
  - step: build
    tool: {kind: shell, command: echo built}
    next: {step: deploy, when: "{{ event.name == 'step.done' }}"}
  - step: deploy
    spec: {policy: {admit: {rules: [{when: "{{ ctx.window == 'open' }}", then: {allow: true}}, {else: {then: {allow: false}}}]}}}
    tool: {kind: shell, command: echo deployed}
`;

/** Started with a form: every kind of input. */
export const FORM = `
name: onboarding
nodes:
  - id: start
    type: trigger
    config:
      manualConfig:
        inputPayload:
          type: object
          required: [name, team]
          properties:
            name: {type: string, title: Name, description: Name of the new colleague}
            team: {type: string, enum: [deck, engine, galley], default: deck}
            begins: {type: string, format: date}
            shifts: {type: integer, minimum: 1, default: 5}
            remote: {type: boolean, default: false}
            skills: {type: array, items: {type: string}}
  - {id: greet, type: shell, config: {command: "echo welcome {{ inputs.name }} to {{ inputs.team }}"}}
edges:
  - {source: start, target: greet}
`;

export const LONG = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: watch-tides}
workflow:
  - step: watch
    tool: {kind: shell, command: 'for hour in $(seq 1 600); do echo "tide $hour"; sleep 1; done'}
`;

/** Undoes the first action when the second fails. */
export const SAGA = `
schemaVersion: 1
workflowId: journey
name: journey
actions:
  - actionId: hotel
    order: 1
    operation: hotel:book
    compensation: {compensationOperation: "hotel:cancel"}
  - {actionId: ship, order: 2, operation: "ship:book"}
adapters:
  operations:
    "hotel:book": {kind: shell, command: echo booked}
    "hotel:cancel": {kind: shell, command: echo cancelled}
    "ship:book": {kind: shell, command: 'echo no cabin is free >&2; exit 1'}
`;

/** A person confirms the end of its action. */
export const MANUAL = `
schemaVersion: 1
workflowId: loading
name: loading
actions:
  - {actionId: load, order: 1, operation: "cargo:load", completionMode: manual}
adapters:
  operations:
    "cargo:load": {kind: shell, command: echo loading}
`;

/** Waits for a sandbox, writes a file, and skips a step whose condition is false. */
export const SMOKE = `
spec:
  selectionHint: Smoke test of a sandbox
  cluster: {fromSandbox: box}
  runner: dock
  params:
    - {name: box, required: true, metadata: {displayName: Sandbox}}
    - {name: level, schema: {type: string, enum: [quick, full]}, default: quick}
    - {name: token}
  steps:
    - id: probe
      action:
        params: [{name: level}, {name: token}]
        outputs: [{name: report, schema: {type: object}}, {name: blob, metadata: {contentType: application/octet-stream}}]
        script: |
          echo "probing at level $(cat context/level)"
          printf '{"ok": true}' > outputs/report.json
          head -c 50000 /dev/zero | tr '\\0' '\\377' > outputs/blob
      args: {refs: {level: params.level, token: params.token}}
      routingContext: {ref: {sandboxRef: params.box}}
    - id: alert
      action: shell
      extraInputs: [{name: ok, schema: {}}]
      args: {values: {script: exit 1}, refs: {ok: steps.probe.outputs.report.ok}}
      condition: not ok
  output: {report: steps.probe.outputs.report, blob: steps.probe.outputs.blob}
`;

export const GREET = `
description: Greets somebody
params: [{name: who, required: true}]
outputs: [{name: text}]
script: printf 'Hello, %s' "$(cat context/who)" > outputs/text
`;

/** Fails in its first step. Its action is a registered one. */
export const BROKEN = `
spec:
  runner: dock
  cluster: {pattern: local}
  steps:
    - {id: hail, action: greet, args: {values: {who: harbour}}}
    - {id: dock, action: {script: 'echo the berth is taken >&2; exit 3', outputs: [{name: berth}]}}
    - id: unload
      action: {params: [{name: berth}], script: 'true'}
      args: {refs: {berth: steps.dock.outputs.berth}}
`;

/** Fills a server with plans, and returns the ids that the pages are about. */
export async function fillPlans(server) {
  const needs = async (method, path, body) => {
    const done = await server.api(method, path, body);
    if (done.status > 201) throw new Error(JSON.stringify(done.body));
  };
  await needs('PUT', '/runner-groups/dock', { cluster: 'local' });
  await needs('PUT', '/sandboxes/pr-7', { cluster: 'local', ready: true });
  await needs('PUT', '/secrets/probe-token', { value: 'correct horse' });
  await needs('PUT', '/actions/greet', GREET);
  await needs('PUT', '/actions/greet', GREET.replace('Hello', 'Ahoy'));
  await server.work('dock');
  const [plan, broken] = [await server.plan(SMOKE), await server.plan(BROKEN)];
  const execution = await server.startPlan(plan, { params: { box: 'pr-7' }, secrets: { token: 'probe-token' } });
  const failed = await server.startPlan(broken);
  await server.planEnd(execution);
  await server.planEnd(failed);
  return { plan, broken, execution, failed };
}

/** Fills a server, and returns the ids that the pages are about. */
export async function fill(server) {
  const form = await server.run(FORM, { name: 'Ann', team: 'deck' });
  await server.run(FORM, { name: 'Bob', team: 'engine' });
  const failing = await server.run(FAILING);
  const loop = await server.run(IMPORT);
  const approval = await server.run(APPROVAL);
  const gate = await server.run(GATE);
  const long = await server.start(LONG);
  const schedule = await server.api('POST', '/schedules', {
    name: 'nightly-import',
    timezone: 'Europe/Berlin',
    schedule: { kind: 'cron', expr: '0 3 * * *' },
    target: { kind: 'workflow', workflow_id: 'onboarding', input: { name: 'Cleo', team: 'galley' } },
  });
  const broken = await server.api('POST', '/schedules', {
    name: 'broken-report',
    schedule: { kind: 'interval', every_seconds: 3600 },
    target: { kind: 'shell', command: 'false', args: [] },
  });
  for (const made of [schedule, broken]) {
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    await server.api('POST', `/schedules/${made.body.id}/trigger`, { reason: 'a first try' });
  }
  await server.until(async () => (await server.api('GET', '/dead-letters')).body.items.length > 0);
  return { form, failing, loop, approval, gate, long, schedule: schedule.body.id, broken: broken.body.id };
}
