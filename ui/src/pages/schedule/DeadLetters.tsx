// Occurrences whose last attempt failed: run again, or resolved without a run.
import { Link } from 'wouter';
import { api, type Schemas } from '../../api/client';
import { type DeadLetter, useDeadLetters, useSchedules } from '../../api/schedules';
import { useCan, useChange } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Empty, More, Problem, Result, Time, Title } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { shortId, withoutColours } from '../../parts/words';

export function DeadLetters() {
  const [query, change] = useAddress();
  const schedule = query.get('schedule') ?? undefined;
  const schedules = useSchedules().data?.pages.flatMap(({ items }) => items) ?? [];
  const isAll = query.get('all') === 'yes';
  const found = useDeadLetters(schedule, isAll);
  const letters = found.data?.pages.flatMap(({ items }) => items) ?? [];
  const nameOf = (id: string) => schedules.find((schedule) => schedule.id === id)?.name ?? shortId(id);
  return (
    <>
      <Title title="Dead letters" />
      <div className="filters">
        <label>
          <input type="checkbox" checked={isAll} onChange={(event) => change({ all: event.target.checked ? 'yes' : undefined })} /> Resolved ones, too
        </label>
        {schedule && (
          <button type="button" onClick={() => change({ schedule: undefined })}>
            schedule {nameOf(schedule)} ✕
          </button>
        )}
      </div>
      <Result of={found}>
        {letters.length === 0 && (
          <Empty title={found.hasNextPage ? 'None of the newest dead letters is open; older ones may be.' : isAll ? 'There is no dead letter.' : 'There is no open dead letter.'}>
            <p>An occurrence of a schedule whose last attempt fails is listed here, until someone runs it again or discards it.</p>
          </Empty>
        )}
        {letters.length > 0 && (
          <Table
            rows={letters}
            rowKey={({ id }) => id}
            columns={[
              { name: 'Schedule', show: ({ schedule_id }) => <Link href={`/schedules/${schedule_id}`}>{nameOf(schedule_id)}</Link> },
              { name: 'Failed', show: ({ created_at }) => <Time at={created_at} /> },
              { name: 'Reason', isWide: true, show: ({ reason }) => withoutColours(reason) },
              {
                name: 'Run',
                show: ({ run_id }) => (
                  <Link href={`/runs/${run_id}`} className="mono" data-row>
                    {shortId(run_id)}
                  </Link>
                ),
              },
              { name: '', show: (letter) => <Resolve letter={letter} /> },
            ]}
          />
        )}
      </Result>
      <More of={found} />
    </>
  );
}

function Resolve({ letter }: { letter: DeadLetter }) {
  const canRun = useCan('execute');
  const redrive = useChange(() => api.post<Schemas['Redriven']>(`/dead-letters/${letter.id}/redrive`, {}), undefined, 'A new run was created.');
  const discard = useChange(() => api.post(`/dead-letters/${letter.id}/discard`, {}), undefined, 'Discarded.');
  const error = redrive.error ?? discard.error;
  if (letter.resolved_at)
    return (
      <span className="faint">
        {letter.resolution} <Time at={letter.resolved_at} />
      </span>
    );
  if (!canRun) return null;
  return (
    <span className="row">
      <button type="button" disabled={redrive.isPending} onClick={() => redrive.mutate(undefined)}>
        Run again
      </button>
      <button type="button" className="bad" disabled={discard.isPending} onClick={() => window.confirm('Discard this dead letter? Its occurrence does not run again.') && discard.mutate(undefined)}>
        Discard
      </button>
      {error && <Problem error={error} />}
    </span>
  );
}
