// One execution: what it is, what it waits for, what failed and where; then its graph, timeline, steps, values, logs, events.
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { Execution as Data, ExecutionError, Session } from '../api/client';
import { useEvents, useExecution, useExecutionGraph, useLive } from '../api/queries';
import { Actions } from '../parts/Actions';
import { Answers } from '../parts/Answers';
import { Copy, Empty, Loading, Problem, Section, StatusMark, Time } from '../parts/basics';
import { Json } from '../parts/Json';
import { LazyGraph } from '../parts/LazyGraph';
import { Logs } from '../parts/Logs';
import { Timeline } from '../parts/Timeline';
import { why } from '../parts/why';
import { duration } from '../parts/words';

const TABS = { graph: 'Graph', timeline: 'Timeline', steps: 'Steps', values: 'Input and output', logs: 'Logs', events: 'Events' } as const;

export function Execution({ id, tab, can }: { id: string; tab: string; can: Session['permissions'] }) {
  const found = useExecution(id);
  const execution = found.data;
  const live = useLive(id, execution?.completedAt !== undefined);
  const [step, setStep] = useState<string>();
  const [, navigate] = useLocation();
  if (!execution) return found.error ? <Problem error={found.error} retry={() => void found.refetch()} /> : <Loading />;
  const choose = (chosen: string) => setStep(chosen === step ? undefined : chosen);
  const isOver = execution.completedAt !== undefined;
  return (
    <>
      <header className="row wrap">
        <h1>{execution.workflowName ?? 'Execution'}</h1>
        <StatusMark status={execution.status} />
        {live === 'waiting' && <span className="faint">connecting …</span>}
        <Copy text={execution.executionId} label={`…${execution.executionId.slice(-8)}`} />
        {can.includes('execute') && <Actions execution={execution} step={step} />}
      </header>
      <Facts execution={execution} />
      {found.error && <Problem error={found.error} />}
      <Answers execution={execution} canAnswer={can.includes('execute')} />
      <Failures execution={execution} />
      <nav className="tabs" aria-label="Views of the execution">
        {Object.entries(TABS).map(([key, name]) => (
          <Link key={key} href={`/executions/${id}/${key}`} replace aria-current={tab === key ? 'page' : undefined}>
            {name}
          </Link>
        ))}
      </nav>
      {tab === 'graph' && <GraphTab id={id} chosen={step} choose={choose} />}
      {tab === 'timeline' && <Timeline execution={execution} chosen={step} choose={choose} />}
      {tab === 'values' && <Values execution={execution} />}
      {tab === 'logs' && <Logs id={id} node={step} isOver={isOver} />}
      {tab === 'events' && <Events id={id} />}
      {(tab === 'steps' || (step && (tab === 'graph' || tab === 'timeline'))) && <Steps execution={execution} step={step} />}
      {step && (
        <p className="row">
          <button type="button" className="quiet" onClick={() => setStep(undefined)}>
            show all steps
          </button>
          <button type="button" className="quiet" onClick={() => navigate(`/executions/${id}/logs`, { replace: true })}>
            logs of {step}
          </button>
        </p>
      )}
    </>
  );
}

function Facts({ execution }: { execution: Data }) {
  const { metadata, progress } = execution;
  return (
    <p className="faint">
      {execution.dialect} version {execution.workflowVersion} · created <Time at={execution.createdAt} /> · {metadata.triggerType} by {metadata.triggeredBy}
      {execution.duration !== undefined && ` · took ${duration(execution.duration)}`}
      {!execution.completedAt && ` · ${progress.completedNodes} of ${progress.totalNodes} steps`}
      {metadata.parentExecutionId && (
        <>
          {' · '}
          <Link href={`/executions/${metadata.parentExecutionId}`}>parent</Link>
        </>
      )}
      {metadata.retryOf && (
        <>
          {' · '}retry of <Link href={`/executions/${metadata.retryOf}`}>…{metadata.retryOf.slice(-8)}</Link>
        </>
      )}
      {' · '}
      <Link href={`/executions?parent=${execution.executionId}`}>children</Link>
    </p>
  );
}

function Failures({ execution }: { execution: Data }) {
  if (execution.errors.length === 0) return null;
  return (
    <section className="failures" aria-label="Failures">
      {execution.errors.slice(0, 10).map((error, place) => (
        <Failure key={place} error={error} />
      ))}
      {execution.errors.length > 10 && <p>{execution.errors.length - 10} more</p>}
    </section>
  );
}

function Failure({ error }: { error: ExecutionError }) {
  const { location } = error;
  const line = location && `${location.file ?? 'definition'}${location.line ? ` line ${location.line}` : ''}`;
  const place = [error.nodeName ?? error.nodeId, error.path?.map((index) => `[${index}]`).join(''), error.task, line].filter(Boolean);
  return (
    <div className="problem">
      <strong>
        {place.join(' · ')} {place.length > 0 && '— '}
        {error.code}
      </strong>
      <pre>{error.message}</pre>
      <p className="faint">
        {error.attempt && `attempt ${error.attempt} · `}
        {error.retryable ? 'another attempt may succeed' : 'it is not retried by itself'}
        {error.childExecutionId && (
          <>
            {' · '}
            <Link href={`/executions/${error.childExecutionId}`}>the child that failed</Link>
          </>
        )}
      </p>
    </div>
  );
}

function GraphTab({ id, chosen, choose }: { id: string; chosen: string | undefined; choose: (id: string) => void }) {
  const graph = useExecutionGraph(id);
  if (!graph.data) return graph.error ? <Problem error={graph.error} retry={() => void graph.refetch()} /> : <Loading />;
  return <LazyGraph graph={graph.data} chosen={chosen} choose={choose} />;
}

function Steps({ execution, step }: { execution: Data; step: string | undefined }) {
  const nodes = execution.nodeExecutions.filter(({ nodeId }) => !step || nodeId === step);
  return (
    <div className="steps">
      {nodes.slice(-200).map((node) => (
        <details key={`${node.nodeId} ${node.firing} ${node.path?.join()}`} open={nodes.length === 1}>
          <summary>
            <StatusMark status={node.status} />
            <strong>
              {node.nodeName}
              {node.path?.map((index) => `[${index}]`)}
              {node.firing > 1 && ` #${node.firing}`}
            </strong>
            <span className="faint">
              {node.nodeType} · {why(node, execution)}
            </span>
          </summary>
          {node.error && <Failure error={node.error} />}
          {node.output !== undefined && <Json value={node.output} label={`the output of ${node.nodeName}`} />}
        </details>
      ))}
      {nodes.length > 200 && <p className="faint">The newest 200 of {nodes.length} firings are shown.</p>}
    </div>
  );
}

function Values({ execution }: { execution: Data }) {
  return (
    <div className="columns">
      <Section title="Input">
        <Json value={execution.inputs} label="the input" />
      </Section>
      <Section title="Output">
        <Json value={execution.outputs} label="the output" />
      </Section>
    </div>
  );
}

function Events({ id }: { id: string }) {
  const found = useEvents(id);
  const [search, setSearch] = useState('');
  const events = (found.data?.pages.flatMap((page) => page.events) ?? []).filter((event) => `${event.event} ${event.step ?? ''}`.includes(search));
  if (found.error && !found.data) return <Problem error={found.error} retry={() => void found.refetch()} />;
  return (
    <>
      <input type="search" aria-label="Search events" placeholder="step.failed …" value={search} onChange={(event) => setSearch(event.target.value)} />
      {events.length === 0 && !found.isPending && <Empty title="No event matches." />}
      {events.map((event) => (
        <details key={event.sequence}>
          <summary>
            <span className="faint mono">{event.sequence}</span> {event.event} <strong>{event.step}</strong>
            {event.path?.map((index) => `[${index}]`)} <Time at={event.timestamp} />
          </summary>
          <Json value={event.data} label={`event ${event.sequence}`} />
        </details>
      ))}
      {found.hasNextPage && (
        <button type="button" onClick={() => void found.fetchNextPage()}>
          Show more
        </button>
      )}
    </>
  );
}
