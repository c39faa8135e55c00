import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, tenant } from './client';
import { LIVE_MS } from './shared';

const MESSAGES = ['status_update', 'node_started', 'node_completed', 'node_failed', 'execution_completed', 'log'];
/** Messages within this time cause one refresh. */
const GATHER_MS = 250;
const RECONNECT_MS = 1_000;
/** What a stream missed is read after this time, whatever became of the stream. */
const RECHECK_MS = 5_000;

/** Follows an execution: each message of its stream means that something about it has changed. */
export function useLive(id: string, isOver: boolean): 'live' | 'waiting' | 'over' {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (isOver) return;
    const read = () => void client.invalidateQueries({ queryKey: ['execution', id] });
    if (tenant.get()) {
      // A stream has no headers, so it cannot name another tenant.
      const timer = window.setInterval(read, LIVE_MS);
      return () => window.clearInterval(timer);
    }
    let stream: EventSource;
    let pending: number | undefined;
    let again: number | undefined;
    const refresh = () => {
      pending ??= window.setTimeout(() => {
        pending = undefined;
        read();
      }, GATHER_MS);
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
      stream.close();
      window.clearInterval(slowly);
      window.clearTimeout(pending);
      window.clearTimeout(again);
    };
  }, [client, id, isOver]);
  return isOver ? 'over' : isOpen ? 'live' : 'waiting';
}
