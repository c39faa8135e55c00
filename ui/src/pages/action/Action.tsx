// One registered action: a revision of its document, and all revisions.
import { useLocation } from 'wouter';
import { api } from '../../api/client';
import { useAction, useRevisions } from '../../api/plans';
import { useCan, useChange } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Loading, More, Problem, Result, Section, Time, Title } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { Table } from '../../parts/Table';
import { FieldTable } from '../../parts/FieldTable';
import { Json } from '../../parts/Json';
import { Unavailable } from '../../parts/Unavailable';
import { Script } from '../plan/StepDetails';
import { Enabled } from './ActionRegistry';

export function Action({ name }: { name: string }) {
  const [query] = useAddress();
  const found = useAction(name, query.get('revision') ?? undefined);
  const action = found.data;
  if (!action) return found.error ? <Unavailable what="action" error={found.error} retry={found.refetch} list="/actions" /> : <Loading />;
  const { params, outputs, script, image, timeout, env, description } = action;
  const document = Object.fromEntries(Object.entries({ name: action.name, description, params, outputs, script, image, timeout, env }).filter(([, value]) => value != null));
  return (
    <>
      <Title title={action.name} actions={<Changes name={action.name} isEnabled={action.enabled} />}>
        <Enabled isOn={action.enabled} />
        <Copy text={action.id} label={action.id} />
      </Title>
      {description && <p>{description}</p>}
      <p className="faint">
        revision {action.revision} of {action.newestRevision} · changed <Time at={action.updatedAt} />
        {image && ` · image ${image}`}
        {timeout && ` · timeout ${timeout}`}
      </p>
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      <Section title="Parameters">
        <FieldTable fields={params ?? []} none="It has no parameters." />
      </Section>
      <Section title="Outputs">
        <FieldTable fields={outputs ?? []} none="It has no outputs." kind="outputs" />
      </Section>
      <Section title={`Document of revision ${action.revision}`}>
        <Script source={script} />
        <Json value={document} label="the document" />
      </Section>
      <Revisions name={action.name} shown={action.revision} />
    </>
  );
}

function Revisions({ name, shown }: { name: string; shown: number }) {
  const found = useRevisions(name);
  const [, change] = useAddress();
  return (
    <Section title="Revisions">
      <Result of={found}>
        <Table
          rows={found.data?.pages.flatMap((page) => page.items) ?? []}
          rowKey={({ revision }) => String(revision)}
          columns={[
            { name: 'Revision', isNumber: true, show: ({ revision }) => revision },
            { name: 'Stored', show: ({ createdAt }) => <Time at={createdAt} /> },
            { name: 'By', show: ({ createdBy }) => createdBy },
            {
              name: '',
              show: ({ revision }) =>
                revision === shown ? (
                  <span className="faint">shown</span>
                ) : (
                  <button type="button" className="quiet" onClick={() => change({ revision: String(revision) })}>
                    show revision {revision}
                  </button>
                ),
            },
          ]}
        />
      </Result>
      <More of={found} />
    </Section>
  );
}

function Changes({ name, isEnabled }: { name: string; isEnabled: boolean }) {
  const path = `/actions/${encodeURIComponent(name)}`;
  const [, navigate] = useLocation();
  const canEdit = useCan('edit');
  const canDelete = useCan('delete');
  const set = useChange((enabled: boolean) => api.patch(path, { enabled }));
  const remove = useChange(
    () => api.remove(path),
    () => navigate('/actions'),
  );
  const error = set.error ?? remove.error;
  return (
    <>
      {error && <Problem error={error} />}
      {canEdit && (
        <button type="button" disabled={set.isPending} onClick={() => set.mutate(!isEnabled)}>
          {isEnabled ? 'Disable' : 'Enable'}
        </button>
      )}
      {canDelete && (
        <button type="button" className="bad" onClick={() => window.confirm(`Delete the action ${name} with its revisions? Plans keep their copies.`) && remove.mutate(undefined)}>
          Delete
        </button>
      )}
    </>
  );
}
