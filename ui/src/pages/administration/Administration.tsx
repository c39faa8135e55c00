// Administration: tokens, tenants, secrets, webhooks, the audit log, workers, quarantined executions.
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Permission } from '../../api/client';
import { useSession } from '../../api/shared';
import { Empty, Title } from '../../parts/basics';
import { Needs } from '../../parts/Needs';
import { Audit } from './Audit';
import { Environments } from './Environments';
import { Quarantine } from './Quarantine';
import { Secrets } from './Secrets';
import { Tenants } from './Tenants';
import { Tokens } from './Tokens';
import { Webhooks } from './Webhooks';
import { Workers } from './Workers';

interface Tab {
  name: string;
  Page: () => ReactNode;
  /** What the server requires for everything that the tab reads. */
  needs: Permission;
}

const TABS: Record<string, Tab> = {
  tokens: { name: 'Tokens', Page: Tokens, needs: 'administer' },
  tenants: { name: 'Tenants', Page: Tenants, needs: 'administer' },
  secrets: { name: 'Secrets', Page: Secrets, needs: 'edit' },
  webhooks: { name: 'Webhooks', Page: Webhooks, needs: 'view' },
  workers: { name: 'Workers', Page: Workers, needs: 'view' },
  environments: { name: 'Environments', Page: Environments, needs: 'view' },
  quarantine: { name: 'Quarantine', Page: Quarantine, needs: 'administer' },
  audit: { name: 'Audit log', Page: Audit, needs: 'administer' },
};

/** Without a tab, the first one that the user may read. */
export function Administration({ tab }: { tab: string | undefined }) {
  const permissions = useSession().data?.permissions ?? [];
  const offered = Object.keys(TABS).filter((key) => permissions.includes(TABS[key]?.needs ?? 'administer'));
  const shown = tab ?? offered[0] ?? '';
  const found = TABS[shown];
  return (
    <>
      <Title title="Administration" />
      <nav className="tabs" aria-label="Parts of the administration">
        {offered.map((key) => (
          <Link key={key} href={`/administration/${key}`} aria-current={shown === key ? 'page' : undefined}>
            {TABS[key]?.name}
          </Link>
        ))}
      </nav>
      {found ? (
        <Needs permission={found.needs} what="read this part of the administration">
          <found.Page />
        </Needs>
      ) : (
        <Empty title="There is no such page." />
      )}
    </>
  );
}
