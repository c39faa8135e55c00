// Deliveries of webhooks, sent again on request; the secret that signs them.
import { useState } from 'react';
import { Link } from 'wouter';
import { useDeliveries } from '../../api/administration';
import { api, type Schemas } from '../../api/client';
import { useCan, useChange } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Empty, More, Problem, Result, Section, StatusMark, Time } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { Table } from '../../parts/Table';
import { shortId, statusName } from '../../parts/words';

const STATUSES = ['pending', 'delivered', 'given_up'];

export function Webhooks() {
  const [query, change] = useAddress();
  const found = useDeliveries(query.get('status') ?? undefined);
  const canRun = useCan('execute');
  const canAdminister = useCan('administer');
  const deliveries = found.data?.pages.flatMap((page) => page.deliveries) ?? [];
  return (
    <>
      {canAdminister && <SigningSecret />}
      <Section
        title="Deliveries"
        aside={
          <label className="row">
            Status
            <select value={query.get('status') ?? ''} onChange={(event) => change({ status: event.target.value })}>
              <option value="">any</option>
              {STATUSES.map((status) => (
                <option key={status} value={status}>
                  {statusName(status)}
                </option>
              ))}
            </select>
          </label>
        }
      >
        <Result of={found}>
          {deliveries.length === 0 && (
            <Empty title="There is no delivery.">
              <p>
                Start an execution with the option <code>webhookUrl</code>: its events are sent there.
              </p>
            </Empty>
          )}
          {deliveries.length > 0 && (
            <Table
              rows={deliveries}
              rowKey={({ id }) => id}
              columns={[
                { name: 'Status', show: ({ status }) => <StatusMark status={status} /> },
                { name: 'Event', show: ({ event }) => event },
                { name: 'To', isWide: true, show: ({ url }) => url },
                { name: 'Execution', show: ({ executionId }) => <Link href={`/executions/${executionId}`}>{shortId(executionId)}</Link> },
                { name: 'Attempts', isNumber: true, show: ({ attempts }) => attempts },
                { name: 'Answer', isWide: true, show: ({ responseStatus, error }) => error ?? responseStatus },
                { name: 'Changed', show: ({ updatedAt }) => <Time at={updatedAt} /> },
                { name: '', show: ({ id }) => canRun && <Redeliver id={id} /> },
              ]}
            />
          )}
        </Result>
        <More of={found} />
      </Section>
    </>
  );
}

function Redeliver({ id }: { id: string }) {
  const redeliver = useChange(() => api.post(`/webhook-deliveries/${id}/redeliver`, {}));
  return (
    <>
      <button type="button" disabled={redeliver.isPending} onClick={() => redeliver.mutate(undefined)}>
        Send again
      </button>
      {redeliver.error && <Problem error={redeliver.error} />}
    </>
  );
}

/** The secret is read on request only: each read is in the audit log. */
function SigningSecret() {
  const [shown, setShown] = useState<string>();
  const show = ({ secret }: Schemas['WebhookSecretView']) => setShown(secret);
  const read = useChange(() => api.get<Schemas['WebhookSecretView']>('/webhook-secret'), show);
  const rotate = useChange(() => api.post<Schemas['WebhookSecretView']>('/webhook-secret/rotate', {}), show);
  const error = read.error ?? rotate.error;
  return (
    <Section title="Signing secret">
      <div className="row wrap">
        {shown === undefined ? (
          <button type="button" disabled={read.isPending} onClick={() => read.mutate(undefined)}>
            Show
          </button>
        ) : (
          <button type="button" onClick={() => setShown(undefined)}>
            Hide
          </button>
        )}
        <button type="button" className="bad" onClick={() => window.confirm('Create a new signing secret? For one day webhooks are signed with both.') && rotate.mutate(undefined)}>
          Rotate
        </button>
        {shown !== undefined && (
          <>
            <code>{shown}</code>
            <Copy text={shown} label="Copy" />
          </>
        )}
      </div>
      {error && <Problem error={error} />}
    </Section>
  );
}
