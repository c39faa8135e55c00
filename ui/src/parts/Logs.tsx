// Log lines of an execution or of one step: followed while it runs, searched, always as text.
import { useEffect, useRef, useState } from 'react';
import { useLogs } from '../api/queries';
import { Empty, Loading, Problem } from './basics';
import { exact, withoutColours } from './words';

const LEVELS = ['debug', 'info', 'warning', 'error'];

export function Logs({ id, node, isOver }: { id: string; node: string | undefined; isOver: boolean }) {
  const found = useLogs(id, node);
  const [search, setSearch] = useState('');
  const [level, setLevel] = useState('');
  const [isFollowing, setFollowing] = useState(!isOver);
  const end = useRef<HTMLDivElement>(null);
  const lines = (found.data?.pages.flatMap((page) => page.logs) ?? []).filter(
    (line) => (!level || LEVELS.indexOf(line.level) >= LEVELS.indexOf(level)) && line.message.toLowerCase().includes(search.toLowerCase()),
  );
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = found;
  useEffect(() => {
    if (isFollowing && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [isFollowing, hasNextPage, isFetchingNextPage, fetchNextPage]);
  useEffect(() => {
    if (isFollowing) end.current?.scrollIntoView({ block: 'nearest' });
  }, [isFollowing, lines.length]);
  if (found.error && !found.data) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (found.isPending) return <Loading />;
  return (
    <>
      <div className="filters">
        <input type="search" aria-label="Search in the logs" placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
        <label>
          Level
          <select value={level} onChange={(event) => setLevel(event.target.value)}>
            <option value="">all</option>
            {LEVELS.slice(1).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          <input type="checkbox" checked={isFollowing} onChange={(event) => setFollowing(event.target.checked)} /> Follow
        </label>
      </div>
      {lines.length === 0 && <Empty title="No line matches." />}
      <div className="logs mono" tabIndex={0} role="log" aria-label="Log lines">
        {lines.map((line) => (
          <div key={line.id} className={`line ${line.level}`}>
            <time dateTime={line.timestamp} title={exact(line.timestamp)}>
              {line.timestamp.slice(11, 23)}
            </time>{' '}
            {line.nodeName && !node && <span className="faint">{line.nodeName} </span>}
            {withoutColours(line.message)}
          </div>
        ))}
        <div ref={end} />
      </div>
      {hasNextPage && !isFollowing && (
        <button type="button" onClick={() => void fetchNextPage()}>
          Show more
        </button>
      )}
    </>
  );
}
