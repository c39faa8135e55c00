import { type FormEvent, useState } from 'react';
import { useTokens } from '../../api/administration';
import { api, type Schemas } from '../../api/client';
import { useChange, useSession } from '../../api/shared';
import { Empty, Problem, Result, Section, Time } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { Table } from '../../parts/Table';
import { shortId } from '../../parts/words';

type Role = Schemas['Role'];
type Token = Schemas['TokenView'];

const ROLES: Role[] = ['viewer', 'member', 'developer', 'admin', 'owner', 'worker'];

/** Only owners create and revoke tokens of owners. */
function useReach(): (role: Role) => boolean {
  const own = useSession().data?.role;
  return (role) => own === 'owner' || role !== 'owner';
}

export function Tokens() {
  const found = useTokens();
  const reaches = useReach();
  const tokens = found.data?.tokens ?? [];
  const own = useOwnSessions(tokens);
  const remark = ({ id, createdBy }: Token) => {
    if (own.includes(id)) return own.length > 1 ? 'maybe this session' : 'this session';
    return id.startsWith(SESSION) && `of ${createdBy.startsWith('user_') ? shortId(createdBy) : createdBy}`;
  };
  return (
    <>
      <NewToken />
      <Section title="Tokens">
        <Result of={found}>
          {tokens.length === 0 && <Empty title="There is no token besides that of the owner." />}
          {tokens.length > 0 && (
            <Table
              rows={tokens}
              rowKey={({ id }) => id}
              columns={[
                {
                  name: 'Name',
                  show: (token) => (
                    <>
                      {token.name} <span className="faint">{remark(token)}</span>
                    </>
                  ),
                },
                { name: 'Role', show: ({ role, roles, group }) => [role, ...(roles ?? []), group && `group ${group}`].filter(Boolean).join(', ') },
                { name: 'Id', show: ({ id }) => <code>{id}</code> },
                { name: 'Created', show: ({ createdAt }) => <Time at={createdAt} /> },
                { name: 'Last used', show: ({ lastUsedAt }) => <Time at={lastUsedAt} /> },
                { name: 'Expires', show: ({ expiresAt }) => <Time at={expiresAt} /> },
                { name: '', show: ({ id, name, role }) => reaches(role) && <Revoke id={id} name={name} isOwn={own.includes(id)} /> },
              ]}
            />
          )}
        </Result>
      </Section>
    </>
  );
}

const SESSION = 'sess_';

/** The tokens that may be the session of this page, which the server does not name. */
function useOwnSessions(tokens: readonly Token[]): string[] {
  const session = useSession().data;
  return tokens.filter(({ id, createdBy, expiresAt }) => id.startsWith(SESSION) && createdBy === session?.id && expiresAt === session.expiresAt).map(({ id }) => id);
}

function Revoke({ id, name, isOwn }: { id: string; name: string; isOwn: boolean }) {
  const revoke = useChange(() => api.remove(`/tokens/${id}`), undefined, `The token ${name} was revoked.`);
  return (
    <>
      <button type="button" className="bad" disabled={revoke.isPending} onClick={() => window.confirm(isOwn ? 'Revoke the session of this page? You are signed out at once.' : `Revoke the token ${name}? Sessions with it end at once.`) && revoke.mutate(undefined)}>
        Revoke
      </button>
      {revoke.error && <Problem error={revoke.error} />}
    </>
  );
}

function NewToken() {
  const reaches = useReach();
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('member');
  const [roles, setRoles] = useState('');
  const [group, setGroup] = useState('');
  const [days, setDays] = useState('');
  const create = useChange(() =>
    api.post<Schemas['MadeToken']>('/tokens', {
      name,
      role,
      ...(roles && { roles: roles.split(/[\s,]+/).filter(Boolean) }),
      ...(role === 'worker' && group && { group }),
      ...(days && { expiresAt: new Date(Date.now() + Number(days) * 86_400_000).toISOString() }),
    }),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(undefined);
  };
  return (
    <Section title="New token">
      <form className="form grid" onSubmit={submit}>
        <div className="field">
          <label htmlFor="token-name">Name</label>
          <input id="token-name" required value={name} onChange={(event) => setName(event.target.value)} />
        </div>
        <div className="field">
          <label htmlFor="token-role">Role</label>
          <select id="token-role" value={role} onChange={(event) => setRole(event.target.value as Role)}>
            {ROLES.filter(reaches).map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </div>
        {role === 'worker' ? (
          <div className="field">
            <label htmlFor="token-group">Group</label>
            <input id="token-group" value={group} onChange={(event) => setGroup(event.target.value)} />
          </div>
        ) : (
          <div className="field">
            <label htmlFor="token-roles">Roles for approvals</label>
            <input id="token-roles" placeholder="controller, captain" value={roles} onChange={(event) => setRoles(event.target.value)} />
          </div>
        )}
        <div className="field">
          <label htmlFor="token-days">Expires after days</label>
          <input id="token-days" type="number" min="1" placeholder="never" value={days} onChange={(event) => setDays(event.target.value)} />
        </div>
        <div>
          <button type="submit" className="good" disabled={create.isPending}>
            Create
          </button>
        </div>
      </form>
      {create.error && <Problem error={create.error} />}
      {create.data && (
        <div className="note" role="status">
          <p>
            The token of {create.data.name} is shown once: <code>{create.data.token}</code> <Copy text={create.data.token} label="Copy" />
          </p>
        </div>
      )}
    </Section>
  );
}
