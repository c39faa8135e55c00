import { Link } from 'wouter';
import type { ListedExecution } from '../api/client';
import { StatusMark, Time } from './basics';
import { duration } from './words';

export function ExecutionTable({ executions }: { executions: ListedExecution[] }) {
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Workflow</th>
            <th scope="col">Execution</th>
            <th scope="col">Created</th>
            <th scope="col">Took</th>
            <th scope="col">Trigger</th>
          </tr>
        </thead>
        <tbody>
          {executions.map((execution) => (
            <tr key={execution.executionId}>
              <td>
                <StatusMark status={execution.status} />
              </td>
              <td>
                {execution.workflowId ? <Link href={`/workflows/${execution.workflowId}`}>{execution.workflowName}</Link> : execution.workflowName}
              </td>
              <td>
                <Link href={`/executions/${execution.executionId}`} className="mono">
                  …{execution.executionId.slice(-8)}
                </Link>
              </td>
              <td>
                <Time at={execution.createdAt} />
              </td>
              <td>{execution.completedAt ? duration(Date.parse(execution.completedAt) - Date.parse(execution.createdAt)) : ''}</td>
              <td>
                {execution.metadata.triggerType} <span className="faint">by {execution.metadata.triggeredBy}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
