// Lists with pages: all of a short one, and the polls of one that is shown.

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
