import { Link } from 'wouter';
import { useIsOwn } from '../../api/administration';
import type { Execution } from '../../api/client';
import { Time } from '../../parts/basics';
import { definitionPath } from '../../parts/definition';
import { duration, plural, shortId } from '../../parts/words';

export function Facts({ execution }: { execution: Execution }) {
  const { metadata, progress } = execution;
  return (
    <p className="faint">
      <Definition execution={execution} /> · created <Time at={execution.createdAt} /> · {metadata.triggerType} by{' '}
      <User id={metadata.triggeredBy} />
      {execution.completedAt && ` · took ${duration(Date.parse(execution.completedAt) - Date.parse(execution.createdAt))}`}
      {!execution.completedAt && ` · ${progress.completedNodes} of ${plural(progress.totalNodes, 'step')}`}
      {execution.estimatedCompletion && !execution.completedAt && (
        <>
          {' · expected to end '}
          <Time at={execution.estimatedCompletion} />
        </>
      )}
      {metadata.parentExecutionId && metadata.parentExecutionId !== metadata.retryOf && (
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

/** Users have no names here: the own one, or the end of the id. */
function User({ id }: { id: string }) {
  const isOwn = useIsOwn(id);
  return <span className="whole" title={id}>{isOwn ? 'you' : id.startsWith('user_') ? shortId(id) : id}</span>;
}

/** The executed definition: a version of a workflow, or a plan, which never changes. */
function Definition({ execution: { workflowId, workflowVersion, dialect } }: { execution: Execution }) {
  const isPlan = dialect === 'plan';
  const name = isPlan ? `plan ${workflowId ? shortId(workflowId) : ''}` : `${dialect ?? ''} version ${workflowVersion ?? '–'}`;
  return workflowId ? <Link href={definitionPath({ id: workflowId, dialect: dialect ?? null })}>{name}</Link> : name;
}
