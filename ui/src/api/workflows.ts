import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { api, type ApiError, type Graph, type Schemas, type Workflow } from './client';

const PAGE = 100;

export function useWorkflows(search = '') {
  return useInfiniteQuery({
    queryKey: ['workflows', search],
    queryFn: ({ pageParam }) => api.get<Schemas['WorkflowList']>('/workflows', { limit: PAGE, offset: pageParam, search }),
    initialPageParam: 0,
    getNextPageParam: ({ pagination: { hasMore, offset } }) => (hasMore ? offset + PAGE : undefined),
    placeholderData: (before) => before,
  });
}

export function useWorkflow(id: string, isOn = true) {
  return useQuery<Workflow, ApiError>({ queryKey: ['workflow', id], queryFn: () => api.get(`/workflows/${id}`), enabled: isOn });
}

export function useWorkflowGraph(id: string, version: number | undefined) {
  return useQuery<Graph, ApiError>({
    queryKey: ['workflow', id, 'graph', version],
    queryFn: () => api.get(`/workflows/${id}/graph`, { format: 'json', version }),
  });
}

export function useVersions(id: string) {
  return useInfiniteQuery({
    queryKey: ['workflow', id, 'versions'],
    queryFn: ({ pageParam }) => api.get<Schemas['VersionList']>(`/workflows/${id}/versions`, { limit: PAGE, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ pagination }) => pagination.cursor ?? undefined,
  });
}

/** A version never changes. */
export function useVersion(id: string, version: number | undefined) {
  return useQuery<Schemas['VersionView'], ApiError>({
    queryKey: ['workflow', id, 'version', version],
    queryFn: () => api.get(`/workflows/${id}/versions/${version}`),
    enabled: version !== undefined,
    staleTime: Infinity,
  });
}
