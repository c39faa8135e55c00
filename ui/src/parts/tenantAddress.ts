// While an operator views another tenant, every address of the page names it, so that a link shows the same to others.
import { tenant } from '../api/client';

const KEY = 'tenant';

const named = (): string | null => new URLSearchParams(window.location.search).get(KEY);

function change(to: string, id: string | null): string {
  const { pathname, search, hash, searchParams } = new URL(to, window.location.href);
  if (searchParams.get(KEY) === id) return pathname + search + hash;
  if (id) searchParams.set(KEY, id);
  else searchParams.delete(KEY);
  return `${pathname}${searchParams.size > 0 ? `?${searchParams}` : ''}${hash}`;
}

/** Returns the address of a page with the tenant that is viewed. Places in the page, and the page to sign in, are those of every tenant. */
export const withTenant = (to: string): string => (tenant.get() && to.startsWith('/') && !to.startsWith('/sign-in') ? change(to, tenant.get()) : to);

/** Views the tenant of an address that names one, as after a sign-in. */
export function navigateWithTenant(navigate: (to: string, options?: { replace?: boolean }) => void, to: string, options?: { replace?: boolean }): void {
  const id = new URL(to, window.location.href).searchParams.get(KEY);
  if (id && to.startsWith('/') && !to.startsWith('/sign-in')) tenant.set(id);
  navigate(withTenant(to), options);
}

/** Views the tenant that the address names when the page is loaded. The history of the browser may lead to an address of another one: what is shown is
 * then read anew. */
export function followAddress(): void {
  const id = named();
  if (id) tenant.set(id);
  else if (window.location.pathname !== '/sign-in') window.history.replaceState(window.history.state, '', withTenant(window.location.pathname + window.location.search + window.location.hash));
  window.addEventListener('popstate', () => {
    if (window.location.pathname === '/sign-in' || named() === tenant.get()) return;
    tenant.set(named());
    window.location.reload();
  });
  // The server may refuse the tenant to this user, or another user may have signed in. A choice of the user leads to another address at once, and
  // leaves this one in the history.
  const strip = () => {
    if (!tenant.get() && named()) window.history.replaceState(window.history.state, '', change(window.location.href, null));
  };
  tenant.subscribe(() => queueMicrotask(strip));
}
