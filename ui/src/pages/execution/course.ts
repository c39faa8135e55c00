import type { Execution, Graph } from '../../api/client';
import { useExecutionGraph } from '../../api/executions';
import { useVersion } from '../../api/workflows';
import type { Course } from './why';

const hasChoice = (graph: Graph | undefined): boolean => graph?.nodes.some(({ shape }) => shape === 'choice') ?? false;

/** An execution with its graph, and with the definition where the graph does not have the conditions. */
export function useCourse(execution: Execution): Course {
  const graph = useExecutionGraph(execution.executionId).data;
  const { workflowId, workflowVersion, dialect } = execution;
  const isNeeded = dialect === 'workflow' && workflowId !== undefined && workflowVersion != null && hasChoice(graph);
  const version = useVersion(workflowId ?? '', isNeeded ? workflowVersion : undefined).data;
  return { execution, graph, definition: version?.definition };
}
