// Small parts that all pages use.
import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';
import { ApiError, type Status } from '../api/client';
import { exact, relative } from './words';

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
  partial_success: '◐',
  failed: '✕',
  cancelled: '⊘',
  running: '▶',
  initializing: '▶',
  retrying: '↻',
  queued: '…',
  pending: '○',
  waiting: '‖',
  paused: '‖',
  skipped: '⤼',
};

export function StatusMark({ status, text }: { status: Status | string; text?: string }) {
  return (
    <span className={`status ${status}`}>
      <span aria-hidden="true">{SHAPES[status] ?? '•'}</span> {text ?? status.replace('_', ' ')}
    </span>
  );
}

export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
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
        <button type="button" onClick={retry}>
          Try again
        </button>
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

export function Copy({ text, label }: { text: string; label: string }) {
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return;
    const timer = setTimeout(() => setDone(false), 1_500);
    return () => clearTimeout(timer);
  }, [isDone]);
  const copy = () => void navigator.clipboard?.writeText(text).then(() => setDone(true));
  return (
    <button type="button" className="quiet" onClick={copy} title={text}>
      {isDone ? 'copied' : label}
    </button>
  );
}

export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section>
      <header className="row">
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}
