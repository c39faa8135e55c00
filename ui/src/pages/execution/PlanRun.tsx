// An execution of a plan in its own words: phases, how inputs were bound, outputs and files of the plan and of its steps.
import { Link } from 'wouter';
import type { Execution } from '../../api/client';
import { type PlanArtifact, type PlanExecutionStatus, type PlanInput, type PlanOutput, type PlanStepStatus, type Plan, usePlanExecution } from '../../api/plans';
import { useAddress } from '../../parts/address';
import { Empty, Loading, Problem, Section, StatusMark } from '../../parts/basics';
import { Download } from '../../parts/Download';
import { Table } from '../../parts/Table';
import { Json } from '../../parts/Json';
import { bytes, text, withoutColours } from '../../parts/words';
import { useCourse } from './course';
import { CourseProblem } from './CourseProblem';
import { Failure } from './Failure';
import { why } from './why';

const SHOWN_MAX = 160;
/** Steps of a plan that are listed at once. */
const STEPS_MAX = 200;
const RESOLVED: Record<string, string> = { literal: 'value', callerSecret: 'secret', default: 'default', unbound: 'not bound', ref: 'reference' };

export const planStatus = (execution: Execution): PlanExecutionStatus | undefined => (execution.view as { status?: PlanExecutionStatus } | null | undefined)?.status;

export function PlanRun({ execution, plan }: { execution: Execution; plan: Plan | undefined }) {
  const id = execution.executionId;
  const found = usePlanExecution(id);
  const course = useCourse(execution);
  const [query, change] = useAddress();
  const chosen = query.get('step') ?? undefined;
  const run = found.data;
  if (!run) return found.error ? <Problem error={found.error} retry={() => void found.refetch()} /> : <Loading />;
  const { spec, status } = run;
  const steps = (status.steps ?? []).filter((step) => !chosen || step.id === chosen);
  return (
    <>
      <CourseProblem course={course} />
      {status.error && (
        <div className="problem">
          <strong>The execution itself failed</strong>
          <pre>{withoutColours(status.error)}</pre>
        </div>
      )}
      <Section title="Phase">
        <dl className="facts">
          <dt>Phase</dt>
          <dd>
            <StatusMark status={status.phase} />
          </dd>
          <dt>Steps</dt>
          <dd>
            <StepCounts counts={status.stepCounts ?? {}} />
          </dd>
          <dt>Cluster</dt>
          <dd>{spec.cluster ?? '–'}</dd>
          <dt>Runner group</dt>
          <dd>{spec.runner ?? '–'}</dd>
          <dt>Runner host</dt>
          <dd>{status.runnerHost ?? 'no worker has taken it yet'}</dd>
        </dl>
      </Section>
      <Section title="Inputs">
        <Inputs inputs={status.inputs ?? []} values={valuesOf(plan, spec.params)} none={execution.completedAt ? 'It has no parameters.' : 'The parameters are not bound yet, or the plan has none.'} />
      </Section>
      <Section title="Outputs">
        <Outputs outputs={status.outputs ?? []} path={`/plan-executions/${id}/outputs`} none={execution.completedAt ? 'It has no outputs.' : 'The outputs of the plan exist after its completion.'} />
      </Section>
      <Section
        title="Steps"
        aside={
          chosen && (
            <button type="button" onClick={() => change({ step: undefined })}>
              step {chosen} ✕
            </button>
          )
        }
      >
        {steps.length === 0 && <Empty title={chosen ? 'The plan has no such step: choose another one in the graph.' : 'It has no steps.'} />}
        <div className="steps">
          {steps.slice(0, STEPS_MAX).map((step) => (
            <Step key={step.id} execution={execution} step={step} isOpen={steps.length === 1} />
          ))}
        </div>
        {steps.length > STEPS_MAX && <p className="faint">The first {STEPS_MAX} of {steps.length} steps are shown. Choose a step in the graph to see another one.</p>}
      </Section>
    </>
  );
}

export function StepCounts({ counts }: { counts: Record<string, number> }) {
  const present = Object.entries(counts).filter(([, count]) => count > 0);
  return (
    <span className="row wrap">
      {present.map(([phase, count]) => (
        <StatusMark key={phase} status={phase} text={`${count} ${phase}`} />
      ))}
    </span>
  );
}

/** The values of the parameters: those that the execution was created with, or the defaults. */
function valuesOf(plan: Plan | undefined, params: unknown): Record<string, unknown> {
  const defaults = Object.fromEntries((plan?.spec.params ?? []).map((field) => [field.name, field.default]));
  return { ...defaults, ...(params as Record<string, unknown> | undefined) };
}

function Inputs({ inputs, values, none }: { inputs: readonly PlanInput[]; values: Record<string, unknown>; none: string }) {
  if (inputs.length === 0) return <Empty title={none} />;
  return (
    <Table
      rows={inputs}
      rowKey={({ name }) => name}
      columns={[
        { name: 'Name', show: ({ name }) => <code>{name}</code> },
        { name: 'Resolved via', show: ({ resolvedVia }) => <span title={resolvedVia}>{RESOLVED[resolvedVia] ?? resolvedVia}</span> },
        { name: 'Value', isWide: true, show: ({ name, secretName, ref, resolvedVia }) => (secretName ? <span>secret <code>{secretName}</code></span> : ref ? <code>{ref}</code> : resolvedVia !== 'unbound' && <Short value={values[name]} />) },
      ]}
    />
  );
}

function Outputs({ outputs, path, none }: { outputs: readonly PlanOutput[]; path: string; none: string }) {
  if (outputs.length === 0) return <Empty title={none} />;
  const hasSource = outputs.some(({ stepRef }) => stepRef);
  return (
    <Table
      rows={outputs}
      rowKey={({ name }) => name}
      columns={[
        { name: 'Name', show: ({ name }) => <code>{name}</code> },
        { name: 'Value', isWide: true, show: ({ artifact, value }) => (artifact ? <ArtifactText artifact={artifact} /> : <Short value={value} />) },
        ...(hasSource ? [{ name: 'From', show: (output: PlanOutput) => <Source output={output} /> }] : []),
        { name: 'Kind', show: ({ metadata }) => metadata?.['contentType'] },
        { name: 'File', show: ({ name, artifact }) => (artifact && !artifact.ready ? <NotReady artifact={artifact} /> : <Download path={`${path}/${encodeURIComponent(name)}`} name={name} label={`Download ${name}`} />) },
      ]}
    />
  );
}

const ArtifactText = ({ artifact: { size, checksum } }: { artifact: PlanArtifact }) => (
  <span title={checksum ? `SHA-256 ${checksum}` : undefined}>{size == null ? 'a file' : bytes(size)}</span>
);

/** A file that is still uploaded, or that will never be there. */
const NotReady = ({ artifact: { error } }: { artifact: PlanArtifact }) =>
  error ? <StatusMark status="failed" text={`not available: ${withoutColours(error)}`} /> : <StatusMark status="finalizing" text="being uploaded" />;

function Source({ output: { stepRef, drill } }: { output: PlanOutput }) {
  if (!stepRef) return null;
  return (
    <Link href={`?step=${encodeURIComponent(stepRef.stepID)}`} replace>
      {[stepRef.stepID, stepRef.outputName, ...(drill ?? [])].join('.')}
    </Link>
  );
}

/** The beginning of a value. The whole value is a file to download. */
function Short({ value }: { value: unknown }) {
  if (value === undefined) return null;
  const all = withoutColours(text(value));
  return <code className="lines">{all.length > SHOWN_MAX ? `${all.slice(0, SHOWN_MAX)} …` : all}</code>;
}

function Step({ execution, step, isOpen }: { execution: Execution; step: PlanStepStatus; isOpen: boolean }) {
  const path = `/plan-executions/${execution.executionId}/steps/${encodeURIComponent(step.id)}`;
  const course = useCourse(execution);
  const node = execution.nodeExecutions.findLast(({ nodeId }) => nodeId === step.id);
  const logs = (step.logs ?? []).filter(({ value, artifact }) => artifact || value);
  const hasParts = (step.inputs?.length ?? 0) + (step.outputs?.length ?? 0) + logs.length > 0;
  return (
    <details open={isOpen}>
      <summary>
        <StatusMark status={step.phase} /> <strong>{step.id}</strong>
        <span className="faint">{node && why(node, course)}</span>
      </summary>
      {node?.error ? <Failure error={node.error} /> : step.error && <div className="problem">{withoutColours(step.error)}</div>}
      {step.inputs && step.inputs.length > 0 && (
        <>
          <h3>Inputs</h3>
          <Inputs inputs={step.inputs} values={{}} none="" />
        </>
      )}
      {step.outputs && step.outputs.length > 0 && (
        <>
          <h3>Outputs</h3>
          <Outputs outputs={step.outputs} path={`${path}/outputs`} none="" />
          {step.outputs.filter(({ value }) => value !== null && typeof value === 'object').map(({ name, value }) => (
            <Json key={name} value={value} label={`the output ${name}`} />
          ))}
        </>
      )}
      {logs.map(({ stream, value, artifact }) => (
        <div key={stream}>
          <h3>
            {stream} {artifact && <ArtifactText artifact={artifact} />}{' '}
            {artifact && !artifact.ready ? <NotReady artifact={artifact} /> : <Download path={`${path}/logs`} name={`${step.id}.${stream}.log`} label={`Download ${step.id}.${stream}.log`} query={{ stream }} />}
          </h3>
          {typeof value === 'string' && (
            <pre className="source" tabIndex={0} role="region" aria-label={`${stream} of ${step.id}`}>
              {withoutColours(value)}
            </pre>
          )}
        </div>
      ))}
      {!hasParts && !step.error && <p className="faint">It has no inputs, outputs or logs.</p>}
    </details>
  );
}
