// Administration: tokens, tenants, secrets, webhooks, the audit log, workers, quarantined executions.
import { Link } from 'wouter';
import { useSession } from '../../api/shared';
import { Empty, Title } from '../../parts/basics';
import { Audit } from './Audit';
import { Environments } from './Environments';
import { Quarantine } from './Quarantine';
import { Secrets } from './Secrets';
import { Tenants } from './Tenants';
import { Tokens } from './Tokens';
import { Webhooks } from './Webhooks';
import { Workers } from './Workers';

const TABS = {
  tokens: ['Tokens', Tokens],
  tenants: ['Tenants', Tenants],
  secrets: ['Secrets', Secrets],
  webhooks: ['Webhooks', Webhooks],
  workers: ['Workers', Workers],
  environments: ['Environments', Environments],
  quarantine: ['Quarantine', Quarantine],
  audit: ['Audit log', Audit],
} as const;

export function Administration({ tab }: { tab: string }) {
  const session = useSession();
  const Page = TABS[tab as keyof typeof TABS]?.[1];
  if (!session.data?.permissions.includes('administer')) return <Empty title="Only owners and admins may administer a tenant." />;
  return (
    <>
      <Title title="Administration" />
      <nav className="tabs" aria-label="Parts of the administration">
        {Object.entries(TABS).map(([key, [name]]) => (
          <Link key={key} href={`/administration/${key}`} aria-current={tab === key ? 'page' : undefined}>
            {name}
          </Link>
        ))}
      </nav>
      {Page ? <Page /> : <Empty title="There is no such page." />}
    </>
  );
}
