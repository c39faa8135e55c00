// Why a step is in its state, in one sentence. It follows from the journal: the routes that were taken, the values
// that conditions saw, attempts, gates, people, and what it waits for.
import type { Execution, Graph, NodeExecution, Waiting } from '../../api/client';
import { duration, exact, plural, text, withoutColours } from '../../parts/words';
import type { Plan } from '../../api/plans';
import { contextOf, contextSeen, shown, valuesSeen } from './seen';

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
  /** The plan, for the names in its conditions. */
  plan?: Plan | undefined;
}

export function why(node: NodeExecution, course: Course): string {
  const { execution } = course;
  const waiting = execution.waitingFor?.find(({ nodeId, path }) => nodeId === node.nodeId && same(path, node.path));
  if (waiting) return waitingFor(waiting, execution);
  if (isKept(node, execution)) return `Kept from the execution that this one retries.${node.status === 'failed' && node.error ? ` ${node.error.code}: ${withoutColours(node.error.message)}` : ''}`;
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
  const routes = untaken(node.nodeId, course, node.path);
  // The steps before it say the same in detail.
  return node.skipReason === 'upstream' && routes ? routes : `${reason} ${routes}`.trim();
}

/** Whether a firing ended before its execution was created: a retry keeps results of the execution that it retries. */
export const isKept = ({ completedAt }: Pick<NodeExecution, 'completedAt'>, { createdAt, metadata }: Execution): boolean =>
  metadata.retryOf !== undefined && completedAt !== undefined && Date.parse(completedAt) < Date.parse(createdAt);

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

/** The condition of a step, and the values that it saw. The names in the condition of a plan are inputs of the step. */
function condition(id: string, { execution, graph, plan }: Course): string {
  const found = stepOf(id, graph)?.condition;
  const args = plan?.spec.steps.find((step) => step.id === id)?.args;
  return found ? `: ${brief(found)}${valuesSeen(found, { execution, args })}` : '';
}

const BRIEF_MAX = 400;

/** An expression in a sentence. */
const brief = (expression: string): string => (expression.length > BRIEF_MAX ? `${expression.slice(0, BRIEF_MAX)} …` : expression);

/** Why a step has not run at all. */
export function unreached(id: string, course: Course): string {
  const { execution } = course;
  const gate = execution.waitingFor?.find(({ nodeId }) => nodeId === id);
  if (gate) return waitingFor(gate, execution);
  if (execution.quarantined) return 'The execution is quarantined, and does not run.';
  if (execution.status === 'queued') return 'The execution is queued: its first steps wait for free slots of a worker.';
  const routes = atJoin(id, execution) ?? untaken(id, course);
  if (routes) return routes;
  return execution.completedAt ? `The execution ended (${execution.status}) before it was reached.` : 'It has not been reached yet.';
}

interface Join {
  step: string;
  arrived: string[];
  waitsFor: string[];
}

/** The steps that have arrived at a join, and those that it waits for. */
function atJoin(id: string, { view }: Pick<Execution, 'view'>): string | undefined {
  const join = (view as { joins?: Join[] } | null | undefined)?.joins?.find(({ step }) => step === id);
  if (!join) return undefined;
  const { arrived, waitsFor } = join;
  return `${listed(arrived)} ${arrived.length === 1 ? 'has' : 'have'} arrived${waitsFor.length > 0 ? `; it waits for ${listed(waitsFor)}` : ''}.`;
}

const LIST = new Intl.ListFormat('en', { type: 'conjunction' });
const listed = (names: readonly string[]): string => LIST.format(names);

/** Why no route leads to a step. In an iteration, the routes of that iteration count. */
function untaken(id: string, { execution, graph, definition }: Course, path: number[] = []): string {
  const edges = graph?.edges.filter(({ to }) => to === id) ?? [];
  const sentences = edges.flatMap(({ from, label, guard, kind, taken }) => {
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
    if (guard) return [`The route from ${name} needs ${brief(guard)}${valuesSeen(guard, { from: before, execution })}.`];
    if (kind === 'tool') return [`${name} did not call it.`];
    if (wanted === 'body') return [status === 'failed' ? `${name} before it failed.` : `The loop ${name} had no iterations.`];
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
      return gateSentence(waiting, execution);
    case 'approval':
      return `It waits for an approval: ${text(waiting.message)}`;
    case 'manual':
      return 'A person has to confirm its end.';
    case 'pause':
      return `It was paused by ${waiting.by ?? 'a user'}${waiting.reason ? `: ${waiting.reason}` : '.'}`;
  }
}

/** The expression that opens a gate, and the values that it reads. The context of a child execution is not known here. */
function gateSentence(waiting: Waiting, execution: Pick<Execution, 'view'>): string {
  const { when, reads, childId } = waiting;
  if (!when) return `It waits at its gate, which reads ${gateKeys(waiting, execution)} of the context.`;
  return `It waits at its gate, which needs ${brief(when)}${childId ? '' : contextSeen(when, reads ?? [], execution)}.`;
}

/** The keys that a gate reads, with their values. Those of a child execution are in its own context. */
function gateKeys({ reads, childId }: Waiting, execution: Pick<Execution, 'view'>): string {
  if (!reads || reads.length === 0) return 'the keys';
  const context = childId ? undefined : (contextOf(execution) as Record<string, unknown> | undefined);
  return reads.map((key) => (context ? `${key} (${shown(context[key])})` : key)).join(', ');
}
