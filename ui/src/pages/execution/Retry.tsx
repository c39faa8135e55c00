import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api, type ApiError, type Schemas } from '../../api/client';
import { useChange } from '../../api/shared';
import { Loading, Problem } from '../../parts/basics';
import { Dialog } from '../../parts/Dialog';
import { pathText, plural, statusName } from '../../parts/words';

type Preview = Schemas['RetryPreview'];

const SHOWN_MAX = 50;

/** Retries an execution as a new one, after a preview of what is kept and what runs again. */
interface RetryProps {
  id: string;
  /** The step that runs again with all that follow it; none: what did not complete. */
  from: string | null;
  version: number | undefined;
  close: () => void;
}

export function Retry({ id, from, version, close }: RetryProps) {
  const [, navigate] = useLocation();
  const [isLatest, setLatest] = useState(false);
  const body = { ...(from !== null && { fromNode: from }), ...(isLatest && { version: 'latest' }) };
  const preview = useQuery<Preview, ApiError>({ queryKey: ['retry', id, body], queryFn: () => api.post(`/executions/${id}/retry`, { ...body, dryRun: true }), retry: false, gcTime: 0 });
  const retry = useChange(
    () => api.post<Schemas['Retried']>(`/executions/${id}/retry`, body),
    ({ executionId }) => navigate(`/executions/${executionId}`),
    'A new execution was started.',
  );
  const found = preview.data;
  return (
    <Dialog
      title={from === null ? 'Retry' : `Run again from ${from}`}
      close={close}
      actions={
        <button type="button" className="good" disabled={!found || found.refused.length > 0 || retry.isPending} onClick={() => retry.mutate(undefined)}>
          Start
        </button>
      }
    >
      {version !== undefined && (
        <div className="field">
          <label htmlFor="retry-version">Definition</label>
          <select id="retry-version" value={isLatest ? 'latest' : 'same'} onChange={(event) => setLatest(event.target.value === 'latest')}>
            <option value="same">version {version}, as before</option>
            <option value="latest">the latest version</option>
          </select>
        </div>
      )}
      {preview.isPending && <Loading />}
      {preview.error && <Problem error={preview.error} retry={() => void preview.refetch()} />}
      {found && <PreviewList found={found} />}
      {retry.error && <Problem error={retry.error} />}
    </Dialog>
  );
}

function PreviewList({ found }: { found: Preview }) {
  return (
    <>
      <p>
        {plural(found.importCount, 'result is', 'results are')} kept. {plural(found.runCount, 'firing runs', 'firings run')} again
        {found.runs.some(({ sideEffects }) => sideEffects) ? ', some with effects outside:' : ':'}
      </p>
      <ul className="short">
        {found.runs.slice(0, SHOWN_MAX).map(({ nodeId, firing, path, reason, follows, sideEffects }) => (
          <li key={`${nodeId} ${firing} ${path.join()}`}>
            <strong>
              {nodeId}
              {pathText(path)}
            </strong>{' '}
            <span className="faint">{reason === 'follows' && follows ? `follows ${follows}` : statusName(reason)}</span>
            {sideEffects && ' · changes something outside'}
          </li>
        ))}
      </ul>
      {found.runs.length > SHOWN_MAX && <p className="faint">and {found.runs.length - SHOWN_MAX} more</p>}
      {found.refused.length > 0 && <Problem error={`It cannot be retried: ${found.refused.map(({ nodeId, message }) => `${nodeId}: ${message}`).join('; ')}`} />}
    </>
  );
}
