// One workflow: its graph and executions, a form that starts it, its source in an editor, and its versions.
import { Link, Redirect, useLocation } from 'wouter';
import { api, type Schemas, type Workflow as Data } from '../../api/client';
import { useExecutions } from '../../api/executions';
import { useCan, useChange } from '../../api/shared';
import { useWorkflow, useWorkflowGraph } from '../../api/workflows';
import { Empty, Loading, More, Problem, Result, Section, StatusMark, Time, Title } from '../../parts/basics';
import { definitionPath } from '../../parts/definition';
import { ExecutionTable } from '../../parts/ExecutionTable';
import { LazyGraph } from '../../parts/LazyGraph';
import { Needs } from '../../parts/Needs';
import { Unavailable } from '../../parts/Unavailable';
import { Source } from './Source';
import { Start } from './Start';
import { Versions } from './Versions';

const TABS = { overview: 'Overview', start: 'Start', source: 'Source', versions: 'Versions' } as const;

export function Workflow({ id, tab }: { id: string; tab: string }) {
  const found = useWorkflow(id);
  const canRun = useCan('execute');
  const workflow = found.data;
  if (!workflow) return found.error ? <Unavailable what="workflow" error={found.error} retry={found.refetch} list="/workflows" /> : <Loading />;
  if (workflow.dialect === 'plan') return <Redirect to={definitionPath(workflow)} replace />;
  return (
    <>
      <Title title={workflow.name} actions={<Changes workflow={workflow} />}>
        <StatusMark status={workflow.status} />
      </Title>
      <p className="faint">
        {workflow.dialect} version {workflow.version} · changed <Time at={workflow.updatedAt} />
      </p>
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      <nav className="tabs" aria-label="Views of the workflow">
        {Object.entries(TABS)
          .filter(([key]) => key !== 'start' || canRun)
          .map(([key, name]) => (
            <Link key={key} href={`/workflows/${id}/${key}`} replace aria-current={tab === key ? 'page' : undefined}>
              {name}
            </Link>
          ))}
      </nav>
      {tab === 'overview' && <Overview workflow={workflow} />}
      {tab === 'start' && (
        <Needs permission="execute" what="start executions">
          <Start workflow={workflow} />
        </Needs>
      )}
      {tab === 'source' && <Source workflow={workflow} />}
      {tab === 'versions' && <Versions workflow={workflow} />}
    </>
  );
}

function Overview({ workflow: { id, version } }: { workflow: Data }) {
  const canRun = useCan('execute');
  const graph = useWorkflowGraph(id, version);
  const found = useExecutions({ workflowId: id }, 20);
  const executions = found.data?.pages.flatMap((page) => page.executions) ?? [];
  return (
    <>
      {graph.error && <Problem error={graph.error} retry={() => void graph.refetch()} />}
      {graph.data && <LazyGraph graph={graph.data} />}
      <Section title="Executions" aside={<Link href={`/executions?workflow=${id}`}>all</Link>}>
        <Result of={found}>
          {executions.length > 0 ? <ExecutionTable executions={executions} /> : <Empty title="It has not run yet.">{canRun && <Link href={`/workflows/${id}/start`}>Start it</Link>}</Empty>}
        </Result>
        <More of={found} />
      </Section>
    </>
  );
}

/** Status, copy and deletion. */
function Changes({ workflow: { id, name, status } }: { workflow: Data }) {
  const [, navigate] = useLocation();
  const canEdit = useCan('edit');
  const canDelete = useCan('delete');
  const set = useChange((status: string) => api.patch(`/workflows/${id}`, { status }));
  const copy = useChange(
    () => api.post<Schemas['Registered']>(`/workflows/${id}/duplicate`, {}),
    (made) => navigate(`/workflows/${made.id}/source`),
  );
  const remove = useChange(
    () => api.remove(`/workflows/${id}`),
    () => navigate('/workflows'),
  );
  const error = set.error ?? copy.error ?? remove.error;
  if (!canEdit) return null;
  return (
    <>
      {error && <Problem error={error} />}
      {status === 'active' ? (
        <button type="button" onClick={() => set.mutate('paused')}>
          Pause
        </button>
      ) : (
        <button type="button" className="good" onClick={() => set.mutate('active')}>
          Activate
        </button>
      )}
      <button type="button" onClick={() => copy.mutate(undefined)}>
        Duplicate
      </button>
      {canDelete && (
        <button type="button" className="bad" onClick={() => window.confirm(`Delete the workflow ${name}?`) && remove.mutate(undefined)}>
          Delete
        </button>
      )}
    </>
  );
}
