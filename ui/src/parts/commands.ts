// Commands to copy that do the same as a form.
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A request with a token, for a shell. */
export const curl = (path: string, body: object): string =>
  `curl -H "Authorization: Bearer $WINDLASS_TOKEN" -H 'Content-Type: application/json' -d ${quote(JSON.stringify(body))} ${window.location.origin}/api/v1${path}`;
