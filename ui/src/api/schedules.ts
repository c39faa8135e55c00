import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { api, type ApiError, type Query, type Schemas } from './client';
import { LIVE_MS } from './shared';

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

function useItems<Of>(key: unknown[], path: string, query: Query = {}) {
  return useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => api.get<{ items: Of[]; next_cursor?: string | null }>(path, { limit: 50, ...query, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    refetchInterval: LIVE_MS,
  });
}

export const useSchedules = () => useItems<Schedule>(['schedules'], '/schedules');
export const useRuns = (schedule: string) => useItems<Run>(['schedule', schedule, 'runs'], `/schedules/${schedule}/runs`);
export const useDeadLetters = (schedule?: string) => useItems<DeadLetter>(['dead-letters', schedule], '/dead-letters', { schedule_id: schedule });

export function useSchedule(id: string) {
  return useQuery<Schedule, ApiError>({ queryKey: ['schedule', id], queryFn: () => api.get(`/schedules/${id}`), refetchInterval: LIVE_MS });
}

export function useExplanation(id: string, past: number) {
  return useQuery<Schemas['Explanation'], ApiError>({
    queryKey: ['schedule', id, 'explain', past],
    queryFn: () => api.get(`/schedules/${id}/explain`, { next: 10, past }),
    refetchInterval: LIVE_MS,
  });
}

export function useRun(id: string) {
  return useQuery<Schemas['RunView'], ApiError>({ queryKey: ['run', id], queryFn: () => api.get(`/runs/${id}`), refetchInterval: LIVE_MS });
}
