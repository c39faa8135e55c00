import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { api, type ApiError, type Query, type Schemas } from './client';
import { KNOWN_PAGE, readItems, readPolled } from './pages';
import { LIVE_MS } from './shared';

const KNOWN_MS = 60_000;

/** The fields of a schedule that its document has; the API type names only those that the server adds. */
export type Schedule = Schemas['ScheduleView'] & {
  name: string;
  enabled: boolean;
  timezone: string;
  schedule: { kind: string; expr?: string; every_seconds?: number; at?: string };
  target: { kind: string; workflow_id?: string; url?: string; method?: string; command?: string };
};
export type Run = Schemas['RunSummary'];
export type DeadLetter = Schemas['DeadLetterView'];

interface Page<Item> {
  items: Item[];
  next_cursor?: string | null;
}

const partsOf = <Item extends { id: string }>() => ({
  items: ({ items }: Page<Item>) => items,
  id: ({ id }: Item) => id,
  join: (fresh: Page<Item>, items: Item[], { next_cursor }: Page<Item>): Page<Item> => ({ ...fresh, items, next_cursor: next_cursor ?? null }),
});

function useItems<Of extends { id: string }>(key: unknown[], path: string, query: Query = {}) {
  return useInfiniteQuery({
    queryKey: key,
    queryFn: (context) => readPolled(context, partsOf<Of>(), (cursor) => api.get<Page<Of>>(path, { limit: 50, ...query, cursor })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    refetchInterval: LIVE_MS,
  });
}

export const useSchedules = () => useItems<Schedule>(['schedules'], '/schedules');
/** The newest schedules, for a search in all of them. */
export const useKnownSchedules = () =>
  useQuery<readonly Schedule[], ApiError>({
    queryKey: ['schedules', 'known'],
    queryFn: () => readItems((cursor) => api.get<Page<Schedule>>('/schedules', { limit: KNOWN_PAGE, cursor }).then(({ items, next_cursor }) => [items, next_cursor])),
    staleTime: KNOWN_MS,
  });

export const useRuns = (schedule: string) => useItems<Run>(['schedule', schedule, 'runs'], `/schedules/${schedule}/runs`);

const LETTERS = 200;
/** Pages of the server that one page of open dead letters is taken from: the server lists resolved ones, too. */
const LETTER_PAGES_MAX = 5;
const OPEN_LETTERS = 50;

/** Dead letters that are open, or all of them; the newest first. */
export function useDeadLetters(schedule?: string, isAll = false) {
  return useInfiniteQuery({
    queryKey: ['dead-letters', schedule, isAll],
    queryFn: (context) => readPolled<Page<DeadLetter>, DeadLetter>(context, partsOf<DeadLetter>(), (cursor) => (isAll ? readLetters(schedule, cursor, 50) : readOpenLetters(schedule, cursor))),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    refetchInterval: LIVE_MS * 3,
  });
}

const readLetters = (schedule: string | undefined, cursor: string | undefined, limit: number): Promise<Schemas['DeadLetterList']> => api.get('/dead-letters', { schedule_id: schedule, limit, cursor });

async function readOpenLetters(schedule: string | undefined, from: string | undefined): Promise<Schemas['DeadLetterList']> {
  const open: DeadLetter[] = [];
  let cursor = from;
  for (let page = 0; page < LETTER_PAGES_MAX && open.length < OPEN_LETTERS; page += 1) {
    const { items, next_cursor } = await readLetters(schedule, cursor, LETTERS);
    open.push(...items.filter(({ resolved_at }) => !resolved_at));
    cursor = next_cursor ?? undefined;
    if (cursor === undefined) break;
  }
  return { items: open, next_cursor: cursor ?? null };
}

export function useSchedule(id: string) {
  return useQuery<Schedule, ApiError>({ queryKey: ['schedule', id], queryFn: () => api.get(`/schedules/${id}`), refetchInterval: LIVE_MS });
}

type Explanation = Schemas['Explanation'];

const OCCURRENCES = {
  items: ({ past }: Explanation) => past,
  id: ({ occurrence_key }: Schemas['PastOccurrence']) => occurrence_key,
  join: (fresh: Explanation, past: Schemas['PastOccurrence'][], { past_cursor }: Explanation): Explanation => ({ ...fresh, past, past_cursor: past_cursor ?? null }),
};

const NEXT = 10;
const PAST = 100;

/** The next occurrences, and pages of the past ones. */
export function useExplanation(id: string) {
  return useInfiniteQuery({
    queryKey: ['schedule', id, 'explain'],
    queryFn: (context) => readPolled(context, OCCURRENCES, (cursor) => api.get<Explanation>(`/schedules/${id}/explain`, { next: cursor === undefined ? NEXT : 0, past: PAST, cursor })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ past_cursor }) => past_cursor ?? undefined,
    refetchInterval: LIVE_MS,
  });
}

export function useRun(id: string) {
  return useQuery<Schemas['RunView'], ApiError>({ queryKey: ['run', id], queryFn: () => api.get(`/runs/${id}`), refetchInterval: LIVE_MS });
}
