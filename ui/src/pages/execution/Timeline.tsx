// Where the time went: a row for each firing and iteration, with its attempts, backoffs and waits. A part of it can be enlarged.
import { memo, useCallback, useEffect, useMemo, useState } from 'react';
import type { Execution } from '../../api/client';
import { useEvents } from '../../api/executions';
import { Loading, Problem, Section, useNow } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { duration, exact, plural } from '../../parts/words';
import { foldLoops } from './folds';
import { executionRow, finish, type Row, rowsOf, type Segment, shares } from './segments';
import { Axis, type Span, useZoom, Zoom } from './TimelineZoom';

const ROWS_MAX = 400;
/** Maximum number of pages of events that are read automatically. */
const PAGES_MAX = 20;
const LEGEND = { completed: 'succeeded', failed: 'failed', cancelled: 'stopped', running: 'runs', queued: 'queued', backoff: 'backoff', waiting: 'waits', loop: 'loop' } as const;

interface TimelineProps {
  execution: Execution;
  chosen: string | undefined;
  choose: (id: string) => void;
}

export const Timeline = memo(function Timeline({ execution, chosen, choose }: TimelineProps) {
  const found = useEvents(execution.executionId);
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = found;
  const pages = found.data?.pages;
  const [pagesMax, setPagesMax] = useState(PAGES_MAX);
  const wantsMore = hasNextPage && !isFetchingNextPage && !isFetchNextPageError && (pages?.length ?? 0) < pagesMax;
  // A page that is known already arrives at once, so that `wantsMore` does not change between two pages.
  useEffect(() => {
    if (wantsMore) void fetchNextPage();
  }, [wantsMore, pages?.length, fetchNextPage]);
  const events = useMemo(() => pages?.flatMap((page) => page.events) ?? [], [pages]);
  const completedAt = execution.completedAt === undefined ? undefined : Date.parse(execution.completedAt);
  // Nothing is known about the time after the last event that was read.
  const readUntil = hasNextPage ? Date.parse(events.at(-1)?.timestamp ?? execution.createdAt) : undefined;
  const rows = useMemo(() => {
    const own = executionRow(execution, events);
    return finish([...(own ? [own] : []), ...rowsOf(events)], readUntil ?? completedAt, readUntil === undefined);
  }, [events, execution, readUntil, completedAt]);
  // An execution that has ended does not change.
  const now = useNow(completedAt);
  const begin = Date.parse(execution.createdAt);
  const whole: Span = { from: begin, to: now };
  const [zoom, setZoom] = useZoom(begin);
  const shown = useMemo(() => zoom ?? { from: whole.from, to: Math.max(whole.to, whole.from + 1) }, [zoom, whole.from, whole.to]);
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const folded = useMemo(() => foldLoops(chosen === undefined ? rows : rows.filter(({ step }) => step === chosen), toggled), [rows, chosen, toggled]);
  const visible = folded.filter(({ row: { segments } }) => segments.some(({ from, to = now }) => to >= shown.from && from <= shown.to));
  const toggle = useCallback((key: string, isOpen: boolean) => setToggled((before) => new Map(before).set(key, isOpen)), []);
  const readOn = () => {
    setPagesMax((pages?.length ?? 0) + PAGES_MAX);
    void fetchNextPage();
  };
  if (found.error && !found.data) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (found.isPending) return <Loading />;
  return (
    <Section title={`${duration(whole.to - whole.from)} from ${exact(new Date(whole.from).toISOString())}`} aside={<Zoom whole={whole} shown={shown} set={setZoom} isZoomed={zoom !== undefined} />}>
      <div className="timeline">
        <Legend />
        <div className="line-row">
          <span />
          <Axis whole={whole} shown={shown} set={setZoom} />
          <span />
        </div>
        <ol>
          {visible.slice(0, ROWS_MAX).map(({ row, loop }) => (
            <li key={row.key}>
              <Line row={row} count={loop?.count} isOpen={loop?.isOpen ?? false} loopKey={loop?.key} toggle={toggle} shown={shown} now={now} choose={choose} />
            </li>
          ))}
        </ol>
        {chosen !== undefined && (
          <p className="note">
            {visible.length > 0 ? `Only the rows of ${chosen} are shown.` : `There are no rows of ${chosen}.`}{' '}
            <button type="button" onClick={() => choose(chosen)}>
              Show all steps
            </button>
          </p>
        )}
        {visible.length > ROWS_MAX && <p className="faint">The first {ROWS_MAX} of {plural(visible.length, 'row')} are shown: enlarge a part to see others.</p>}
      </div>
      {readUntil !== undefined && !wantsMore && !isFetchingNextPage && (
        <p className="note">
          The first {plural(events.length, 'event')} are shown, up to {exact(new Date(readUntil).toISOString())}; the execution has more.{' '}
          <button type="button" onClick={readOn}>
            Read more events
          </button>
        </p>
      )}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      <Costs rows={rows} since={begin} now={now} until={readUntil} />
    </Section>
  );
});

interface LineProps {
  row: Row;
  /** Iterations of the loop that the row stands for. */
  count: number | undefined;
  isOpen: boolean;
  loopKey: string | undefined;
  toggle: (key: string, isOpen: boolean) => void;
  shown: Span;
  now: number;
  choose: (id: string) => void;
}

const Line = memo(function Line({ row, count, isOpen, loopKey, toggle, shown, now, choose }: LineProps) {
  const total = row.segments.reduce((sum, { from, to = now }) => sum + (to - from), 0);
  const description = row.segments.map(({ what, kind, from, to = now }) => `${what}: ${LEGEND[kind]}, ${duration(to - from)}`).join('; ');
  return (
    <div className="line-row">
      <span className="row">
        {count !== undefined && loopKey !== undefined && (
          <button type="button" className="quiet" aria-expanded={isOpen} aria-label={`${plural(count, 'iteration')} of ${row.name}`} title={plural(count, 'iteration')} onClick={() => toggle(loopKey, !isOpen)}>
            {isOpen ? '▾' : '▸'} {count.toLocaleString('en')}×
          </button>
        )}
        <RowName row={row} choose={choose} />
      </span>
      <div className="track">
        <svg width="100%" height="18" role="img" aria-label={description}>
          {row.segments.map((segment, place) => (
            <Bar key={place} segment={segment} shown={shown} now={now} />
          ))}
        </svg>
      </div>
      <span className="faint">{duration(total)}</span>
    </div>
  );
});

function RowName({ row: { step, name, depth }, choose }: { row: Row; choose: (id: string) => void }) {
  if (step === undefined) return <span>{name}</span>;
  return (
    <button type="button" className={`quiet${depth > 0 ? ' faint' : ''}`} onClick={() => choose(step)} title={name}>
      {name}
    </button>
  );
}

function Bar({ segment: { kind, from, to, what }, shown, now }: { segment: Segment; shown: Span; now: number }) {
  const length = shown.to - shown.from;
  const end = to ?? now;
  const percent = (at: number) => Math.min(Math.max(((at - shown.from) / length) * 100, 0), 100);
  const x = percent(from);
  return (
    <rect className={`segment ${kind}`} x={`${x}%`} y={kind === 'loop' ? 7 : 2} height={kind === 'loop' ? 4 : 14} width={`${Math.max(percent(end) - x, 0.25)}%`} rx="2">
      <title>{`${what}: ${duration(end - from)} from ${exact(new Date(from).toISOString())}`}</title>
    </rect>
  );
}

function Legend() {
  return (
    <div className="legend">
      <svg width="0" height="0" aria-hidden="true">
        <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect className="segment waiting" width="3" height="6" />
        </pattern>
      </svg>
      {Object.entries(LEGEND).map(([kind, name]) => (
        <span key={kind}>
          <svg width="14" height="12" aria-hidden="true">
            <rect className={`segment ${kind}`} y={kind === 'loop' ? 4 : 0} width="14" height={kind === 'loop' ? 4 : 12} rx="2" />
          </svg>
          {name}
        </span>
      ))}
    </div>
  );
}

function Costs({ rows, since, now, until }: { rows: readonly Row[]; since: number; now: number; until: number | undefined }) {
  const found = shares(rows, since, now).slice(0, 10);
  if (found.length === 0) return null;
  const cell = (ms: number) => (ms > 0 ? duration(ms) : '');
  return (
    <>
      <h3>Where the time went{until !== undefined && `, up to ${exact(new Date(until).toISOString())}`}</h3>
      <Table
        rows={found}
        rowKey={({ step }) => step}
        columns={[
          { name: 'Step', show: ({ step }) => step },
          { name: 'Work', isNumber: true, show: ({ work }) => cell(work) },
          { name: 'Backoff', isNumber: true, show: ({ backoff }) => cell(backoff) },
          { name: 'Waiting', isNumber: true, show: ({ waiting }) => cell(waiting) },
        ]}
      />
    </>
  );
}
