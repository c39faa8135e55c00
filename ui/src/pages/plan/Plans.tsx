import { Link } from 'wouter';
import { type Plan, type PlanExecution, useNewestExecution, usePlanExecutions, usePlans } from '../../api/plans';
import { useCan } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Empty, More, Result, StatusMark, Time, Title } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { plural, shortId } from '../../parts/words';
import { planTitle } from './names';

/** Executions that are read at once to find the newest ones of the plans. */
const RECENT = 200;

export function Plans() {
  const [query, change] = useAddress();
  const search = (query.get('search') ?? '').toLowerCase();
  const found = usePlans();
  const canRun = useCan('execute');
  const recent = usePlanExecutions(undefined, undefined, RECENT).data?.pages[0]?.items;
  const plans = (found.data?.pages.flatMap((page) => page.items) ?? []).filter((plan) => searched(plan).includes(search));
  return (
    <>
      <Title title="Plans" />
      <div className="filters">
        <input type="search" aria-label="Search plans" placeholder="Hint, id, step or parameter" size={26} value={query.get('search') ?? ''} onChange={(event) => change({ search: event.target.value })} />
      </div>
      <Result of={found}>
        {plans.length === 0 && <NoPlan isFiltered={search !== ''} />}
        {plans.length > 0 && (
          <Table
            rows={plans}
            rowKey={({ id }) => id}
            columns={[
              {
                name: 'Plan',
                isWide: true,
                show: (plan) => (
                  <Link href={`/plans/${plan.id}`} data-row>
                    {planTitle(plan)}
                  </Link>
                ),
              },
              { name: 'Id', show: ({ id }) => <span className="mono faint" title={id}>{shortId(id)}</span> },
              { name: 'Parameters', isWide: true, show: ({ spec }) => (spec.params ?? []).map(({ name, required }) => `${name}${required ? '*' : ''}`).join(', ') },
              { name: 'Steps', isNumber: true, show: ({ spec }) => <span title={spec.steps.map(({ id }) => id).join(', ')}>{spec.steps.length}</span> },
              { name: 'Created', show: ({ status }) => <Time at={status.createdAt} /> },
              { name: 'Executions', isNumber: true, show: ({ status }) => status.executions.toLocaleString('en') },
              { name: 'Newest execution', show: (plan) => <Newest plan={plan} recent={recent} /> },
              { name: '', show: ({ id }) => canRun && <Link href={`/plans/${id}/start`}>start</Link> },
            ]}
          />
        )}
      </Result>
      {plans.length > 0 && <p className="faint">* a value is required</p>}
      <More of={found} />
    </>
  );
}

const searched = (plan: Plan): string => [plan.id, planTitle(plan), ...plan.spec.steps.map(({ id }) => id), ...(plan.spec.params ?? []).map(({ name }) => name)].join(' ').toLowerCase();

function NoPlan({ isFiltered }: { isFiltered: boolean }) {
  return (
    <Empty title={isFiltered ? 'No plan matches.' : 'There is no plan.'}>
      <p>
        {isFiltered ? 'Clear the search, or create a plan from a file: ' : 'Create one from a file: '}
        <code>windlass plans create FILE</code>
      </p>
    </Empty>
  );
}

function Newest({ plan: { id, status }, recent }: { plan: Plan; recent: readonly PlanExecution[] | undefined }) {
  const known = recent?.find(({ spec }) => spec.planID === id);
  const other = useNewestExecution(id, recent !== undefined && known === undefined && status.executions > 0);
  const newest = known ?? other.data?.items[0];
  if (!newest) return <span className="faint">{status.executions > 0 ? plural(status.executions, 'execution') : 'none yet'}</span>;
  return (
    <span className="row">
      <StatusMark status={newest.status.phase} />
      <Link href={`/executions/${newest.id}/plan`}>
        <Time at={newest.status.createdAt} />
      </Link>
    </span>
  );
}
