// Why a step is in its state, in one sentence. What is said follows from the journal: the routes that were taken, the values
// that conditions saw, attempts, gates and people.
import type { Execution, Graph, NodeExecution, Waiting } from '../../api/client';
import { duration, plural, text } from '../../parts/words';

const SKIPPED: Record<string, string> = {
  not_taken: 'No taken route leads to it.',
  upstream: 'A step before it failed or was skipped.',
};

export function why(node: NodeExecution, execution: Execution, graph?: Graph): string {
  const waiting = execution.waitingFor?.find(({ nodeId, path }) => nodeId === node.nodeId && same(path, node.path));
  if (waiting) return waitingFor(waiting);
  switch (node.status) {
    case 'skipped':
      if (node.skipReason === 'condition') return `Its condition was false${condition(node.nodeId, graph)}.`;
      return `${SKIPPED[node.skipReason ?? ''] ?? 'It was skipped.'} ${untaken(node.nodeId, execution, graph)}`.trim();
    case 'pending':
      return node.firing > 0 && !execution.completedAt ? (routing(node.nodeId, graph) ?? 'It waits for a free slot of a worker.') : unreached(node.nodeId, execution, graph);
    case 'retrying':
      return `Attempt ${node.retryCount + 1} failed; another one follows${node.error ? `: ${node.error.message}` : '.'}`;
    case 'failed':
      return node.error ? `${node.error.code}: ${node.error.message}` : 'It failed.';
    case 'completed':
      return node.retryCount > 0 ? `It succeeded after ${plural(node.retryCount, 'retry', 'retries')}. ${took(node)}` : took(node);
    default:
      return node.progress ? `${node.progress.step}, ${node.progress.percentage} %` : 'It runs.';
  }
}

/** The condition of a step of a plan. */
function condition(id: string, graph: Graph | undefined): string {
  const caption = graph?.nodes.find((one) => one.id === id)?.captions.find((one) => one.startsWith('if '));
  return caption ? `: ${caption.slice(3)}` : '';
}

/** The target that a step of a plan waits for. */
function routing(id: string, graph: Graph | undefined): string | undefined {
  const node = graph?.nodes.find((one) => one.id === id);
  const target = node?.captions.find((caption) => /^(in|routed to) /.test(caption));
  return node?.state?.status === 'waiting' && target ? `It waits until its target is ready: ${target}.` : undefined;
}

/** Why a step has not run at all. */
export function unreached(id: string, execution: Execution, graph?: Graph): string {
  const gate = execution.waitingFor?.find(({ nodeId }) => nodeId === id);
  if (gate) return waitingFor(gate);
  if (execution.status === 'queued') return 'The execution is queued: its first steps wait for free slots of a worker.';
  const routes = untaken(id, execution, graph);
  if (routes) return routes;
  return execution.completedAt ? `The execution ended (${execution.status}) before it was reached.` : 'It has not been reached yet.';
}

function untaken(id: string, execution: Execution, graph: Graph | undefined): string {
  const edges = graph?.edges.filter(({ to }) => to === id) ?? [];
  const sentences = edges.flatMap(({ from, label, taken }) => {
    const before = graph?.nodes.find((node) => node.id === from);
    if (!before?.state || before.state.status === 'pending') return execution.completedAt ? [`${before?.name ?? from} before it did not run.`] : [];
    if (before.state.status === 'skipped') return [`${before.name} before it was skipped.`];
    if (before.state.status === 'running' || taken) return [];
    const condition = label?.replace(/^\d+\. /, '');
    return [condition ? `The route from ${before.name} needs ${condition}${seen(condition, from, execution)}.` : `The route from ${before.name} was not taken.`];
  });
  return sentences.join(' ');
}

/** The values that the condition of a route saw, as far as they are results of the step before it. */
function seen(condition: string, from: string, execution: Execution): string {
  const output = execution.nodeExecutions.findLast(({ nodeId }) => nodeId === from)?.output;
  const names = [...new Set([...condition.matchAll(/event\.payload((?:\.\w+)+)/g)].map(([whole, path]) => [whole, path ?? ''] as const))];
  const values = names.map(([whole, path]) => [whole, lookUp(output, path.split('.').slice(1))] as const).filter(([, value]) => value !== undefined);
  return values.length > 0 ? `; ${values.map(([name, value]) => `${name} was ${text(value)}`).join(', ')}` : '';
}

function lookUp(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (inner !== null && typeof inner === 'object' ? (inner as Record<string, unknown>)[key] : undefined), value);
}

const same = (one: number[] | undefined, other: number[] | undefined) => (one ?? []).join() === (other ?? []).join();

const took = (node: NodeExecution) => (node.duration === undefined ? '' : `It took ${duration(node.duration)}.`);

export function waitingFor(waiting: Waiting): string {
  switch (waiting.kind) {
    case 'gate':
      return `It waits at its gate, which reads ${waiting.reads?.join(', ') || 'the context'} of the context.`;
    case 'approval':
      return `It waits for an approval: ${text(waiting.message)}`;
    case 'manual':
      return 'A person has to confirm its end.';
    case 'pause':
      return `It was paused by ${waiting.by ?? 'a user'}${waiting.reason ? `: ${waiting.reason}` : '.'}`;
  }
}
