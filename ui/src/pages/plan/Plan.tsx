// One plan: its graph, parameters, outputs and executions; a form that starts it; and its document.
import { Link } from 'wouter';
import { type Plan as Data, type PlanField, usePlan, usePlanExecutions } from '../../api/plans';
import { useCan } from '../../api/shared';
import { useWorkflowGraph } from '../../api/workflows';
import { useAddress } from '../../parts/address';
import { Empty, Loading, More, Problem, Result, Section, Time, Title } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { Table } from '../../parts/Table';
import { FieldTable } from '../../parts/FieldTable';
import { Json } from '../../parts/Json';
import { LazyGraph } from '../../parts/LazyGraph';
import { Needs } from '../../parts/Needs';
import { PlanExecutionTable } from '../../parts/PlanExecutionTable';
import { Unavailable } from '../../parts/Unavailable';
import { plural, shortId } from '../../parts/words';
import { planTitle } from './names';
import { PlanStart } from './PlanStart';
import { StepDetails } from './StepDetails';

const TABS = { overview: 'Overview', start: 'Start', document: 'Document' } as const;
const PHASES = ['pending', 'dispatching', 'running', 'finalizing', 'completed', 'failed', 'cancelled'];

export function Plan({ id, tab }: { id: string; tab: string }) {
  const found = usePlan(id);
  const canRun = useCan('execute');
  const plan = found.data;
  if (!plan) return found.error ? <Unavailable what="plan" error={found.error} retry={found.refetch} list="/plans" /> : <Loading />;
  const { spec, status } = plan;
  return (
    <>
      <Title title={planTitle(plan)}>
        <Copy text={id} label={shortId(id)} />
      </Title>
      <p className="faint">
        plan of {plural(spec.steps.length, 'step')} · created <Time at={status.createdAt} />
        {status.createdBy && ` by ${status.createdBy}`} · {plural(status.executions, 'execution')}
      </p>
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      <nav className="tabs" aria-label="Views of the plan">
        {Object.entries(TABS)
          .filter(([key]) => key !== 'start' || canRun)
          .map(([key, name]) => (
            <Link key={key} href={`/plans/${id}/${key}`} replace aria-current={tab === key ? 'page' : undefined}>
              {name}
            </Link>
          ))}
      </nav>
      {tab === 'overview' && <Overview plan={plan} />}
      {tab === 'start' && (
        <Needs permission="execute" what="start executions">
          <PlanStart plan={plan} />
        </Needs>
      )}
      {tab === 'document' && (
        <Section title="Document">
          <Json value={{ spec }} label="the document" />
        </Section>
      )}
    </>
  );
}

function Overview({ plan }: { plan: Data }) {
  const { id, spec } = plan;
  const graph = useWorkflowGraph(id, undefined);
  const [query, change] = useAddress();
  const chosen = query.get('step') ?? undefined;
  const choose = (step: string) => change({ step: step === chosen ? undefined : step });
  const step = spec.steps.find((one) => one.id === chosen);
  return (
    <>
      {spec.prompt && <p>{spec.prompt}</p>}
      {graph.error && <Problem error={graph.error} retry={() => void graph.refetch()} />}
      {graph.data && <LazyGraph graph={graph.data} chosen={chosen} choose={choose} />}
      {step ? <StepDetails step={step} after={plan.status.stepDependencies[step.id] ?? []} close={() => choose(step.id)} /> : <p className="faint">Choose a step to see its action, inputs, condition and routing.</p>}
      <Section title="Parameters">
        <FieldTable fields={spec.params ?? []} none="It has no parameters." />
        <Placement plan={plan} />
      </Section>
      <Section title="Outputs">
        <Outputs plan={plan} />
      </Section>
      <Executions plan={plan} />
    </>
  );
}

/** Where an execution runs, as far as the plan determines it. */
function Placement({ plan: { spec } }: { plan: Data }) {
  const [[way, name] = []] = Object.entries(spec.cluster ?? {});
  return (
    <dl className="facts">
      <dt>Cluster</dt>
      <dd>{way ? <code>{`${way}: ${name}`}</code> : 'chosen at the start'}</dd>
      <dt>Runner group</dt>
      <dd>{spec.runner ?? 'chosen at the start'}</dd>
    </dl>
  );
}

function Outputs({ plan: { spec } }: { plan: Data }) {
  const outputs = Object.entries(spec.output ?? {}).map(([name, reference]) => ({ name, reference, field: sourceField(spec, reference) }));
  if (outputs.length === 0) return <Empty title="It has no outputs of its own; those of its steps are kept with each execution." />;
  return (
    <Table
      rows={outputs}
      rowKey={({ name }) => name}
      columns={[
        { name: 'Name', show: ({ name }) => <code>{name}</code> },
        { name: 'From', show: ({ reference }) => <code>{reference}</code> },
        { name: 'Schema of the source', isWide: true, show: ({ field }) => field && (field.schema ? <code>{JSON.stringify(field.schema)}</code> : 'text') },
      ]}
    />
  );
}

/** The output of a step that a reference begins with. Built-in actions do not list theirs. */
function sourceField(spec: Data['spec'], reference: string): PlanField | undefined {
  const [, id, name] = /^steps\.([\w-]+)\.outputs\.(\w+)/.exec(reference) ?? [];
  const step = spec.steps.find((one) => one.id === id);
  return [...(step?.action.outputs ?? []), ...(step?.extraOutputs ?? [])].find((field) => field.name === name);
}

function Executions({ plan: { id } }: { plan: Data }) {
  const [query, change] = useAddress();
  const phase = query.get('phase') ?? undefined;
  const found = usePlanExecutions(id, phase);
  const canRun = useCan('execute');
  const executions = found.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Section
      title="Executions"
      aside={
        <label className="row">
          Phase
          <select value={phase ?? ''} onChange={(event) => change({ phase: event.target.value })}>
            <option value="">any</option>
            {PHASES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      }
    >
      <Result of={found}>
        {executions.length > 0 && <PlanExecutionTable executions={executions} />}
        {executions.length === 0 && (
          <Empty title={phase ? `No execution is ${phase}.` : 'It has not run yet.'}>
            {canRun && <Link href={`/plans/${id}/start`}>Start it</Link>}
          </Empty>
        )}
      </Result>
      <More of={found} />
    </Section>
  );
}
