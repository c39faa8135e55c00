// Log lines of an execution or of one step: followed while it runs, searched, always as text.
import { memo, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import type { Execution, Schemas } from '../../api/client';
import { countLines, type LogPage, PAGE_LINES, useLogs } from '../../api/logs';
import { useAddress, useTyped } from '../../parts/address';
import { Empty, Problem, Result } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { plural } from '../../parts/words';
import { LogLines } from './LogLines';
import { lineText } from './lineText';

type LogLine = Schemas['Entry'];

/** Each stands for lines of that level and above. */
const LEVELS = { debug: 'debug and above', info: 'info and above', warn: 'warn and above', error: 'error' };
/** Lines that the page keeps while it follows a log. */
const LINES_MAX = 20_000;
/** Number of pages that a search reads automatically. */
const SEARCHED_MAX = LINES_MAX / PAGE_LINES;

// Texts of lines as they are searched: made once, so that a typed letter only compares.
const texts = new WeakMap<LogLine, string>();

function searchedText(line: LogLine): string {
  const found = texts.get(line) ?? lineText(line).toLowerCase();
  texts.set(line, found);
  return found;
}

/** The lines with the words, of each page. A page that has not changed is not searched again. */
function useMatching(pages: readonly LogPage[], words: string): (readonly LogLine[])[] {
  const known = useMemo(() => new WeakMap<LogPage, readonly LogLine[]>(), [words]);
  return useMemo(() => {
    if (!words) return pages.map(({ logs }) => logs);
    return pages.map((page) => {
      const found = known.get(page) ?? page.logs.filter((line) => searchedText(line).includes(words));
      known.set(page, found);
      return found;
    });
  }, [pages, words, known]);
}

const NO_PAGES: readonly LogPage[] = [];

export const Logs = memo(function Logs({ execution, step }: { execution: Execution; step: string | undefined }) {
  const [query, change] = useAddress();
  const [search, setSearch] = useTyped('find');
  const level = query.get('level') ?? undefined;
  const isOver = execution.completedAt !== undefined;
  const [isFollowing, setFollowing] = useState(!isOver);
  const [searchedMax, setSearchedMax] = useState(SEARCHED_MAX);
  const { found, earlier, readEarlier } = useLogs(execution.executionId, { nodeId: step, minLevel: level }, { isOver, isFollowing, linesMax: searchedMax * PAGE_LINES });
  const leave = useCallback(() => setFollowing(false), []);
  useEnd(isOver, found.refetch);
  // Typing comes first; the lines follow.
  const words = useDeferredValue(search).toLowerCase();
  const pages = useDeferredValue(found.data?.pages ?? NO_PAGES);
  const matching = useMatching(pages, words);
  const hasOlder = found.data?.hasOlder ?? false;
  const wantsMore = words !== '' && hasOlder && !earlier.isPending && !earlier.isError && (found.data?.pages.length ?? 0) < searchedMax;
  const first = found.data?.pages[0];
  useEffect(() => {
    if (wantsMore) readEarlier();
  }, [wantsMore, first]);
  const hasEarlier = hasOlder && words === '';
  // The lines are not rendered again with each typed letter.
  const shownEarlier = useMemo(() => (hasEarlier ? { isPending: earlier.isPending, read: readEarlier } : undefined), [hasEarlier, earlier.isPending, first?.older]);
  const steps = useMemo(() => [...new Set(execution.nodeExecutions.map(({ nodeId }) => nodeId))], [execution.nodeExecutions]);
  const read = countLines(pages);
  const isNone = matching.every((lines) => lines.length === 0);
  return (
    <>
      <div className="filters">
        <input type="search" aria-label="Search in the logs" placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
        <Choice name="Level" value={level} options={LEVELS} change={(level) => change({ level })} />
        <Choice name="Step" value={step} options={Object.fromEntries(steps.map((id) => [id, id]))} change={(step) => change({ step })} />
        <label>
          <input type="checkbox" checked={isFollowing} onChange={(event) => setFollowing(event.target.checked)} /> Follow
        </label>
        <Copy text={() => matching.flat().map((line) => `${line.timestamp} ${lineText(line)}`).join('\n')} label="Copy lines" />
      </div>
      <Result of={found}>
        {isNone && (
          <Empty title={noLine(words, read, hasOlder)}>
            {(words || level || step) && (
              <button type="button" className="quiet" onClick={() => change({ find: undefined, level: undefined, step: undefined })}>
                Show all lines
              </button>
            )}
          </Empty>
        )}
        {words !== '' && hasOlder && !wantsMore && !earlier.isPending && (
          <p className="note">
            The newest {plural(read, 'line')} were searched; there are earlier ones.{' '}
            <button
              type="button"
              onClick={() => {
                setSearchedMax(pages.length + SEARCHED_MAX);
                readEarlier();
              }}
            >
              Search on
            </button>
          </p>
        )}
        {found.data?.isHeld && !isFollowing && <p className="note">Later lines are read when you follow the log.</p>}
        {earlier.error && <Problem error={earlier.error} retry={readEarlier} />}
        <LogLines pages={matching} hasStep={!step} isFollowing={isFollowing} leave={leave} beginsAtEnd={hasOlder} earlier={shownEarlier} />
      </Result>
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
  if (hasMore) return `No line matches among the newest ${plural(read, 'line')}; earlier ones may.`;
  return words && read > 0 ? 'No line matches.' : 'There are no log lines.';
}

function Choice({ name, value, options, change }: { name: string; value: string | undefined; options: Record<string, string>; change: (value: string) => void }) {
  return (
    <label>
      {name}
      <select value={value ?? ''} onChange={(event) => change(event.target.value)}>
        <option value="">all</option>
        {Object.entries(options).map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
