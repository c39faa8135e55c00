// The theme: that of the system, unless the user chose one for this browser.
import { useSyncExternalStore } from 'react';

const KEY = 'windlass.theme';
const DARK = window.matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

export type Theme = 'system' | 'light' | 'dark';

export function chosenTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function setTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme();
}

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = chosenTheme();
  listeners.forEach((listener) => listener());
}

const shown = (): 'light' | 'dark' => {
  const chosen = chosenTheme();
  return chosen === 'system' ? (DARK.matches ? 'dark' : 'light') : chosen;
};

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  DARK.addEventListener('change', listener);
  return () => {
    listeners.delete(listener);
    DARK.removeEventListener('change', listener);
  };
}

/** Returns the theme in use. */
export const useTheme = () => useSyncExternalStore(subscribe, shown);
/** Returns the choice of the user. */
export const useChosenTheme = () => useSyncExternalStore(subscribe, chosenTheme);
