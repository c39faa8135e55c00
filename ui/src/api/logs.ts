// The log of an execution as far as the page has read it: the newest lines first, then lines that follow, and earlier ones on request.
import { type QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, type ApiError, type Schemas } from './client';

export const PAGE_LINES = 500;
/** Pages that one read of later lines takes. A reader that is further behind begins anew at the end of the log. */
const LATER_PAGES_MAX = 10;
/** Pages that are read again after the end of the execution, at most. */
const AGAIN_PAGES_MAX = 100;

type Answer = Schemas['Logs'] & { older: string; newer: string };

/** Lines that follow each other, oldest first, and the positions before and after them. */
export interface LogPage {
  logs: readonly Schemas['Entry'][];
  older: string;
  newer: string;
}

interface LogRead {
  /** Oldest first. */
  pages: readonly LogPage[];
  hasOlder: boolean;
  /** Whether later lines were left out, because there are enough for a reader who does not follow the log. */
  isHeld: boolean;
  /** Whether it was read after the end of the execution. */
  isOver: boolean;
}

export interface LogFilter {
  nodeId: string | undefined;
  /** Lines of this level and above. */
  minLevel: string | undefined;
}

export interface LogOptions {
  isOver: boolean;
  isFollowing: boolean;
  /** A follower keeps this many lines, the newest; another reader reads no later lines above this number. */
  linesMax: number;
}

export const countLines = (pages: readonly LogPage[]): number => pages.reduce((sum, { logs }) => sum + logs.length, 0);

export function useLogs(id: string, filter: LogFilter, { isOver, isFollowing, linesMax }: LogOptions) {
  const client = useQueryClient();
  const key = ['execution', id, 'logs', filter];
  const log: Log = { read: (query) => api.get<Answer>(`/executions/${id}/logs`, { ...filter, limit: PAGE_LINES, ...query }), known: () => client.getQueryData<LogRead>(key) };
  const found = useQuery<LogRead, ApiError>({
    queryKey: key,
    queryFn: async () => {
      const before = log.known();
      if (!before) return { ...(await readNewest(log)), isOver };
      // Lines of several sources may arrive out of order, so those of an execution that ended are all read again.
      if (isOver && !before.isOver) return { ...(await readAgain(log, before)), isOver };
      if (!isFollowing && countLines(before.pages) >= linesMax) return { ...before, isHeld: true };
      const now = await readLater(log, before);
      return { ...(isFollowing ? keepNewest(now, linesMax) : now), isOver };
    },
    // A page that has changed has other lines.
    structuralSharing: false,
  });
  const earlier = useMutation<Answer, ApiError, string>({
    mutationFn: (cursor) => log.read({ order: 'desc', cursor }),
    onSuccess: (answer, cursor) => addEarlier(client, key, answer, cursor),
  });
  const first = found.data?.pages[0]?.older;
  return { found, earlier, readEarlier: () => first !== undefined && earlier.mutate(first) };
}

interface Log {
  read: (query: { order?: string; cursor?: string }) => Promise<Answer>;
  known: () => LogRead | undefined;
}

type Lines = Omit<LogRead, 'isOver'>;

async function readNewest(log: Log): Promise<Lines> {
  const newest = await log.read({ order: 'desc' });
  return { pages: [turned(newest)], hasOlder: newest.pagination.hasMore, isHeld: false };
}

const turned = ({ logs, older, newer }: Answer): LogPage => ({ logs: logs.toReversed(), older, newer });

/** Reads the pages after a position, or undefined if there are too many. */
async function readFrom(log: Log, cursor: string, pagesMax: number): Promise<LogPage[] | undefined> {
  const pages: LogPage[] = [];
  for (let at = cursor; pages.length < pagesMax; ) {
    const { logs, older, newer, pagination } = await log.read({ cursor: at });
    pages.push({ logs, older, newer });
    if (!pagination.hasMore) return pages;
    at = newer;
  }
  return undefined;
}

async function readLater(log: Log, before: LogRead): Promise<Lines> {
  const last = before.pages.at(-1);
  const later = last && (await readFrom(log, last.newer, LATER_PAGES_MAX));
  // Earlier lines may have been added meanwhile.
  const now = log.known() ?? before;
  return later ? { pages: later.reduce(append, now.pages), hasOlder: now.hasOlder, isHeld: false } : readNewest(log);
}

async function readAgain(log: Log, before: LogRead): Promise<Lines> {
  const first = before.pages[0];
  const again = first && (await readFrom(log, first.older, AGAIN_PAGES_MAX));
  const now = log.known() ?? before;
  const added = now.pages.slice(0, now.pages.findIndex((page) => page.older === first?.older));
  return again ? { pages: [...added, ...again], hasOlder: now.hasOlder, isHeld: false } : readNewest(log);
}

/** Adds lines to the last page while it has room, so that the other pages stay as they are. */
function append(pages: readonly LogPage[], page: LogPage): readonly LogPage[] {
  const last = pages.at(-1);
  if (!last) return [page];
  if (page.logs.length === 0) return last.newer === page.newer ? pages : [...pages.slice(0, -1), { ...last, newer: page.newer }];
  if (last.logs.length + page.logs.length > PAGE_LINES) return [...pages, page];
  return [...pages.slice(0, -1), { logs: [...last.logs, ...page.logs], older: last.older, newer: page.newer }];
}

function keepNewest(read: Lines, linesMax: number): Lines {
  let [left, dropped] = [countLines(read.pages), 0];
  for (; left - (read.pages[dropped]?.logs.length ?? left) >= linesMax; dropped += 1) left -= read.pages[dropped]?.logs.length ?? 0;
  return dropped > 0 ? { ...read, pages: read.pages.slice(dropped), hasOlder: true } : read;
}

function addEarlier(client: QueryClient, key: readonly unknown[], answer: Answer, cursor: string): void {
  client.setQueryData<LogRead>(key, (now) => {
    // The page that it precedes may have been dropped.
    if (!now || now.pages[0]?.older !== cursor) return now;
    return { ...now, pages: [turned(answer), ...now.pages], hasOlder: answer.pagination.hasMore };
  });
}
