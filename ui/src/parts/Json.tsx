// A JSON value as a tree: folded where it is large, searchable, and always text.
import { memo, useDeferredValue, useState } from 'react';
import { Copy } from './Copy';
import { Download } from './Download';
import { API, isReference, type Reference } from './reference';
import { bytes, plural, withoutColours } from './words';

const OPEN_DEPTH = 2;
const SHOWN_MAX = 200;
const TEXT_MAX = 2_000;

interface JsonProps {
  value: unknown;
  label?: string;
}

/** A value that has not changed is not rendered again while an execution is followed. */
export const Json = memo(function Json({ value, label = 'value' }: JsonProps) {
  const [search, setSearch] = useState('');
  // Typing comes first; a large tree follows.
  const words = useDeferredValue(search).toLowerCase();
  if (value === undefined || value === null) return <p className="faint">none</p>;
  if (typeof value === 'object' && isReference(value)) return <LargeValue name={undefined} place={label} value={value} />;
  return (
    <div className="json">
      <div className="row">
        <input type="search" aria-label={`Search in ${label}`} placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
        <Copy text={() => JSON.stringify(value, null, 2)} label="Copy" />
      </div>
      <Branch name={undefined} place={label} value={value} depth={0} search={words} />
    </div>
  );
});

function matches(value: unknown, search: string): boolean {
  return JSON.stringify(value)?.toLowerCase().includes(search) ?? false;
}

interface BranchProps {
  name: string | undefined;
  /** Name of a file with the value. */
  place: string;
  value: unknown;
  depth: number;
  search: string;
}

const Branch = memo(function Branch({ name, place, value, depth, search }: BranchProps) {
  const [toggled, setToggled] = useState<boolean>();
  const [all, setAll] = useState(false);
  if (value === null || typeof value !== 'object') return <Leaf name={name} value={value} search={search} />;
  if (isReference(value)) return <LargeValue name={name} place={place} value={value} />;
  const isList = Array.isArray(value);
  const entries = Object.entries(value).filter(([key, inner]) => !search || key.toLowerCase().includes(search) || matches(inner, search));
  const isOpen = toggled ?? (search !== '' || depth < OPEN_DEPTH);
  const shown = all ? entries : entries.slice(0, SHOWN_MAX);
  return (
    <div className="branch">
      <button type="button" className="quiet" aria-expanded={isOpen} onClick={() => setToggled(!isOpen)}>
        {isOpen ? '▾' : '▸'} {name !== undefined && <b>{name}: </b>}
        <span className="faint">{isList ? `[${entries.length}]` : `{${entries.length}}`}</span>
      </button>
      {isOpen && (
        <div className="inner">
          {shown.map(([key, inner]) => (
            <Branch key={key} name={key} place={`${place}.${key}`} value={inner} depth={depth + 1} search={key.toLowerCase().includes(search) ? '' : search} />
          ))}
          {shown.length < entries.length && (
            <button type="button" className="quiet" onClick={() => setAll(true)}>
              {entries.length - shown.length} more
            </button>
          )}
        </div>
      )}
    </div>
  );
});

/** A value that is not in the response. */
function LargeValue({ name, place, value }: { name: string | undefined; place: string; value: Reference }) {
  const size = Number(value.bytes);
  return (
    <div className="leaf">
      {name !== undefined && <b>{name}: </b>}
      <span className="faint">a large value{Number.isFinite(size) && `, ${bytes(size)}`}</span>{' '}
      <Download path={value.url.slice(API.length)} name={`${place.replaceAll(/[^\w.-]+/g, '_')}.json`} label={`Download ${place}`} />
    </div>
  );
}

function Leaf({ name, value, search }: { name: string | undefined; value: unknown; search: string }) {
  const [all, setAll] = useState(false);
  const text = typeof value === 'string' ? withoutColours(value) : JSON.stringify(value);
  const cut = !all && text.length > TEXT_MAX;
  const isFound = search !== '' && text.toLowerCase().includes(search);
  return (
    <div className="leaf">
      {name !== undefined && <b>{name}: </b>}
      <span className={`${typeof value}${isFound ? ' found' : ''}`}>{cut ? text.slice(0, TEXT_MAX) : text}</span>
      {cut && (
        <button type="button" className="quiet" onClick={() => setAll(true)}>
          … {plural(text.length - TEXT_MAX, 'more character')}
        </button>
      )}
    </div>
  );
}
