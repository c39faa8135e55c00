// Results of actions: shown for a moment, and read aloud by screen readers.

const SHOWN_MS = 6_000;

export interface Announcement {
  text: string;
  /** A result that repeats the one before it is announced again. */
  number: number;
}

let shown: Announcement = { text: '', number: 0 };
let timer: number | undefined;
const listeners = new Set<() => void>();

function set(text: string): void {
  shown = { text, number: shown.number + 1 };
  listeners.forEach((listener) => listener());
}

export function announce(text: string): void {
  window.clearTimeout(timer);
  set(text);
  timer = window.setTimeout(() => set(''), SHOWN_MS);
}

export const announced = {
  get: (): Announcement => shown,
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};
