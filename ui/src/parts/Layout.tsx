// The frame of every page: navigation, the user, keys.
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, type Session, tenant } from '../api/client';
import { useChange } from '../api/queries';

const PLACES = [
  { key: 'h', path: '/', name: 'Home' },
  { key: 'e', path: '/executions', name: 'Executions' },
  { key: 'w', path: '/workflows', name: 'Workflows' },
] as const;

const KEYS = [
  ['?', 'show these keys'],
  ['/', 'search in the page'],
  ['g h', 'go to Home'],
  ['g e', 'go to Executions'],
  ['g w', 'go to Workflows'],
  ['Esc', 'close'],
] as const;

export function Layout({ session, children }: { session: Session; children: ReactNode }) {
  const [location] = useLocation();
  const [isHelp, setHelp] = useKeys();
  const signOut = useChange(
    () => api.remove('/session'),
    () => window.location.assign('/sign-in'),
  );
  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="top">
        <nav aria-label="Pages">
          <span className="brand">Windlass</span>
          {PLACES.map(({ path, name }) => (
            <Link key={path} href={path} aria-current={isAt(location, path) ? 'page' : undefined}>
              {name}
            </Link>
          ))}
        </nav>
        <div className="row">
          {tenant.get() && (
            <button type="button" onClick={() => (tenant.set(null), window.location.assign('/'))}>
              tenant {tenant.get()} ✕
            </button>
          )}
          <span className="faint" title={session.id}>
            {session.role} of {session.tenantId}
          </span>
          <button type="button" className="quiet" onClick={() => setHelp(true)} aria-label="Keys">
            ?
          </button>
          <button type="button" className="quiet" onClick={() => signOut.mutate(undefined)}>
            Sign out
          </button>
        </div>
      </header>
      <main id="content">{children}</main>
      {isHelp && <Help close={() => setHelp(false)} />}
    </>
  );
}

const isAt = (location: string, path: string) => (path === '/' ? location === '/' : location.startsWith(path));

function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <dl className="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  );
}

function useKeys(): [boolean, (shown: boolean) => void] {
  const [isHelp, setHelp] = useState(false);
  const [, navigate] = useLocation();
  useEffect(() => {
    let isGoing = false;
    const press = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      const place = PLACES.find(({ key }) => key === event.key);
      if (isGoing && place) navigate(place.path);
      if (event.key === '?') setHelp(true);
      if (event.key === '/') {
        event.preventDefault();
        document.querySelector<HTMLInputElement>('main input[type=search]')?.focus();
      }
      isGoing = event.key === 'g';
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [navigate]);
  return [isHelp, setHelp];
}
