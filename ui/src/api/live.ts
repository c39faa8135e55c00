import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { api, tenant } from './client';
import { checkSession, LIVE_MS } from './shared';

const MESSAGES = ['status_update', 'node_started', 'node_completed', 'node_failed', 'execution_completed', 'log'];

interface LiveOptions {
  /** Undefined: it is not known yet whether it ended. */
  isOver: boolean | undefined;
  /** Whether a new log line is a change, too. */
  hasLogs: boolean;
}
/** Messages within this time cause one refresh. A large execution is read less often: most of the time is left for other work. */
const GATHER_MS = 250;
const GATHER_FACTOR = 4;
const GATHER_MAX_MS = 2_000;
/** Time until a refused stream is opened again, doubled after each refusal. */
const RECONNECT_MS = 1_000;
const RECONNECT_MAX_MS = 15_000;
/** Time after which changes that a stream missed are read, whatever the state of the stream. */
const RECHECK_MS = 5_000;
/** Maximum wait for one part, so that a slow part does not delay the next read of the others. */
const READ_MAX_MS = 10_000;

type Live = 'live' | 'waiting' | 'over';

/** Follows an execution: each message of its stream means that something about it has changed. */
export function useLive(id: string, { isOver, hasLogs }: LiveOptions): Live {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const wasLive = useRef(false);
  useEffect(() => {
    if (isOver === undefined) return;
    const read = reader((cancelRefetch) => client.invalidateQueries({ queryKey: ['execution', id] }, { cancelRefetch }));
    if (isOver) {
      // What was read in the same moment as the end may be of the moment before it.
      if (wasLive.current) void read();
      wasLive.current = false;
      return;
    }
    wasLive.current = true;
    // A stream has no headers, so it cannot name another tenant.
    if (tenant.get()) return poll(read, setOpen);
    return follow({ address: streamAddress(id, hasLogs), read, setOpen, checkSession: () => void checkSession(client) });
  }, [client, id, isOver, hasLogs]);
  return isOver === false ? (isOpen ? 'live' : 'waiting') : 'over';
}

/** Reads what has changed, and ends after a bounded time. Parts that are still being read are not restarted: slow ones would never end. */
function reader(refetch: (cancelRefetch: boolean) => Promise<void>): () => Promise<void> {
  let pending = 0;
  return async () => {
    const isLate = pending > 0;
    pending += 1;
    let timer: number | undefined;
    const late = new Promise<void>((end) => (timer = window.setTimeout(end, READ_MAX_MS)));
    await Promise.race([refetch(!isLate).finally(() => (pending -= 1)), late]);
    window.clearTimeout(timer);
  };
}

function poll(read: () => Promise<void>, setOpen: (isOpen: boolean) => void): () => void {
  setOpen(true);
  const timer = window.setInterval(() => document.visibilityState === 'visible' && void read(), LIVE_MS);
  return () => window.clearInterval(timer);
}

/** Each time a stream was opened, everything is read again, so only messages about later changes are needed. */
const streamAddress = (id: string, hasLogs: boolean) => api.address(`/executions/${id}/stream`, { lastSequence: 'now', logs: hasLogs });

interface Following {
  address: string;
  read: () => Promise<void>;
  setOpen: (isOpen: boolean) => void;
  checkSession: () => void;
}

/** Reads after messages of the stream. A page in the background has no stream: a browser opens only six connections to a server for all of its tabs. */
function follow({ address, read, setOpen, checkSession }: Following): () => void {
  let stream: EventSource | undefined;
  let isClosed = false;
  let pending: number | undefined;
  let again: number | undefined;
  let isReading = false;
  let isChanged = false;
  let tookMs = 0;
  let waitMs = RECONNECT_MS;
  const refresh = () => {
    // Messages that arrive while it is read mean one more refresh.
    if (isReading) isChanged = true;
    else pending ??= window.setTimeout(() => void readNow(), Math.min(Math.max(GATHER_MS, tookMs * GATHER_FACTOR), GATHER_MAX_MS));
  };
  const readNow = async () => {
    const from = performance.now();
    isReading = true;
    isChanged = false;
    await read();
    tookMs = performance.now() - from;
    isReading = false;
    pending = undefined;
    if (isChanged && !isClosed) refresh();
  };
  const open = () => {
    const opened = new EventSource(address);
    stream = opened;
    opened.onopen = () => {
      waitMs = RECONNECT_MS;
      setOpen(true);
      refresh();
    };
    opened.onerror = (event) => {
      setOpen(false);
      // The server sends the reason when it ends a stream early: usually, the token has expired or was revoked.
      if (event instanceof MessageEvent) checkSession();
      // A browser gives up when a server that is starting refuses the request.
      if (opened.readyState !== EventSource.CLOSED) return;
      again = window.setTimeout(open, waitMs);
      waitMs = Math.min(waitMs * 2, RECONNECT_MAX_MS);
    };
    MESSAGES.forEach((kind) => opened.addEventListener(kind, refresh));
  };
  const close = () => {
    stream?.close();
    stream = undefined;
    window.clearTimeout(again);
  };
  const seen = () => {
    if (document.visibilityState === 'hidden') close();
    else if (!stream) open();
  };
  seen();
  document.addEventListener('visibilitychange', seen);
  const slowly = window.setInterval(() => document.visibilityState === 'visible' && refresh(), RECHECK_MS);
  return () => {
    isClosed = true;
    document.removeEventListener('visibilitychange', seen);
    close();
    window.clearInterval(slowly);
    window.clearTimeout(pending);
  };
}
