// Small parts that all pages use.
import { type MouseEvent, type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { api, ApiError, type Query, tenant } from '../api/client';
import { exact, relative, statusName } from './words';

// One clock for all relative times of the page.
let now = Date.now();
const listeners = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  listeners.forEach((listener) => listener());
}, 1_000);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The time now, each second; or a time that stays. */
export const useNow = (fixed?: number): number => useSyncExternalStore(subscribe, () => fixed ?? now);

/** It is rendered again when its text changes, not each second. */
export function Time({ at }: { at: string | null | undefined }) {
  const text = useSyncExternalStore(subscribe, () => (at ? relative(at, now) : undefined));
  if (!at) return <span className="faint">–</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {text}
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
  const copy = () => void copyText(typeof text === 'string' ? text : text()).then(setDone);
  return (
    <button type="button" className="quiet" onClick={copy} title={typeof text !== 'string' || text.length > 200 ? undefined : text}>
      {isDone ? 'copied' : label}
    </button>
  );
}

/** Browsers offer the clipboard to pages from https and from this machine only; to others they offer the selection. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const before = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  // Outside of an open dialog nothing can be selected.
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const isDone = document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return isDone;
}

interface DownloadProps {
  path: string;
  name: string;
  query?: Query | undefined;
  label?: string | undefined;
  children?: ReactNode;
}

/** A file of the API. A link has no headers, so the page itself reads a file of another tenant. */
export function Download({ path, name, query, label, children = 'download' }: DownloadProps) {
  const [error, setError] = useState<unknown>();
  const read = async () => {
    const url = URL.createObjectURL(await api.blob(path, query));
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  const open = (event: MouseEvent) => {
    if (!tenant.get()) return;
    event.preventDefault();
    setError(undefined);
    read().catch(setError);
  };
  return (
    <>
      <a href={api.address(path, query)} download={name} aria-label={label} onClick={open}>
        {children}
      </a>
      {error !== undefined && <Problem error={error} />}
    </>
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
