// Executions of plans in their own words.
import { Link } from 'wouter';
import type { PlanExecution } from '../api/plans';
import { StatusMark, Time } from './basics';
import { Table } from './Table';
import { duration, shortId } from './words';

export function PlanExecutionTable({ executions }: { executions: readonly PlanExecution[] }) {
  return (
    <Table
      rows={executions}
      rowKey={({ id }) => id}
      columns={[
        { name: 'Phase', show: ({ status }) => <StatusMark status={status.phase} /> },
        {
          name: 'Execution',
          show: ({ id }) => (
            <Link href={`/executions/${id}/plan`} className="mono" data-row>
              {shortId(id)}
            </Link>
          ),
        },
        { name: 'Created', show: ({ status }) => <Time at={status.createdAt} /> },
        { name: 'Took', show: ({ status: { createdAt, completedAt } }) => completedAt && duration(Date.parse(completedAt) - Date.parse(createdAt)) },
        { name: 'Cluster', show: ({ spec }) => spec.cluster },
        { name: 'Runner group', show: ({ spec }) => spec.runner },
      ]}
    />
  );
}
