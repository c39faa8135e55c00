import { Link } from 'wouter';
import type { Execution } from '../../api/client';
import { Time } from '../../parts/basics';
import { duration, plural, shortId } from '../../parts/words';

export function Facts({ execution }: { execution: Execution }) {
  const { metadata, progress, workflowId } = execution;
  const version = `${execution.dialect ?? ''} version ${execution.workflowVersion ?? '–'}`;
  return (
    <p className="faint">
      {workflowId ? <Link href={`/workflows/${workflowId}`}>{version}</Link> : version} · created <Time at={execution.createdAt} /> · {metadata.triggerType} by{' '}
      {metadata.triggeredBy}
      {execution.duration !== undefined && ` · took ${duration(execution.duration)}`}
      {!execution.completedAt && ` · ${progress.completedNodes} of ${plural(progress.totalNodes, 'step')}`}
      {execution.estimatedCompletion && !execution.completedAt && (
        <>
          {' · expected to end '}
          <Time at={execution.estimatedCompletion} />
        </>
      )}
      {metadata.parentExecutionId && (
        <>
          {' · '}
          <Link href={`/executions/${metadata.parentExecutionId}`}>parent</Link>
        </>
      )}
      {metadata.retryOf && (
        <>
          {' · '}retry of <Link href={`/executions/${metadata.retryOf}`}>{shortId(metadata.retryOf)}</Link>
        </>
      )}
      {metadata.tags.map((tag) => (
        <span key={tag}>
          {' · '}
          <Link href={`/executions?tag=${encodeURIComponent(tag)}`}>#{tag}</Link>
        </span>
      ))}
    </p>
  );
}
