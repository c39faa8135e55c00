// One step of a plan, as its document describes it.
import { Link } from 'wouter';
import type { PlanStep } from '../../api/plans';
import { Section } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { FieldTable } from '../../parts/FieldTable';
import { text } from '../../parts/words';
import { actionTitle, isRegistered, routingText } from './names';

export function StepDetails({ step, after, close }: { step: PlanStep; after: readonly string[]; close: () => void }) {
  const { action } = step;
  const outputs = [...(action.outputs ?? []), ...(step.extraOutputs ?? [])];
  return (
    <Section
      title={step.id}
      aside={
        <button type="button" className="quiet" onClick={close}>
          close
        </button>
      }
    >
      <dl className="facts">
        <dt>Action</dt>
        <dd>{isRegistered(action) && action.name ? <Link href={`/actions/${encodeURIComponent(action.name)}?revision=${action.revision}`}>{actionTitle(action)}</Link> : actionTitle(action)}</dd>
        <dt>Runs after</dt>
        <dd>{after.length > 0 ? after.join(', ') : 'nothing: it can start at once'}</dd>
        {step.condition && (
          <>
            <dt>Condition</dt>
            <dd>
              <code>{step.condition}</code>
            </dd>
          </>
        )}
        {step.routingContext && (
          <>
            <dt>Routing</dt>
            <dd>
              <code>{routingText(step)}</code>
            </dd>
          </>
        )}
        {action.timeout && (
          <>
            <dt>Timeout</dt>
            <dd>{action.timeout}</dd>
          </>
        )}
      </dl>
      <Inputs step={step} />
      {outputs.length > 0 && (
        <>
          <h3>Outputs</h3>
          <FieldTable fields={outputs} none="" kind="outputs" />
        </>
      )}
      <Script source={action.script} />
    </Section>
  );
}

function Inputs({ step: { args } }: { step: PlanStep }) {
  const inputs = [
    ...Object.entries(args?.refs ?? {}).map(([name, reference]) => ({ name, from: reference, value: undefined })),
    ...Object.entries(args?.values ?? {}).map(([name, value]) => ({ name, from: 'value', value })),
  ];
  if (inputs.length === 0) return null;
  return (
    <>
      <h3>Inputs</h3>
      <Table
        rows={inputs}
        rowKey={({ name }) => name}
        columns={[
          { name: 'Name', show: ({ name }) => <code>{name}</code> },
          { name: 'From', show: ({ from }) => <code>{from}</code> },
          { name: 'Value', isWide: true, show: ({ value }) => value !== undefined && <code className="lines">{text(value)}</code> },
        ]}
      />
    </>
  );
}

/** The program of an action. */
export function Script({ source }: { source: string | undefined }) {
  if (source === undefined) return null;
  return (
    <>
      <h3>Script</h3>
      <pre className="source" tabIndex={0} role="region" aria-label="Script">
        {source}
      </pre>
    </>
  );
}
