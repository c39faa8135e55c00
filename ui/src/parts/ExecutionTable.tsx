import { Link } from 'wouter';
import type { ListedExecution } from '../api/client';
import { StatusMark, Time } from './basics';
import { Scroll } from './Table';
import { useDefinitionName } from './definition';
import { duration, shortId } from './words';

export interface Selection {
  chosen: ReadonlyMap<string, ListedExecution>;
  toggle: (execution: ListedExecution) => void;
}

export function ExecutionTable({ executions, selection }: { executions: readonly ListedExecution[]; selection?: Selection | undefined }) {
  const nameOf = useDefinitionName(executions);
  return (
    <Scroll>
      <table>
        <thead>
          <tr>
            {selection && (
              <th scope="col">
                <span className="hidden">Selected</span>
              </th>
            )}
            <th scope="col">Status</th>
            <th scope="col">Workflow</th>
            <th scope="col">Execution</th>
            <th scope="col">Created</th>
            <th scope="col">Took</th>
            <th scope="col">Trigger</th>
            <th scope="col">Tags</th>
          </tr>
        </thead>
        <tbody>
          {executions.map((execution) => (
            <Row key={execution.executionId} execution={execution} name={nameOf({ name: execution.workflowName, dialect: execution.dialect })} selection={selection} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Row({ execution, name, selection }: { execution: ListedExecution; name: string; selection: Selection | undefined }) {
  const { executionId: id, metadata } = execution;
  return (
    <tr>
      {selection && (
        <td>
          <input type="checkbox" aria-label={`Select ${name} ${shortId(id)}`} checked={selection.chosen.has(id)} onChange={() => selection.toggle(execution)} />
        </td>
      )}
      <td>
        <StatusMark status={execution.quarantined ? 'quarantined' : execution.status} title={execution.quarantined?.reason} />
      </td>
      <td className="wide">
        <Link href={`/executions/${id}`} data-row>
          {name}
        </Link>
        {execution.workflowVersion != null && execution.dialect !== 'plan' && <span className="faint"> v{execution.workflowVersion}</span>}
      </td>
      <td className="mono faint">{shortId(id)}</td>
      <td>
        <Time at={execution.createdAt} />
      </td>
      <td>{execution.completedAt && duration(Date.parse(execution.completedAt) - Date.parse(execution.createdAt))}</td>
      <td>
        {metadata.triggerType}
        {metadata.parentExecutionId && (
          <>
            {' of '}
            <Link href={`/executions/${metadata.parentExecutionId}`}>parent</Link>
          </>
        )}
        {metadata.retryOf && <span className="faint"> · retry</span>}
      </td>
      <td>{metadata.tags.join(', ')}</td>
    </tr>
  );
}
