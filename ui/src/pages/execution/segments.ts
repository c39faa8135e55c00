// The rows of the timeline: for each firing and iteration its attempts, the backoffs between them, and its waits, from the events.
import type { Execution, PublicEvent } from '../../api/client';
import { counter, firingName } from './firings';

export type SegmentKind = 'completed' | 'failed' | 'cancelled' | 'running' | 'queued' | 'backoff' | 'waiting' | 'loop';

export interface Segment {
  kind: SegmentKind;
  from: number;
  /** Absent while it lasts. */
  to?: number;
  what: string;
}

export interface Row {
  key: string;
  /** Absent in the row of the execution itself. */
  step?: string;
  name: string;
  /** Iterations of the loops around it, the outermost first. */
  path: readonly number[];
  depth: number;
  segments: Segment[];
}

type Counter = ReturnType<typeof counter>;
type Begin = { kind: SegmentKind; what: string };

/** What an event begins for the firing that it is about. */
function begins({ event, data }: PublicEvent): Begin | undefined {
  const { attempt } = data as { attempt?: number };
  switch (event) {
    case 'step.offered':
      return { kind: 'running', what: `attempt ${attempt ?? 1}` };
    case 'child.started':
      return { kind: 'running', what: 'child execution' };
    case 'loop.started':
      return { kind: 'loop', what: 'loop' };
    case 'step.retry_scheduled':
      return { kind: 'backoff', what: `backoff after attempt ${attempt ?? 1}` };
    case 'step.waiting':
      return { kind: 'waiting', what: 'wait' };
    case 'step.awaiting_manual':
      return { kind: 'waiting', what: 'waits for a person' };
    case 'token.denied':
      return { kind: 'waiting', what: 'waits at its gate' };
    default:
      return undefined;
  }
}

const ENDS: Record<string, SegmentKind> = {
  'step.done': 'completed',
  'loop.iteration.done': 'completed',
  'step.failed': 'failed',
  'loop.iteration.failed': 'failed',
  'step.cancelled': 'cancelled',
  'step.skipped': 'completed',
  'loop.done': 'loop',
  'step.completed_manually': 'waiting',
  'token.admitted': 'waiting',
  'child.ended': 'completed',
};

const WORK: ReadonlySet<SegmentKind> = new Set(['running', 'completed', 'failed', 'cancelled']);

export function rowsOf(events: readonly PublicEvent[]): Row[] {
  const rows = new Map<string, Row>();
  const next = counter();
  for (const event of events) {
    if (event.event === 'task.failed' || event.event === 'task.done') addTry(rowFor(rows, next, event), event);
    const begin = begins(event);
    const end = begin ? (event.event === 'step.retry_scheduled' ? 'failed' : undefined) : ENDS[event.event];
    if (!event.step || (!begin && !end)) continue;
    const at = Date.parse(event.timestamp);
    const row = rowFor(rows, next, event);
    close(row, at, end);
    if (begin) row.segments.push({ ...begin, from: at });
  }
  return [...rows.values()].filter(({ segments }) => segments.length > 0);
}

function rowFor(rows: Map<string, Row>, next: Counter, { step = '', firing = 1, path }: PublicEvent): Row {
  const key = `${step} ${firing} ${path?.join() ?? ''}`;
  const found = rows.get(key);
  if (found) return found;
  const row: Row = { key, step, name: firingName(step, path, path?.length ? next(step, path) : firing), path: path ?? [], depth: path?.length ?? 0, segments: [] };
  rows.set(key, row);
  return row;
}

interface Try {
  task?: string;
  try?: number;
  startedAt?: string;
  endedAt?: string;
}

/** Tries of tasks within an attempt are reported at its end. Each with known times is a segment of its own, after the backoff before it. */
function addTry(row: Row, { event, timestamp, data }: PublicEvent): void {
  const last = row.segments.at(-1);
  if (!last) return;
  const { task = 'its task', try: number = 1, startedAt, endedAt } = data as Try;
  const isFailed = event === 'task.failed';
  const attempt = last.what.replace(/, try .*/, '');
  const what = `${attempt}, try ${number} of ${task}${isFailed ? ' failed' : ''}`;
  if (startedAt === undefined || endedAt === undefined) {
    if (isFailed) last.what = what;
    return;
  }
  // The clock of a worker may differ from that of the server.
  const within = (time: string) => Math.min(Math.max(Date.parse(time), last.to ?? last.from), Date.parse(timestamp));
  const [from, to] = [within(startedAt), within(endedAt)];
  const kind = isFailed ? 'failed' : 'completed';
  if (last.to === undefined) {
    Object.assign(last, { kind, what, to });
    return;
  }
  const isRepeated = number > 1 && last.kind === 'failed' && last.what.includes(`, try ${number - 1} of ${task} `);
  if (from > last.to) row.segments.push(isRepeated ? { kind: 'backoff', what: `${attempt}, backoff before try ${number} of ${task}`, from: last.to, to: from } : { kind: 'completed', what: attempt, from: last.to, to: from });
  row.segments.push({ kind, what, from, to });
}

/** Ends the segment that lasts. Work has the colour of its result; a wait or a loop keeps its own. */
function close(row: Row, at: number, end: SegmentKind | undefined): void {
  const last = row.segments.at(-1);
  if (!last) return;
  const isLasting = last.to === undefined;
  if (last.to !== undefined && end !== undefined && last.what.includes(', try ')) return closeTries(row, last, at, end);
  last.to ??= at;
  // The end of a child is followed by the result of the step that started it.
  if (WORK.has(last.kind) && (isLasting || end === 'failed' || end === 'cancelled')) last.kind = end === 'failed' || end === 'cancelled' ? end : 'completed';
}

/** Ends an attempt after the last of its tries that were reported. */
function closeTries(row: Row, last: Segment, at: number, end: SegmentKind): void {
  if (last.to === undefined || last.to >= at) return;
  if (last.kind === end) last.to = at;
  else row.segments.push({ kind: end, what: last.what.replace(/, try .*/, ''), from: last.to, to: at });
}

/** The time until an execution began, and its pauses. Undefined if there are none. */
export function executionRow({ createdAt, startedAt, completedAt }: Execution, events: readonly PublicEvent[]): Row | undefined {
  const segments: Segment[] = [];
  const begin = startedAt ?? completedAt;
  if (createdAt !== begin) segments.push({ kind: 'queued', what: 'queued', from: Date.parse(createdAt), ...(begin && { to: Date.parse(begin) }) });
  for (const { event, timestamp, data } of events) {
    const { reason } = data as { reason?: string };
    const last = segments.at(-1);
    if (event === 'execution.paused') segments.push({ kind: 'waiting', what: `paused${reason ? ` (${reason})` : ''}`, from: Date.parse(timestamp) });
    else if (last && last.to === undefined && event.startsWith('execution.') && event !== 'execution.created') last.to = Date.parse(timestamp);
  }
  return segments.length > 0 ? { key: '', name: 'execution', path: [], depth: 0, segments } : undefined;
}

/** Segments that are open at the end of the known events end there. An execution that ended stopped what ran then. */
export function finish(rows: Row[], end: number | undefined, isStopped: boolean): Row[] {
  if (end === undefined) return rows;
  const finished = (segment: Segment): Segment => (segment.to === undefined ? { ...segment, to: end, kind: isStopped && segment.kind === 'running' ? 'cancelled' : segment.kind } : segment);
  return rows.map((row) => ({ ...row, segments: row.segments.map(finished) }));
}

export interface Share {
  step: string;
  work: number;
  backoff: number;
  waiting: number;
}

/** Where the time since the creation of the execution went, by step, the most expensive first. A retry keeps results with the times of the
 * execution that it retries. */
export function shares(rows: readonly Row[], since: number, now: number): Share[] {
  const found = new Map<string, Share>();
  for (const { step, segments } of rows) {
    if (step === undefined) continue;
    for (const { kind, from, to = now } of segments) {
      if (kind === 'loop' || to <= since) continue;
      const share = found.get(step) ?? { step, work: 0, backoff: 0, waiting: 0 };
      found.set(step, share);
      share[kind === 'backoff' || kind === 'waiting' ? kind : 'work'] += to - from;
    }
  }
  const total = ({ work, backoff, waiting }: Share) => work + backoff + waiting;
  return [...found.values()].sort((one, other) => total(other) - total(one));
}
