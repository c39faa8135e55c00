// Secrets by name. Values are sent to the server and never returned.
import { useState } from 'react';
import { useSecrets } from '../../api/administration';
import { api } from '../../api/client';
import { useCan, useChange } from '../../api/shared';
import { Empty, Problem, Result, Section, Time } from '../../parts/basics';
import { Table } from '../../parts/Table';

export function Secrets() {
  const found = useSecrets();
  const canChange = useCan('administer');
  const secrets = found.data?.secrets ?? [];
  return (
    <>
      {canChange && <SetSecret />}
      <Section title="Secrets">
        <Result of={found}>
          {secrets.length === 0 && (
            <Empty title="There is no secret.">
              <p>{canChange ? 'Store one above, or' : 'An admin stores one on this page, or'} with <code>windlass secrets set NAME</code>; steps use it by its name.</p>
            </Empty>
          )}
          {secrets.length > 0 && (
            <Table
              rows={secrets}
              rowKey={({ name }) => name}
              columns={[
                { name: 'Name', show: ({ name }) => <code>{name}</code> },
                { name: 'Version', isNumber: true, show: ({ version }) => version },
                { name: 'Changed', show: ({ updatedAt }) => <Time at={updatedAt} /> },
                { name: 'Warnings', isWide: true, show: ({ warnings }) => warnings?.join(' ') },
                { name: '', show: ({ name }) => canChange && <Delete name={name} /> },
              ]}
            />
          )}
        </Result>
      </Section>
    </>
  );
}

function Delete({ name }: { name: string }) {
  const remove = useChange(() => api.remove(`/secrets/${encodeURIComponent(name)}`));
  return (
    <>
      <button type="button" className="bad" onClick={() => window.confirm(`Delete the secret ${name}? Steps that use it fail.`) && remove.mutate(undefined)}>
        Delete
      </button>
      {remove.error && <Problem error={remove.error} />}
    </>
  );
}

function SetSecret() {
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const set = useChange(
    () => api.put(`/secrets/${encodeURIComponent(name)}`, { value }),
    () => {
      setName('');
      setValue('');
    },
  );
  return (
    <Section title="Set a secret">
      <form
        className="form grid"
        onSubmit={(event) => {
          event.preventDefault();
          set.mutate(undefined);
        }}
      >
        <div className="field">
          <label htmlFor="secret-name">Name</label>
          <input id="secret-name" required autoComplete="off" value={name} onChange={(event) => setName(event.target.value)} />
        </div>
        <div className="field">
          <label htmlFor="secret-value">Value</label>
          <input id="secret-value" type="password" required autoComplete="new-password" value={value} onChange={(event) => setValue(event.target.value)} />
        </div>
        <div>
          <button type="submit" className="good" disabled={set.isPending}>
            Store
          </button>
        </div>
      </form>
      {set.error && <Problem error={set.error} />}
    </Section>
  );
}
