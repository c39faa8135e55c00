import type { Check } from '../../parts/LazyEditor';
import { plural } from '../../parts/words';

/** Whether the checks found an error, which the server would refuse. */
export const hasError = (check: Check | undefined): boolean => check?.findings?.some(({ severity }) => severity === 'error') ?? false;

/** The problems of a text as a list: what the editor marks, for readers who do not see marks. */
export function Findings({ check }: { check: Check | undefined }) {
  const { findings, failure } = check ?? {};
  const errors = findings?.filter(({ severity }) => severity === 'error').length ?? 0;
  return (
    <div role="status">
      {!check && <p className="faint">Checking …</p>}
      {failure && <p className="bad-text">The text was not checked: {failure} It is checked again after the next change.</p>}
      {findings?.length === 0 && <p className="faint">No problems found.</p>}
      {findings && findings.length > 0 && (
        <>
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
        </>
      )}
    </div>
  );
}
