// What can be done with an execution: cancel, pause, resume, retry. A retry shows first what it would run again.
import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { api, type Execution, type Schemas } from '../api/client';
import { useChange } from '../api/queries';
import { Loading, Problem } from './basics';
import { plural } from './words';

type Preview = Schemas['RetryPreview'];

export function Actions({ execution, step }: { execution: Execution; step: string | undefined }) {
  const id = execution.executionId;
  const [from, setFrom] = useState<string | null>();
  const cancel = useChange(() => api.post(`/executions/${id}/cancel`, { reason: 'cancelled on the page' }));
  const pause = useChange(() => api.post(`/executions/${id}/pause`, {}));
  const error = cancel.error ?? pause.error;
  const isOver = execution.completedAt !== undefined;
  return (
    <>
      <div className="row">
        {!isOver && execution.status !== 'paused' && (
          <button type="button" disabled={pause.isPending} onClick={() => pause.mutate(undefined)}>
            Pause
          </button>
        )}
        {!isOver && (
          <button type="button" className="bad" disabled={cancel.isPending} onClick={() => window.confirm('Cancel this execution?') && cancel.mutate(undefined)}>
            Cancel
          </button>
        )}
        {isOver && execution.status !== 'completed' && (
          <button type="button" className="good" onClick={() => setFrom(null)}>
            Retry …
          </button>
        )}
        {isOver && step && (
          <button type="button" onClick={() => setFrom(step)}>
            Run again from {step} …
          </button>
        )}
      </div>
      {error && <Problem error={error} />}
      {from !== undefined && <Retry id={id} from={from} close={() => setFrom(undefined)} />}
    </>
  );
}

function Retry({ id, from, close }: { id: string; from: string | null; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [, navigate] = useLocation();
  const body = from === null ? {} : { fromNode: from };
  const preview = useChange(() => api.post<Preview>(`/executions/${id}/retry`, { ...body, dryRun: true }));
  const retry = useChange(
    () => api.post<Schemas['Retried']>(`/executions/${id}/retry`, body),
    ({ executionId }) => navigate(`/executions/${executionId}`),
  );
  const { mutate } = preview;
  useEffect(() => {
    dialog.current?.showModal();
    mutate(undefined);
  }, [mutate]);
  const found = preview.data;
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="retry">
      <h2 id="retry">{from === null ? 'Retry' : `Run again from ${from}`}</h2>
      {preview.isPending && <Loading />}
      {preview.error && <Problem error={preview.error} />}
      {found && (
        <>
          <p>
            {plural(found.importCount, 'result is', 'results are')} kept. {plural(found.runCount, 'firing runs', 'firings run')} again
            {found.runs.some(({ sideEffects }) => sideEffects) ? ', some with effects outside:' : ':'}
          </p>
          <ul className="short">
            {found.runs.slice(0, 50).map(({ nodeId, firing, path, reason, sideEffects }) => (
              <li key={`${nodeId} ${firing} ${path.join()}`}>
                {nodeId}
                {path.map((index) => `[${index}]`)} <span className="faint">{reason.replace('_', ' ')}</span>
                {sideEffects && ' · changes something outside'}
              </li>
            ))}
          </ul>
          {found.refused.length > 0 && <Problem error={`It cannot be retried: ${found.refused.map(({ nodeId }) => nodeId).join(', ')}`} />}
        </>
      )}
      {retry.error && <Problem error={retry.error} />}
      <div className="row">
        <button type="button" className="good" disabled={!found || found.refused.length > 0 || retry.isPending} onClick={() => retry.mutate(undefined)}>
          Start
        </button>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
