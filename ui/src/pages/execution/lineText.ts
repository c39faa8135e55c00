import type { Schemas } from '../../api/client';
import { text, withoutColours } from '../../parts/words';

type LogLine = Schemas['Entry'];

/** The data of a line as text, apart from its stream and the first attempt, which most lines have. */
export function lineData({ data }: LogLine): string {
  const parts = Object.entries(data).flatMap(([key, value]) => (key === 'stream' || (key === 'attempt' && value === 1) ? [] : [`${key}=${text(value)}`]));
  return withoutColours(parts.join(' '));
}

/** A line as it is shown, searched and copied. */
export function lineText(line: LogLine): string {
  const data = lineData(line);
  return withoutColours(line.message) + (data && ` ${data}`);
}
