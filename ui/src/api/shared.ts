// Hooks that all pages use to read and to change something.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, type ApiError, type Permission, type Session } from './client';

/** Time between two reads of what changes by itself. */
export const LIVE_MS = 3_000;

export function useSession() {
  return useQuery<Session, ApiError>({ queryKey: ['session'], queryFn: () => api.get('/me'), retry: false, refetchInterval: LIVE_MS * 5 });
}

/** Reports whether the user has a permission. The server decides in any case; the page offers nothing that it would refuse. */
export function useCan(permission: Permission): boolean {
  return useSession().data?.permissions.includes(permission) ?? false;
}

/** A request that changes something; everything shown is read again after it. */
export function useChange<In, Out>(change: (given: In) => Promise<Out>, done?: (out: Out) => void) {
  const client = useQueryClient();
  return useMutation<Out, ApiError, In>({
    mutationFn: change,
    onSuccess: (out) => {
      done?.(out);
      // After `done` has left a page, what that page showed is not read again: it may be deleted.
      window.setTimeout(() => void client.invalidateQueries(), 0);
    },
  });
}
