// Log lines of an execution or of one step: followed while it runs, searched, always as text.
import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import type { Execution } from '../../api/client';
import { useLogs } from '../../api/executions';
import { useAddress } from '../../parts/address';
import { Copy, Empty, More, Result } from '../../parts/basics';
import { withoutColours } from '../../parts/words';
import { LogLines } from './LogLines';

const LEVELS = ['debug', 'info', 'warn', 'error'];

export function Logs({ execution, step }: { execution: Execution; step: string | undefined }) {
  const [query, change] = useAddress();
  const level = query.get('level') ?? undefined;
  const search = query.get('find') ?? '';
  const isOver = execution.completedAt !== undefined;
  const found = useLogs(execution.executionId, step, level, isOver);
  const [isFollowing, setFollowing] = useState(!isOver);
  // Typing comes first; the lines follow.
  const words = useDeferredValue(search).toLowerCase();
  const pages = found.data?.pages;
  const all = useDeferredValue(useMemo(() => pages?.flatMap((page) => page.logs) ?? [], [pages]));
  const lines = useMemo(() => (words ? all.filter(({ message }) => message.toLowerCase().includes(words)) : all), [all, words]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = found;
  useEffect(() => {
    if (isFollowing && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [isFollowing, hasNextPage, isFetchingNextPage, fetchNextPage]);
  const wasOver = useRef(isOver);
  useEffect(() => {
    if (isOver && !wasOver.current) void refetch();
    wasOver.current = isOver;
  }, [isOver, refetch]);
  const steps = useMemo(() => [...new Set(execution.nodeExecutions.map(({ nodeId }) => nodeId))], [execution.nodeExecutions]);
  return (
    <>
      <div className="filters">
        <input type="search" aria-label="Search in the logs" placeholder="Search" value={search} onChange={(event) => change({ find: event.target.value })} />
        <Choice name="Level" value={level} options={LEVELS} change={(level) => change({ level })} />
        <Choice name="Step" value={step} options={steps} change={(step) => change({ step })} />
        <label>
          <input type="checkbox" checked={isFollowing} onChange={(event) => setFollowing(event.target.checked)} /> Follow
        </label>
        <Copy text={() => lines.map(({ timestamp, message }) => `${timestamp} ${withoutColours(message)}`).join('\n')} label="Copy lines" />
      </div>
      <Result of={found}>
        {lines.length === 0 && <Empty title={all.length === 0 ? 'There are no log lines.' : 'No line matches.'} />}
        <LogLines lines={lines} hasStep={!step} isFollowing={isFollowing} />
      </Result>
      {!isFollowing && <More of={found} />}
    </>
  );
}

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
