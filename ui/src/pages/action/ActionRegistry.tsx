// The actions that steps of plans name.
import { Link } from 'wouter';
import { useActions } from '../../api/plans';
import { useAddress } from '../../parts/address';
import { Empty, More, Result, StatusMark, Time, Title } from '../../parts/basics';
import { Table } from '../../parts/Table';

export function ActionRegistry() {
  const [query, change] = useAddress();
  const search = (query.get('search') ?? '').toLowerCase();
  const found = useActions();
  const actions = (found.data?.pages.flatMap((page) => page.items) ?? []).filter(({ name, description }) => `${name} ${description ?? ''}`.toLowerCase().includes(search));
  return (
    <>
      <Title title="Actions" />
      <div className="filters">
        <input type="search" aria-label="Search actions" placeholder="Name or description" size={22} value={query.get('search') ?? ''} onChange={(event) => change({ search: event.target.value })} />
      </div>
      <Result of={found}>
        {actions.length === 0 && (
          <Empty title={search ? 'No action matches.' : 'No action is registered.'}>
            <p>
              Steps of plans name registered actions. Store one from a file: <code>windlass actions put FILE</code>
            </p>
          </Empty>
        )}
        {actions.length > 0 && (
          <Table
            rows={actions}
            rowKey={({ id }) => id}
            columns={[
              {
                name: 'Name',
                show: ({ name }) => (
                  <Link href={`/actions/${encodeURIComponent(name)}`} data-row>
                    {name}
                  </Link>
                ),
              },
              { name: 'Description', isWide: true, show: ({ description }) => description },
              { name: 'Newest revision', isNumber: true, show: ({ revision }) => revision },
              { name: 'State', show: ({ enabled }) => <Enabled isOn={enabled} /> },
              { name: 'Changed', show: ({ updatedAt }) => <Time at={updatedAt} /> },
            ]}
          />
        )}
      </Result>
      <More of={found} />
    </>
  );
}

export const Enabled = ({ isOn }: { isOn: boolean }) => <StatusMark status={isOn ? 'active' : 'paused'} text={isOn ? 'enabled' : 'disabled'} />;
