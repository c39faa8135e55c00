import type { Execution, Graph } from '../../api/client';
import { useExecutionGraph } from '../../api/executions';
import { planId, usePlan } from '../../api/plans';
import { useVersion } from '../../api/workflows';
import type { Course } from './why';

const hasChoice = (graph: Graph | undefined): boolean => graph?.nodes.some(({ shape }) => shape === 'choice') ?? false;

export interface ReadCourse extends Course {
  /** Why a part of it could not be read. */
  error: Error | null;
  retry: () => void;
}

/** An execution with its graph, and with the definition where the graph does not have the conditions. */
export function useCourse(execution: Execution): ReadCourse {
  const drawn = useExecutionGraph(execution.executionId);
  const graph = drawn.data;
  const { workflowId, workflowVersion, dialect } = execution;
  const isNeeded = dialect === 'workflow' && workflowId !== undefined && workflowVersion != null && hasChoice(graph);
  const version = useVersion(workflowId ?? '', isNeeded ? workflowVersion : undefined);
  const hasConditions = dialect === 'plan' && workflowId !== undefined && (graph?.nodes.some(({ condition }) => condition) ?? false);
  const plan = usePlan(planId(workflowId ?? ''), hasConditions);
  const parts = [drawn, version, plan];
  return {
    execution,
    graph,
    definition: version.data?.definition,
    plan: plan.data,
    error: parts.find(({ error }) => error)?.error ?? null,
    retry: () => parts.forEach((part) => part.error && void part.refetch()),
  };
}
