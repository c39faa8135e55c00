// Long lists of rows that are opened one by one.
import { type ReactNode, useState } from 'react';
import { plural } from './words';

/** Rows that are shown at once: a browser needs no noticeable time for them. */
const ROWS_MAX = 500;

interface BoundedProps<Row> {
  rows: readonly Row[];
  name: string;
  children: (row: Row) => ReactNode;
}

/** A part of a list, and buttons for the parts before and after it. */
export function Bounded<Row>({ rows, name, children }: BoundedProps<Row>) {
  const [begin, setBegin] = useState(0);
  const from = begin < rows.length ? begin : 0;
  const to = Math.min(from + ROWS_MAX, rows.length);
  return (
    <>
      {rows.slice(from, to).map(children)}
      {rows.length > ROWS_MAX && (
        <p className="row">
          <button type="button" onClick={() => setBegin(from - ROWS_MAX)} disabled={from === 0}>
            Previous rows
          </button>
          <span className="faint">
            {(from + 1).toLocaleString('en')} to {to.toLocaleString('en')} of {plural(rows.length, name)}
          </span>
          <button type="button" onClick={() => setBegin(to)} disabled={to === rows.length}>
            Next rows
          </button>
        </p>
      )}
    </>
  );
}

/** A row whose content is rendered when it is opened. */
export function Unfolding({ summary, children }: { summary: ReactNode; children: () => ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children()}
    </details>
  );
}
