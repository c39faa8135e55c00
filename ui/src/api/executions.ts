// Queries about executions, each under one key, so that a change refreshes every place that shows it.
import { type InfiniteData, keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { api, type ApiError, type Execution, type Graph, type ListedExecution, type Query, type Schemas, type Task, type Waiting } from './client';
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

const PAGE = 100;
/** Maximum number of pages that are read for one selection, most of whose executions may not fit. */
const PAGES_MAX = 100;

export interface Selection {
  fit: ListedExecution[];
  /** Those that were read and do not fit. */
  others: ListedExecution[];
  /** Where the rest begins, if there is more. */
  rest?: string | undefined;
}

/** Reads executions of a list from a place on, until enough of them fit. */
export async function selectExecutions(filter: ExecutionFilter, isFit: (execution: ListedExecution) => boolean, most: number, from?: string): Promise<Selection> {
  const selection: Selection = { fit: [], others: [], rest: from };
  for (let pages = 0; pages < PAGES_MAX && selection.fit.length < most; pages += 1) {
    // No page has more than the selection lacks, so none is cut.
    const { executions, pagination } = await readPage(filter, { limit: Math.min(PAGE, most - selection.fit.length), cursor: selection.rest });
    for (const one of executions) (isFit(one) ? selection.fit : selection.others).push(one);
    selection.rest = pagination.cursor ?? undefined;
    if (!selection.rest) break;
  }
  return selection;
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

/** What an execution waits for besides tasks: the opening of gates, or its release. */
export interface Held {
  execution: Pick<Task, 'executionId' | 'workflowName' | 'dialect'>;
  waits: Waiting[];
}

/** Everything that waits for an answer of the user: tasks, gates, and executions that were paused. */
export function useWaiting() {
  const canRun = useCan('execute');
  const tasks = useTasks();
  const gates = useTasks({ kind: 'gate', isOn: canRun });
  const pauses = useTasks({ kind: 'pause', isOn: canRun });
  const lists = canRun ? [tasks, gates, pauses] : [tasks];
  const holds = [...(pauses.data?.tasks ?? []), ...(gates.data?.tasks ?? [])];
  const held = [...Map.groupBy(canRun ? holds : [], ({ executionId }) => executionId).values()].flatMap((all): Held[] => {
    const [execution] = all;
    return execution ? [{ execution, waits: all.flatMap(({ waiting }) => waiting ?? []) }] : [];
  });
  const isKnown = lists.every(({ data }) => data !== undefined);
  return {
    tasks,
    held,
    count: isKnown ? (tasks.data?.tasks.length ?? 0) + held.reduce((sum, { waits }) => sum + waits.length, 0) : undefined,
    hasMore: lists.some(({ data }) => data?.pagination.hasMore),
    error: gates.error ?? pauses.error,
    retry: () => void [gates, pauses].forEach(({ refetch }) => void refetch()),
  };
}

interface TaskOptions {
  /** Without one, approvals and manual steps. */
  kind?: 'gate' | 'pause';
  isOn?: boolean;
}

function useTasks({ kind, isOn = true }: TaskOptions = {}) {
  return useQuery<Schemas['TaskList'], ApiError>({
    queryKey: ['tasks', kind],
    queryFn: () => api.get('/tasks', { mine: true, kind, limit: 100 }),
    refetchInterval: LIVE_MS,
    enabled: isOn,
  });
}
