// Where the time went: one bar per firing, in the order in which they began.
import type { Execution, NodeExecution } from '../api/client';
import { StatusMark, useNow } from './basics';
import { duration, exact } from './words';

const ROWS_MAX = 500;

export function Timeline({ execution, chosen, choose }: { execution: Execution; chosen: string | undefined; choose: (id: string) => void }) {
  const now = useNow();
  const begin = Date.parse(execution.startedAt ?? execution.createdAt);
  const end = execution.completedAt ? Date.parse(execution.completedAt) : now;
  const total = Math.max(end - begin, 1);
  const rows = execution.nodeExecutions.flatMap(expand).filter(({ node }) => node.startedAt);
  const shown = rows.slice(-ROWS_MAX);
  const share = (ms: number) => `${Math.min(Math.max((ms / total) * 100, 0), 100)}%`;
  return (
    <div className="timeline">
      <p className="faint">
        {duration(total)} from {exact(new Date(begin).toISOString())}
        {rows.length > shown.length && `; the newest ${shown.length} of ${rows.length} firings are shown`}
      </p>
      <ol>
        {shown.map(({ node, name }, place) => {
          const from = Date.parse(node.startedAt ?? '') - begin;
          const took = (node.completedAt ? Date.parse(node.completedAt) : now) - begin - from;
          return (
            <li key={place} className={node.nodeId === chosen ? 'chosen' : ''}>
              <button type="button" className="quiet" onClick={() => choose(node.nodeId)}>
                {name}
              </button>
              <div className="track">
                <svg className={`bar ${node.status}`} width="100%" height="14" role="img" aria-label={`${node.status}, ${duration(took)}`}>
                  <rect x={share(from)} width={share(Math.max(took, total / 300))} height="14" rx="3" />
                </svg>
              </div>
              <span className="faint">{duration(took)}</span>
              <StatusMark status={node.status} />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function expand(node: NodeExecution): { node: NodeExecution; name: string }[] {
  const path = node.path?.length ? `[${node.path.join('][')}]` : '';
  const name = `${node.nodeName}${path}${node.firing > 1 ? ` #${node.firing}` : ''}`;
  const iterations = (node.iterations ?? []).map((iteration) => ({
    node: { ...node, ...iteration, nodeId: node.nodeId } as NodeExecution,
    name: `${name}[${iteration.index ?? '?'}]`,
  }));
  return [{ node, name }, ...iterations];
}
