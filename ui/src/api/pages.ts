// Lists with pages: all of a short one, and the polls of one that is shown.
import type { InfiniteData, QueryFunctionContext, QueryKey } from '@tanstack/react-query';

/** Entries of a page of a list that is read as a whole. */
export const KNOWN_PAGE = 200;
/** Maximum number of pages of such a list. */
const KNOWN_PAGES_MAX = 5;

/** Reads a list page by page, up to a bound. `read` returns the entries of a page and the cursor of the next one. */
export async function readItems<Item>(read: (cursor: string | undefined) => Promise<[Item[], string | null | undefined]>): Promise<Item[]> {
  const found: Item[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < KNOWN_PAGES_MAX; page += 1) {
    const [items, next] = await read(cursor);
    found.push(...items);
    cursor = next ?? undefined;
    if (cursor === undefined) break;
  }
  return found;
}

/** Maximum number of entries of the first page of a list: while new entries arrive, it grows. Beyond, the list is read anew. */
const FIRST_PAGE_MAX = 500;

/** How the entries of a page are read and replaced. */
interface PageParts<Page, Item> {
  items: (page: Page) => readonly Item[];
  id: (item: Item) => string;
  /** Returns the new page with other entries, and with the cursor of the old one. */
  join: (fresh: Page, items: Item[], known: Page) => Page;
}

type PageContext = Pick<QueryFunctionContext<QueryKey, string | undefined>, 'client' | 'queryKey' | 'pageParam'>;

/** Reads a page of a list that is read again at intervals. Such a poll reads the first page only, and keeps the others. After a change by the user,
 * which marks what was read as invalid, all pages are read. */
export async function readPolled<Page, Item>({ client, queryKey, pageParam }: PageContext, parts: PageParts<Page, Item>, read: (cursor: string | undefined) => Promise<Page>): Promise<Page> {
  const before = client.getQueryData<InfiniteData<Page>>(queryKey);
  const known = before?.pages[before.pageParams.indexOf(pageParam)];
  if (known === undefined || client.getQueryState(queryKey)?.isInvalidated) return read(pageParam);
  return pageParam === undefined ? joined(await read(undefined), known, parts) : known;
}

/** Returns the newest entries with those of the old first page that follow them, so that the next page is still the next one. If none of the old ones
 * is the last of the new ones, the pages after it are read anew: they begin elsewhere. */
function joined<Page, Item>(fresh: Page, known: Page, { items, id, join }: PageParts<Page, Item>): Page {
  const [young, old] = [items(fresh), items(known)];
  const last = young.at(-1);
  const place = last === undefined ? -1 : old.findIndex((item) => id(item) === id(last));
  const rest = old.slice(place + 1);
  if (place < 0 || rest.length === 0 || young.length + rest.length > FIRST_PAGE_MAX) return fresh;
  return join(fresh, [...young, ...rest], known);
}
