// One run of a schedule: an attempt at an occurrence, with the response of its target.
import { Link } from 'wouter';
import { api } from '../../api/client';
import { useRun } from '../../api/schedules';
import { useCan, useChange } from '../../api/shared';
import { Loading, Problem, Section, StatusMark, Time, Title } from '../../parts/basics';
import { Json } from '../../parts/Json';
import { exact, statusName, withoutColours } from '../../parts/words';

const OPEN = ['pending', 'claimed', 'running', 'retry_scheduled'];

export function Run({ id }: { id: string }) {
  const found = useRun(id);
  const canRun = useCan('execute');
  const cancel = useChange(() => api.post(`/runs/${id}/cancel`, {}));
  const run = found.data;
  if (!run) return found.error ? <Problem error={found.error} retry={() => void found.refetch()} /> : <Loading />;
  return (
    <>
      <Title
        title={`Run of ${exact(run.nominal_time)}`}
        actions={
          canRun &&
          OPEN.includes(run.status) && (
            <button type="button" className="bad" onClick={() => cancel.mutate(undefined)}>
              Cancel
            </button>
          )
        }
      >
        <StatusMark status={run.status} />
      </Title>
      {cancel.error && <Problem error={cancel.error} />}
      {run.error_text && <Problem error={withoutColours(run.error_text)} />}
      <Section title="Facts">
        <dl className="facts">
          <dt>Schedule</dt>
          <dd>
            <Link href={`/schedules/${run.schedule_id}`}>{run.schedule_id}</Link>
          </dd>
          <dt>Execution</dt>
          <dd>{run.execution_id ? <Link href={`/executions/${run.execution_id}`}>{run.execution_id}</Link> : '–'}</dd>
          <dt>Occurrence</dt>
          <dd>{run.occurrence_key}</dd>
          <dt>Attempt</dt>
          <dd>{run.attempt}</dd>
          <dt>Started</dt>
          <dd>
            <Time at={run.started_at} />
          </dd>
          <dt>Ended</dt>
          <dd>
            <Time at={run.finished_at} />
          </dd>
          {run.retry_available_at && (
            <>
              <dt>Next attempt</dt>
              <dd>
                <Time at={run.retry_available_at} />
              </dd>
            </>
          )}
        </dl>
      </Section>
      {run.result_json !== undefined && run.result_json !== null && (
        <Section title="Result">
          <Json value={run.result_json} label="the result" />
        </Section>
      )}
      {run.receipts.map(({ receipt_kind, body, created_at }) => (
        <Section key={receipt_kind} title={statusName(receipt_kind)} aside={<Time at={created_at} />}>
          <pre className="source" tabIndex={0} role="region" aria-label={`text of ${statusName(receipt_kind)}`}>
            {withoutColours(body)}
          </pre>
        </Section>
      ))}
    </>
  );
}
