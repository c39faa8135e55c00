// Filters and choices are in the query of the address, so that a link shows the same.
import { useEffect, useState } from 'react';
import { useLocation, useSearch } from 'wouter';

export function useAddress(): [URLSearchParams, (changes: Record<string, string | undefined>) => void] {
  const query = new URLSearchParams(useSearch());
  const [path, navigate] = useLocation();
  const change = (changes: Record<string, string | undefined>) => {
    const next = new URLSearchParams(query);
    for (const [key, value] of Object.entries(changes)) {
      if (value) next.set(key, value);
      else next.delete(key);
    }
    navigate(`${path}${next.size ? `?${next}` : ''}`, { replace: true });
  };
  return [query, change];
}

const TYPING_MS = 250;

/** Returns a text after the user has stopped typing it. */
export function useLater(text: string | undefined): string | undefined {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
