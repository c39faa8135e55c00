// Tenants, their limits and their usage. Operators see all of them; other admins see their own.
import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useTenants } from '../../api/administration';
import { api, type ApiError, type Schemas } from '../../api/client';
import { useChange, useSession } from '../../api/shared';
import { Problem, Result, Section } from '../../parts/basics';
import { Dialog } from '../../parts/Dialog';
import { bytes } from '../../parts/words';

type Tenant = Schemas['TenantView'];

const LIMITS = {
  rateLimit: 'Requests per second',
  rateBurst: 'Requests in a burst',
  openExecutions: 'Open executions',
  slots: 'Slots of workers',
  streams: 'Open streams',
  hookRateLimit: 'Requests per second to one hook',
  storage: 'Bytes stored',
} as const;

export function Tenants() {
  const session = useSession().data;
  const isOperator = session?.operator ?? false;
  const all = useTenants(isOperator);
  const own = useQuery<Tenant, ApiError>({ queryKey: ['tenant', session?.tenantId], queryFn: () => api.get(`/tenants/${session?.tenantId}`), enabled: !isOperator && session !== undefined });
  const tenants = all.data?.tenants ?? (own.data ? [own.data] : []);
  return (
    <>
      {isOperator && <NewTenant />}
      <Result of={isOperator ? all : own}>
        {tenants.map((tenant) => (
          <One key={tenant.id} tenant={tenant} canChange={isOperator} />
        ))}
      </Result>
    </>
  );
}

function One({ tenant, canChange }: { tenant: Tenant; canChange: boolean }) {
  const [isChanging, setChanging] = useState(false);
  const { usage } = tenant;
  const share = usage.limit ? Math.min((usage.total / usage.limit) * 100, 100) : 0;
  const limits = Object.entries(LIMITS).flatMap(([key, name]) => {
    const value = tenant.limits[key as keyof typeof LIMITS];
    return value == null ? [] : [`${name}: ${value === 0 ? 'no limit' : key === 'storage' ? bytes(value) : value.toLocaleString('en')}`];
  });
  return (
    <Section
      title={tenant.name}
      aside={
        canChange && (
          <button type="button" onClick={() => setChanging(true)}>
            Change …
          </button>
        )
      }
    >
      <dl className="facts">
        <dt>Id</dt>
        <dd>
          <code>{tenant.id}</code>
        </dd>
        <dt>Programs</dt>
        <dd>{tenant.programs === 'allowed' ? 'may run programs on the server' : 'may not run programs'}</dd>
        <dt>Storage</dt>
        <dd>
          {bytes(usage.total)}
          {usage.limit ? ` of ${bytes(usage.limit)}` : ''} <span className="faint">(journals {bytes(usage.journal)}, logs {bytes(usage.logs)}, large values {bytes(usage.artifacts)})</span>
          {usage.limit ? (
            <div className="meter" role="meter" aria-label={`Storage of ${tenant.name}`} aria-valuenow={Math.round(share)} aria-valuemin={0} aria-valuemax={100}>
              <i style={{ width: `${share}%` }} />
            </div>
          ) : null}
        </dd>
        <dt>Limits</dt>
        <dd>{limits.join(' · ') || 'those of the server'}</dd>
      </dl>
      {isChanging && <Change tenant={tenant} close={() => setChanging(false)} />}
    </Section>
  );
}

function Change({ tenant, close }: { tenant: Tenant; close: () => void }) {
  const [texts, setTexts] = useState<Record<string, string>>(() => Object.fromEntries(Object.keys(LIMITS).map((key) => [key, tenant.limits[key as keyof typeof LIMITS]?.toString() ?? ''])));
  const [programs, setPrograms] = useState(tenant.programs);
  const change = useChange(() => {
    const limits = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, text === '' ? null : Number(text)]));
    return api.patch(`/tenants/${tenant.id}`, { ...limits, programs });
  }, close);
  return (
    <Dialog
      title={`Limits of ${tenant.name}`}
      close={close}
      actions={
        <button type="button" className="good" disabled={change.isPending} onClick={() => change.mutate(undefined)}>
          Save
        </button>
      }
    >
      <p className="faint">An empty field means the setting of the server, 0 means no limit.</p>
      <div className="form grid">
        {Object.entries(LIMITS).map(([key, name]) => (
          <div key={key} className="field">
            <label htmlFor={`limit-${key}`}>{name}</label>
            <input id={`limit-${key}`} type="number" min="0" value={texts[key]} onChange={(event) => setTexts({ ...texts, [key]: event.target.value })} />
          </div>
        ))}
        <div className="field">
          <label htmlFor="programs">Programs</label>
          <select id="programs" value={programs} onChange={(event) => setPrograms(event.target.value as Schemas['Programs'])}>
            <option>denied</option>
            <option>allowed</option>
          </select>
        </div>
      </div>
      {change.error && <Problem error={change.error} />}
    </Dialog>
  );
}

function NewTenant() {
  const [name, setName] = useState('');
  const create = useChange(
    () => api.post<Tenant>('/tenants', { name }),
    () => setName(''),
  );
  return (
    <Section title="New tenant">
      <form
        className="row wrap"
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate(undefined);
        }}
      >
        <input aria-label="Name of the tenant" placeholder="Name" required value={name} onChange={(event) => setName(event.target.value)} />
        <button type="submit" className="good" disabled={create.isPending}>
          Create
        </button>
      </form>
      {create.error && <Problem error={create.error} />}
    </Section>
  );
}
