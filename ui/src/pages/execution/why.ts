// Why a step is in its state, in one sentence. It follows from the journal: the routes that were taken, the values
// that conditions saw, attempts, gates, people, and what it waits for.
import type { Execution, Graph, NodeExecution, Waiting } from '../../api/client';
import { duration, exact, plural, text, withoutColours } from '../../parts/words';
import { contextOf, shown, valuesSeen } from './seen';

const SKIPPED: Record<string, string> = {
  not_taken: 'No taken route leads to it.',
  upstream: 'A step before it failed or was skipped.',
};

type Step = Graph['nodes'][number];

/** An execution, and the graph of its definition as soon as that is read. */
export interface Course {
  execution: Execution;
  graph: Graph | undefined;
  /** The definition, for conditions that the graph does not have. */
  definition?: unknown;
}

export function why(node: NodeExecution, course: Course): string {
  const { execution } = course;
  const waiting = execution.waitingFor?.find(({ nodeId, path }) => nodeId === node.nodeId && same(path, node.path));
  if (waiting) return waitingFor(waiting, execution);
  switch (node.status) {
    case 'skipped':
      return skipped(node, course);
    case 'pending':
      return waits(node, course) ?? unreached(node.nodeId, course);
    case 'retrying':
      return `Attempt ${node.retryCount + 1} failed; another one follows${node.waits?.until ? ` at ${exact(node.waits.until)}` : ''}${node.error ? `: ${withoutColours(node.error.message)}` : '.'}`;
    case 'failed':
      return node.error ? `${node.error.code}: ${withoutColours(node.error.message)}` : 'It failed.';
    case 'completed':
      return node.retryCount > 0 ? `It succeeded after ${plural(node.retryCount, 'retry', 'retries')}. ${took(node)}` : took(node);
    default:
      return waits(node, course) ?? (node.progress ? `${node.progress.step}, ${node.progress.percentage} %` : node.childExecutionId ? 'Its child execution runs.' : 'It runs.');
  }
}

function skipped(node: NodeExecution, course: Course): string {
  if (node.skipReason === 'condition') return `Its condition was false${condition(node.nodeId, course)}.`;
  const reason = SKIPPED[node.skipReason ?? ''] ?? (node.firing > 0 ? `It was stopped, because the execution ended (${course.execution.status}).` : `The execution ended (${course.execution.status}) before it was reached.`);
  return `${reason} ${untaken(node.nodeId, course, node.path)}`.trim();
}

/** Describes the wait of a firing, apart from people. */
function waits({ nodeId, waits }: NodeExecution, { execution, graph }: Course): string | undefined {
  switch (waits?.reason) {
    case 'hold':
      return 'The execution is paused: it begins after someone resumes it.';
    case 'parallel':
      return 'It waits for the end of other steps: the limit on parallel steps of the execution is reached.';
    case 'slot':
      return execution.quarantined ? 'The execution is quarantined, and does not run.' : 'It waits for a free slot of a worker.';
    case 'target': {
      const target = stepOf(nodeId, graph)?.captions.find((caption) => /^(in|routed to) /.test(caption));
      return `It waits until its target is ready${target ? `: ${target}` : ''}.`;
    }
    case 'delay':
      return waits.until && `It waits until ${exact(waits.until)}.`;
    default:
      return undefined;
  }
}

const stepOf = (id: string, graph: Graph | undefined): Step | undefined => graph?.nodes.find((node) => node.id === id);

/** The condition of a step of a plan, and the values that it saw. */
function condition(id: string, { execution, graph }: Course): string {
  const caption = stepOf(id, graph)?.captions.find((one) => one.startsWith('if '));
  return caption ? `: ${caption.slice(3)}${valuesSeen(caption.slice(3), { execution })}` : '';
}

/** Why a step has not run at all. */
export function unreached(id: string, course: Course): string {
  const { execution } = course;
  const gate = execution.waitingFor?.find(({ nodeId }) => nodeId === id);
  if (gate) return waitingFor(gate, execution);
  if (execution.quarantined) return 'The execution is quarantined, and does not run.';
  if (execution.status === 'queued') return 'The execution is queued: its first steps wait for free slots of a worker.';
  const routes = untaken(id, course);
  if (routes) return routes;
  return execution.completedAt ? `The execution ended (${execution.status}) before it was reached.` : 'It has not been reached yet.';
}

/** Why no route leads to a step. In an iteration, the routes of that iteration count. */
function untaken(id: string, { execution, graph, definition }: Course, path: number[] = []): string {
  const edges = graph?.edges.filter(({ to }) => to === id) ?? [];
  const sentences = edges.flatMap(({ from, label, taken }) => {
    const step = stepOf(from, graph);
    const name = step?.name ?? from;
    const before = execution.nodeExecutions.findLast((node) => node.nodeId === from && (node.path ?? []).every((index, place) => path[place] === undefined || path[place] === index));
    const status = before?.status ?? step?.state?.status;
    if (!status || status === 'pending') return execution.completedAt ? [`${name} before it did not run.`] : [];
    if (status === 'skipped') return [`${name} before it was skipped.`];
    if (status === 'running' || status === 'retrying' || (taken && path.length === 0)) return [];
    const wanted = label?.replace(/^\d+\. /, '');
    const choice = before && wanted ? chosenBranch(before, wanted, definition, execution) : undefined;
    if (choice) return [`${name} ${choice}`];
    if (wanted === 'else') return [`${name} took an earlier route.`];
    if (wanted === 'error') return [status === 'failed' ? `The error route from ${name} was not taken.` : `${name} did not fail, so its error route was not taken.`];
    if (wanted) return [`The route from ${name} needs ${wanted}${valuesSeen(wanted, { from: before, execution })}.`];
    return [status === 'failed' ? `${name} before it failed.` : `The route from ${name} was not taken.`];
  });
  return sentences.join(' ');
}

/** What a conditional decided instead of a branch, with the values of its conditions. */
function chosenBranch({ nodeId, output }: NodeExecution, wanted: string, definition: unknown, execution: Execution): string | undefined {
  const { branch, conditions, result } = (output ?? {}) as { branch?: string | null; conditions?: Record<string, boolean>; result?: boolean };
  if (!conditions || result === undefined) return undefined;
  const declared = conditionsOf(definition, nodeId).filter(({ id }) => conditions[wanted] === undefined || id === wanted);
  const facts = declared.map(({ id, variable = '', operator = '', value }) => {
    const said = `${bare(variable)} ${text(operator).replaceAll('_', ' ')}${value === undefined ? '' : ` ${shown(value)}`}`;
    return `“${said}” was ${conditions[id ?? '']}${valuesSeen(bare(variable), { execution })}`;
  });
  const taken = branch ?? String(result);
  return `chose ${taken}, not ${wanted}${facts.length > 0 ? `: ${facts.join('; ')}` : ''}.`;
}

interface Condition {
  id?: string;
  variable?: string;
  operator?: string;
  value?: unknown;
}

/** The conditions of a conditional of a workflow. */
function conditionsOf(definition: unknown, id: string): Condition[] {
  const nodes = (definition as { nodes?: { id?: string; config?: { conditions?: Condition[] }; data?: { config?: { conditions?: Condition[] } } }[] } | undefined)?.nodes;
  const node = Array.isArray(nodes) ? nodes.find((one) => one.id === id) : undefined;
  return node?.config?.conditions ?? node?.data?.config?.conditions ?? [];
}

/** An expression without its braces. */
const bare = (source: string): string => source.replace(/^\s*\{\{\s*|\s*\}\}\s*$/g, '');

const same = (one: number[] | undefined, other: number[] | undefined) => (one ?? []).join() === (other ?? []).join();

const took = (node: NodeExecution) => (node.duration === undefined ? '' : `It took ${duration(node.duration)}.`);

export function waitingFor(waiting: Waiting, execution: Pick<Execution, 'view'>): string {
  switch (waiting.kind) {
    case 'gate':
      return `It waits at its gate, which reads ${gateKeys(waiting, execution)} of the context.`;
    case 'approval':
      return `It waits for an approval: ${text(waiting.message)}`;
    case 'manual':
      return 'A person has to confirm its end.';
    case 'pause':
      return `It was paused by ${waiting.by ?? 'a user'}${waiting.reason ? `: ${waiting.reason}` : '.'}`;
  }
}

/** The keys that a gate reads, with their values. Those of a child execution are in its own context. */
function gateKeys({ reads, childId }: Waiting, execution: Pick<Execution, 'view'>): string {
  if (!reads || reads.length === 0) return 'the keys';
  const context = childId ? undefined : (contextOf(execution) as Record<string, unknown> | undefined);
  return reads.map((key) => (context ? `${key} (${shown(context[key])})` : key)).join(', ');
}
