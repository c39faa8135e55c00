// Where the time went: a row for each firing and iteration, with its attempts, backoffs and waits. A part of it can be enlarged.
import { memo, type PointerEvent, useEffect, useMemo, useRef, useState } from 'react';
import type { Execution } from '../../api/client';
import { useEvents } from '../../api/executions';
import { Loading, Problem, Section, Table, useNow } from '../../parts/basics';
import { duration, exact, plural } from '../../parts/words';
import { finish, type Row, rowsOf, type Segment, shares } from './segments';

const ROWS_MAX = 400;
const PAGES_MAX = 20;
const TICKS = 5;
const LEGEND = { completed: 'succeeded', failed: 'failed', running: 'runs', backoff: 'backoff', waiting: 'waits', loop: 'loop' } as const;

interface Span {
  from: number;
  to: number;
}

interface TimelineProps {
  execution: Execution;
  chosen: string | undefined;
  choose: (id: string) => void;
}

export const Timeline = memo(function Timeline({ execution, chosen, choose }: TimelineProps) {
  const found = useEvents(execution.executionId);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = found;
  const pages = found.data?.pages;
  const wantsMore = hasNextPage && !isFetchingNextPage && (pages?.length ?? 0) < PAGES_MAX;
  useEffect(() => {
    if (wantsMore) void fetchNextPage();
  }, [wantsMore, fetchNextPage]);
  const rows = useMemo(() => finish(rowsOf(pages?.flatMap(({ events }) => events) ?? []), execution), [pages, execution]);
  // Nothing of an execution that ended grows.
  const now = useNow(execution.completedAt === undefined ? undefined : Date.parse(execution.completedAt));
  const whole: Span = { from: Date.parse(execution.startedAt ?? execution.createdAt), to: now };
  const [zoom, setZoom] = useState<Span>();
  const shown = useMemo(() => zoom ?? { from: whole.from, to: Math.max(whole.to, whole.from + 1) }, [zoom, whole.from, whole.to]);
  const visible = rows.filter(({ segments }) => segments.some(({ from, to = now }) => to >= shown.from && from <= shown.to));
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
          {visible.slice(0, ROWS_MAX).map((row) => (
            <li key={row.key} className={row.step === chosen ? 'chosen' : undefined}>
              <Line row={row} shown={shown} now={now} choose={choose} />
            </li>
          ))}
        </ol>
        {visible.length > ROWS_MAX && <p className="faint">The first {ROWS_MAX} of {plural(visible.length, 'row')} are shown: enlarge a part to see others.</p>}
        {hasNextPage && !wantsMore && !isFetchingNextPage && <p className="faint">The timeline ends here: the execution has more events than it shows.</p>}
      </div>
      <Costs rows={rows} now={now} />
    </Section>
  );
});

const Line = memo(function Line({ row, shown, now, choose }: { row: Row; shown: Span; now: number; choose: (id: string) => void }) {
  const total = row.segments.reduce((sum, { from, to = now }) => sum + (to - from), 0);
  const told = row.segments.map(({ what, kind, from, to = now }) => `${what}: ${LEGEND[kind]}, ${duration(to - from)}`).join('; ');
  return (
    <div className="line-row">
      <button type="button" className={`quiet${row.depth > 0 ? ' faint' : ''}`} onClick={() => choose(row.step)} title={row.name}>
        {row.name}
      </button>
      <div className="track">
        <svg width="100%" height="18" role="img" aria-label={told}>
          {row.segments.map((segment, place) => (
            <Bar key={place} segment={segment} shown={shown} now={now} />
          ))}
        </svg>
      </div>
      <span className="faint">{duration(total)}</span>
    </div>
  );
});

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

interface ZoomProps {
  whole: Span;
  shown: Span;
  set: (span: Span | undefined) => void;
}

function Zoom({ whole, shown, set, isZoomed }: ZoomProps & { isZoomed: boolean }) {
  const length = shown.to - shown.from;
  const scale = (factor: number) => {
    const middle = (shown.from + shown.to) / 2;
    const half = Math.max((length * factor) / 2, 1);
    if (half * 2 >= whole.to - whole.from) set(undefined);
    else set({ from: middle - half, to: middle + half });
  };
  const move = (share: number) => set({ from: shown.from + length * share, to: shown.to + length * share });
  return (
    <span className="row">
      <button type="button" aria-label="Earlier" onClick={() => move(-0.5)} disabled={!isZoomed}>
        ←
      </button>
      <button type="button" aria-label="Later" onClick={() => move(0.5)} disabled={!isZoomed}>
        →
      </button>
      <button type="button" aria-label="Zoom out" onClick={() => scale(2)} disabled={!isZoomed}>
        −
      </button>
      <button type="button" aria-label="Zoom in" onClick={() => scale(0.5)}>
        +
      </button>
      <button type="button" onClick={() => set(undefined)} disabled={!isZoomed}>
        All
      </button>
    </span>
  );
}

/** Times above the rows. Dragging over them enlarges that part. */
function Axis({ whole, shown, set }: ZoomProps) {
  const axis = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<Span>();
  const length = shown.to - shown.from;
  const share = (event: PointerEvent) => {
    const box = axis.current?.getBoundingClientRect();
    return box ? Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) : 0;
  };
  const end = () => {
    if (drag && Math.abs(drag.to - drag.from) > 0.01) {
      const [one, other] = [drag.from, drag.to].sort((a, b) => a - b) as [number, number];
      set({ from: shown.from + one * length, to: shown.from + other * length });
    }
    setDrag(undefined);
  };
  return (
    <div
      ref={axis}
      className="axis"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag({ from: share(event), to: share(event) });
      }}
      onPointerMove={(event) => drag && setDrag({ from: drag.from, to: share(event) })}
      onPointerUp={end}
      onPointerCancel={() => setDrag(undefined)}
    >
      {drag && <div className="select" style={{ left: `${Math.min(drag.from, drag.to) * 100}%`, width: `${Math.abs(drag.to - drag.from) * 100}%` }} />}
      {Array.from({ length: TICKS }, (_, tick) => (
        <span key={tick} style={{ left: `${((tick + 0.5) / TICKS) * 100}%` }}>
          {duration(shown.from + ((tick + 0.5) / TICKS) * length - whole.from)}
        </span>
      ))}
    </div>
  );
}

function Costs({ rows, now }: { rows: readonly Row[]; now: number }) {
  const found = shares(rows, now).slice(0, 10);
  if (found.length === 0) return null;
  const cell = (ms: number) => (ms > 0 ? duration(ms) : '');
  return (
    <>
      <h3>Where the time went</h3>
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
