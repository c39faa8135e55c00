// The names of firings. In a loop, a firing is known by its iteration: its number among all firings of the step says nothing.
import type { NodeExecution } from '../../api/client';
import { pathText } from '../../parts/words';

type Path = readonly number[] | null | undefined;

/** `number` counts the firings of the step in the same iteration, from 1. */
export const firingName = (name: string, path: Path, number: number): string => `${name}${pathText(path)}${number > 1 ? ` #${number}` : ''}`;

/** Returns the number of each firing in its iteration, of firings in their order. */
export function numbersOf(nodes: readonly NodeExecution[]): ReadonlyMap<NodeExecution, number> {
  const next = counter();
  return new Map(nodes.map((node) => [node, node.path?.length ? next(node.nodeId, node.path) : node.firing]));
}

/** Counts the firings of each step in each iteration. */
export function counter(): (step: string, path: Path) => number {
  const counts = new Map<string, number>();
  return (step, path) => {
    const key = `${step} ${path?.join() ?? ''}`;
    const number = (counts.get(key) ?? 0) + 1;
    counts.set(key, number);
    return number;
  };
}
