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
/** Iterations that one more click shows. */
const MORE = 1_000;

export function Iterations({ node, course }: { node: NodeExecution; course: Course }) {
  const [query, change] = useAddress();
  const iterations = node.iterations ?? [];
  const counts = Map.groupBy(iterations, ({ status }) => status);
  const [status, setStatus] = useState<string | undefined>(iterations.length > SHOWN_MAX && counts.has('failed') ? 'failed' : undefined);
  const [shownMax, setShownMax] = useState(SHOWN_MAX);
  const matching = iterations.filter((iteration) => !status || iteration.status === status);
  const wanted = query.get('iteration') ?? '';
  const chosen = iterations.find(({ index }) => String(index) === wanted);
  return (
    <div role="group" aria-label={`Iterations of ${node.nodeName}`}>
      <div className="row wrap">
        <strong>{plural(iterations.length, 'iteration')}</strong>
        {[...counts].map(([name, of]) => (
          <button key={name} type="button" className="quiet" aria-pressed={status === name} onClick={() => setStatus(status === name ? undefined : name)}>
            <StatusMark status={name} text={`${of.length} ${name}`} />
          </button>
        ))}
        {iterations.length > SHOWN_MAX && (
          <label className="row">
            Number
            <input type="number" min={0} aria-label={`Number of an iteration of ${node.nodeName}`} value={wanted} onChange={(event) => change({ iteration: event.target.value || undefined })} />
          </label>
        )}
      </div>
      <div className="iterations">
        {matching.slice(0, shownMax).map((iteration) => (
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
      </div>
      {matching.length > shownMax && (
        <button type="button" className="quiet" onClick={() => setShownMax(shownMax + MORE)}>
          Show more: {plural(matching.length - shownMax, 'iteration is', 'iterations are')} not shown
        </button>
      )}
      {wanted && !chosen && <p className="faint">No iteration {wanted} of {node.nodeName} is known here.</p>}
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
