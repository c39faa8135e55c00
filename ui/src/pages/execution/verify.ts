// Verifies a chain of evidence in the browser: each record contains the hash of the one before it, and its own.
import type { Schemas } from '../../api/client';

type Evidence = Schemas['Evidence'];

export type Verdict = { isGood: true; count: number } | { isGood: false; evidenceId: string; reason: string } | { isGood: undefined; reason: string };

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

export async function verify(records: readonly Evidence[]): Promise<Verdict> {
  // Browsers offer hashes to pages from https and from this machine only.
  if (!crypto.subtle) return { isGood: undefined, reason: 'This browser verifies only over https. Use `windlass evidence verify`.' };
  let previous: string | undefined;
  for (const record of records) {
    const { hashSha256, ...rest } = record as Evidence & { anchor?: unknown };
    delete rest.anchor;
    const wrong = (reason: string): Verdict => ({ isGood: false, evidenceId: record.evidenceId, reason });
    if (previous !== undefined && record.previousHash !== previous) return wrong('it does not follow the record before it');
    if ((await hash(canonical(rest))) !== hashSha256) return wrong('its content does not have its hash');
    previous = hashSha256;
  }
  return { isGood: true, count: records.length };
}
