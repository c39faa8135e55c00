// Queries about executions, each under one key, so that a change refreshes every place that shows it.
import { type InfiniteData, keepPreviousData, useInfiniteQuery, useQueries, useQuery } from '@tanstack/react-query';
import { api, type ApiError, type Execution, type Graph, type ListedExecution, type Query, type Schemas, type Waiting } from './client';
import { API, isReference } from '../parts/reference';
import { readPolled } from './pages';
import { LIVE_MS, useCan } from './shared';

export interface ExecutionFilter {
  status?: string | undefined;
  tag?: string | undefined;
  correlationId?: string | undefined;
  parentExecutionId?: string | undefined;
  /** A time, or a period until now. */
  since?: string | undefined;
  until?: string | undefined;
  workflowId?: string | undefined;
  dialect?: string | undefined;
  trigger?: string | undefined;
  text?: string | undefined;
}

type Page = Schemas['Executions'];

/** Periods until now, with their names and lengths. */
export const PERIODS: Record<string, [string, number]> = {
  '1h': ['last hour', 3_600_000],
  '1d': ['last day', 86_400_000],
  '7d': ['last week', 7 * 86_400_000],
  '30d': ['last 30 days', 30 * 86_400_000],
};

export function sinceTime(since: string | undefined): string | undefined {
  const period = since && PERIODS[since];
  return period ? new Date(Date.now() - period[1]).toISOString() : since;
}

/** A period is a time only in the request: the list of a period stays one list while time passes. */
const readPage = (filter: ExecutionFilter, page: Query): Promise<Page> => api.get('/executions', { ...filter, since: sinceTime(filter.since), ...page });

const PARTS = {
  items: ({ executions }: Page) => executions,
  id: ({ executionId }: ListedExecution) => executionId,
  join: (fresh: Page, executions: ListedExecution[], { pagination }: Page): Page => ({ ...fresh, executions, pagination }),
};

export function useExecutions(filter: ExecutionFilter, limit = 50, isOn = true) {
  return useInfiniteQuery({
    queryKey: ['executions', filter, limit],
    queryFn: (context) => readPolled(context, PARTS, (cursor) => readPage(filter, { limit, cursor })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.pagination.cursor ?? undefined,
    refetchInterval: LIVE_MS,
    placeholderData: keepPreviousData,
    enabled: isOn,
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

/** Returns a value, which is read first if it is only a reference, because it is too large for the answer that has it. */
export function useValue<Of extends object>(value: Of) {
  const url = isReference(value) ? value.url : undefined;
  const { data, error, refetch } = useQuery<Of, ApiError>({ queryKey: ['value', url], queryFn: () => api.get((url ?? '').slice(API.length)), enabled: url !== undefined, staleTime: Infinity });
  return { data: url === undefined ? value : data, error, refetch };
}

export function useExecutionGraph(id: string, isOn = true) {
  return useQuery<Graph, ApiError>({
    queryKey: ['execution', id, 'graph'],
    queryFn: () => api.get(`/executions/${id}/graph`, { format: 'json' }),
    enabled: isOn,
    placeholderData: keepPreviousData,
  });
}

/** A page that another one follows is read once only. */
function usePages<Of extends { pagination: Schemas['Pagination'] }>(key: unknown[], path: string, query: Query, isOn = true) {
  return useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, client }) => {
      const before = client.getQueryData<InfiniteData<Of>>(key);
      const known = before?.pages[before.pageParams.indexOf(pageParam)];
      return known?.pagination.cursor ? known : api.get<Of>(path, { ...query, cursor: pageParam });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: Of) => last.pagination.cursor ?? undefined,
    enabled: isOn,
  });
}

export const useEvents = (id: string, isOn = true) => usePages<Schemas['Events']>(['execution', id, 'events'], `/executions/${id}/events`, { limit: 500 }, isOn);

export const useEvidence = (id: string) => usePages<Schemas['Entries']>(['execution', id, 'evidence'], `/executions/${id}/evidence`, { limit: 500 });

/** The waits of an execution, without its results. */
const statusOptions = (id: string) => ({ queryKey: ['execution', id, 'status'], queryFn: () => api.get<Schemas['Standing']>(`/executions/${id}/status`), refetchInterval: LIVE_MS * 2 });

export const useExecutionStatus = (id: string, isOn = true) => useQuery<Schemas['Standing'], ApiError>({ ...statusOptions(id), enabled: isOn });

/** Maximum number of paused executions that are examined for gates and pauses, which the list does not have. */
const HELD_MAX = 12;

export interface Held {
  execution: ListedExecution;
  waits: Waiting[];
}

/** Everything that waits for an answer of the user: tasks, and gates and pauses of executions that no task of the user is about. */
export function useWaiting() {
  const canRun = useCan('execute');
  const tasks = useTasks();
  const paused = useExecutions({ status: 'paused' }, 50, canRun);
  const asked = new Set(tasks.data?.tasks.map(({ executionId }) => executionId));
  const others = paused.data?.pages.flatMap((page) => page.executions).filter(({ executionId }) => canRun && !asked.has(executionId)) ?? [];
  const examined = others.slice(0, HELD_MAX);
  const statuses = useQueries({ queries: examined.map(({ executionId }) => statusOptions(executionId)) });
  const held = examined.flatMap((execution, place): Held[] => {
    // What a child waits for is listed with the child. Approvals are tasks, or for others.
    const waits = statuses[place]?.data?.waitingFor?.filter(({ kind, childId }) => !childId && (kind === 'gate' || kind === 'pause')) ?? [];
    return waits.length > 0 ? [{ execution, waits }] : [];
  });
  const isKnown = tasks.data !== undefined && (!canRun || paused.data !== undefined) && statuses.every(({ isPending }) => !isPending);
  return {
    tasks,
    paused,
    held,
    count: isKnown ? tasks.data.tasks.length + held.reduce((sum, { waits }) => sum + waits.length, 0) : undefined,
    hasMore: Boolean(tasks.data?.pagination.hasMore) || paused.hasNextPage || others.length > examined.length,
    error: paused.error ?? statuses.find(({ error }) => error)?.error,
    retry: () => void [paused, ...statuses].forEach(({ refetch }) => void refetch()),
  };
}

export function useTasks(mine = true) {
  return useQuery<Schemas['TaskList'], ApiError>({
    queryKey: ['tasks', mine],
    queryFn: () => api.get('/tasks', { mine, limit: 100 }),
    refetchInterval: LIVE_MS,
  });
}
