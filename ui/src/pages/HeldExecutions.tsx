// What waits for people and is no step: gates, and executions that were paused.
import { Link } from 'wouter';
import type { Held } from '../api/executions';
import { useDefinitionName } from '../parts/definition';
import { Wait, withKeys } from './execution/WaitingFor';

export function HeldExecutions({ held }: { held: readonly Held[] }) {
  return held.map((one) => <HeldExecution key={one.execution.executionId} held={one} />);
}

function HeldExecution({ held: { execution, waits } }: { held: Held }) {
  const { executionId, workflowName, dialect } = execution;
  const nameOf = useDefinitionName([execution]);
  const link = (
    <>
      <Link href={`/executions/${executionId}`} data-row>
        {nameOf({ name: workflowName, dialect })}
      </Link>
      {' · '}
    </>
  );
  return withKeys(waits).map(([key, one]) => <Wait key={key} execution={{ executionId, waitingFor: waits, view: null }} waiting={one} aside={link} />);
}
