// The firings of the steps: why each is in its state, its result, and its iterations.
import { memo, useDeferredValue, useMemo, useState } from 'react';
import { Link } from 'wouter';
import type { Execution, NodeExecution } from '../../api/client';
import { useAddress, useTyped } from '../../parts/address';
import { Empty, Section, StatusMark } from '../../parts/basics';
import { Json } from '../../parts/Json';
import { plural } from '../../parts/words';
import { useCourse } from './course';
import { CourseProblem } from './CourseProblem';
import { Failure } from './Failure';
import { firingName, numbersOf } from './firings';
import { Iterations } from './Iterations';
import { statusOf } from './waiting';
import { type Course, unreached, why } from './why';

const SHOWN_MAX = 200;
const STATUSES = ['failed', 'running', 'retrying', 'waiting', 'pending', 'skipped', 'completed'];

interface StepsProps {
  execution: Execution;
  chosen: string | undefined;
  choose: (step: string) => void;
}

export const Steps = memo(function Steps({ execution, chosen, choose }: StepsProps) {
  const course = useCourse(execution);
  const { graph } = course;
  const [search, setSearch] = useTyped('find');
  const [query, change] = useAddress();
  const status = query.get('status') ?? '';
  // Typing comes first; the steps follow.
  const words = useDeferredValue(search).toLowerCase();
  const isShown = (name: string, of: string) => name.toLowerCase().includes(words) && (!status || of === status);
  const nodes = execution.nodeExecutions.filter((node) => (!chosen || node.nodeId === chosen) && isShown(node.nodeName, statusOf(node, execution.waitingFor)));
  const numbers = useMemo(() => numbersOf(execution.nodeExecutions), [execution.nodeExecutions]);
  const run = new Set(execution.nodeExecutions.map(({ nodeId }) => nodeId));
  // Steps whose firings are left out of the answer ran.
  const others = (graph?.nodes ?? []).filter(({ id, name, state }) => !run.has(id) && !state?.firings && (!chosen || id === chosen) && isShown(name, state?.status ?? 'pending'));
  return (
    <>
      <form className="filters" onSubmit={(event) => event.preventDefault()}>
        <input type="search" aria-label="Search steps" placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
        <label>
          Status
          <select value={status} onChange={(event) => change({ status: event.target.value })}>
            <option value="">any</option>
            {STATUSES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {chosen && (
          <button type="button" onClick={() => choose(chosen)}>
            step {chosen} ✕
          </button>
        )}
      </form>
      <CourseProblem course={course} />
      <Omitted execution={execution} step={chosen} />
      <section className="steps" aria-label="Steps">
        {nodes.slice(-SHOWN_MAX).map((node) => (
          <Firing key={firingKey(node)} node={node} number={numbers.get(node) ?? 1} course={course} isOpen={nodes.length === 1} />
        ))}
        {others.slice(0, SHOWN_MAX).map(({ id, name, captions, state }) => (
          <details key={id}>
            <summary>
              {state?.status === 'waiting' ? <StatusMark status="waiting" /> : <StatusMark status="pending" text="not run" />} <strong>{name}</strong>
              <span className="faint">
                {captions[0]} · {unreached(id, course)}
              </span>
            </summary>
          </details>
        ))}
        {nodes.length + others.length === 0 && (
          <Empty title="No step matches.">
            <button type="button" className="quiet" onClick={() => change({ find: undefined, status: undefined, step: undefined })}>
              Show all steps
            </button>
          </Empty>
        )}
        {nodes.length > SHOWN_MAX && <p className="faint">The newest {SHOWN_MAX} of {plural(nodes.length, 'firing')} are shown. Search for a step to see others.</p>}
        {others.length > SHOWN_MAX && <p className="faint">The first {SHOWN_MAX} of {plural(others.length, 'step')} that did not run are shown.</p>}
      </section>
    </>
  );
});

/** The answer of a large execution has only its newest firings. */
function Omitted({ execution: { executionId, shortened }, step }: { execution: Execution; step: string | undefined }) {
  if (!shortened?.nodeExecutions) return null;
  return (
    <p className="note">
      The oldest {plural(shortened.nodeExecutions, 'firing or iteration', 'firings and iterations')} of this execution {shortened.nodeExecutions === 1 ? 'is' : 'are'} not listed here.{' '}
      <Link href={`/executions/${executionId}/events${step ? `?step=${encodeURIComponent(step)}` : ''}`}>Its events</Link> have all of them.
    </p>
  );
}

/** What is known about one step, under the graph or the timeline. */
interface PanelProps {
  execution: Execution;
  step: string;
  choose: (step: string) => void;
}

export const StepPanel = memo(function StepPanel({ execution, step, choose }: PanelProps) {
  const course = useCourse(execution);
  const { graph } = course;
  const nodes = execution.nodeExecutions.filter(({ nodeId }) => nodeId === step);
  const numbers = useMemo(() => numbersOf(execution.nodeExecutions), [execution.nodeExecutions]);
  const shown = nodes.slice(-SHOWN_MAX);
  const isUnknown = nodes.length === 0 && graph !== undefined && !graph.nodes.some(({ id }) => id === step);
  const firings = graph?.nodes.find(({ id }) => id === step)?.state?.firings ?? 0;
  return (
    <Section
      title={graph?.nodes.find(({ id }) => id === step)?.name ?? step}
      aside={
        <span className="row">
          <Link href={`/executions/${execution.executionId}/logs?step=${encodeURIComponent(step)}`}>logs of {step}</Link>
          <button type="button" className="quiet" onClick={() => choose(step)}>
            close
          </button>
        </span>
      }
    >
      <CourseProblem course={course} />
      <div className="steps">
        {shown.map((node) => (
          <Firing key={firingKey(node)} node={node} number={numbers.get(node) ?? 1} course={course} isOpen={nodes.length === 1} />
        ))}
      </div>
      {nodes.length === 0 && (firings > 0 ? <p>It ran: {plural(firings, 'firing')}.</p> : <p>{isUnknown ? 'The definition has no such step.' : unreached(step, course)}</p>)}
      <Omitted execution={execution} step={step} />
      {nodes.length > shown.length && <p className="faint">The newest {shown.length} of {plural(nodes.length, 'firing')} are shown.</p>}
    </Section>
  );
});

const firingKey = (node: NodeExecution) => `${node.nodeId} ${node.firing} ${node.path?.join()}`;

function Firing({ node, number, course, isOpen }: { node: NodeExecution; number: number; course: Course; isOpen: boolean }) {
  const [isShown, setShown] = useState(isOpen);
  return (
    <details open={isShown} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>
        <StatusMark status={statusOf(node, course.execution.waitingFor)} />
        <strong>{firingName(node.nodeName, node.path, number)}</strong>
        <span className="faint">
          {node.nodeType} · {why(node, course)}
        </span>
      </summary>
      {isShown && (
        <>
          {node.childExecutionId && (
            <p>
              It started <Link href={`/executions/${node.childExecutionId}`}>a child execution</Link>.
            </p>
          )}
          {node.error && <Failure error={node.error} />}
          {node.iterations && node.iterations.length > 0 && <Iterations node={node} course={course} />}
          {node.output !== undefined && <Json value={node.output} label={`the output of ${node.nodeName}`} />}
          {node.compensation && (
            <p>
              Compensation: <StatusMark status={node.compensation.status} />
            </p>
          )}
        </>
      )}
    </details>
  );
}
