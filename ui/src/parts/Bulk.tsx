// Cancels or retries many executions. The dialog first counts which ones, and then reports each refusal.
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { api, type ListedExecution } from '../api/client';
import { type ExecutionFilter, type Selection, selectExecutions } from '../api/executions';
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
    // A retry is a new execution: the retried one stays as it was, and another retry would run its steps once more.
    isFit: ({ completedAt, status, retriedBy }: ListedExecution) => completedAt !== undefined && status !== 'completed' && !retriedBy,
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
  const [found, setFound] = useState<Selection>();
  const [error, setError] = useState<unknown>();
  const [progress, setProgress] = useState<Progress>();
  const [isOver, setOver] = useState(false);
  const place = useRef<string>(undefined);
  const read = (from?: string) => {
    place.current = from;
    setError(undefined);
    const reading = chosen
      ? Promise.resolve({ fit: chosen.filter(isFit), others: chosen.filter((one) => !isFit(one)) })
      : selectExecutions({ ...filter, status: filter.status ?? status }, isFit, MOST, from);
    reading.then(setFound).catch(setError);
  };
  // The preview is of the moment in which the dialog was opened.
  useEffect(() => read(), []);
  const count = found?.fit.length ?? 0;
  const isDone = isOver && progress !== undefined && progress.done + progress.refused.length === count;
  // What a stop left is not in the rest: the dialog selects it again when it is opened again.
  const rest = isDone || count === 0 ? found?.rest : undefined;
  const continueWithRest = () => {
    setFound(undefined);
    setProgress(undefined);
    setOver(false);
    read(rest);
  };
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
  return (
    <Dialog
      title={title}
      close={close}
      stop={progress && !isOver ? stop : undefined}
      actions={
        rest ? (
          <button type="button" onClick={continueWithRest}>
            Continue with the rest …
          </button>
        ) : isOver ? undefined : (
          <button type="button" className={kind === 'cancel' ? 'bad' : 'good'} disabled={count === 0 || progress !== undefined} onClick={() => void run()}>
            {kind === 'cancel' ? 'Cancel' : 'Retry'} {plural(count, 'execution')}
          </button>
        )
      }
    >
      {error !== undefined && <Problem error={error} retry={() => read(place.current)} />}
      {!found && error === undefined && <Loading />}
      {found && <Preview kind={kind} found={found} />}
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

function Preview({ kind, found: { fit, others, rest } }: { kind: BulkKind; found: Selection }) {
  const retried = kind === 'retry' ? others.filter(({ retriedBy }) => retriedBy).length : 0;
  const nameOf = useDefinitionName(fit);
  const names = Map.groupBy(fit, ({ workflowName, dialect }) => (workflowName ? nameOf({ name: workflowName, dialect }) : 'without a workflow'));
  const what = kind === 'cancel' ? 'will be cancelled' : 'will be retried as new executions; what completed is kept';
  const skipped = retried > 0 && <p>{plural(retried, 'execution was', 'executions were')} skipped: each has a retry already.</p>;
  if (fit.length === 0)
    return (
      <>
        <p>None of these executions can be {kind === 'cancel' ? 'cancelled: all have ended' : `retried: none has failed${retried > 0 ? ' and has no retry' : ''}`}.</p>
        {skipped}
      </>
    );
  return (
    <>
      <p>
        <strong>{plural(fit.length, 'execution')}</strong> {what}
        {rest && `. There are more than these: the dialog continues with the rest`}.
      </p>
      {skipped}
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
