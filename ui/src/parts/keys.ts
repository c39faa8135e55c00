// Keys that work on every page, unless the user types into a field.
import { useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import { PLACES } from './places';

export const KEYS: readonly (readonly [string, string])[] = [
  ['Ctrl K', 'open the command palette'],
  ['/', 'search in the page, or open the palette on a page without a search field'],
  ['?', 'show these keys'],
  ...PLACES.map(({ key, name }) => [`g ${key}`, `go to ${name}`] as const),
  ['j / k', 'next or previous row of a list'],
  ['Enter', 'open the row'],
  ['Esc', 'close, or leave a field'],
  ['Esc Tab', 'leave the editor'],
];

export type Overlay = 'palette' | 'help';

const LETTERS = 'windlass.letters';

/** Keys of one character disturb those who speak to a browser, so they can be turned off. */
export const areLettersOn = (): boolean => localStorage.getItem(LETTERS) !== 'off';

export function setLetters(isOn: boolean): void {
  if (isOn) localStorage.removeItem(LETTERS);
  else localStorage.setItem(LETTERS, 'off');
}

const isField = (target: EventTarget | null) =>
  target instanceof HTMLElement && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable || target.closest('.editor') !== null);

/** Moves the focus to the next or previous link of the rows of a list. */
function moveInList(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>('main [data-row]')];
  const current = links.findIndex((link) => link === document.activeElement);
  const next = current < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(current + step, 0), links.length - 1);
  links[next]?.focus();
}

export function useKeys(open: (overlay: Overlay) => void): void {
  const [, navigate] = useLocation();
  const isGoing = useRef(false);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        return open('palette');
      }
      if (event.defaultPrevented) return;
      if (isField(event.target)) return void (event.key === 'Escape' && event.target instanceof HTMLInputElement && event.target.blur());
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') || !areLettersOn()) return;
      const place = PLACES.find(({ key }) => key === event.key);
      const wasGoing = isGoing.current;
      isGoing.current = event.key === 'g';
      if (wasGoing && place) return navigate(place.path);
      if (event.key === '?') open('help');
      if (event.key === 'j') moveInList(1);
      if (event.key === 'k') moveInList(-1);
      if (event.key === '/') {
        event.preventDefault();
        const field = document.querySelector<HTMLInputElement>('main input[type=search]');
        if (field) field.focus();
        else open('palette');
      }
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [navigate, open]);
}
