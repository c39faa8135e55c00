// The controls of an execution. A retry first shows the steps that it would run again.
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api, type Execution } from '../../api/client';
import { useChange } from '../../api/shared';
import { Problem } from '../../parts/basics';
import { definitionPath } from '../../parts/definition';
import { Dialog } from '../../parts/Dialog';
import { Retry } from './Retry';

type Open = 'cancel' | 'pause' | 'patch' | { retryFrom: string | null };

interface ActionsProps {
  execution: Execution;
  /** The chosen step, if the execution has it. */
  step: string | undefined;
}

export function Actions({ execution, step }: ActionsProps) {
  const { executionId: id, workflowId, status } = execution;
  const [open, setOpen] = useState<Open>();
  const [, navigate] = useLocation();
  const close = () => setOpen(undefined);
  const isOver = execution.completedAt !== undefined;
  const isPlan = execution.dialect === 'plan';
  const isPaused = execution.waitingFor?.some(({ kind, childId }) => kind === 'pause' && !childId);
  const button = (name: string, run: () => void, tone = '') => (
    <button type="button" className={tone} onClick={run}>
      {name}
    </button>
  );
  return (
    <>
      {isOver && status !== 'completed' && button('Retry …', () => setOpen({ retryFrom: null }), 'good')}
      {isOver && step && button(`Run again from ${step} …`, () => setOpen({ retryFrom: step }))}
      {workflowId && button('Run again …', () => navigate(`${definitionPath({ id: workflowId, dialect: execution.dialect ?? null })}/start?from=${id}`))}
      {!isOver && button('Patch …', () => setOpen('patch'))}
      {!isOver && !isPaused && button('Pause …', () => setOpen('pause'))}
      {!isOver && button('Cancel …', () => setOpen('cancel'), 'bad')}
      {open === 'cancel' && <Cancel id={id} close={close} />}
      {open === 'pause' && <Pause id={id} close={close} />}
      {open === 'patch' && <Patch execution={execution} close={close} />}
      {typeof open === 'object' && <Retry id={id} from={open.retryFrom} version={isPlan ? undefined : (execution.workflowVersion ?? undefined)} close={close} />}
    </>
  );
}

function Reason({ value, change }: { value: string; change: (reason: string) => void }) {
  return (
    <div className="field">
      <label htmlFor="reason">Reason</label>
      <input id="reason" value={value} placeholder="It is recorded in the evidence" onChange={(event) => change(event.target.value)} />
    </div>
  );
}

function Cancel({ id, close }: { id: string; close: () => void }) {
  const [reason, setReason] = useState('');
  const [force, setForce] = useState(false);
  const [compensate, setCompensate] = useState(false);
  const cancel = useChange(() => api.post(`/executions/${id}/cancel`, { reason: reason || 'cancelled on the page', force, compensate }), close, 'The cancellation was requested.');
  return (
    <Dialog
      title="Cancel the execution"
      close={close}
      actions={
        <button type="button" className="bad" disabled={cancel.isPending} onClick={() => cancel.mutate(undefined)}>
          Cancel the execution
        </button>
      }
    >
      <div className="form">
        <Reason value={reason} change={setReason} />
        <label className="row">
          <input type="checkbox" checked={compensate} onChange={(event) => setCompensate(event.target.checked)} /> Undo completed steps that have a compensation
        </label>
        <label className="row">
          <input type="checkbox" checked={force} onChange={(event) => setForce(event.target.checked)} /> Kill programs at once, without time to end
        </label>
      </div>
      {cancel.error && <Problem error={cancel.error} />}
    </Dialog>
  );
}

function Pause({ id, close }: { id: string; close: () => void }) {
  const [reason, setReason] = useState('');
  const pause = useChange(() => api.post(`/executions/${id}/pause`, reason ? { reason } : {}), close, 'The pause was requested.');
  return (
    <Dialog
      title="Pause the execution"
      close={close}
      actions={
        <button type="button" className="good" disabled={pause.isPending} onClick={() => pause.mutate(undefined)}>
          Pause
        </button>
      }
    >
      <p>Running steps end; no further step begins until someone resumes it.</p>
      <Reason value={reason} change={setReason} />
      {pause.error && <Problem error={pause.error} />}
    </Dialog>
  );
}

function Patch({ execution, close }: { execution: Execution; close: () => void }) {
  const context = (execution.view as { ctx?: object } | null | undefined)?.ctx ?? {};
  const [source, setSource] = useState('{}');
  const [wrong, setWrong] = useState<string>();
  const patch = useChange((keys: unknown) => api.patch(`/executions/${execution.executionId}/context`, keys), close, 'The context was patched.');
  const send = () => {
    try {
      const keys: unknown = JSON.parse(source);
      const isObject = keys !== null && typeof keys === 'object' && !Array.isArray(keys);
      setWrong(isObject ? undefined : 'The keys are an object: {"name": "value"}');
      if (isObject) patch.mutate(keys);
    } catch (error) {
      setWrong(`This is not JSON: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  return (
    <Dialog
      title="Patch the context"
      close={close}
      actions={
        <button type="button" className="good" disabled={patch.isPending} onClick={send}>
          Patch
        </button>
      }
    >
      <p>
        Keys of this object replace those of the context; gates that read them are evaluated again. The context has the keys{' '}
        <code>{Object.keys(context).join(', ') || '(none)'}</code>.
      </p>
      <label htmlFor="patch">Keys as JSON</label>
      <textarea id="patch" rows={5} value={source} onChange={(event) => setSource(event.target.value)} />
      {wrong && <p className="bad-text">{wrong}</p>}
      {patch.error && <Problem error={patch.error} />}
    </Dialog>
  );
}
