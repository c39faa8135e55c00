// One schedule: when it runs next and why, the results of past occurrences, and its runs.
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, type Schemas } from '../../api/client';
import { type Run, useExplanation, useRuns, useSchedule } from '../../api/schedules';
import { useCan, useChange } from '../../api/shared';
import { Empty, Loading, More, Problem, Result, Section, StatusMark, Time, Title } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { Dialog } from '../../parts/Dialog';
import { Json } from '../../parts/Json';
import { Unavailable } from '../../parts/Unavailable';
import { exact, withLocalTimes } from '../../parts/words';
import { Backfill } from './Backfill';
import { Calendar } from './Calendar';
import { scheduleStatus, whenText } from './Schedules';

export function Schedule({ id }: { id: string }) {
  const found = useSchedule(id);
  const explanation = useExplanation(id);
  const schedule = found.data;
  if (!schedule) return found.error ? <Unavailable what="schedule" error={found.error} retry={found.refetch} list="/schedules" /> : <Loading />;
  return (
    <>
      <Title title={schedule.name} actions={<Actions id={id} name={schedule.name} isPaused={Boolean(schedule.paused_at)} />}>
        <StatusMark status={scheduleStatus(schedule)} />
      </Title>
      <p className="faint">
        <code>{whenText(schedule)}</code> · next <Time at={schedule.next_run_at} /> · last success <Time at={schedule.last_run_at} />
      </p>
      <div className="columns">
        <Section title="Next occurrences">
          <Result of={explanation}>
            <Next next={explanation.data?.pages[0]?.next ?? []} isPaused={Boolean(schedule.paused_at)} />
          </Result>
        </Section>
        <Section title="Past occurrences">
          <Result of={explanation}>
            <Calendar past={explanation.data?.pages.flatMap(({ past }) => past) ?? []} hasOlder={explanation.hasNextPage} />
          </Result>
          {explanation.hasNextPage && (
            <p>
              <button type="button" onClick={() => void explanation.fetchNextPage()} disabled={explanation.isFetchingNextPage}>
                Show older
              </button>
            </p>
          )}
        </Section>
      </div>
      <Runs id={id} />
      <Section title="Definition">
        <Json value={definitionOf(schedule)} label="the definition" />
      </Section>
    </>
  );
}

/** The document of the user, without the fields that the server adds. */
function definitionOf(schedule: object): object {
  const added = ['id', 'paused_at', 'next_run_at', 'last_run_at', 'created_at', 'updated_at', 'target_kind'];
  return Object.fromEntries(Object.entries(schedule).filter(([key, value]) => value !== null && !added.includes(key)));
}

function Next({ next, isPaused }: { next: readonly Schemas['NextOccurrence'][]; isPaused: boolean }) {
  if (isPaused) return <Empty title="It is paused: no occurrence is planned. “Resume” plans the next ones." />;
  if (next.length === 0) return <Empty title="No occurrence follows. Change its times with “Edit”, or run it now with “Trigger …”." />;
  return (
    <Table
      rows={next}
      rowKey={({ nominal_time }) => nominal_time}
      columns={[
        {
          name: 'Time',
          isWide: true,
          show: (one) => (
            <>
              {exact(one.nominal_time)}
              {/* A reason is written once for the occurrences that share it. */}
              {one.reason !== next[next.indexOf(one) - 1]?.reason && <div className="faint">{withLocalTimes(one.reason)}</div>}
            </>
          ),
        },
        { name: 'In', show: ({ nominal_time }) => <Time at={nominal_time} /> },
      ]}
    />
  );
}

function Runs({ id }: { id: string }) {
  const found = useRuns(id);
  const runs = found.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <Section title="Runs" aside={<Link href={`/dead-letters?schedule=${id}`}>dead letters</Link>}>
      <Result of={found}>{runs.length > 0 ? <RunTable runs={runs} /> : <Empty title="It has not run yet. “Trigger …” starts a run now." />}</Result>
      <More of={found} />
    </Section>
  );
}

export function RunTable({ runs }: { runs: readonly Run[] }) {
  return (
    <Table
      rows={runs}
      rowKey={({ id }) => id}
      columns={[
        { name: 'Status', show: ({ status }) => <StatusMark status={status} /> },
        {
          name: 'Run',
          show: ({ id }) => (
            <Link href={`/runs/${id}`} className="mono" data-row>
              …{id.slice(-8)}
            </Link>
          ),
        },
        { name: 'Attempt', isNumber: true, show: ({ attempt }) => attempt },
        { name: 'Started', show: ({ started_at }) => <Time at={started_at} /> },
        { name: 'Ended', show: ({ finished_at }) => <Time at={finished_at} /> },
      ]}
    />
  );
}

function Actions({ id, name, isPaused }: { id: string; name: string; isPaused: boolean }) {
  const [open, setOpen] = useState<'trigger' | 'backfill'>();
  const close = () => setOpen(undefined);
  const [, navigate] = useLocation();
  const canRun = useCan('execute');
  const canEdit = useCan('edit');
  const canDelete = useCan('delete');
  const pause = useChange(() => api.post(`/schedules/${id}/${isPaused ? 'resume' : 'pause'}`, {}), undefined, isPaused ? 'Resumed.' : 'Paused.');
  const remove = useChange(
    () => api.remove(`/schedules/${id}`),
    () => navigate('/schedules'),
    `The schedule ${name} was deleted.`,
  );
  const error = pause.error ?? remove.error;
  return (
    <>
      {error && <Problem error={error} />}
      {canRun && (
        <>
          <button type="button" className="good" onClick={() => setOpen('trigger')}>
            Trigger …
          </button>
          <button type="button" onClick={() => setOpen('backfill')}>
            Backfill …
          </button>
        </>
      )}
      {canEdit && (
        <>
          <button type="button" disabled={pause.isPending} onClick={() => pause.mutate(undefined)}>
            {isPaused ? 'Resume' : 'Pause'}
          </button>
          <Link href={`/schedules/new?from=${id}`} className="button">
            Edit
          </Link>
        </>
      )}
      {canDelete && (
        <button type="button" className="bad" onClick={() => window.confirm(`Delete the schedule ${name}?`) && remove.mutate(undefined)}>
          Delete
        </button>
      )}
      {open === 'trigger' && <Trigger id={id} close={close} />}
      {open === 'backfill' && <Backfill id={id} close={close} />}
    </>
  );
}

function Trigger({ id, close }: { id: string; close: () => void }) {
  const [reason, setReason] = useState('');
  const trigger = useChange(() => api.post(`/schedules/${id}/trigger`, { reason }), close, 'A run was triggered.');
  return (
    <Dialog
      title="Trigger a run now"
      close={close}
      actions={
        <button type="button" className="good" disabled={!reason || trigger.isPending} onClick={() => trigger.mutate(undefined)}>
          Trigger
        </button>
      }
    >
      <div className="field">
        <label htmlFor="reason">Reason</label>
        <input id="reason" value={reason} placeholder="It is recorded with the run" onChange={(event) => setReason(event.target.value)} />
      </div>
      {trigger.error && <Problem error={trigger.error} />}
    </Dialog>
  );
}
