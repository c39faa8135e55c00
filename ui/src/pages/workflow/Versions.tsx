// The versions of a workflow, and the difference between two of them.
import type { Workflow } from '../../api/client';
import { useVersion, useVersions } from '../../api/workflows';
import { useAddress } from '../../parts/address';
import { Loading, More, Problem, Result, Section, Time } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { diff } from '../../parts/diff';
import { plural } from '../../parts/words';

export function Versions({ workflow: { id, version } }: { workflow: Workflow }) {
  const found = useVersions(id);
  const [query, change] = useAddress();
  const versions = found.data?.pages.flatMap((page) => page.versions) ?? [];
  const newer = Number(query.get('to') ?? version);
  const older = Number(query.get('from') ?? versions.find((one) => one.version < newer)?.version ?? newer);
  const choice = (name: string, key: string, value: number) => (
    <label>
      {name}
      <select value={value} onChange={(event) => change({ [key]: event.target.value })}>
        {[...new Set([...versions.map((one) => one.version), value])].map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <Section title="Versions">
        <Result of={found}>
          <Table
            rows={versions}
            rowKey={(one) => String(one.version)}
            columns={[
              { name: 'Version', isNumber: true, show: (one) => one.version },
              { name: 'Created', show: ({ createdAt }) => <Time at={createdAt} /> },
              { name: 'Name', show: ({ name }) => name },
              { name: 'Digest', show: ({ netDigest }) => <code title={netDigest}>{netDigest.slice(0, 19)}</code> },
              {
                name: '',
                show: (one) => (
                  <button type="button" className="quiet" onClick={() => change({ to: String(one.version), from: String(Math.max(one.version - 1, 1)) })}>
                    changes
                  </button>
                ),
              },
            ]}
          />
        </Result>
        <More of={found} />
      </Section>
      <Section
        title="Changes"
        aside={
          <span className="filters">
            {choice('from', 'from', older)}
            {choice('to', 'to', newer)}
          </span>
        }
      >
        <Difference id={id} older={older} newer={newer} />
      </Section>
    </>
  );
}

function Difference({ id, older, newer }: { id: string; older: number; newer: number }) {
  const [before, after] = [useVersion(id, older), useVersion(id, newer)];
  const error = before.error ?? after.error;
  if (error) return <Problem error={error} retry={() => [before, after].forEach(({ refetch }) => void refetch())} />;
  if (!before.data || !after.data) return <Loading />;
  const lines = diff(before.data.source, after.data.source);
  const count = (kind: string) => lines.filter((line) => line.kind === kind).length;
  const marks = { same: ' ', added: '+', removed: '−' };
  return (
    <>
      <p className="faint">
        {plural(count('added'), 'line')} added, {plural(count('removed'), 'line')} removed
      </p>
      <div className="diff" tabIndex={0} role="region" aria-label="Changed lines">
        <table>
          <tbody>
            {lines.map(({ kind, text }, number) => (
              <tr key={number} className={kind}>
                <td>{marks[kind]}</td>
                <td>{text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
