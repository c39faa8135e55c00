import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Redirect, Route, Switch } from 'wouter';
import { ApiError } from './api/client';
import { useSession } from './api/queries';
import { Execution } from './pages/Execution';
import { Executions } from './pages/Executions';
import { Home } from './pages/Home';
import { SignIn } from './pages/SignIn';
import { Workflow } from './pages/Workflow';
import { Workflows } from './pages/Workflows';
import { Empty, Loading, Problem } from './parts/basics';
import { Layout } from './parts/Layout';
import './style.css';

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // What is missing or refused stays so; a server that is restarted is back soon.
      retry: (count, error) => !(error instanceof ApiError && error.status >= 400 && error.status < 500) && count < 30,
      retryDelay: (count) => Math.min(250 * 2 ** count, 4_000),
      refetchOnWindowFocus: true,
    },
  },
});

// A session that has ended anywhere ends everywhere in the page.
client.getQueryCache().subscribe(({ query }) => {
  const { error } = query.state;
  if (error instanceof ApiError && error.isSignedOut && query.queryKey[0] !== 'session') {
    void client.invalidateQueries({ queryKey: ['session'] });
  }
});

function SignedIn() {
  const session = useSession();
  if (session.error?.isSignedOut) return <Redirect to={`/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`} />;
  if (session.error && !session.data) return <Problem error={session.error} retry={() => void session.refetch()} />;
  if (!session.data) return <Loading />;
  const can = session.data.permissions;
  return (
    <Layout session={session.data}>
      <Switch>
        <Route path="/">
          <Home />
        </Route>
        <Route path="/executions">
          <Executions />
        </Route>
        <Route path="/executions/:id/:tab?">{({ id, tab }) => <Execution key={id} id={id} tab={tab ?? 'graph'} can={can} />}</Route>
        <Route path="/workflows">
          <Workflows />
        </Route>
        <Route path="/workflows/:id">{({ id }) => <Workflow key={id} id={id} can={can} />}</Route>
        <Route>
          <Empty title="There is no such page." />
        </Route>
      </Switch>
    </Layout>
  );
}

createRoot(document.getElementById('page') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <Switch>
        <Route path="/sign-in">
          <SignIn />
        </Route>
        <Route>
          <SignedIn />
        </Route>
      </Switch>
    </QueryClientProvider>
  </StrictMode>,
);
