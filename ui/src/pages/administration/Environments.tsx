// Clusters, sandboxes and route groups: the targets that steps of plans wait for.
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, type ApiError, type Schemas } from '../../api/client';
import { LIVE_MS, useCan, useChange } from '../../api/shared';
import { Empty, Problem, Result, Section, StatusMark, Time } from '../../parts/basics';
import { Table } from '../../parts/Table';

const KINDS = { clusters: 'Clusters', sandboxes: 'Sandboxes', 'route-groups': 'Route groups' } as const;
type Kind = keyof typeof KINDS;

/** A cluster has no route. */
type Target = Schemas['ClusterView'] & Partial<Schemas['RoutingTargetView']>;

export function Environments() {
  return (
    <>
      {useCan('edit') && <NewTarget />}
      {(Object.keys(KINDS) as Kind[]).map((kind) => (
        <Targets key={kind} kind={kind} />
      ))}
    </>
  );
}

function Targets({ kind }: { kind: Kind }) {
  const found = useQuery<{ items: Target[] }, ApiError>({ queryKey: [kind], queryFn: () => api.get(`/${kind}`, { limit: 100 }), refetchInterval: LIVE_MS });
  const targets = found.data?.items ?? [];
  return (
    <Section title={KINDS[kind]}>
      <Result of={found}>
        {targets.length === 0 && <Empty title="None is registered." />}
        {targets.length > 0 && (
          <Table
            rows={targets}
            rowKey={({ name }) => name}
            columns={[
              { name: 'Name', show: ({ name }) => name },
              { name: 'State', show: ({ ready }) => <StatusMark status={ready ? 'completed' : 'waiting'} text={ready ? 'ready' : 'not ready'} /> },
              { name: 'Cluster', show: ({ cluster }) => cluster },
              { name: 'Key', show: ({ routingKey }) => routingKey && <code>{routingKey}</code> },
              { name: 'Reason', isWide: true, show: ({ reason }) => reason },
              { name: 'Changed', show: ({ updatedAt }) => <Time at={updatedAt} /> },
              { name: '', show: (target) => <Changes kind={kind} target={target} /> },
            ]}
          />
        )}
      </Result>
    </Section>
  );
}

function Changes({ kind, target }: { kind: Kind; target: Target }) {
  const path = `/${kind}/${encodeURIComponent(target.name)}`;
  const { name, cluster, routingKey, readyUrl } = target;
  const kept = kind === 'clusters' ? {} : { ...(cluster && { cluster }), ...(routingKey && { routingKey }), ...(readyUrl && { readyUrl }) };
  const canEdit = useCan('edit');
  const canDelete = useCan('delete');
  const change = useChange(() => api.put(path, { ...kept, ready: !target.ready }));
  const remove = useChange(() => api.remove(path));
  const error = change.error ?? remove.error;
  return (
    <span className="row">
      {canEdit && !readyUrl && (
        <button type="button" disabled={change.isPending} onClick={() => change.mutate(undefined)}>
          Set {target.ready ? 'not ready' : 'ready'}
        </button>
      )}
      {canDelete && !(kind === 'clusters' && name === 'local') && (
        <button type="button" className="bad" onClick={() => window.confirm(`Delete ${name}?`) && remove.mutate(undefined)}>
          Delete
        </button>
      )}
      {error && <Problem error={error} />}
    </span>
  );
}

function NewTarget() {
  const [kind, setKind] = useState<Kind>('sandboxes');
  const [name, setName] = useState('');
  const [cluster, setCluster] = useState('');
  const [readyUrl, setReadyUrl] = useState('');
  const register = useChange(
    () => api.put(`/${kind}/${encodeURIComponent(name)}`, kind === 'clusters' ? {} : { ...(cluster && { cluster }), ...(readyUrl && { readyUrl }) }),
    () => setName(''),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    register.mutate(undefined);
  };
  return (
    <Section title="Register">
      <form className="row wrap" onSubmit={submit}>
        <select aria-label="Kind" value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
          {Object.entries(KINDS).map(([key, plural]) => (
            <option key={key} value={key}>
              {plural}
            </option>
          ))}
        </select>
        <input aria-label="Name of the target" placeholder="Name" required value={name} onChange={(event) => setName(event.target.value)} />
        {kind !== 'clusters' && (
          <>
            <input aria-label="Cluster of the target" placeholder="Cluster (optional)" value={cluster} onChange={(event) => setCluster(event.target.value)} />
            <input aria-label="URL that says when it is ready" type="url" placeholder="URL to poll (optional)" value={readyUrl} onChange={(event) => setReadyUrl(event.target.value)} />
          </>
        )}
        <button type="submit" className="good" disabled={register.isPending}>
          Register
        </button>
      </form>
      {register.error && <Problem error={register.error} />}
    </Section>
  );
}
