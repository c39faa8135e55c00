// Icons as lines on a grid of 16; they repeat a word that is next to them, so they are hidden from screen readers.
const PATHS = {
  home: 'M2 7.5 8 2.5l6 5M4 6.5v7h8v-7',
  play: 'M5 3.2v9.6L12.5 8z',
  graph: 'M3 2.5h4v3H3zM9 10.5h4v3H9zM5 5.5v6.5h4M9 6.5h4v-3H9zM9 5H7',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.4 1.6',
  letter: 'M2 4h12v8.5H2zM2 4.5l6 4.5 6-4.5',
  gear: 'M8 10.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4',
  plan: 'M3 2.5h10v11H3zM5.5 5.5h5M5.5 8h5M5.5 10.5h3',
  bolt: 'M9 1.8 3.8 9H8l-1 5.2L12.2 7H8z',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.4 10.4 14 14',
  person: 'M8 7.5a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2zM3 13.8c.4-3 2.3-4.3 5-4.3s4.6 1.3 5 4.3',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinejoin="round" strokeLinecap="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
