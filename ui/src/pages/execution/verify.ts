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

/** Verifies a chain that grows: records that were good before are not hashed again. */
export class Verifier {
  /** Good records from the beginning of the chain on. */
  private good: readonly Evidence[] = [];
  private latest: Promise<unknown> = Promise.resolve();

  /** Verifies after the calls before it, so that no record is hashed by two of them. */
  verify(chain: Chain): Promise<Verdict> {
    const verdict = this.latest.then(() => this.continue(chain));
    this.latest = verdict.catch(() => undefined);
    return verdict;
  }

  private async continue({ records, anchor, isWhole }: Chain): Promise<Verdict> {
    // Browsers offer hashes to pages from https and from this machine only.
    if (!crypto.subtle) return { isGood: undefined, reason: 'This browser verifies only over https. Use `windlass evidence verify`.' };
    const known = this.good;
    // The same objects have the same content: an answer that changed has others.
    const changed = records.findIndex((record, place) => record !== known[place]);
    const from = changed < 0 ? records.length : changed;
    for (let place = from; place < records.length; place += 1) {
      const wrong = await wrongRecord(records, place);
      if (wrong !== undefined) return { isGood: false, evidenceId: records[place]?.evidenceId ?? '', reason: wrong };
    }
    this.good = records;
    const last = records.at(-1);
    const wrong = last && wrongEnd(last, anchor, isWhole);
    return wrong ? { isGood: false, evidenceId: last.evidenceId, reason: wrong } : { isGood: true, count: records.length };
  }
}

/** Returns the problem with a record, if any. */
async function wrongRecord(records: readonly Evidence[], place: number): Promise<string | undefined> {
  const { hashSha256, ...rest } = records[place] as Evidence & { anchor?: unknown };
  delete rest.anchor;
  return (await hash(canonical(rest))) === hashSha256 ? misplaced(records, place) : 'its content does not have its hash';
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
