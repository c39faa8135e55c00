// Groups of remote workers, and the slots of the server itself.
import { useState } from 'react';
import { useGauges, useRunnerGroups } from '../../api/administration';
import { api } from '../../api/client';
import { useCan, useChange } from '../../api/shared';
import { Empty, Problem, Result, Section, Time } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { plural } from '../../parts/words';

export function Workers() {
  const found = useRunnerGroups();
  const { gauge, error } = useGauges();
  const canChange = useCan('administer');
  const groups = found.data?.groups ?? [];
  return (
    <>
      <Section title="This server">
        <p>Slots: {slotsText(gauge)}</p>
        {error && <Problem error={error} />}
      </Section>
      {canChange && <NewGroup />}
      <Section title="Groups of workers">
        <Result of={found}>
          {groups.length === 0 && (
            <Empty title="There is no group.">
              <p>Steps of a group run on workers of other machines. {canChange ? 'Create a group above' : 'An admin creates a group'}, and a token with the role worker for them.</p>
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
                { name: '', show: ({ name }) => canChange && <DeleteGroup name={name} /> },
              ]}
            />
          )}
        </Result>
      </Section>
    </>
  );
}

/** The slots of the server that answers, as far as they are known. */
export function slotsText(gauge: (name: string) => number | undefined): string {
  const [busy, slots, queue] = ['steps_in_flight', 'slots', 'queue_depth'].map(gauge);
  if (busy === undefined || slots === undefined || queue === undefined) return 'unknown';
  return `${busy} of ${slots} in use, ${plural(queue, 'step waits', 'steps wait')} for one`;
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
