// The iterations of a loop: a counter for each status, a mark for each iteration, and the result of the chosen one.
import { useState } from 'react';
import { Link } from 'wouter';
import type { NodeExecution } from '../../api/client';
import { useAddress } from '../../parts/address';
import { StatusMark } from '../../parts/basics';
import { Json } from '../../parts/Json';
import { duration, plural } from '../../parts/words';
import { Failure } from './Failure';
import { type Course, why } from './why';

const SHOWN_MAX = 300;

export function Iterations({ node, course }: { node: NodeExecution; course: Course }) {
  const [query, change] = useAddress();
  const iterations = node.iterations ?? [];
  const counts = Map.groupBy(iterations, ({ status }) => status);
  const [status, setStatus] = useState<string | undefined>(iterations.length > SHOWN_MAX && counts.has('failed') ? 'failed' : undefined);
  const matching = iterations.filter((iteration) => !status || iteration.status === status);
  const chosen = iterations.find(({ index }) => String(index) === query.get('iteration'));
  return (
    <div role="group" aria-label={`Iterations of ${node.nodeName}`}>
      <div className="row wrap">
        <strong>{plural(iterations.length, 'iteration')}</strong>
        {[...counts].map(([name, of]) => (
          <button key={name} type="button" className="quiet" aria-pressed={status === name} onClick={() => setStatus(status === name ? undefined : name)}>
            <StatusMark status={name} text={`${of.length} ${name}`} />
          </button>
        ))}
      </div>
      <div className="iterations">
        {matching.slice(0, SHOWN_MAX).map((iteration) => (
          <button
            key={iteration.index}
            type="button"
            className={iteration.status}
            aria-pressed={iteration === chosen}
            title={`${iteration.status}${iteration.duration === undefined ? '' : `, ${duration(iteration.duration)}`}`}
            onClick={() => change({ iteration: iteration === chosen ? undefined : String(iteration.index) })}
          >
            <span className="hidden">iteration </span>
            {iteration.index}
          </button>
        ))}
        {matching.length > SHOWN_MAX && <span className="faint">and {matching.length - SHOWN_MAX} more; choose a status above</span>}
      </div>
      {chosen && (
        <div className="note">
          <p>
            <strong>
              {node.nodeName}[{chosen.index}]
            </strong>{' '}
            <StatusMark status={chosen.status} /> <span className="faint">{why({ ...node, ...chosen, path: [...(node.path ?? []), chosen.index ?? 0] }, course)}</span>
          </p>
          {chosen.childExecutionId && <Link href={`/executions/${chosen.childExecutionId}`}>its child execution</Link>}
          {chosen.error && <Failure error={chosen.error} />}
          {chosen.output !== undefined && <Json value={chosen.output} label={`the output of iteration ${chosen.index}`} />}
        </div>
      )}
    </div>
  );
}
