// What an execution waits for, with the answer in place.
import { type ReactNode, useId, useState } from 'react';
import { Link } from 'wouter';
import { api, type Execution, type Schemas, type Waiting } from '../../api/client';
import { useExecutionStatus } from '../../api/executions';
import { useCan, useChange, useSession } from '../../api/shared';
import { Problem, Time } from '../../parts/basics';
import { AnswerForm } from '../../parts/TaskList';
import { pathText, text, withoutColours } from '../../parts/words';
import { waitingFor } from './why';

type Asking = Pick<Execution, 'executionId' | 'waitingFor' | 'view'>;

export function WaitingFor({ execution }: { execution: Asking }) {
  const waiting = execution.waitingFor ?? [];
  if (waiting.length === 0) return null;
  return (
    <div role="group" aria-label="Waiting for people">
      {withKeys(waiting).map(([key, one]) => (
        <Wait key={key} execution={execution} waiting={one} />
      ))}
    </div>
  );
}

/** The waits with what their forms are about: a text in a form stays with it when another wait ends. Several tokens may wait at one gate since the same
 * time; their number distinguishes them. */
export function withKeys(waits: readonly Waiting[]): [string, Waiting][] {
  const counts = new Map<string, number>();
  return waits.map((wait) => {
    const { kind, childId, nodeId, actionId, path, since } = wait;
    const key = [kind, childId, actionId ?? nodeId, pathText(path), since].join(' ');
    const number = (counts.get(key) ?? 0) + 1;
    counts.set(key, number);
    return [`${key} ${number}`, wait];
  });
}

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
  const title = useId();
  const { approvers } = waiting;
  const named = Array.isArray(approvers) ? approvers.map(text).join(', ') : text(approvers);
  const facts = [waiting.nodeName, named && `for ${named}`].filter(Boolean).join(' · ');
  return (
    <div className="answer" role="group" aria-labelledby={title}>
      <strong id={title}>{kind === 'approval' ? withoutColours(text(waiting.message)) || 'Approval' : waitingFor(waiting, execution)}</strong>
      <p className="faint">
        {aside}
        {facts}
        {/* The time at which a child began to wait is known in the child only. */}
        {waiting.since && (
          <>
            {facts && ' · '}
            {kind === 'approval' || kind === 'manual' ? 'asked' : 'since'} <Time at={waiting.since} />
          </>
        )}
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
      {(kind === 'approval' || kind === 'manual') && <Answer execution={answered} action={action} kind={kind} waiting={waiting} />}
      {kind === 'pause' && <Resume execution={answered} />}
      {kind === 'gate' && <PatchContext execution={answered} gate={waiting} />}
    </div>
  );
}

interface AnswerProps {
  execution: string;
  action: string;
  kind: 'approval' | 'manual';
  waiting: Waiting;
}

/** The form for those who may answer: they get the token of the task. The token of a long question in a child is in the view of the child. */
function Answer({ execution, action, kind, waiting }: AnswerProps) {
  const { childId, completionToken, approvers } = waiting;
  const session = useSession().data;
  const canRun = useCan('execute');
  const child = useExecutionStatus(execution, canRun && childId !== undefined && completionToken === undefined).data;
  const own = completionToken ? waiting : child?.waitingFor?.find((one) => one.actionId === action);
  const isNamed = Array.isArray(approvers) && session !== undefined && [session.id, session.role, ...session.roles].some((name) => approvers.includes(name));
  if (canRun && (own?.completionToken || isNamed)) return <AnswerForm execution={execution} action={action} kind={kind} />;
  return null;
}

function Resume({ execution }: { execution: string }) {
  const resume = useChange(() => api.post(`/executions/${execution}/resume`, {}), undefined, 'Resumed.');
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

/** Whether an execution still waits at a gate; undefined if that is not known. */
const isClosed = (execution: string, gate: Waiting): Promise<boolean | undefined> =>
  api.get<Schemas['Standing']>(`/executions/${execution}/status`).then(
    ({ waitingFor }) => waitingFor?.some(({ kind, nodeId, childId }) => kind === 'gate' && nodeId === gate.nodeId && !childId) ?? false,
    () => undefined,
  );

/** Sets the keys of the context that a gate reads; the gate is then evaluated again. */
function PatchContext({ execution, gate }: { execution: string; gate: Waiting }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const patch = useChange(
    async () => {
      await api.patch(`/executions/${execution}/context`, Object.fromEntries(Object.entries(values).map(([key, value]) => [key, parsed(value)])));
      return isClosed(execution, gate);
    },
    undefined,
    (_, isStillClosed) => (isStillClosed ? 'Set in the context; the gate is still closed.' : 'Set in the context.'),
  );
  if (!useCan('execute')) return null;
  return (
    <form
      className="row wrap"
      onSubmit={(event) => {
        event.preventDefault();
        patch.mutate(undefined);
      }}
    >
      {(gate.reads ?? []).map((key) => (
        <label key={key} className="row">
          <code>{key}</code>
          <input value={values[key] ?? ''} placeholder="text or JSON" onChange={(event) => setValues({ ...values, [key]: event.target.value })} />
        </label>
      ))}
      <button type="submit" className="good" disabled={patch.isPending || Object.keys(values).length === 0}>
        Set in the context
      </button>
      {patch.data && <p className="note">The gate is still closed.</p>}
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
