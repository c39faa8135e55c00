// State of forms that outlives their pages: what was typed is there again after a look at another page. It is in memory only, as it may have passwords.
import { useState } from 'react';

const kept = new Map<string, unknown>();

/** State that is kept under a key until it is dropped. */
export function useKept<Of extends object>(key: string, begin: () => Of) {
  const [state, setState] = useState<Of>(() => (kept.has(key) ? (kept.get(key) as Of) : begin()));
  const change = (changes: Partial<Of> | ((before: Of) => Partial<Of>)) => {
    // A file is read for a while, in which other fields may change.
    const before = (kept.get(key) as Of | undefined) ?? state;
    const next = { ...before, ...(typeof changes === 'function' ? changes(before) : changes) };
    kept.set(key, next);
    setState(next);
  };
  const drop = () => {
    kept.delete(key);
    setState(begin());
  };
  return { state, isChanged: kept.has(key), change, drop };
}

/** Drops what a former user typed. */
export const dropKept = (): void => kept.clear();
