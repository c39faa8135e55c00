// References to values that are stored outside of a response.

/** Prefix of all addresses of the API. */
export const API = '/api/v1';

export interface Reference {
  url: string;
  bytes?: unknown;
}

/** Only the API's own references count: a result of a program may look like one. */
export function isReference(value: object): value is Reference {
  const { url } = value as { url?: unknown };
  return ('$artifact' in value || '$omitted' in value) && typeof url === 'string' && url.startsWith(`${API}/executions/`);
}

/** The places of values that are marks of large values, such as `photo` or `list.0.photo`: their own values are not there. */
export function findMarks(value: unknown, place = ''): string[] {
  if (value === null || typeof value !== 'object') return [];
  if ('$artifact' in value || '$omitted' in value) return [place || 'the whole'];
  return Object.entries(value).flatMap(([key, inner]) => findMarks(inner, place ? `${place}.${key}` : key));
}
