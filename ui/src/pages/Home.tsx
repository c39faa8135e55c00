// The home page: tasks of the user, running and failed executions, the next schedules, and the health of the server.
import { Link } from 'wouter';
import { useServerHealth } from '../api/administration';
import { useExecutions, useWaiting } from '../api/executions';
import { useDeadLetters, useSchedules } from '../api/schedules';
import { Empty, Problem, Result, Section, StatusMark, Time, Title } from '../parts/basics';
import { ExecutionTable } from '../parts/ExecutionTable';
import { TaskList } from '../parts/TaskList';
import { bytes, plural } from '../parts/words';
import { HeldExecutions } from './HeldExecutions';

const LISTED = 8;

export function Home() {
  const running = useExecutions({ status: 'running' }, 100);
  const queued = useExecutions({ status: 'queued' }, 100);
  const failed = useExecutions({ status: 'failed', since: '1d' }, 100);
  const { tasks, held, count, hasMore, error, retry } = useWaiting();
  const dead = useDeadLetters();
  return (
    <>
      <Title title="Home" />
      <div className="tiles">
        <Tile name="waiting for you" count={count} hasMore={hasMore} tone="wait" href="#waiting" />
        <Tile name="running" count={size(running)} hasMore={running.hasNextPage} tone="busy" href="/executions?status=running" />
        <Tile name="queued" count={size(queued)} hasMore={queued.hasNextPage} href="/executions?status=queued" />
        <Tile name="failed in a day" count={size(failed)} hasMore={failed.hasNextPage} tone="bad" href="/executions?status=failed&since=1d" />
        <Tile name="dead letters" count={dead.data?.pages.reduce((sum, { items }) => sum + items.length, 0)} hasMore={dead.hasNextPage} tone="bad" href="/dead-letters" />
      </div>
      <div id="waiting">
        <Section title="Waiting for you">
          <Result of={tasks}>
            {error && <Problem error={error} retry={retry} />}
            {count === 0 && !hasMore && <Empty title="Nothing waits for an answer of yours." />}
            <TaskList tasks={tasks.data?.tasks ?? []} />
            <HeldExecutions held={held} />
            {hasMore && <Link href="/executions?status=paused">all paused executions</Link>}
          </Result>
        </Section>
      </div>
      <List title="Running" found={running} href="/executions?status=running" empty="Nothing runs now." />
      <List title="Failed in the last day" found={failed} href="/executions?status=failed&since=1d" empty="Nothing failed." />
      <div className="columns">
        <NextSchedules />
        <Health />
      </div>
    </>
  );
}

const size = (found: ReturnType<typeof useExecutions>) => found.data?.pages.reduce((sum, page) => sum + page.executions.length, 0);

function Tile({ name, count, hasMore, tone, href }: { name: string; count: number | undefined; hasMore?: boolean | undefined; tone?: string; href: string }) {
  const shown = count === undefined ? '–' : `${count}${hasMore ? '+' : ''}`;
  const content = (
    <>
      <b className={count ? tone : undefined}>{shown}</b>
      <span className="faint">{name}</span>
    </>
  );
  if (href.startsWith('#'))
    return (
      <a className="tile" href={href}>
        {content}
      </a>
    );
  return (
    <Link className="tile" href={href}>
      {content}
    </Link>
  );
}

function List({ title, found, href, empty }: { title: string; found: ReturnType<typeof useExecutions>; href: string; empty: string }) {
  const executions = found.data?.pages.flatMap((page) => page.executions) ?? [];
  return (
    <Section title={title} aside={<Link href={href}>all</Link>}>
      <Result of={found}>{executions.length > 0 ? <ExecutionTable executions={executions.slice(0, LISTED)} /> : <Empty title={empty} />}</Result>
    </Section>
  );
}

function NextSchedules() {
  const found = useSchedules();
  const next = (found.data?.pages.flatMap(({ items }) => items) ?? [])
    .filter(({ next_run_at }) => next_run_at)
    .sort((one, other) => String(one.next_run_at).localeCompare(String(other.next_run_at)));
  return (
    <Section title="Next schedules" aside={<Link href="/schedules">all</Link>}>
      <Result of={found}>
        {next.length === 0 && (
          <Empty title="No schedule is due.">
            <Link href="/schedules/new">Create a schedule</Link>
          </Empty>
        )}
        {next.length > 0 && (
          <table>
            <tbody>
              {next.slice(0, LISTED).map(({ id, name, next_run_at }) => (
                <tr key={id}>
                  <td>
                    <Link href={`/schedules/${id}`} data-row>
                      {name}
                    </Link>
                  </td>
                  <td>
                    <Time at={next_run_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Result>
    </Section>
  );
}

function Health() {
  const found = useServerHealth();
  const { isReady, reason, gauges = {} } = found.data ?? {};
  const gauge = (name: string) => gauges[`windlass_${name}`] ?? 0;
  const busy = gauge('steps_in_flight');
  const slots = gauge('slots');
  return (
    <Section title="Server" aside={isReady !== undefined && <StatusMark status={isReady ? 'completed' : 'failed'} text={isReady ? 'ready' : 'not ready'} />}>
      <Result of={found}>
        {reason && <p className="bad-text">{reason}</p>}
        <div className="meter" role="meter" aria-label="Slots in use" aria-valuenow={busy} aria-valuemin={0} aria-valuemax={slots}>
          <i style={{ width: `${slots > 0 ? Math.min((busy / slots) * 100, 100) : 0}%` }} />
        </div>
        <dl className="facts">
          <dt>Slots</dt>
          <dd>
            {busy} of {slots} in use, {plural(gauge('queue_depth'), 'step waits', 'steps wait')} for one
          </dd>
          <dt>Workers</dt>
          <dd>
            {plural(gauge('group_workers'), 'remote worker')}, {gauge('group_waiting')} waiting and {gauge('group_claimed')} claimed calls
          </dd>
          <dt>Webhooks</dt>
          <dd>{plural(gauge('webhook_backlog'), 'event')} to deliver</dd>
          <dt>Disk</dt>
          <dd className={gauge('disk_full') ? 'bad-text' : undefined}>
            {bytes(gauge('disk_free_bytes'))} free{gauge('disk_full') ? ': below the reserve, nothing new is started' : ''}
          </dd>
          {gauge('quarantined_executions') > 0 && (
            <>
              <dt>Quarantine</dt>
              <dd className="bad-text">{plural(gauge('quarantined_executions'), 'execution is', 'executions are')} quarantined</dd>
            </>
          )}
        </dl>
      </Result>
    </Section>
  );
}
