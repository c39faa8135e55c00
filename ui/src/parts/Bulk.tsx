// Cancels or retries many executions. The dialog first counts which ones, and then reports each refusal.
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { api, type ListedExecution } from '../api/client';
import { type ExecutionFilter, readExecutions } from '../api/executions';
import { Loading, Problem } from './basics';
import { useDefinitionName } from './definition';
import { Dialog } from './Dialog';
import { plural, shortId } from './words';

/** At most this many are changed at once; the dialog says when there are more. */
const MOST = 1_000;

export type BulkKind = 'cancel' | 'retry';

const KINDS = {
  cancel: {
    title: 'Cancel executions',
    status: 'open',
    isFit: (execution: ListedExecution) => !execution.completedAt,
    send: (id: string) => api.post(`/executions/${id}/cancel`, { reason: 'cancelled on the page' }),
  },
  retry: {
    title: 'Retry executions',
    status: 'failed',
    isFit: ({ completedAt, status }: ListedExecution) => completedAt !== undefined && status !== 'completed',
    send: (id: string) => api.post(`/executions/${id}/retry`, {}),
  },
} as const;

interface Progress {
  done: number;
  refused: { id: string; reason: string }[];
}

export function Bulk({ kind, filter, chosen, close }: { kind: BulkKind; filter: ExecutionFilter; chosen: ListedExecution[] | undefined; close: () => void }) {
  const { title, status, isFit, send } = KINDS[kind];
  const client = useQueryClient();
  const [found, setFound] = useState<{ fit: ListedExecution[]; hasMore: boolean }>();
  const [error, setError] = useState<unknown>();
  const [progress, setProgress] = useState<Progress>();
  const [isOver, setOver] = useState(false);
  const read = () => {
    setError(undefined);
    const reading = chosen ? Promise.resolve({ found: chosen, hasMore: false }) : readExecutions({ ...filter, status: filter.status ?? status }, MOST);
    reading.then((read) => setFound({ fit: read.found.filter(isFit), hasMore: read.hasMore })).catch(setError);
  };
  // The preview is of the moment in which the dialog was opened.
  useEffect(read, []);
  const isStopped = useRef(false);
  const stop = () => (isStopped.current = true);
  useEffect(() => {
    isStopped.current = false;
    return () => {
      isStopped.current = true;
    };
  }, []);
  const run = async () => {
    const result: Progress = { done: 0, refused: [] };
    setProgress(result);
    for (const { executionId: id } of found?.fit ?? []) {
      if (isStopped.current) break;
      await send(id).then(
        () => (result.done += 1),
        (reason: unknown) => result.refused.push({ id, reason: reason instanceof Error ? reason.message : String(reason) }),
      );
      setProgress({ done: result.done, refused: [...result.refused] });
    }
    setOver(true);
    void client.invalidateQueries();
  };
  const count = found?.fit.length ?? 0;
  return (
    <Dialog
      title={title}
      close={close}
      stop={progress && !isOver ? stop : undefined}
      actions={
        !isOver && (
          <button type="button" className={kind === 'cancel' ? 'bad' : 'good'} disabled={count === 0 || progress !== undefined} onClick={() => void run()}>
            {kind === 'cancel' ? 'Cancel' : 'Retry'} {plural(count, 'execution')}
          </button>
        )
      }
    >
      {error !== undefined && <Problem error={error} retry={read} />}
      {!found && error === undefined && <Loading />}
      {found && <Preview kind={kind} fit={found.fit} hasMore={found.hasMore} />}
      {progress && (
        <p role="status">
          {isOver && progress.done + progress.refused.length < count && 'Stopped: '}
          {progress.done} of {count} done{progress.refused.length > 0 && `, ${progress.refused.length} refused`}
        </p>
      )}
      {progress && progress.refused.length > 0 && <Problem error={progress.refused.slice(0, 5).map(({ id, reason }) => `${shortId(id)}: ${reason}`).join('; ')} />}
    </Dialog>
  );
}

function Preview({ kind, fit, hasMore }: { kind: BulkKind; fit: readonly ListedExecution[]; hasMore: boolean }) {
  const nameOf = useDefinitionName(fit);
  const names = Map.groupBy(fit, ({ workflowName, dialect }) => (workflowName ? nameOf({ name: workflowName, dialect }) : 'without a workflow'));
  const what = kind === 'cancel' ? 'will be cancelled' : 'will be retried as new executions; what completed is kept';
  if (fit.length === 0) return <p>None of these executions can be {kind === 'cancel' ? 'cancelled: all have ended' : 'retried: none has failed'}.</p>;
  return (
    <>
      <p>
        <strong>{plural(fit.length, 'execution')}</strong> {what}
        {hasMore && `. There are more than ${MOST.toLocaleString('en')}: repeat this for the rest`}.
      </p>
      <ul className="short">
        {[...names].map(([name, executions]) => (
          <li key={name}>
            {name}: {executions.length}
          </li>
        ))}
      </ul>
    </>
  );
}
