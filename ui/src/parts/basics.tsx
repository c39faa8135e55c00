// Small parts that all pages use.
import { type ReactNode, useEffect, useRef, useSyncExternalStore } from 'react';
import { ApiError } from '../api/client';
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

/** Returns the current time, updated each second, or a fixed time. */
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

// A shape in addition to the colour: both have the same meaning.
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

/** Whether a message has the text of a detail and its place. */
const isContained = (message: string, { path, line, message: text }: ApiError['details'][number]): boolean =>
  message.includes(text) && (line ? message.includes(`line ${line}`) : !path || message.includes(path));

export function Problem({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  const known = error instanceof ApiError ? error : undefined;
  const details = known?.details.filter((detail) => !isContained(known.message, detail)) ?? [];
  return (
    <div className="problem" role="alert">
      <strong>{known?.message ?? String(error)}</strong>
      {details.length > 0 && (
        <ul>
          {details.map((detail, place) => (
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

/** Shows the data of a query, a note while it is being read, or the reason of its failure. */
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
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Windlass`;
  }, [title]);
  useEffect(() => {
    // The focus was set to the content before this heading was there.
    if (document.activeElement?.id === 'content') heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <header className="title">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
      {actions && <div className="actions">{actions}</div>}
    </header>
  );
}
