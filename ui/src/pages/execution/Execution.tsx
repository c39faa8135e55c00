// One execution: what it is, what it waits for, what failed and where; then its views, live.
import { Link } from 'wouter';
import { useExecution, useExecutionGraph, useExecutions } from '../../api/executions';
import { useLive } from '../../api/live';
import { useCan } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Copy, Empty, Loading, Problem, Section, StatusMark, Title } from '../../parts/basics';
import { ExecutionTable } from '../../parts/ExecutionTable';
import { LazyGraph } from '../../parts/LazyGraph';
import { shortId } from '../../parts/words';
import { ActionRun } from './ActionRun';
import { Actions } from './Actions';
import { Evidence } from './Evidence';
import { Events } from './Events';
import { Facts } from './Facts';
import { Failures } from './Failure';
import { Logs } from './Logs';
import { StepPanel, Steps } from './Steps';
import { Timeline } from './Timeline';
import { Values } from './Values';
import { WaitingFor } from './WaitingFor';

const TABS = {
  graph: 'Graph',
  actions: 'Actions',
  timeline: 'Timeline',
  steps: 'Steps',
  values: 'Values',
  logs: 'Logs',
  children: 'Children',
  events: 'Events',
  evidence: 'Evidence',
} as const;

export function Execution({ id, tab }: { id: string; tab: string }) {
  const found = useExecution(id);
  const execution = found.data;
  const isOver = execution?.completedAt !== undefined;
  const live = useLive(id, isOver);
  const canRun = useCan('execute');
  const [query, change] = useAddress();
  const step = query.get('step') ?? undefined;
  const choose = (chosen: string) => change({ step: chosen === step ? undefined : chosen, iteration: undefined });
  if (!execution) return found.error ? <Problem error={found.error} retry={() => void found.refetch()} /> : <Loading />;
  const tabs = Object.entries(TABS).filter(([key]) => key !== 'actions' || execution.dialect === 'actions');
  return (
    <>
      <Title title={execution.workflowName ?? 'Execution'} actions={canRun && <Actions execution={execution} step={step} />}>
        <StatusMark status={execution.quarantined ? 'quarantined' : execution.status} />
        <Copy text={execution.executionId} label={shortId(execution.executionId)} />
        {live === 'waiting' && <span className="faint">connecting …</span>}
      </Title>
      <Facts execution={execution} />
      {found.error && <Problem error={found.error} />}
      <WaitingFor execution={execution} />
      <Failures execution={execution} />
      <nav className="tabs" aria-label="Views of the execution">
        {tabs.map(([key, name]) => (
          <Link key={key} href={`/executions/${id}/${key}${step ? `?step=${encodeURIComponent(step)}` : ''}`} replace aria-current={tab === key ? 'page' : undefined}>
            {name}
          </Link>
        ))}
      </nav>
      {tab === 'graph' && <GraphTab id={id} chosen={step} choose={choose} />}
      {tab === 'actions' && <ActionRun execution={execution} />}
      {tab === 'timeline' && <Timeline execution={execution} chosen={step} choose={choose} />}
      {tab === 'steps' && <Steps execution={execution} chosen={step} choose={choose} />}
      {tab === 'values' && <Values execution={execution} />}
      {tab === 'logs' && <Logs execution={execution} step={step} />}
      {tab === 'children' && <Children id={id} />}
      {tab === 'events' && <Events id={id} step={step} />}
      {tab === 'evidence' && <Evidence id={id} />}
      {step && (tab === 'graph' || tab === 'timeline') && <StepPanel execution={execution} step={step} close={() => choose(step)} />}
    </>
  );
}

function GraphTab({ id, chosen, choose }: { id: string; chosen: string | undefined; choose: (id: string) => void }) {
  const graph = useExecutionGraph(id);
  if (!graph.data) return graph.error ? <Problem error={graph.error} retry={() => void graph.refetch()} /> : <Loading />;
  return (
    <>
      <LazyGraph graph={graph.data} chosen={chosen} choose={choose} />
      {!chosen && <p className="faint">Choose a step to see its result, its iterations, and why it is in its state.</p>}
    </>
  );
}

function Children({ id }: { id: string }) {
  const found = useExecutions({ parentExecutionId: id }, 50);
  const executions = found.data?.pages.flatMap((page) => page.executions) ?? [];
  return (
    <Section title="Children" aside={<Link href={`/executions?parent=${id}`}>as a list with filters</Link>}>
      {executions.length > 0 ? <ExecutionTable executions={executions} /> : <Empty title="It has started no other execution." />}
    </Section>
  );
}
