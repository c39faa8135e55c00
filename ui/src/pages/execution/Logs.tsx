// Log lines of an execution or of one step: followed while it runs, searched, always as text.
import { memo, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import type { Execution, Schemas } from '../../api/client';
import { useLogs } from '../../api/executions';
import { useAddress, useTyped } from '../../parts/address';
import { Empty, More, Result } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { plural } from '../../parts/words';
import { LogLines } from './LogLines';
import { lineText } from './lineText';

type Page = Schemas['Logs'];
type LogLine = Schemas['Entry'];

const LEVELS = ['debug', 'info', 'warn', 'error'];
/** Number of pages that a search reads automatically. */
const SEARCHED_MAX = 40;

// Texts of lines as they are searched: made once, so that a typed letter only compares.
const texts = new WeakMap<LogLine, string>();

function searchedText(line: LogLine): string {
  const found = texts.get(line) ?? lineText(line).toLowerCase();
  texts.set(line, found);
  return found;
}

/** The lines with the words. A page that has not changed is not searched again. */
function useMatching(pages: readonly Page[], words: string): LogLine[] {
  const known = useMemo(() => new WeakMap<Page, LogLine[]>(), [words]);
  return useMemo(() => {
    if (!words) return pages.flatMap(({ logs }) => logs);
    return pages.flatMap((page) => {
      const found = known.get(page) ?? page.logs.filter((line) => searchedText(line).includes(words));
      known.set(page, found);
      return found;
    });
  }, [pages, words, known]);
}

const NO_PAGES: Page[] = [];

export const Logs = memo(function Logs({ execution, step }: { execution: Execution; step: string | undefined }) {
  const [query, change] = useAddress();
  const [search, setSearch] = useTyped('find');
  const level = query.get('level') ?? undefined;
  const isOver = execution.completedAt !== undefined;
  const found = useLogs(execution.executionId, step, level, isOver);
  const [isFollowing, setFollowing] = useState(!isOver);
  const leave = useCallback(() => setFollowing(false), []);
  useEnd(isOver, found.refetch);
  // Typing comes first; the lines follow.
  const words = useDeferredValue(search).toLowerCase();
  const pages = useDeferredValue(found.data?.pages ?? NO_PAGES);
  const lines = useMatching(pages, words);
  const [searchedMax, setSearchedMax] = useState(SEARCHED_MAX);
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = found;
  const wantsMore = hasNextPage && !isFetchingNextPage && !isFetchNextPageError && (isFollowing || (words !== '' && pages.length < searchedMax));
  // A page that is known already arrives at once, so that `wantsMore` does not change between two pages.
  useEffect(() => {
    if (wantsMore) void fetchNextPage();
  }, [wantsMore, pages.length, fetchNextPage]);
  const steps = useMemo(() => [...new Set(execution.nodeExecutions.map(({ nodeId }) => nodeId))], [execution.nodeExecutions]);
  const read = pages.reduce((sum, { logs }) => sum + logs.length, 0);
  return (
    <>
      <div className="filters">
        <input type="search" aria-label="Search in the logs" placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
        <Choice name="Level" value={level} options={LEVELS} change={(level) => change({ level })} />
        <Choice name="Step" value={step} options={steps} change={(step) => change({ step })} />
        <label>
          <input type="checkbox" checked={isFollowing} onChange={(event) => setFollowing(event.target.checked)} /> Follow
        </label>
        <Copy text={() => lines.map((line) => `${line.timestamp} ${lineText(line)}`).join('\n')} label="Copy lines" />
      </div>
      <Result of={found}>
        {lines.length === 0 && (
          <Empty title={noLine(words, read, hasNextPage)}>
            {(words || level || step) && (
              <button type="button" className="quiet" onClick={() => change({ find: undefined, level: undefined, step: undefined })}>
                Show all lines
              </button>
            )}
          </Empty>
        )}
        {words !== '' && hasNextPage && !wantsMore && !isFetchingNextPage && (
          <p className="note">
            The first {plural(read, 'line')} were searched; there are more.{' '}
            <button
              type="button"
              onClick={() => {
                setSearchedMax(pages.length + SEARCHED_MAX);
                void fetchNextPage();
              }}
            >
              Search on
            </button>
          </p>
        )}
        <LogLines lines={lines} hasStep={!step} isFollowing={isFollowing} leave={leave} />
      </Result>
      {!isFollowing && words === '' && <More of={found} />}
    </>
  );
});

/** Reads all again after the end: lines that arrived late may be within pages that were read before. */
function useEnd(isOver: boolean, read: () => unknown): void {
  const wasOver = useRef(isOver);
  useEffect(() => {
    if (isOver && !wasOver.current) void read();
    wasOver.current = isOver;
  }, [isOver, read]);
}

function noLine(words: string, read: number, hasMore: boolean): string {
  if (hasMore) return `No line matches among the first ${plural(read, 'line')}; later ones may.`;
  return words && read > 0 ? 'No line matches.' : 'There are no log lines.';
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
