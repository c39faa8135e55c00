// Filters and choices are in the query of the address, so that a link shows the same.
import { useEffect, useMemo, useRef, useState } from 'react';
import { navigate, useSearch } from 'wouter/use-browser-location';

type Changes = Record<string, string | undefined>;

/** Changes the query of the address, whatever it was when the caller was rendered. */
function change(changes: Changes): void {
  const { pathname, search } = window.location;
  const next = new URLSearchParams(search);
  for (const [key, value] of Object.entries(changes)) {
    if (value) next.set(key, value);
    else next.delete(key);
  }
  navigate(`${pathname}${next.size ? `?${next}` : ''}`, { replace: true });
}

export function useAddress(): [URLSearchParams, (changes: Changes) => void] {
  const search = useSearch();
  return [useMemo(() => new URLSearchParams(search), [search]), change];
}

const TYPING_MS = 250;

/** A text of the address that is typed: the field changes at once, the address after the user has stopped typing. */
export function useTyped(key: string): [string, (text: string) => void] {
  const stored = useAddress()[0].get(key) ?? '';
  const [text, setText] = useState(stored);
  const written = useRef(stored);
  useEffect(() => {
    // A change from elsewhere, such as a link.
    if (stored === written.current) return;
    written.current = stored;
    setText(stored);
  }, [stored]);
  useEffect(() => {
    if (text === written.current) return;
    const timer = setTimeout(() => {
      written.current = text;
      change({ [key]: text });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [key, text]);
  return [text, setText];
}

/** Returns a text after the user has stopped typing it. */
export function useLater(text: string | undefined): string | undefined {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
