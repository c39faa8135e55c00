import type { ReactNode } from 'react';
import type { Permission } from '../api/client';
import { useSession } from '../api/shared';
import { Empty } from './basics';

interface NeedsProps {
  permission: Permission;
  /** What the permission is for, after "may not". */
  what: string;
  children: ReactNode;
}

/** A form for those who may send it. Others come to it by a link. */
export function Needs({ permission, what, children }: NeedsProps) {
  const session = useSession().data;
  if (session?.permissions.includes(permission)) return children;
  return (
    <Empty title={`The role ${session?.role ?? ''} may not ${what}.`}>
      <p>An owner or an admin of the tenant can create a token with another role.</p>
    </Empty>
  );
}
