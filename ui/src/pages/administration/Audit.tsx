// The audit log, newest first.
import { useAudit } from '../../api/administration';
import { useAddress } from '../../parts/address';
import { Empty, More, Result, Section, Time } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { text } from '../../parts/words';

export function Audit() {
  const [query, change] = useAddress();
  const value = (key: string) => query.get(key) || undefined;
  const found = useAudit({ action: value('action'), actor: value('actor'), target: value('target') });
  const entries = found.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <Section title="Audit log">
      <form className="filters" onSubmit={(event) => event.preventDefault()}>
        {(['action', 'actor', 'target'] as const).map((key) => (
          <label key={key}>
            {key}
            <input type="search" size={16} value={query.get(key) ?? ''} onChange={(event) => change({ [key]: event.target.value })} />
          </label>
        ))}
      </form>
      <Result of={found}>
        {entries.length === 0 && <Empty title="No entry matches." />}
        {entries.length > 0 && (
          <Table
            rows={entries}
            rowKey={({ sequence }) => String(sequence)}
            columns={[
              { name: 'No.', isNumber: true, show: ({ sequence }) => sequence },
              { name: 'When', show: ({ timestamp }) => <Time at={timestamp} /> },
              { name: 'Actor', show: ({ actor, role }) => `${actor} (${role})` },
              { name: 'Action', show: ({ action }) => <code>{action}</code> },
              { name: 'Target', isWide: true, show: ({ target }) => target },
              { name: 'Details', isWide: true, show: ({ details }) => <span className="faint">{text(details)}</span> },
            ]}
          />
        )}
      </Result>
      <More of={found} />
    </Section>
  );
}
