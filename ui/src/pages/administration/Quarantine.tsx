// Executions that do not run because they crashed the process or cannot be read. Operators of the server release them.
import { Link } from 'wouter';
import { useQuarantine } from '../../api/administration';
import { api } from '../../api/client';
import { useChange, useSession } from '../../api/shared';
import { Empty, Problem, Result, Section, Time } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { shortId } from '../../parts/words';

export function Quarantine() {
  const isOperator = useSession().data?.operator ?? false;
  const found = useQuarantine(isOperator);
  const executions = found.data?.executions ?? [];
  if (!isOperator) return <Empty title="Only operators of the server see quarantined executions." />;
  return (
    <Section title="Quarantined executions">
      <Result of={found}>
        {executions.length === 0 && <Empty title="No execution is quarantined." />}
        {executions.length > 0 && (
          <Table
            rows={executions}
            rowKey={({ executionId }) => executionId}
            columns={[
              { name: 'Execution', show: ({ executionId }) => <Link href={`/executions/${executionId}`}>{shortId(executionId)}</Link> },
              { name: 'Reason', isWide: true, show: ({ quarantined }) => quarantined.reason },
              { name: 'Crashes', isNumber: true, show: ({ quarantined }) => quarantined.deaths },
              { name: 'Since', show: ({ quarantined }) => <Time at={quarantined.since} /> },
              { name: '', show: ({ executionId }) => <Release id={executionId} /> },
            ]}
          />
        )}
      </Result>
    </Section>
  );
}

function Release({ id }: { id: string }) {
  const release = useChange(() => api.post(`/quarantine/${id}/release`, {}));
  return (
    <>
      <button type="button" onClick={() => release.mutate(undefined)}>
        Release
      </button>
      {release.error && <Problem error={release.error} />}
    </>
  );
}
