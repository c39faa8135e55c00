import { useState } from 'react';
import { Link } from 'wouter';
import { useWorkflows } from '../api/queries';
import { Empty, Loading, Problem, Time } from '../parts/basics';

export function Workflows() {
  const found = useWorkflows();
  const [search, setSearch] = useState('');
  const shown = found.data?.workflows.filter(({ name }) => name.toLowerCase().includes(search.toLowerCase())) ?? [];
  return (
    <>
      <h1>Workflows</h1>
      <input type="search" aria-label="Search workflows" placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {found.data && shown.length === 0 && (
        <Empty title="No workflow matches.">
          <p>
            <code>windlass workflows register FILE</code> adds one.
          </p>
        </Empty>
      )}
      {shown.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Dialect</th>
              <th scope="col">Version</th>
              <th scope="col">Status</th>
              <th scope="col">Changed</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ id, name, dialect, version, status, updatedAt }) => (
              <tr key={id}>
                <td>
                  <Link href={`/workflows/${id}`}>{name}</Link>
                </td>
                <td>{String(dialect)}</td>
                <td>{version}</td>
                <td>{status}</td>
                <td>
                  <Time at={updatedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
