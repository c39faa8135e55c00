// In place of a page whose object cannot be read: for a missing one, why that may be, and the way to the others.
import { Link } from 'wouter';
import { ApiError } from '../api/client';
import { useSession } from '../api/shared';
import { Empty, Problem, Title } from './basics';

interface UnavailableProps {
  /** What was to be shown, such as `execution`. */
  what: string;
  error: Error;
  retry: () => unknown;
  /** The page with all objects of the kind. */
  list: string;
}

export function Unavailable({ what, error, retry, list }: UnavailableProps) {
  const session = useSession().data;
  if (!(error instanceof ApiError) || error.status !== 404) return <Problem error={error} retry={() => void retry()} />;
  return (
    <>
      <Title title={`There is no such ${what}`} />
      <Empty title={`${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`}>
        <p>
          It may have been deleted, or it may be in another tenant{session && <>: this page shows the tenant <code>{session.tenantId}</code></>}.
        </p>
        <p className="row wrap">
          <Link href={list}>All {what}s</Link>
          <button type="button" className="quiet" onClick={() => void retry()}>
            Try again
          </button>
        </p>
      </Empty>
    </>
  );
}
