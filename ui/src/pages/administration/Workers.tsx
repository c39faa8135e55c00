// Groups of remote workers, and the slots of the server itself.
import { useState } from 'react';
import { useRunnerGroups, useServerHealth } from '../../api/administration';
import { api } from '../../api/client';
import { useChange } from '../../api/shared';
import { Empty, Problem, Result, Section, Time } from '../../parts/basics';
import { Table } from '../../parts/Table';

export function Workers() {
  const found = useRunnerGroups();
  const gauges = useServerHealth().data?.gauges ?? {};
  const groups = found.data?.groups ?? [];
  return (
    <>
      <Section title="This server">
        <p>
          {gauges['windlass_steps_in_flight'] ?? 0} of {gauges['windlass_slots'] ?? 0} slots in use, {gauges['windlass_queue_depth'] ?? 0} steps wait for one
        </p>
      </Section>
      <NewGroup />
      <Section title="Groups of workers">
        <Result of={found}>
          {groups.length === 0 && (
            <Empty title="There is no group.">
              <p>Steps of a group run on workers of other machines. Create a group above, and a token with the role worker for them.</p>
            </Empty>
          )}
          {groups.length > 0 && (
            <Table
              rows={groups}
              rowKey={({ name }) => name}
              columns={[
                { name: 'Group', show: ({ name }) => name },
                { name: 'Cluster', show: ({ cluster }) => cluster ?? '–' },
                { name: 'Workers', isNumber: true, show: ({ workers }) => workers },
                { name: 'Waiting calls', isNumber: true, show: ({ waiting }) => waiting },
                { name: 'Claimed calls', isNumber: true, show: ({ claimed }) => claimed },
                { name: 'Changed', show: ({ updatedAt }) => <Time at={updatedAt} /> },
                { name: '', show: ({ name }) => <DeleteGroup name={name} /> },
              ]}
            />
          )}
        </Result>
      </Section>
    </>
  );
}

function DeleteGroup({ name }: { name: string }) {
  const remove = useChange(() => api.remove(`/runner-groups/${encodeURIComponent(name)}`));
  return (
    <>
      <button type="button" className="bad" onClick={() => window.confirm(`Delete the group ${name}?`) && remove.mutate(undefined)}>
        Delete
      </button>
      {remove.error && <Problem error={remove.error} />}
    </>
  );
}

function NewGroup() {
  const [name, setName] = useState('');
  const [cluster, setCluster] = useState('');
  const create = useChange(
    () => api.put(`/runner-groups/${encodeURIComponent(name)}`, cluster ? { cluster } : {}),
    () => setName(''),
  );
  return (
    <Section title="New group">
      <form
        className="row wrap"
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate(undefined);
        }}
      >
        <input aria-label="Name of the group" placeholder="Name" required value={name} onChange={(event) => setName(event.target.value)} />
        <input aria-label="Cluster" placeholder="Cluster (optional)" value={cluster} onChange={(event) => setCluster(event.target.value)} />
        <button type="submit" className="good" disabled={create.isPending}>
          Create
        </button>
      </form>
      {create.error && <Problem error={create.error} />}
    </Section>
  );
}
