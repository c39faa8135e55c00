// The frame of every page: navigation, the user, the theme, keys.
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { Link, useLocation } from 'wouter';
import { useTenants } from '../api/administration';
import { api, reach, type Session, tenant } from '../api/client';
import { useWaiting } from '../api/executions';
import { useChange } from '../api/shared';
import { announced } from './announce';
import { Problem } from './basics';
import { Dialog } from './Dialog';
import { dropDrafts } from './drafts';
import { Icon } from './Icon';
import { areLettersOn, KEYS, type Overlay, setLetters, useKeys } from './keys';
import { Palette } from './Palette';
import { isAt, PLACES } from './places';
import { setTheme, type Theme, useChosenTheme } from './theme';

export function Layout({ session, children }: { session: Session; children: ReactNode }) {
  const [overlay, setOverlay] = useState<Overlay>();
  const close = () => setOverlay(undefined);
  const content = useRef<HTMLElement>(null);
  useKeys(setOverlay);
  usePageFocus(content);
  return (
    <div className="frame">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="side">
        <div className="row brand">
          <img src="/assets/icon.svg" alt="" width="22" height="22" />
          <strong>Windlass</strong>
        </div>
        <button type="button" className="search" onClick={() => setOverlay('palette')} aria-keyshortcuts="Control+K">
          <Icon name="search" /> Go to … <kbd>Ctrl K</kbd>
        </button>
        <Navigation session={session} />
        <User session={session} help={() => setOverlay('help')} />
      </header>
      <main id="content" ref={content} tabIndex={-1}>
        <Outage />
        {children}
      </main>
      <Results />
      {overlay === 'palette' && <Palette close={close} />}
      {overlay === 'help' && <Help close={close} />}
    </div>
  );
}

/** The first two parts of a path are the page; the tabs of a page keep the focus. */
const pageOf = (path: string): string => (path.startsWith('/administration') ? '/administration' : path.split('/').slice(0, 3).join('/'));

let isBack = false;
window.addEventListener('popstate', () => (isBack = true));

/** On another page, the focus begins at its heading, as after a load. */
function usePageFocus(content: { current: HTMLElement | null }): void {
  const page = pageOf(useLocation()[0]);
  const before = useRef(page);
  useEffect(() => {
    if (before.current === page) return;
    before.current = page;
    if (!isBack) window.scrollTo(0, 0);
    isBack = false;
    (content.current?.querySelector('h1') ?? content.current)?.focus({ preventScroll: true });
  }, [content, page]);
}

/** The results of actions, wherever on the page they were. */
function Results() {
  const { text, number } = useSyncExternalStore(announced.subscribe, announced.get);
  return (
    <div className="results" role="status" aria-label="Results">
      {text && <p key={number}>{text}</p>}
    </div>
  );
}

/** Data that is shown while the server does not answer may be out of date. */
function Outage() {
  const isReached = useSyncExternalStore(reach.subscribe, reach.get);
  return (
    <div role="status">
      {!isReached && (
        <p className="problem">
          <strong>The server does not answer.</strong> What is shown may be old; the page tries again by itself.
        </p>
      )}
    </div>
  );
}

function Navigation({ session }: { session: Session }) {
  const [location] = useLocation();
  const waiting = useWaiting().count ?? 0;
  const list = useRef<HTMLElement>(null);
  // On a phone, the list is wider than the screen.
  useEffect(() => {
    const current = list.current?.querySelector<HTMLElement>('[aria-current]');
    if (list.current && current) list.current.scrollLeft = current.offsetLeft - list.current.offsetLeft - (list.current.clientWidth - current.offsetWidth) / 2;
  }, [location, waiting]);
  return (
    <nav aria-label="Pages" ref={list}>
      {PLACES.filter(({ needs }) => !needs || session.permissions.includes(needs)).map(({ path, name, icon }) => (
        <Link key={path} href={path} aria-current={isAt(location, path) ? 'page' : undefined}>
          <Icon name={icon} />
          <span>{name}</span>
          {path === '/' && waiting > 0 && (
            <span className="count" title="Waiting for you">
              {waiting}
            </span>
          )}
        </Link>
      ))}
    </nav>
  );
}

function User({ session, help }: { session: Session; help: () => void }) {
  const theme = useChosenTheme();
  const signOut = useChange(
    () => api.remove('/session'),
    () => {
      tenant.set(null);
      dropDrafts();
      window.location.assign('/sign-in');
    },
  );
  return (
    <div className="user">
      {session.operator && <TenantChoice session={session} />}
      <span className="faint" title={`${session.id} of ${session.tenantId}`}>
        {session.role} of {session.operator ? <TenantName id={session.tenantId} /> : session.tenantId}
      </span>
      <select aria-label="Theme" value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
        <option value="system">System theme</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
      <div className="row wrap">
        <button type="button" className="quiet" onClick={help} aria-label="Keys">
          ?
        </button>
        <button type="button" className="quiet" onClick={() => signOut.mutate(undefined)}>
          Sign out
        </button>
      </div>
      {signOut.error && <Problem error={signOut.error} />}
    </div>
  );
}

/** Operators of the server may look at and act for other tenants. */
function TenantChoice({ session }: { session: Session }) {
  const tenants = useTenants(true).data?.tenants ?? [];
  const [, navigate] = useLocation();
  if (tenants.length < 2) return null;
  const change = (id: string) => {
    tenant.set(id === 'default' ? null : id);
    navigate('/');
    window.location.reload();
  };
  return (
    <select aria-label="Tenant" value={tenant.get() ?? session.tenantId} onChange={(event) => change(event.target.value)}>
      {tenants.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}

function TenantName({ id }: { id: string }) {
  const tenants = useTenants(true).data?.tenants;
  return tenants?.find((one) => one.id === id)?.name ?? id;
}

function Help({ close }: { close: () => void }) {
  const [isOn, setOn] = useState(areLettersOn);
  const change = (is: boolean) => {
    setLetters(is);
    setOn(is);
  };
  return (
    <Dialog title="Keys" close={close}>
      <label className="row">
        <input type="checkbox" checked={isOn} onChange={(event) => change(event.target.checked)} /> Keys without Ctrl
      </label>
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
    </Dialog>
  );
}
