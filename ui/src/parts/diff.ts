// Differences between two texts, line by line.
export interface DiffLine {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** Lines of texts that are larger are compared as a whole: the time is the product of their lengths. */
const COMPARED_MAX = 4_000;

export function diff(before: string, after: string): DiffLine[] {
  const [old, young] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < old.length && start < young.length && old[start] === young[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < young.length - start && old[old.length - 1 - end] === young[young.length - 1 - end]) end += 1;
  const same = (text: string): DiffLine => ({ kind: 'same', text });
  return [...old.slice(0, start).map(same), ...middle(old.slice(start, old.length - end), young.slice(start, young.length - end)), ...old.slice(old.length - end).map(same)];
}

function middle(old: string[], young: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text });
  const added = (text: string): DiffLine => ({ kind: 'added', text });
  if (old.length > COMPARED_MAX || young.length > COMPARED_MAX) return [...old.map(removed), ...young.map(added)];
  const lengths = commonLengths(old, young);
  const lines: DiffLine[] = [];
  let [left, right] = [0, 0];
  while (left < old.length || right < young.length) {
    if (left < old.length && right < young.length && old[left] === young[right]) {
      lines.push({ kind: 'same', text: old[left] ?? '' });
      left += 1;
      right += 1;
    } else if (right >= young.length || (left < old.length && (lengths[left + 1]?.[right] ?? 0) >= (lengths[left]?.[right + 1] ?? 0))) {
      lines.push(removed(old[left] ?? ''));
      left += 1;
    } else {
      lines.push(added(young[right] ?? ''));
      right += 1;
    }
  }
  return lines;
}

/** Length of the longest common subsequence of the rests from each pair of lines. */
function commonLengths(old: string[], young: string[]): Uint16Array[] {
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint16Array(young.length + 1));
  for (let left = old.length - 1; left >= 0; left -= 1) {
    const [row, below] = [lengths[left] as Uint16Array, lengths[left + 1] as Uint16Array];
    for (let right = young.length - 1; right >= 0; right -= 1) {
      row[right] = old[left] === young[right] ? (below[right + 1] ?? 0) + 1 : Math.max(below[right] ?? 0, row[right + 1] ?? 0);
    }
  }
  return lengths;
}
