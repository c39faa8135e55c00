import { useState } from 'react';
import { Link } from 'wouter';
import type { Execution, ExecutionError } from '../../api/client';
import { Json } from '../../parts/Json';
import { duration, pathText, plural, text, withoutColours } from '../../parts/words';

const SHOWN_MAX = 5;

export function Failures({ execution }: { execution: Execution }) {
  const { errors, quarantined } = execution;
  return (
    <div className="failures">
      {quarantined && (
        <div className="problem">
          <strong>It is quarantined, and does not run: {quarantined.reason}</strong>
        </div>
      )}
      {errors.slice(0, SHOWN_MAX).map((error, place) => (
        <Failure key={place} error={error} />
      ))}
      {errors.length > SHOWN_MAX && <p className="faint">{plural(errors.length - SHOWN_MAX, 'more failure is listed with its step', 'more failures are listed with their steps')}.</p>}
    </div>
  );
}

export function Failure({ error }: { error: ExecutionError }) {
  const { location } = error;
  const line = location && `${location.file ?? 'definition'}${location.line ? ` line ${location.line}` : ''}`;
  const place = [`${error.nodeName ?? error.nodeId ?? ''}${pathText(error.path)}`, error.task, line].filter(Boolean);
  return (
    <div className="problem">
      <strong>
        {place.join(' · ')} {place.length > 0 && '— '}
        {error.code}
      </strong>
      <pre>{withoutColours(error.message)}</pre>
      <p className="faint">
        {error.httpStatus && `HTTP status ${error.httpStatus} · `}
        {error.attempt && `attempt ${error.attempt} · `}
        {error.retryable ? 'another attempt may succeed' : 'it is not retried by itself'}
        {error.retryAfterMs !== undefined && ` · the server asked to wait ${duration(error.retryAfterMs)}`}
        {error.failedIterations && ` · iterations ${error.failedIterations.join(', ')}`}
        {error.childExecutionId && (
          <>
            {' · '}
            <Link href={`/executions/${error.childExecutionId}`}>the child that failed</Link>
          </>
        )}
      </p>
      <ErrorDetails error={error} />
    </div>
  );
}

/** All that is known about an error. It is rendered when it is opened. */
function ErrorDetails({ error }: { error: ExecutionError }) {
  const [isOpen, setOpen] = useState(false);
  const { stack, ...rest } = error;
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="faint">details of the error</summary>
      {isOpen && (
        <>
          <Json value={rest} label="the error" />
          {stack !== undefined && (
            <pre tabIndex={0} role="region" aria-label="Stack of the error">
              {withoutColours(text(stack))}
            </pre>
          )}
        </>
      )}
    </details>
  );
}
