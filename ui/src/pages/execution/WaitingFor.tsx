// What an execution waits for, with the answer in place.
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { api, type Execution, type Waiting } from '../../api/client';
import { useCan, useChange } from '../../api/shared';
import { Problem, Time } from '../../parts/basics';
import { AnswerForm } from '../../parts/TaskList';
import { pathText, text } from '../../parts/words';
import { waitingFor } from './why';

type Asking = Pick<Execution, 'executionId' | 'waitingFor' | 'view'>;

export function WaitingFor({ execution }: { execution: Asking }) {
  const waiting = execution.waitingFor ?? [];
  if (waiting.length === 0) return null;
  return (
    <div role="group" aria-label="Waiting for people">
      {waiting.map((one) => (
        <Wait key={waitKey(one)} execution={execution} waiting={one} />
      ))}
    </div>
  );
}

/** What a form is about: the text in it stays with it when another wait ends. */
export const waitKey = ({ kind, childId, nodeId, actionId, path, since }: Waiting): string => [kind, childId, actionId ?? nodeId, pathText(path), since].join(' ');

interface WaitProps {
  execution: Asking;
  waiting: Waiting;
  /** Something before the facts. */
  aside?: ReactNode;
}

export function Wait({ execution, waiting, aside }: WaitProps) {
  const answered = waiting.childId ?? execution.executionId;
  const { kind } = waiting;
  const action = waiting.actionId ?? `${waiting.nodeId ?? ''}${pathText(waiting.path)}`;
  return (
    <div className="answer">
      <strong>{kind === 'approval' ? text(waiting.message) || 'Approval' : waitingFor(waiting, execution)}</strong>
      <p className="faint">
        {aside}
        {waiting.nodeName && `${waiting.nodeName} · `}
        {waiting.approvers ? `for ${text(waiting.approvers)} · ` : ''}
        {kind === 'approval' || kind === 'manual' ? 'asked' : 'since'} <Time at={waiting.since} />
        {waiting.deadline && (
          <>
            {' · deadline '}
            <Time at={waiting.deadline} />
          </>
        )}
        {waiting.childId && (
          <>
            {' · in '}
            <Link href={`/executions/${waiting.childId}`}>a child execution</Link>
          </>
        )}
      </p>
      {(kind === 'approval' || kind === 'manual') && <AnswerForm execution={answered} action={action} kind={kind} />}
      {kind === 'pause' && <Resume execution={answered} />}
      {kind === 'gate' && <PatchContext execution={answered} keys={waiting.reads ?? []} />}
    </div>
  );
}

function Resume({ execution }: { execution: string }) {
  const resume = useChange(() => api.post(`/executions/${execution}/resume`, {}));
  if (!useCan('execute')) return null;
  return (
    <>
      <button type="button" className="good" disabled={resume.isPending} onClick={() => resume.mutate(undefined)}>
        Resume
      </button>
      {resume.error && <Problem error={resume.error} />}
    </>
  );
}

/** Sets the keys of the context that a gate reads; the gate is then evaluated again. */
function PatchContext({ execution, keys }: { execution: string; keys: readonly string[] }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const patch = useChange(() => api.patch(`/executions/${execution}/context`, Object.fromEntries(Object.entries(values).map(([key, value]) => [key, parsed(value)]))));
  if (!useCan('execute')) return null;
  return (
    <form
      className="row wrap"
      onSubmit={(event) => {
        event.preventDefault();
        patch.mutate(undefined);
      }}
    >
      {keys.map((key) => (
        <label key={key} className="row">
          <code>{key}</code>
          <input value={values[key] ?? ''} placeholder="text or JSON" onChange={(event) => setValues({ ...values, [key]: event.target.value })} />
        </label>
      ))}
      <button type="submit" className="good" disabled={patch.isPending || Object.keys(values).length === 0}>
        Set in the context
      </button>
      {patch.error && <Problem error={patch.error} />}
    </form>
  );
}

/** JSON, or else a text. */
function parsed(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
