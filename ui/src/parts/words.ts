// Times, durations and sizes as text.

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
];
const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' });
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

export function relative(at: string, now: number): string {
  const left = Date.parse(at) - now;
  if (Number.isNaN(left)) return at;
  const [unit, ms] = UNITS.find(([, ms]) => Math.abs(left) >= ms * 0.99) ?? ['second', 1_000];
  return Math.abs(left) < 1_000 ? 'now' : RELATIVE.format(Math.round(left / ms), unit);
}

// Times of a list are near each other, and it takes long to write the name of a zone.
const known = new Map<number, string>();
const KNOWN_MAX = 2_000;

export function exact(at: string): string {
  const second = Math.floor(Date.parse(at) / 1_000);
  if (Number.isNaN(second)) return at;
  const found = known.get(second);
  if (found !== undefined) return found;
  if (known.size >= KNOWN_MAX) known.clear();
  const made = EXACT.format(second * 1_000);
  known.set(second, made);
  return made;
}

/** The time of the day in the zone of the viewer, with milliseconds. */
export function clock(at: string): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** A time as `datetime-local` fields have it: in the zone of the viewer, without seconds. Empty if it is not a time. */
export function localTime(at: string | number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.floor((ms % 60_000) / 1_000);
  if (minutes < 60) return seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`;
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const UTC_TIMES = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** Shows the times of a text of the server in the zone of the viewer. */
export const withLocalTimes = (text: string): string => text.replace(UTC_TIMES, exact);

/** Colours and moves of the cursor, links and titles, other sequences, and single characters of control except tabs and ends of lines. */
const CONTROLS = /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-~]|[\0-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** A carriage return before the end of a line, and one that begins the line anew. */
const RETURNS = /\r+(?=\n|$)/g;

/** Terminals colour their texts with control sequences; a page does not show them. What a terminal writes over a line is a line of its own. */
export function withoutColours(text: string): string {
  const plain = text.replace(CONTROLS, '');
  return plain.includes('\r') ? plain.replace(RETURNS, '').replace(/\r+/g, '\n') : plain;
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

export const statusName = (status: string): string => status.replaceAll('_', ' ');

/** The end of an id: enough to recognise it in a list. */
export const shortId = (id: string): string => `…${id.slice(-8)}`;

/** Numbers of iterations, outermost first. */
export const pathText = (path: readonly number[] | null | undefined): string => (path ?? []).map((index) => `[${index}]`).join('');

const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function bytes(count: number): string {
  const power = Math.min(Math.max(Math.floor(Math.log2(Math.max(count, 1)) / 10), 0), SIZES.length - 1);
  const value = count / 1024 ** power;
  return `${power > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${SIZES[power]}`;
}

/** A value as one line of text. */
export const text = (value: unknown): string => (typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value));
