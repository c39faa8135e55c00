// Small parts that all pages use.
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { ApiError } from '../api/client';
import { exact, relative, statusName } from './words';

// One clock for all relative times of the page.
let now = Date.now();
const listeners = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  listeners.forEach((listener) => listener());
}, 1_000);

export function useNow(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => now,
  );
}

export function Time({ at }: { at: string | null | undefined }) {
  const current = useNow();
  if (!at) return <span className="faint">–</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {relative(at, current)}
    </time>
  );
}

// A shape in addition to the colour: both say the same.
const SHAPES: Record<string, string> = {
  completed: '✓',
  succeeded: '✓',
  delivered: '✓',
  active: '✓',
  partial_success: '◐',
  failed: '✕',
  dead_lettered: '✕',
  given_up: '✕',
  quarantined: '✕',
  cancelled: '⊘',
  running: '▶',
  claimed: '▶',
  initializing: '▶',
  finalizing: '▶',
  retrying: '↻',
  retry_scheduled: '↻',
  queued: '…',
  dispatching: '…',
  init: '○',
  pending: '○',
  waiting: '‖',
  paused: '‖',
  skipped: '⤼',
};

export const shapeOf = (status: string): string => SHAPES[status] ?? '•';

export function StatusMark({ status, text, title }: { status: string; text?: string | undefined; title?: string | undefined }) {
  return (
    <span className={`status ${status}`} title={title}>
      <span className="shape" aria-hidden="true">
        {shapeOf(status)}
      </span>
      {text ?? statusName(status)}
    </span>
  );
}

export function Problem({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  const known = error instanceof ApiError ? error : undefined;
  return (
    <div className="problem" role="alert">
      <strong>{known?.message ?? String(error)}</strong>
      {known && known.details.length > 0 && (
        <ul>
          {known.details.map((detail, place) => (
            <li key={place}>
              {detail.line ? `line ${detail.line}: ` : detail.path ? `${detail.path}: ` : ''}
              {detail.message}
            </li>
          ))}
        </ul>
      )}
      {retry && (
        <div>
          <button type="button" onClick={retry}>
            Try again
          </button>
        </div>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p>{title}</p>
      {children}
    </div>
  );
}

export const Loading = () => (
  <p className="faint" aria-busy="true">
    Loading …
  </p>
);

interface Found {
  isPending: boolean;
  data: unknown;
  error: Error | null;
  refetch: () => unknown;
}

/** Shows what was read; until then that it is read, or why it could not be read. */
export function Result({ of, children }: { of: Found; children: ReactNode }) {
  return (
    <>
      {of.error && <Problem error={of.error} retry={() => void of.refetch()} />}
      {of.isPending ? <Loading /> : of.data !== undefined && children}
    </>
  );
}

export function More({ of }: { of: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown } }) {
  if (!of.hasNextPage) return null;
  return (
    <p>
      <button type="button" onClick={() => void of.fetchNextPage()} disabled={of.isFetchingNextPage}>
        Show more
      </button>
    </p>
  );
}

/** A long text is made when it is copied. */
export function Copy({ text, label }: { text: string | (() => string); label: string }) {
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return;
    const timer = setTimeout(() => setDone(false), 1_500);
    return () => clearTimeout(timer);
  }, [isDone]);
  const copy = () => void navigator.clipboard?.writeText(typeof text === 'string' ? text : text()).then(() => setDone(true));
  return (
    <button type="button" className="quiet" onClick={copy} title={typeof text !== 'string' || text.length > 200 ? undefined : text}>
      {isDone ? 'copied' : label}
    </button>
  );
}

export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** The head of a page; the title is also that of the browser's tab. */
export function Title({ title, children, actions }: { title: string; children?: ReactNode; actions?: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Windlass`;
  }, [title]);
  return (
    <header className="title">
      <h1>{title}</h1>
      {children}
      {actions && <div className="actions">{actions}</div>}
    </header>
  );
}

/** A box that scrolls sideways. The keyboard reaches it only while there is something to scroll. */
export function Scroll({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const [isWide, setWide] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWide(element.scrollWidth > element.clientWidth));
    observer.observe(element);
    if (element.firstElementChild) observer.observe(element.firstElementChild);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={box} className="scroll" tabIndex={isWide ? 0 : undefined}>
      {children}
    </div>
  );
}

interface Column<Row> {
  name: string;
  isNumber?: boolean;
  isWide?: boolean;
  show: (row: Row) => ReactNode;
}

export function Table<Row>({ rows, columns, rowKey }: { rows: readonly Row[]; columns: readonly Column<Row>[]; rowKey: (row: Row) => string }) {
  const style = ({ isNumber, isWide }: Column<Row>) => (isNumber ? 'number' : isWide ? 'wide' : undefined);
  return (
    <Scroll>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={style(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => (
                <td key={column.name} className={style(column)}>
                  {column.show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
