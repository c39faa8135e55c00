// Verifies a chain of evidence in the browser, as `windlass evidence verify` does: each record contains its own hash and that of the one before it,
// their numbers follow each other, and the anchor of the server is about the last one.
import type { Schemas } from '../../api/client';

type Evidence = Schemas['Evidence'];

/** `isGood` is undefined if the browser cannot verify. */
export type Verdict = { isGood: true; count: number } | { isGood: false; evidenceId: string; reason: string } | { isGood: undefined; reason: string };

interface Chain {
  records: readonly Evidence[];
  anchor: Schemas['Anchor'] | undefined;
  /** Whether these are all records of an execution that ended. */
  isWhole: boolean;
}

/** JSON as RFC 8785 writes it. JavaScript writes numbers and strings that way, and sorts keys by UTF-16. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  entries.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`;
}

async function hash(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export async function verify({ records, anchor, isWhole }: Chain): Promise<Verdict> {
  // Browsers offer hashes to pages from https and from this machine only.
  if (!crypto.subtle) return { isGood: undefined, reason: 'This browser verifies only over https. Use `windlass evidence verify`.' };
  for (const [place, record] of records.entries()) {
    const { hashSha256, ...rest } = record as Evidence & { anchor?: unknown };
    delete rest.anchor;
    const found = (await hash(canonical(rest))) === hashSha256 ? misplaced(records, place) : 'its content does not have its hash';
    if (found) return { isGood: false, evidenceId: record.evidenceId, reason: found };
  }
  const last = records.at(-1);
  const wrong = last && wrongEnd(last, anchor, isWhole);
  return wrong ? { isGood: false, evidenceId: last.evidenceId, reason: wrong } : { isGood: true, count: records.length };
}

const endsExecution = ({ category, terminal }: Evidence): boolean => category === 'System' && terminal;

/** Returns the problem with the place of a record, if any. */
function misplaced(records: readonly Evidence[], place: number): string | undefined {
  const [, execution, number] = /^(.*)\.(\d+)$/.exec(records[place]?.evidenceId ?? '') ?? [];
  const before = records[place - 1];
  if (execution === undefined) return 'it has no valid id';
  if (!records[0]?.evidenceId.startsWith(`${execution}.`)) return 'it belongs to another execution than the records before it';
  if (before && endsExecution(before)) return 'it follows the end of the execution';
  if (Number(number) !== place + 1) return `it is not record number ${place + 1}: records are missing, repeated or moved`;
  return records[place]?.previousHash === before?.hashSha256 ? undefined : 'it does not follow the record before it';
}

function wrongEnd(last: Evidence, anchor: Chain['anchor'], isWhole: boolean): string | undefined {
  if (anchor && (anchor.evidenceId !== last.evidenceId || anchor.hashSha256 !== last.hashSha256)) return 'the anchor of the server is about another record';
  return isWhole && !anchor && !endsExecution(last) ? 'it is not the end of the execution: the rest was cut off' : undefined;
}
