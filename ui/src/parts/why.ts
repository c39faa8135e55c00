// Why a step is in its state, in one sentence.
import type { Execution, NodeExecution, Waiting } from '../api/client';
import { duration, plural } from './words';

const SKIPPED: Record<string, string> = {
  not_taken: 'No taken route leads to it.',
  upstream: 'A step before it failed or was skipped.',
  condition: 'Its condition was false.',
};

export function why(node: NodeExecution, execution: Execution): string {
  const waiting = execution.waitingFor?.find(({ nodeId, path }) => nodeId === node.nodeId && same(path, node.path));
  if (waiting) return waitingFor(waiting);
  switch (node.status) {
    case 'skipped':
      return SKIPPED[node.skipReason ?? ''] ?? 'It was skipped.';
    case 'pending':
      return execution.completedAt ? 'The execution ended before it was reached.' : 'It has not been reached yet.';
    case 'retrying':
      return `Attempt ${node.retryCount + 1} failed; another one follows.`;
    case 'failed':
      return node.error ? `${node.error.code}: ${node.error.message}` : 'It failed.';
    case 'completed':
      return node.retryCount > 0 ? `It succeeded after ${plural(node.retryCount, 'retry', 'retries')}.` : took(node);
    default:
      return node.progress ? `${node.progress.step}, ${node.progress.percentage} %` : '';
  }
}

const same = (one: number[] | undefined, other: number[] | undefined) => (one ?? []).join() === (other ?? []).join();

const took = (node: NodeExecution) => (node.duration === undefined ? '' : `It took ${duration(node.duration)}.`);

export function waitingFor(waiting: Waiting): string {
  switch (waiting.kind) {
    case 'gate':
      return `It waits at its gate, which reads ${waiting.reads?.join(', ') || 'the context'}.`;
    case 'approval':
      return `It waits for an approval: ${text(waiting.message)}`;
    default:
      return waiting.reason ? `It waits: ${waiting.reason}` : `It waits for ${String(waiting.kind).replaceAll('_', ' ')}.`;
  }
}

export const text = (value: unknown): string => (typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value));
