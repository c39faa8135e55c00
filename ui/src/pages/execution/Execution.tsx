// One execution: what it is, what it waits for, what failed and where; then its views, live.
import { memo, useCallback, useDeferredValue, useEffect, useMemo } from 'react';
import { Link } from 'wouter';
import type { Execution as Data } from '../../api/client';
import { useExecution, useExecutionGraph, useExecutions } from '../../api/executions';
import { useLive } from '../../api/live';
import { planId, usePlan } from '../../api/plans';
import { useCan } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Empty, Loading, More, Problem, Result, Section, StatusMark, Title } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { ExecutionTable } from '../../parts/ExecutionTable';
import { LazyGraph, loadGraph } from '../../parts/LazyGraph';
import { Unavailable } from '../../parts/Unavailable';
import { shortId } from '../../parts/words';
import { planTitle } from '../plan/names';
import { ActionRun } from './ActionRun';
import { Actions } from './Actions';
import { Evidence } from './Evidence';
import { Events } from './Events';
import { Facts } from './Facts';
import { Failures } from './Failure';
import { Logs } from './Logs';
import { PlanRun, planStatus, StepCounts } from './PlanRun';
import { StepPanel, Steps } from './Steps';
import { Timeline } from './Timeline';
import { Values } from './Values';
import { markWaiting } from './waiting';
import { WaitingFor } from './WaitingFor';

const TABS = {
  graph: 'Graph',
  actions: 'Actions',
  plan: 'Plan',
  timeline: 'Timeline',
  steps: 'Steps',
  values: 'Values',
  logs: 'Logs',
  children: 'Children',
  events: 'Events',
  evidence: 'Evidence',
} as const;

/** Tabs of some dialects only. A plan shows its values and steps in one tab, and starts no other execution. */
const isShown = (tab: string, dialect: string | null | undefined): boolean => {
  if (dialect === 'plan') return !['actions', 'values', 'children'].includes(tab);
  return tab !== 'plan' && (tab !== 'actions' || dialect === 'actions');
};

export function Execution({ id, tab }: { id: string; tab: string }) {
  const found = useExecution(id);
  // The graph is read at the same time as the execution.
  const graph = useExecutionGraph(id, tab === 'graph').data;
  useEffect(() => {
    if (tab === 'graph') loadGraph().catch(() => undefined);
  }, [tab]);
  const execution = found.data;
  const live = useLive(id, { isOver: execution && execution.completedAt !== undefined, hasLogs: tab === 'logs' });
  const canRun = useCan('execute');
  const isPlan = execution?.dialect === 'plan';
  const plan = usePlan(planId(execution?.workflowId ?? ''), isPlan && execution.workflowId !== undefined).data;
  const [query, change] = useAddress();
  const step = query.get('step') ?? undefined;
  const choose = useCallback((chosen: string) => change({ step: chosen === step ? undefined : chosen, iteration: undefined }), [change, step]);
  // Inputs of the user come first; the views follow.
  const shown = useDeferredValue(execution) ?? execution;
  if (!execution || !shown) return found.error ? <Unavailable what="execution" error={found.error} retry={found.refetch} list="/executions" /> : <Loading />;
  const isKnown = execution.nodeExecutions.some(({ nodeId }) => nodeId === step) || graph?.nodes.some((node) => node.id === step);
  const tabs = Object.entries(TABS).filter(([key]) => isShown(key, execution.dialect));
  const run = isPlan ? planStatus(execution) : undefined;
  return (
    <>
      <Title title={plan ? planTitle(plan) : (execution.workflowName ?? 'Execution')} actions={canRun && <Actions execution={execution} step={isKnown ? step : undefined} />}>
        <StatusMark status={execution.quarantined ? 'quarantined' : (run?.phase ?? execution.status)} />
        <Copy text={execution.executionId} label={shortId(execution.executionId)} />
        {tab !== 'plan' && run?.stepCounts && <StepCounts counts={run.stepCounts} />}
        {live === 'waiting' && <span className="faint">connecting …</span>}
      </Title>
      <Facts execution={execution} />
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      <WaitingFor execution={execution} />
      <Failures execution={execution} />
      <nav className="tabs" aria-label="Views of the execution">
        {tabs.map(([key, name]) => (
          <Link key={key} href={`/executions/${id}/${key}${step ? `?step=${encodeURIComponent(step)}` : ''}`} replace aria-current={tab === key ? 'page' : undefined}>
            {name}
          </Link>
        ))}
      </nav>
      {!tabs.some(([key]) => key === tab) && <Empty title="There is no such view of this execution." />}
      {tab === 'graph' && <GraphTab execution={shown} chosen={step} choose={choose} />}
      {tab === 'actions' && <ActionRun execution={shown} />}
      {tab === 'plan' && <PlanRun execution={shown} plan={plan} />}
      {tab === 'timeline' && <Timeline execution={shown} chosen={step} choose={choose} />}
      {tab === 'steps' && <Steps execution={shown} chosen={step} choose={choose} />}
      {tab === 'values' && <Values execution={shown} />}
      {tab === 'logs' && <Logs execution={shown} step={step} />}
      {tab === 'children' && <Children id={id} />}
      {tab === 'events' && <Events id={id} step={step} />}
      {tab === 'evidence' && <Evidence id={id} isOver={shown.completedAt !== undefined} />}
      {step && (tab === 'graph' || tab === 'timeline') && <StepPanel execution={shown} step={step} choose={choose} />}
    </>
  );
}

const GraphTab = memo(function GraphTab({ execution, chosen, choose }: { execution: Data; chosen: string | undefined; choose: (id: string) => void }) {
  const graph = useExecutionGraph(execution.executionId);
  const marked = useMemo(() => graph.data && markWaiting(graph.data, execution.waitingFor), [graph.data, execution.waitingFor]);
  // Inputs of the user come first; a large graph follows.
  const shown = useDeferredValue(marked);
  const started = useMemo(() => new Map(execution.nodeExecutions.flatMap(({ nodeId, childExecutionId }) => (childExecutionId ? [[nodeId, childExecutionId] as const] : []))), [execution.nodeExecutions]);
  if (!shown) return graph.error ? <Problem error={graph.error} retry={() => void graph.refetch()} /> : <Loading />;
  return (
    <>
      <LazyGraph graph={shown} chosen={chosen} choose={choose} started={started} />
      {!chosen && <p className="faint">Choose a step to see its result, its iterations, and why it is in its state.</p>}
    </>
  );
});

/** Executions that it started, and retries of it. */
function Children({ id }: { id: string }) {
  const found = useExecutions({ parentExecutionId: id }, 50);
  const executions = found.data?.pages.flatMap((page) => page.executions) ?? [];
  return (
    <Section title="Children and retries" aside={<Link href={`/executions?parent=${id}`}>as a list with filters</Link>}>
      <Result of={found}>{executions.length > 0 ? <ExecutionTable executions={executions} /> : <Empty title="It has started no other execution, and was not retried." />}</Result>
      <More of={found} />
    </Section>
  );
}
