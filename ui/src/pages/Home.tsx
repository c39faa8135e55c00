// The home page: tasks of the user, running and failed executions, the next schedules, and the health of the server.
import { Link } from 'wouter';
import { useGauges, useReadiness, useRunnerGroups } from '../api/administration';
import { useExecutions, useWaiting } from '../api/executions';
import { useDeadLetters, useSchedules } from '../api/schedules';
import { Empty, Problem, Result, Section, StatusMark, Time, Title } from '../parts/basics';
import { ExecutionTable } from '../parts/ExecutionTable';
import { TaskList } from '../parts/TaskList';
import { bytes, plural } from '../parts/words';
import { slotsText } from './administration/Workers';
import { HeldExecutions } from './HeldExecutions';

const LISTED = 8;

export function Home() {
  const initializing = useExecutions({ status: 'initializing' }, 100);
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
        <Tile name="running" count={sum(size(running), size(initializing))} hasMore={running.hasNextPage || initializing.hasNextPage} tone="busy" href="#running" />
        <Tile name="queued" count={size(queued)} hasMore={queued.hasNextPage} href="/executions?status=queued" />
        <Tile name="failed in a day" count={size(failed)} hasMore={failed.hasNextPage} tone="bad" href="/executions?status=failed&since=1d" />
        <Tile name="dead letters" one="dead letter" count={dead.data?.pages.reduce((sum, { items }) => sum + items.length, 0)} hasMore={dead.hasNextPage} tone="bad" href="/dead-letters" />
      </div>
      <div id="waiting">
        <Section title="Waiting for you">
          <Result of={tasks}>
            {error && <Problem error={error} retry={retry} />}
            {count === 0 && !hasMore && <Empty title="Nothing waits for an answer of yours." />}
            <TaskList tasks={tasks.data?.tasks ?? []} />
            <HeldExecutions held={held} />
            {hasMore && <p className="faint">There are more: they are listed as these are answered.</p>}
          </Result>
        </Section>
      </div>
      <div id="running">
        <List title="Running" found={running} before={initializing} href="/executions?status=running" empty="Nothing runs now." />
      </div>
      <List title="Failed in the last day" found={failed} href="/executions?status=failed&since=1d" empty="Nothing failed." />
      <div className="columns">
        <NextSchedules />
        <Health />
      </div>
    </>
  );
}

/** Undefined unless both are known. */
const sum = (one: number | undefined, other: number | undefined) => (one === undefined || other === undefined ? undefined : one + other);

const size = (found: ReturnType<typeof useExecutions>) => found.data?.pages.reduce((sum, page) => sum + page.executions.length, 0);

/** A number with its name; `one` is the name for one, if it differs. */
function Tile({ name, one = name, count, hasMore, tone, href }: { name: string; one?: string; count: number | undefined; hasMore?: boolean | undefined; tone?: string; href: string }) {
  const shown = count === undefined ? '–' : `${count}${hasMore ? '+' : ''}`;
  const content = (
    <>
      <b className={count ? tone : undefined}>{shown}</b>
      <span className="faint">{count === 1 && !hasMore ? one : name}</span>
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

interface ListProps {
  title: string;
  found: ReturnType<typeof useExecutions>;
  /** Executions in front of the list, which begin to run. */
  before?: ReturnType<typeof useExecutions>;
  href: string;
  empty: string;
}

function List({ title, found, before, href, empty }: ListProps) {
  const begin = before?.data?.pages.flatMap((page) => page.executions) ?? [];
  const executions = [...begin, ...(found.data?.pages.flatMap((page) => page.executions) ?? [])];
  const all = (
    <span className="row">
      {begin.length > 0 && <Link href="/executions?status=initializing">{begin.length} initializing</Link>}
      <Link href={href}>all</Link>
    </span>
  );
  return (
    <Section title={title} aside={all}>
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
  const found = useReadiness();
  const { isReady, reason } = found.data ?? {};
  const { gauge, error } = useGauges();
  const busy = gauge('steps_in_flight');
  const slots = gauge('slots');
  const backlog = gauge('webhook_backlog');
  const free = gauge('disk_free_bytes');
  const quarantined = gauge('quarantined_executions') ?? 0;
  return (
    <Section title="Server" aside={isReady !== undefined && <StatusMark status={isReady ? 'completed' : 'failed'} text={isReady ? 'ready' : 'not ready'} />}>
      <Result of={found}>
        {reason && <p className="bad-text">{reason}</p>}
        {error && <p className="bad-text">{error.message}</p>}
        {busy !== undefined && slots !== undefined && (
          <div className="meter" role="meter" aria-label="Slots in use" aria-valuenow={busy} aria-valuemin={0} aria-valuemax={slots}>
            <i style={{ width: `${slots > 0 ? Math.min((busy / slots) * 100, 100) : 0}%` }} />
          </div>
        )}
        <dl className="facts">
          <dt>Slots</dt>
          <dd>{slotsText(gauge)}</dd>
          <dt>Workers</dt>
          <dd>
            <Groups />
          </dd>
          <dt>Webhooks</dt>
          <dd>{backlog === undefined ? 'unknown' : `${plural(backlog, 'event')} to deliver`}</dd>
          <dt>Disk</dt>
          <dd className={gauge('disk_full') ? 'bad-text' : undefined}>
            {free === undefined ? 'unknown' : `${bytes(free)} free`}
            {gauge('disk_full') ? ': below the reserve, nothing new is started' : ''}
          </dd>
          {quarantined > 0 && (
            <>
              <dt>Quarantine</dt>
              <dd className="bad-text">{plural(quarantined, 'execution is', 'executions are')} quarantined</dd>
            </>
          )}
        </dl>
      </Result>
    </Section>
  );
}

/** The groups of remote workers of the tenant. */
function Groups() {
  const { data, error } = useRunnerGroups();
  if (error || !data) return error ? 'unknown' : null;
  const { groups } = data;
  if (groups.length === 0) return 'no group of remote workers';
  return (
    <ul className="short">
      {groups.slice(0, LISTED).map(({ name, workers, waiting, claimed }) => (
        <li key={name}>
          {name}: {plural(workers, 'worker')}, {waiting} waiting and {claimed} claimed calls
        </li>
      ))}
      {groups.length > LISTED && (
        <li>
          <Link href="/administration/workers">all {groups.length} groups</Link>
        </li>
      )}
    </ul>
  );
}
