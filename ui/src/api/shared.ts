// Hooks for reads and changes, used by all pages.
import { type QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { announce } from '../parts/announce';
import { dropDrafts } from '../parts/drafts';
import { dropKept } from '../parts/kept';
import { api, ApiError, type Permission, type Session, tenant } from './client';

/** Time between two reads of data that changes by itself. */
export const LIVE_MS = 3_000;

const SESSION = ['session'];

export function useSession() {
  return useQuery<Session, ApiError>({ queryKey: SESSION, queryFn: ({ client }) => readSession(client), retry: false, refetchInterval: LIVE_MS * 5 });
}

/** Reads again who is signed in, at once. */
export const checkSession = (client: QueryClient): Promise<void> => client.invalidateQueries({ queryKey: SESSION });

/** Reads who is signed in. The cookie is that of all tabs: after another user has signed in in one of them, the others forget what the former user
 * saw, and the tenant that this user looked at. */
async function readSession(client: QueryClient): Promise<Session> {
  const before = client.getQueryData<Session>(SESSION);
  const session = await api.get<Session>('/me').catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 403 && tenant.get()) return undefined;
    throw error;
  });
  if (session && (!before || before.id === session.id)) {
    if (before && before.tenantId !== session.tenantId) forget(client, session.id);
    return session;
  }
  forget(client, session?.id);
  if (!tenant.get()) return session ?? api.get('/me');
  tenant.set(null);
  return api.get('/me');
}

/** Removes all data that was read for a user, and what other users than the given one typed. */
export function forget(client: QueryClient, user?: string): void {
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION[0] });
  dropDrafts(user);
  dropKept();
}

/** Reports whether the user has a permission. The server decides in any case; the page offers nothing that it would refuse. */
export function useCan(permission: Permission): boolean {
  return useSession().data?.permissions.includes(permission) ?? false;
}

/** A request that changes something; everything shown is read again after it. `result` is announced. */
export function useChange<In, Out>(change: (given: In) => Promise<Out>, done?: (out: Out, given: In) => void, result?: string | ((given: In, out: Out) => string)) {
  const client = useQueryClient();
  return useMutation<Out, ApiError, In>({
    mutationFn: change,
    onSuccess: (out, given) => {
      done?.(out, given);
      if (result) announce(typeof result === 'string' ? result : result(given, out));
      // After `done` has left a page, what that page showed is not read again: it may be deleted.
      window.setTimeout(() => void client.invalidateQueries(), 0);
    },
  });
}
