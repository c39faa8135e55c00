// Commands to copy that do the same as a form.
import { tenant } from '../api/client';

export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A request with a token, for a shell. Operators may send it for another tenant. */
export function curl(path: string, body: object): string {
  const other = tenant.get();
  const headers = ['-H "Authorization: Bearer $WINDLASS_TOKEN"', "-H 'Content-Type: application/json'", ...(other ? [`-H ${quote(`X-Tenant-ID: ${other}`)}`] : [])];
  return `curl ${headers.join(' ')} -d ${quote(JSON.stringify(body))} ${window.location.origin}/api/v1${path}`;
}
