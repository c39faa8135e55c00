// Log lines of an execution or of one step: followed while it runs, searched, always as text.
import { memo, useEffect, useRef, useState } from 'react';
import type { Execution, Schemas } from '../../api/client';
import { useLogs } from '../../api/executions';
import { useAddress } from '../../parts/address';
import { Copy, Empty, More, Result } from '../../parts/basics';
import { exact, withoutColours } from '../../parts/words';

const LEVELS = ['debug', 'info', 'warn', 'error'];
/** The newest lines that the page shows at once. */
const SHOWN_MAX = 5_000;

export function Logs({ execution, step }: { execution: Execution; step: string | undefined }) {
  const [query, change] = useAddress();
  const level = query.get('level') ?? undefined;
  const search = query.get('find') ?? '';
  const found = useLogs(execution.executionId, step, level);
  const [isFollowing, setFollowing] = useState(execution.completedAt === undefined);
  const box = useRef<HTMLDivElement>(null);
  const all = found.data?.pages.flatMap((page) => page.logs) ?? [];
  const lines = all.filter((line) => line.message.toLowerCase().includes(search.toLowerCase())).slice(-SHOWN_MAX);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = found;
  useEffect(() => {
    if (isFollowing && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [isFollowing, hasNextPage, isFetchingNextPage, fetchNextPage]);
  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [isFollowing, lines.length]);
  const steps = [...new Set(execution.nodeExecutions.map(({ nodeId }) => nodeId))];
  return (
    <>
      <div className="filters">
        <input type="search" aria-label="Search in the logs" placeholder="Search" value={search} onChange={(event) => change({ find: event.target.value })} />
        <Choice name="Level" value={level} options={LEVELS} change={(level) => change({ level })} />
        <Choice name="Step" value={step} options={steps} change={(step) => change({ step })} />
        <label>
          <input type="checkbox" checked={isFollowing} onChange={(event) => setFollowing(event.target.checked)} /> Follow
        </label>
        <Copy text={lines.map(({ timestamp, message }) => `${timestamp} ${withoutColours(message)}`).join('\n')} label="Copy lines" />
      </div>
      <Result of={found}>
        {lines.length === 0 && <Empty title={all.length === 0 ? 'There are no log lines.' : 'No line matches.'} />}
        <div ref={box} className="logs mono" tabIndex={0} role="log" aria-label="Log lines">
          {lines.map((line) => (
            <Line key={line.id} line={line} hasStep={!step} />
          ))}
        </div>
      </Result>
      {!isFollowing && <More of={found} />}
    </>
  );
}

/** A line never changes: only new ones are rendered when more arrive. */
const Line = memo(function Line({ line, hasStep }: { line: Schemas['Entry']; hasStep: boolean }) {
  return (
    <div className={`line ${line.level}`}>
      <time dateTime={line.timestamp} title={exact(line.timestamp)}>
        {line.timestamp.slice(11, 23)}
      </time>{' '}
      <span className="level">{line.level}</span> {line.nodeName && hasStep && <span className="faint">{line.nodeName} </span>}
      {withoutColours(line.message)}
    </div>
  );
});

function Choice({ name, value, options, change }: { name: string; value: string | undefined; options: readonly string[]; change: (value: string) => void }) {
  return (
    <label>
      {name}
      <select value={value ?? ''} onChange={(event) => change(event.target.value)}>
        <option value="">all</option>
        {options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  );
}
