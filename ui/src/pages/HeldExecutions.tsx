// Executions that only people move on and that no task is about: those at a gate, and those that were paused.
import { Link } from 'wouter';
import type { ListedExecution } from '../api/client';
import { useExecutionStatus } from '../api/executions';
import { definitionName } from '../parts/definition';
import { Wait, waitKey } from './execution/WaitingFor';

export function HeldExecutions({ executions }: { executions: readonly ListedExecution[] }) {
  return executions.map((execution) => <Held key={execution.executionId} execution={execution} />);
}

function Held({ execution: { executionId, workflowName, dialect } }: { execution: ListedExecution }) {
  const waiting = useExecutionStatus(executionId).data?.waitingFor ?? [];
  // What a child waits for is listed with the child.
  const own = waiting.filter(({ kind, childId }) => !childId && (kind === 'gate' || kind === 'pause'));
  const link = (
    <>
      <Link href={`/executions/${executionId}`} data-row>
        {definitionName({ name: workflowName ?? 'execution', dialect: dialect ?? null })}
      </Link>
      {' · '}
    </>
  );
  return own.map((one) => <Wait key={waitKey(one)} execution={{ executionId, waitingFor: own, view: null }} waiting={one} aside={link} />);
}
