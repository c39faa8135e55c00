import { Link } from 'wouter';
import { definitionPath, useDefinitionName } from '../parts/definition';
import { useCan } from '../api/shared';
import { useWorkflows } from '../api/workflows';
import { useAddress } from '../parts/address';
import { Empty, More, Result, StatusMark, Time, Title } from '../parts/basics';
import { Table } from '../parts/Table';

export function Workflows() {
  const [query, change] = useAddress();
  const search = query.get('search') ?? '';
  const found = useWorkflows(search);
  const canEdit = useCan('edit');
  const canRun = useCan('execute');
  const workflows = found.data?.pages.flatMap((page) => page.workflows) ?? [];
  const nameOf = useDefinitionName(workflows);
  return (
    <>
      <Title title="Workflows" actions={canEdit && <Link href="/workflows/new" className="button good">New workflow</Link>} />
      <div className="filters">
        <input type="search" aria-label="Search workflows" placeholder="Search by name" value={search} onChange={(event) => change({ search: event.target.value })} />
      </div>
      <Result of={found}>
        {workflows.length === 0 && (
          <Empty title="No workflow matches.">
            <p>
              {canEdit && <Link href="/workflows/new">Write one here</Link>}
              {canEdit && ', or register a file: '}
              <code>windlass workflows create FILE</code>
            </p>
          </Empty>
        )}
        {workflows.length > 0 && (
          <Table
            rows={workflows}
            rowKey={({ id }) => id}
            columns={[
              {
                name: 'Name',
                isWide: true,
                show: (workflow) => (
                  <Link href={definitionPath(workflow)} data-row>
                    {nameOf(workflow)}
                  </Link>
                ),
              },
              { name: 'Dialect', show: ({ dialect }) => dialect },
              { name: 'Version', isNumber: true, show: ({ version }) => version },
              { name: 'Status', show: ({ status }) => <StatusMark status={status} /> },
              { name: 'Changed', show: ({ updatedAt }) => <Time at={updatedAt} /> },
              { name: '', show: (workflow) => canRun && workflow.status === 'active' && <Link href={`${definitionPath(workflow)}/start`}>start</Link> },
            ]}
          />
        )}
      </Result>
      <More of={found} />
    </>
  );
}
