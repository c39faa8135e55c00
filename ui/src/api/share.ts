// Keeps what has not changed between two reads, so that only what has changed is rendered.

/** Returns a new answer in which each part that equals the old one is the old object. The new answer is changed in place: a copy of a large one
 * takes longer than the comparison. */
export function share<Of>(before: unknown, after: Of): Of {
  if (before === after || before === null || after === null || typeof before !== 'object' || typeof after !== 'object') return after;
  if (Array.isArray(before) !== Array.isArray(after)) return after;
  const [old, young] = [before as Record<string, unknown>, after as Record<string, unknown>];
  let isSame = true;
  let count = 0;
  for (const key in young) {
    count += 1;
    if (!Object.hasOwn(old, key)) {
      isSame = false;
      continue;
    }
    const [known, value] = [old[key], young[key]];
    if (known === value) continue;
    const kept = share(known, value);
    if (kept !== value) young[key] = kept;
    if (kept !== known) isSame = false;
  }
  return isSame && count === Object.keys(old).length ? (before as Of) : after;
}
