import type { Finding } from '../../editor/Editor';
import { plural } from '../../parts/words';

/** The problems of a text as a list: what the editor marks, for readers who do not see marks. */
export function Findings({ findings }: { findings: readonly Finding[] }) {
  if (findings.length === 0) return <p className="faint">No problems found.</p>;
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  return (
    <div role="status">
      <p>
        {plural(errors, 'error')}, {plural(findings.length - errors, 'warning')}
      </p>
      <ul className="short">
        {findings.map(({ severity, message, line }, place) => (
          <li key={place} className={severity === 'error' ? 'bad-text' : undefined}>
            {line ? `line ${line}: ` : ''}
            {message}
          </li>
        ))}
      </ul>
    </div>
  );
}
