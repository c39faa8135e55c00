import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, tenant } from './client';
import { LIVE_MS } from './shared';

const MESSAGES = ['status_update', 'node_started', 'node_completed', 'node_failed', 'execution_completed', 'log'];
/** Messages within this time cause one refresh. A large execution is read less often: most of the time is left for other work. */
const GATHER_MS = 250;
const GATHER_FACTOR = 4;
const GATHER_MAX_MS = 2_000;
const RECONNECT_MS = 1_000;
/** What a stream missed is read after this time, whatever became of the stream. */
const RECHECK_MS = 5_000;

/** Follows an execution: each message of its stream means that something about it has changed. */
export function useLive(id: string, isOver: boolean): 'live' | 'waiting' | 'over' {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (isOver) return;
    const read = () => client.invalidateQueries({ queryKey: ['execution', id] });
    if (tenant.get()) {
      // A stream has no headers, so it cannot name another tenant.
      const timer = window.setInterval(() => void read(), LIVE_MS);
      return () => window.clearInterval(timer);
    }
    let stream: EventSource;
    let isClosed = false;
    let pending: number | undefined;
    let again: number | undefined;
    let isReading = false;
    let isChanged = false;
    let tookMs = 0;
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
      stream = new EventSource(api.address(`/executions/${id}/stream`));
      stream.onopen = () => {
        setOpen(true);
        refresh();
      };
      stream.onerror = () => {
        setOpen(false);
        // A browser gives up when a server that is starting refuses the request.
        if (stream.readyState === EventSource.CLOSED) again = window.setTimeout(open, RECONNECT_MS);
      };
      MESSAGES.forEach((kind) => stream.addEventListener(kind, refresh));
    };
    open();
    const slowly = window.setInterval(refresh, RECHECK_MS);
    return () => {
      isClosed = true;
      stream.close();
      window.clearInterval(slowly);
      window.clearTimeout(pending);
      window.clearTimeout(again);
    };
  }, [client, id, isOver]);
  return isOver ? 'over' : isOpen ? 'live' : 'waiting';
}
