import { Link } from 'wouter';
import { type Schedule, useSchedules } from '../../api/schedules';
import { useCan } from '../../api/shared';
import { Empty, More, Result, StatusMark, Time, Title } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { duration, exact } from '../../parts/words';

export function scheduleStatus({ enabled, paused_at }: Schedule): string {
  return !enabled ? 'disabled' : paused_at ? 'paused' : 'active';
}

export function whenText({ schedule, timezone }: Schedule): string {
  switch (schedule.kind) {
    case 'cron':
      return `${schedule.expr} (${timezone})`;
    case 'interval':
      return `every ${duration((schedule.every_seconds ?? 0) * 1_000)}`;
    default:
      return `once at ${exact(schedule.at ?? '')}`;
  }
}

export function Schedules() {
  const found = useSchedules();
  const canEdit = useCan('edit');
  const schedules = found.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <>
      <Title title="Schedules" actions={canEdit && <Link href="/schedules/new" className="button good">New schedule</Link>} />
      <Result of={found}>
        {schedules.length === 0 && (
          <Empty title="There is no schedule.">
            <p>
              {canEdit && <Link href="/schedules/new">Create one here</Link>}
              {canEdit && ', or from a file: '}
              <code>windlass schedules create -f FILE</code>
            </p>
          </Empty>
        )}
        {schedules.length > 0 && (
          <Table
            rows={schedules}
            rowKey={({ id }) => id}
            columns={[
              {
                name: 'Name',
                show: ({ id, name }) => (
                  <Link href={`/schedules/${id}`} data-row>
                    {name}
                  </Link>
                ),
              },
              { name: 'Status', show: (schedule) => <StatusMark status={scheduleStatus(schedule)} /> },
              { name: 'When', show: (schedule) => <code>{whenText(schedule)}</code> },
              { name: 'Next', show: ({ next_run_at }) => <Time at={next_run_at} /> },
              { name: 'Last success', show: ({ last_run_at }) => <Time at={last_run_at} /> },
            ]}
          />
        )}
      </Result>
      <More of={found} />
    </>
  );
}
