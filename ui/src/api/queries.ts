// What the pages read, each under one key, so that a change refreshes every place that shows it.
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, tenant, type ApiError, type Execution, type Graph, type Schemas, type Session, type Workflow } from './client';

const LIVE_MS = 3_000;

export function useSession() {
  return useQuery<Session, ApiError>({ queryKey: ['session'], queryFn: () => api.get('/me'), retry: false });
}

export interface ExecutionFilter {
  status?: string | undefined;
  tag?: string | undefined;
  parentExecutionId?: string | undefined;
  since?: string | undefined;
  workflowId?: string | undefined;
}

export function useExecutions(filter: ExecutionFilter, limit = 50) {
  const { workflowId, ...query } = filter;
  const path = workflowId ? `/workflows/${workflowId}/executions` : '/executions';
  return useInfiniteQuery({
    queryKey: ['executions', filter, limit],
    queryFn: ({ pageParam }) => api.get<Schemas['Executions']>(path, { ...query, limit, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.pagination.cursor ?? undefined,
    refetchInterval: LIVE_MS,
    placeholderData: keepPreviousData,
  });
}

export function useExecution(id: string) {
  return useQuery<Execution, ApiError>({
    queryKey: ['execution', id],
    queryFn: () => api.get(`/executions/${id}`),
    placeholderData: keepPreviousData,
  });
}

export function useExecutionGraph(id: string) {
  return useQuery<Graph, ApiError>({
    queryKey: ['execution', id, 'graph'],
    queryFn: () => api.get(`/executions/${id}/graph`, { format: 'json' }),
    placeholderData: keepPreviousData,
  });
}

export function useLogs(id: string, node: string | undefined) {
  return useInfiniteQuery({
    queryKey: ['execution', id, 'logs', node],
    queryFn: ({ pageParam }) => api.get<Schemas['Logs']>(`/executions/${id}/logs`, { nodeId: node, limit: 500, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.pagination.cursor ?? undefined,
  });
}

export function useEvents(id: string) {
  return useInfiniteQuery({
    queryKey: ['execution', id, 'events'],
    queryFn: ({ pageParam }) => api.get<Schemas['Events']>(`/executions/${id}/events`, { limit: 500, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.pagination.cursor ?? undefined,
  });
}

export function useWorkflows() {
  return useQuery<Schemas['WorkflowList'], ApiError>({ queryKey: ['workflows'], queryFn: () => api.get('/workflows', { limit: 100 }) });
}

export function useWorkflow(id: string) {
  return useQuery<Workflow, ApiError>({ queryKey: ['workflow', id], queryFn: () => api.get(`/workflows/${id}`) });
}

export function useWorkflowGraph(id: string, version: number | undefined) {
  return useQuery<Graph, ApiError>({
    queryKey: ['workflow', id, 'graph', version],
    queryFn: () => api.get(`/workflows/${id}/graph`, { format: 'json', version }),
  });
}

/** A request that changes something; everything shown is read again after it. */
export function useChange<In, Out>(change: (given: In) => Promise<Out>, done?: (out: Out) => void) {
  const client = useQueryClient();
  return useMutation<Out, ApiError, In>({
    mutationFn: change,
    onSuccess: (out) => {
      void client.invalidateQueries();
      done?.(out);
    },
  });
}

/** Follows an execution: each message of its stream means that something about it has changed. */
export function useLive(id: string, isOver: boolean): 'live' | 'waiting' | 'over' {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (isOver) return;
    if (tenant.get()) {
      // A stream has no headers, so it cannot name another tenant.
      const timer = window.setInterval(() => void client.invalidateQueries({ queryKey: ['execution', id] }), LIVE_MS);
      return () => window.clearInterval(timer);
    }
    let stream: EventSource;
    let pending: number | undefined;
    let again: number | undefined;
    const refresh = () => {
      // Many messages in a moment are one refresh.
      pending ??= window.setTimeout(() => {
        pending = undefined;
        void client.invalidateQueries({ queryKey: ['execution', id] });
      }, 250);
    };
    const open = () => {
      stream = new EventSource(api.streamAddress(id));
      stream.onopen = () => {
        setOpen(true);
        refresh();
      };
      stream.onerror = () => {
        setOpen(false);
        // A browser gives up when a server that is starting refuses the request.
        if (stream.readyState === EventSource.CLOSED) again = window.setTimeout(open, 1_000);
      };
      for (const kind of ['status_update', 'node_started', 'node_completed', 'node_failed', 'execution_completed', 'log']) {
        stream.addEventListener(kind, refresh);
      }
    };
    open();
    // What a stream missed is seen a little later, whatever became of the stream.
    const slowly = window.setInterval(refresh, 5_000);
    return () => {
      stream.close();
      window.clearInterval(slowly);
      window.clearTimeout(pending);
      window.clearTimeout(again);
    };
  }, [client, id, isOver]);
  return isOver ? 'over' : isOpen ? 'live' : 'waiting';
}
