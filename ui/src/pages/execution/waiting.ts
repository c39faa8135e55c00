// Steps that wait for a person. To the engine they run; to a reader they wait.
import type { Graph, NodeExecution, Waiting } from '../../api/client';

export function markWaiting(graph: Graph, waitingFor: readonly Waiting[] = []): Graph {
  const waiting = new Set(waitingFor.map(({ nodeId }) => nodeId));
  const isMarked = ({ id, state }: Graph['nodes'][number]) => waiting.has(id) && state?.status === 'running' && !state.iterations;
  if (!graph.nodes.some(isMarked)) return graph;
  return { ...graph, nodes: graph.nodes.map((node) => (node.state && isMarked(node) ? { ...node, state: { ...node.state, status: 'waiting' } } : node)) };
}

/** The status of a firing, as readers see it. */
export function statusOf({ nodeId, path, status }: NodeExecution, waitingFor: readonly Waiting[] = []): string {
  const isWaiting = waitingFor.some((one) => one.nodeId === nodeId && (one.path ?? []).join() === (path ?? []).join());
  return isWaiting && status === 'running' ? 'waiting' : status;
}
