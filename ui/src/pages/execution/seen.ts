// The values that a condition saw, as far as the execution shows them: results of steps, inputs and the context.
import type { Execution, NodeExecution } from '../../api/client';
import { text } from '../../parts/words';

type Path = readonly string[];

const SHOWN_MAX = 80;
/** Texts in quotes, and names with their paths: `event.payload.failed`, `nodes['a'].output`. */
const PARTS = /(['"])(?:\\.|(?!\1).)*\1|[A-Za-z_]\w*(?:\.\w+|\[(?:\d+|'[^']*'|"[^"]*")\])*/g;
const WORDS = new Set(['and', 'or', 'not', 'in', 'is', 'if', 'else', 'true', 'false', 'none', 'null', 'nil', 'True', 'False', 'None', 'contains', 'matches', 'startsWith', 'endsWith', 'defined']);

interface Origin {
  /** The step whose end the condition is about. */
  from?: NodeExecution | undefined;
  execution: Execution;
  /** Of a step of a plan: the origins of its inputs. */
  args?: { values?: Record<string, unknown>; refs?: Record<string, string> } | undefined;
}

/** The names that a condition reads, without filters, tests and methods. Those of a condition that was cut are not known. */
export function namesOf(condition: string): string[] {
  if (condition.endsWith('…')) return [];
  const names = [...condition.matchAll(PARTS)].flatMap(({ 0: name, 1: quote, index }) => {
    const [before, after] = [condition.slice(0, index).trimEnd(), condition.slice(index + name.length)];
    if (quote || WORDS.has(name) || before.endsWith('|') || /\bis(\s+not)?$/.test(before)) return [];
    if (!/^\s*\(/.test(after)) return [name];
    return name.includes('.') ? [name.slice(0, name.lastIndexOf('.'))] : [];
  });
  return [...new Set(names)];
}

const pathOf = (name: string): Path => [...name.matchAll(/[\w-]+|'[^']*'|"[^"]*"/g)].map(([part]) => part.replace(/^['"]|['"]$/g, ''));

/** `; name was value` for each name of the condition that has a known value. */
export function valuesSeen(condition: string, origin: Origin): string {
  return joined(namesOf(condition).flatMap((name) => sentence(name, origin) ?? []));
}

const joined = (sentences: readonly string[]): string => (sentences.length > 0 ? `; ${sentences.join(', ')}` : '');

/** `; name is value` for each name of a gate's expression that is a key of the context. */
export function contextSeen(expression: string, reads: readonly string[], execution: Pick<Execution, 'view'>): string {
  const context = contextOf(execution);
  if (context === undefined) return '';
  const known = namesOf(expression).flatMap((name) => {
    const [root = '', ...rest] = pathOf(name);
    if (root === 'ctx') return [`${name} is ${shown(lookUp(context, rest))}`];
    return reads.includes(root) ? [`${name} is ${shown(lookUp(context, [root, ...rest]))}`] : [];
  });
  return joined(known);
}

function sentence(name: string, { from, execution, args }: Origin): string | undefined {
  const [root = '', ...rest] = pathOf(name);
  const inputs = execution.inputs as Record<string, unknown>;
  const was = (scope: unknown, path: Path = rest) => `${name} was ${shown(lookUp(scope, path))}`;
  const ref = args?.refs?.[root];
  if (ref !== undefined) return `${name} was ${shown(lookUp(ofReference(ref, execution), rest))}`;
  if (args?.values && root in args.values) return was(args.values[root]);
  // The context may have changed since: only its current values are known.
  if (root === 'ctx') return contextOf(execution) === undefined ? undefined : `${name} is ${shown(lookUp(contextOf(execution), rest))}`;
  if (root === 'inputs' || root === 'workload') return was(inputs);
  if (root === 'event') return from && was({ name: eventName(from, execution), step: from.nodeId, payload: from.output ?? from.error, result: from.output, error: from.error });
  if (root === 'result' || root === 'response') return from && was(from.output);
  if (root === 'error') return from && was(from.error);
  if (root === 'nodes' || root === 'steps') return was(resultOf(rest[0] ?? '', execution), rest.slice(root === 'nodes' ? 2 : 1));
  if (ranAs(root, execution)) return was(resultOf(root, execution));
  return root in inputs ? was(inputs[root]) : undefined;
}

/** The value that an input of a step of a plan refers to. */
function ofReference(reference: string, execution: Execution): unknown {
  const [root, name = '', outputs, ...rest] = pathOf(reference);
  if (root === 'params') return lookUp(execution.inputs, pathOf(reference).slice(1));
  return outputs === 'outputs' ? lookUp(resultOf(name, execution), rest) : undefined;
}

/** The name of the event that the conditions of routes saw. A loop without items is a loop, too. */
function eventName({ nodeId, firing, status, iterations }: NodeExecution, { view }: Execution): string {
  const known = (view as { steps?: { step?: string; firing?: number; event?: string }[] } | null | undefined)?.steps;
  const event = Array.isArray(known) ? known.find((one) => one.step === nodeId && one.firing === firing)?.event : undefined;
  if (event === 'loop.done' || (iterations && iterations.length > 0)) return 'loop.done';
  return status === 'failed' ? 'step.failed' : 'step.done';
}

const ranAs = (id: string, execution: Execution): boolean => execution.nodeExecutions.some(({ nodeId }) => nodeId === id);

const resultOf = (id: string, execution: Execution): unknown => execution.nodeExecutions.findLast(({ nodeId }) => nodeId === id)?.output;

/** The context, if the view of the dialect has it. */
export const contextOf = ({ view }: Pick<Execution, 'view'>): unknown => (view as { ctx?: object } | null | undefined)?.ctx;

/** A part of a value. The parts of a large value are not known. */
const lookUp = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, key) => (isLarge(inner) ? inner : inner !== null && typeof inner === 'object' ? (inner as Record<string, unknown>)[key] : undefined), value);

const isLarge = (value: unknown): boolean => value !== null && typeof value === 'object' && ('$artifact' in value || '$omitted' in value);

/** A short text of a value. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return 'not set';
  if (isLarge(value)) return 'a large value';
  const all = typeof value === 'string' ? `“${value}”` : text(value);
  return all.length > SHOWN_MAX ? `${all.slice(0, SHOWN_MAX)} …` : all;
}
