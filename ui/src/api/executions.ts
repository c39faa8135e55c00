// What the pages read about executions, each under one key, so that a change refreshes every place that shows it.
import { type InfiniteData, keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { api, type ApiError, type Execution, type Graph, type ListedExecution, type Query, type Schemas } from './client';
import { LIVE_MS } from './shared';

export interface ExecutionFilter {
  status?: string | undefined;
  tag?: string | undefined;
  correlationId?: string | undefined;
  parentExecutionId?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  workflowId?: string | undefined;
  dialect?: string | undefined;
  trigger?: string | undefined;
  text?: string | undefined;
}

type Page = Schemas['Executions'];

const readPage = (filter: ExecutionFilter, page: Query): Promise<Page> => api.get('/executions', { ...filter, ...page });

export function useExecutions(filter: ExecutionFilter, limit = 50) {
  return useInfiniteQuery({
    queryKey: ['executions', filter, limit],
    queryFn: ({ pageParam }) => readPage(filter, { limit, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.pagination.cursor ?? undefined,
    refetchInterval: LIVE_MS,
    placeholderData: keepPreviousData,
  });
}

/** Reads executions that match, page by page, up to a bound. */
export async function readExecutions(filter: ExecutionFilter, most: number): Promise<{ found: ListedExecution[]; hasMore: boolean }> {
  const found: ListedExecution[] = [];
  let cursor: string | undefined;
  do {
    const page = await readPage(filter, { limit: 100, cursor });
    found.push(...page.executions);
    cursor = page.pagination.cursor ?? undefined;
  } while (cursor && found.length < most);
  return { found: found.slice(0, most), hasMore: cursor !== undefined || found.length > most };
}

export function useExecution(id: string) {
  return useQuery<Execution, ApiError>({
    queryKey: ['execution', id],
    queryFn: () => api.get(`/executions/${id}`),
    placeholderData: keepPreviousData,
  });
}

export function useExecutionGraph(id: string, isOn = true) {
  return useQuery<Graph, ApiError>({
    queryKey: ['execution', id, 'graph'],
    queryFn: () => api.get(`/executions/${id}/graph`, { format: 'json' }),
    enabled: isOn,
    placeholderData: keepPreviousData,
  });
}

interface PageOptions {
  isOn?: boolean;
  /** Whether a page that another one follows is read once only. */
  isAppended?: boolean;
}

function usePages<Of extends { pagination: Schemas['Pagination'] }>(key: unknown[], path: string, query: Query, { isOn = true, isAppended = true }: PageOptions = {}) {
  return useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, client }) => {
      const before = isAppended ? client.getQueryData<InfiniteData<Of>>(key) : undefined;
      const known = before?.pages[before.pageParams.indexOf(pageParam)];
      return known?.pagination.cursor ? known : api.get<Of>(path, { ...query, cursor: pageParam });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: Of) => last.pagination.cursor ?? undefined,
    enabled: isOn,
  });
}

/** Lines of several sources may arrive out of order, so the pages of an execution that ended are all read again. */
export const useLogs = (id: string, nodeId: string | undefined, level: string | undefined, isOver: boolean) =>
  usePages<Schemas['Logs']>(['execution', id, 'logs', nodeId, level], `/executions/${id}/logs`, { nodeId, level, limit: 500 }, { isAppended: !isOver });

export const useEvents = (id: string, isOn = true) => usePages<Schemas['Events']>(['execution', id, 'events'], `/executions/${id}/events`, { limit: 500 }, { isOn });

export const useEvidence = (id: string) => usePages<Schemas['Entries']>(['execution', id, 'evidence'], `/executions/${id}/evidence`, { limit: 500 });

/** What an execution waits for, without its results. */
export const useExecutionStatus = (id: string) =>
  useQuery<Schemas['Standing'], ApiError>({ queryKey: ['execution', id, 'status'], queryFn: () => api.get(`/executions/${id}/status`), refetchInterval: LIVE_MS });

/** Everything that only people move on: tasks, and paused executions that no task is about. */
export function useWaiting() {
  const tasks = useTasks();
  const paused = useExecutions({ status: 'paused' }, 50);
  const asked = new Set(tasks.data?.tasks.map(({ executionId }) => executionId));
  const held = paused.data?.pages.flatMap((page) => page.executions).filter(({ executionId }) => !asked.has(executionId)) ?? [];
  const hasMore = Boolean(tasks.data?.pagination.hasMore) || paused.hasNextPage;
  return { tasks, held, count: tasks.data && !paused.isPending ? tasks.data.tasks.length + held.length : undefined, hasMore };
}

export function useTasks(mine = true) {
  return useQuery<Schemas['TaskList'], ApiError>({
    queryKey: ['tasks', mine],
    queryFn: () => api.get('/tasks', { mine, limit: 100 }),
    refetchInterval: LIVE_MS,
  });
}
