// Filters and choices are in the query of the address, so that a link shows the same.
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
