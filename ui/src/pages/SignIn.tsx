// Signs in by the code in a link, or by a token.
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { api, type Schemas, type Session, tenant } from '../api/client';
import { useChange } from '../api/shared';
import { Problem } from '../parts/basics';
import { dropDrafts } from '../parts/drafts';
import { dropKept } from '../parts/kept';

export function SignIn() {
  const [, navigate] = useLocation();
  const client = useQueryClient();
  const [token, setToken] = useState('');
  const signIn = useChange(
    (body: { code: string } | { token: string }) => api.post<Session>('/session', body),
    (session) => {
      // No data of the previous user is shown to this one.
      tenant.set(null);
      client.removeQueries();
      dropDrafts(session.id);
      dropKept();
      client.setQueryData(['session'], session);
      navigate(destination(), { replace: true });
    },
  );
  const { mutate } = signIn;
  // A link is no proof that its sender and the user of this browser are one: it replaces the session of another user only if that user agrees.
  const preview = useChange(
    (code: string) => api.post<Schemas['SignInPreview']>('/session/preview', { code }),
    (found, code) => {
      if (!isReplaced(found)) mutate({ code });
    },
  );
  const { mutate: look } = preview;
  const asked = signIn.isIdle && preview.data && isReplaced(preview.data) ? preview.data : undefined;
  const error = signIn.isIdle ? preview.error : signIn.error;
  useEffect(() => {
    const redeem = () => {
      const code = window.location.hash.slice(1);
      if (!code) return;
      // The code works once: it is not kept in the history of the browser.
      window.history.replaceState(null, '', window.location.pathname + window.location.search);
      look(code);
    };
    redeem();
    window.addEventListener('hashchange', redeem);
    return () => window.removeEventListener('hashchange', redeem);
  }, [look]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    mutate({ token });
  };
  const isEnded = new URLSearchParams(useSearch()).has('ended');
  return (
    <main className="sign-in">
      <h1>Windlass</h1>
      {asked?.current && (
        <div role="alertdialog" aria-labelledby="replace" className="answer">
          <strong id="replace">Replace your session?</strong>
          <p>
            You are signed in as {named(asked.current)}. The link signs in as {named(asked.link)}: what you do then is done by that user.
          </p>
          <div className="row wrap">
            <button type="button" className="bad" onClick={() => mutate({ code: preview.variables ?? '' })}>
              Sign in as {asked.link.id}
            </button>
            <Link href="/" replace>
              Stay signed in as {asked.current.id}
            </Link>
          </div>
        </div>
      )}
      {isEnded && <p className="note">Your session has ended: it expired, you signed out, or its token was revoked.</p>}
      <form onSubmit={submit}>
        <label htmlFor="token">Token or JWT</label>
        <input id="token" type="password" autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} required />
        <button type="submit" disabled={signIn.isPending}>
          Sign in
        </button>
      </form>
      {error && <Problem error={error} />}
      <p className="faint">
        On the machine of the server, <code>windlass page</code> prints a link that signs you in.
      </p>
    </main>
  );
}

/** Whether a link ends the session of another user. */
const isReplaced = ({ link, current }: Schemas['SignInPreview']): boolean => Boolean(current) && (current?.id !== link.id || current.tenantId !== link.tenantId);

const named = ({ id, role, tenantId }: Session) => (
  <>
    <code>{id}</code> ({role} of {tenantId})
  </>
);

/** Only an address of this page: a link must not lead elsewhere. */
function destination(): string {
  const { origin, search } = window.location;
  try {
    const to = new URL(new URLSearchParams(search).get('to') ?? '/', origin);
    // A path with two slashes would be another server.
    return to.origin === origin ? to.pathname.replace(/^\/+/, '/') + to.search + to.hash : '/';
  } catch {
    return '/';
  }
}
