import type { Execution, Graph } from '../../api/client';
import { useExecutionGraph } from '../../api/executions';
import { planId, usePlan } from '../../api/plans';
import { useVersion } from '../../api/workflows';
import type { Course } from './why';

const hasChoice = (graph: Graph | undefined): boolean => graph?.nodes.some(({ shape }) => shape === 'choice') ?? false;

/** An execution with its graph, and with the definition where the graph does not have the conditions. */
export function useCourse(execution: Execution): Course {
  const graph = useExecutionGraph(execution.executionId).data;
  const { workflowId, workflowVersion, dialect } = execution;
  const isNeeded = dialect === 'workflow' && workflowId !== undefined && workflowVersion != null && hasChoice(graph);
  const version = useVersion(workflowId ?? '', isNeeded ? workflowVersion : undefined).data;
  const hasConditions = dialect === 'plan' && workflowId !== undefined && (graph?.nodes.some(({ condition }) => condition) ?? false);
  const plan = usePlan(planId(workflowId ?? ''), hasConditions).data;
  return { execution, graph, definition: version?.definition, plan };
}
