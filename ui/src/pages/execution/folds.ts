// Loops of the timeline: the iterations of a step are folded into one row when there are many.
import { pathText } from '../../parts/words';
import type { Row } from './segments';

/** A loop with more iterations is folded at first. */
export const OPEN_MAX = 20;

/** The iterations of one step in one loop. */
export interface Loop {
  key: string;
  count: number;
  isOpen: boolean;
}

export interface FoldedRow {
  row: Row;
  /** The loop that the row stands for. */
  loop?: Loop;
}

interface Group {
  iterations: Set<number>;
  /** The step and the iterations around the loop. */
  step: string;
  outer: readonly number[];
  from: number;
  /** Undefined while an iteration lasts. */
  to: number | undefined;
}

const keyOf = (step: string, outer: readonly number[]): string => `${step} ${outer.join()}`;

/** Leaves the rows of folded loops out. `toggled` has the loops that the user opened or folded. */
export function foldLoops(rows: readonly Row[], toggled: ReadonlyMap<string, boolean>): FoldedRow[] {
  const groups = groupsOf(rows);
  const loopOf = (key: string): Loop | undefined => {
    const count = groups.get(key)?.iterations.size;
    return count === undefined ? undefined : { key, count, isOpen: toggled.get(key) ?? count <= OPEN_MAX };
  };
  const shown: FoldedRow[] = [];
  const named = new Set<string>();
  for (const row of rows) {
    const { step, path } = row;
    if (step === undefined) {
      shown.push({ row });
      continue;
    }
    let isHidden = false;
    for (let depth = 1; depth <= path.length && !isHidden; depth += 1) {
      const key = keyOf(step, path.slice(0, depth - 1));
      const [loop, group] = [loopOf(key), groups.get(key)];
      if (!loop || !group) continue;
      // A loop without a row of its own gets one before its first iteration.
      if (!named.has(key)) {
        named.add(key);
        shown.push({ row: headOf(group), loop });
      }
      isHidden = !loop.isOpen;
    }
    if (isHidden) continue;
    const loop = loopOf(keyOf(step, path));
    const isHead = loop !== undefined && !named.has(loop.key) && row.segments.some(({ kind }) => kind === 'loop');
    if (isHead) named.add(loop.key);
    shown.push(isHead ? { row, loop } : { row });
  }
  return shown;
}

function groupsOf(rows: readonly Row[]): Map<string, Group> {
  const groups = new Map<string, Group>();
  for (const { step, path, segments } of rows) {
    const [first, last] = [segments[0], segments.at(-1)];
    if (step === undefined || !first || !last) continue;
    for (const [place, iteration] of path.entries()) {
      const outer = path.slice(0, place);
      const key = keyOf(step, outer);
      const group = groups.get(key) ?? { iterations: new Set(), step, outer, from: first.from, to: first.from };
      groups.set(key, group);
      group.iterations.add(iteration);
      group.from = Math.min(group.from, first.from);
      group.to = group.to === undefined || last.to === undefined ? undefined : Math.max(group.to, last.to);
    }
  }
  return groups;
}

const headOf = ({ step, outer, from, to }: Group): Row => ({
  key: `loop ${keyOf(step, outer)}`,
  step,
  name: `${step}${pathText(outer)}`,
  path: outer,
  depth: outer.length,
  segments: [{ kind: 'loop', what: 'iterations', from, ...(to !== undefined && { to }) }],
});
