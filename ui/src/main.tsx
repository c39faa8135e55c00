import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Redirect, Route, Router, Switch, useLocation } from 'wouter';
import { api, ApiError, tenant } from './api/client';
import { share } from './api/share';
import { useChange, useSession } from './api/shared';
import { Action } from './pages/action/Action';
import { ActionRegistry } from './pages/action/ActionRegistry';
import { Administration } from './pages/administration/Administration';
import { DeadLetters } from './pages/schedule/DeadLetters';
import { Execution } from './pages/execution/Execution';
import { Executions } from './pages/Executions';
import { Home } from './pages/Home';
import { Plan } from './pages/plan/Plan';
import { Plans } from './pages/plan/Plans';
import { NewSchedule } from './pages/schedule/NewSchedule';
import { Run } from './pages/schedule/Run';
import { Schedule } from './pages/schedule/Schedule';
import { Schedules } from './pages/schedule/Schedules';
import { SignIn } from './pages/SignIn';
import { NewWorkflow } from './pages/workflow/NewWorkflow';
import { Workflow } from './pages/workflow/Workflow';
import { Workflows } from './pages/Workflows';
import { Empty, Loading, Problem } from './parts/basics';
import { Boundary } from './parts/Boundary';
import { dropDrafts } from './parts/drafts';
import { Layout } from './parts/Layout';
import { Needs } from './parts/Needs';
import { followAddress, navigateWithTenant, withTenant } from './parts/tenantAddress';
import { applyTheme } from './parts/theme';
import './style.css';

applyTheme();
followAddress();

const client = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => count < (error instanceof ApiError ? error.retriesMax : 2),
      retryDelay: (count) => Math.min(250 * 2 ** count, 4_000),
      refetchOnWindowFocus: true,
      structuralSharing: share,
      // The server may be on this machine, which needs no network.
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
});

// A session that has ended anywhere ends everywhere in the page. After a refusal, another user may have signed in.
const checkSession = (error: unknown) => {
  if (error instanceof ApiError && (error.isSignedOut || error.status === 403)) void client.invalidateQueries({ queryKey: ['session'] });
};
client.getQueryCache().subscribe((event) => {
  if (event.type === 'updated' && event.action.type === 'error' && event.query.queryKey[0] !== 'session') checkSession(event.action.error);
});
client.getMutationCache().subscribe((event) => {
  if (event.type === 'updated' && event.action.type === 'error') checkSession(event.action.error);
});

function SignedIn() {
  const session = useSession();
  const [place] = useLocation();
  if (session.error?.isSignedOut) {
    const to = encodeURIComponent(location.pathname + location.search + location.hash);
    return <Redirect to={`/sign-in?to=${to}${session.data ? '&ended=yes' : ''}`} />;
  }
  if (session.error && !session.data) return <NoSession error={session.error} retry={() => void session.refetch()} />;
  if (!session.data) return <Loading />;
  return (
    // Another user begins anew.
    <Layout key={`${session.data.id} ${session.data.tenantId}`} session={session.data}>
      <Boundary name="page" place={place}>
        <Pages />
      </Boundary>
    </Layout>
  );
}

/** The tenant that an operator viewed may be deleted, and a user may have no right to read the page. */
function NoSession({ error, retry }: { error: ApiError; retry: () => void }) {
  const signOut = useChange(
    () => api.remove('/session'),
    () => {
      tenant.set(null);
      dropDrafts();
      window.location.assign('/sign-in');
    },
  );
  const leave = () => {
    tenant.set(null);
    retry();
  };
  return (
    <main className="sign-in">
      <Problem error={error} retry={retry} />
      {tenant.get() && (
        <button type="button" onClick={leave}>
          Return to the own tenant
        </button>
      )}
      <button type="button" disabled={signOut.isPending} onClick={() => signOut.mutate(undefined)}>
        Sign in as another user
      </button>
      {signOut.error && <Problem error={signOut.error} />}
    </main>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/">
        <Home />
      </Route>
      <Route path="/executions">
        <Executions />
      </Route>
      <Route path="/executions/:id/:tab?">{({ id, tab }) => <Execution key={id} id={id} tab={tab ?? 'graph'} />}</Route>
      <Route path="/workflows">
        <Workflows />
      </Route>
      <Route path="/workflows/new">
        <Needs permission="edit" what="create workflows">
          <NewWorkflow />
        </Needs>
      </Route>
      <Route path="/workflows/:id/:tab?">{({ id, tab }) => <Workflow key={id} id={id} tab={tab ?? 'overview'} />}</Route>
      <Route path="/plans">
        <Plans />
      </Route>
      <Route path="/plans/:id/:tab?">{({ id, tab }) => <Plan key={id} id={id} tab={tab ?? 'overview'} />}</Route>
      <Route path="/actions">
        <ActionRegistry />
      </Route>
      <Route path="/actions/:name">{({ name }) => <Action key={name} name={name} />}</Route>
      <Route path="/schedules">
        <Schedules />
      </Route>
      <Route path="/schedules/new">
        <Needs permission="edit" what="create or change schedules">
          <NewSchedule />
        </Needs>
      </Route>
      <Route path="/schedules/:id">{({ id }) => <Schedule key={id} id={id} />}</Route>
      <Route path="/runs/:id">{({ id }) => <Run key={id} id={id} />}</Route>
      <Route path="/dead-letters">
        <DeadLetters />
      </Route>
      <Route path="/administration/:tab?">{({ tab }) => <Administration tab={tab} />}</Route>
      <Route>
        <Empty title="There is no such page.">
          <p>The link may be of another version of the server. The navigation leads to all pages.</p>
        </Empty>
      </Route>
    </Switch>
  );
}

createRoot(document.getElementById('page') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <Router hrefs={withTenant} aroundNav={navigateWithTenant}>
        <Switch>
          <Route path="/sign-in">
            <SignIn />
          </Route>
          <Route>
            <SignedIn />
          </Route>
        </Switch>
      </Router>
    </QueryClientProvider>
  </StrictMode>,
);
