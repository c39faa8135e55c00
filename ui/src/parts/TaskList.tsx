// Approvals and manual steps that wait for a person, each answered in place.
import { useId, useState } from 'react';
import { Link } from 'wouter';
import { api, type Schemas, type Task } from '../api/client';
import { useCan, useChange, useSession } from '../api/shared';
import { Problem, Time } from './basics';
import { text, withoutColours } from './words';

export function TaskList({ tasks }: { tasks: readonly Task[] }) {
  return (
    <>
      {tasks.map((task) => (
        <TaskForm key={`${task.executionId} ${task.actionId}`} task={task} />
      ))}
    </>
  );
}

function TaskForm({ task }: { task: Task }) {
  const title = useId();
  const action = task.actionId ?? '';
  return (
    <div className="answer" role="group" aria-labelledby={title}>
      <strong id={title}>{withoutColours(text(task.message)) || (task.kind === 'approval' ? 'Approval' : `Complete ${action}`)}</strong>
      <p className="faint">
        <Link href={`/executions/${task.executionId}`} data-row>
          {task.workflowName ?? 'execution'}
        </Link>
        {' · '}
        {action}
        {task.approvers.length > 0 && ` · for ${task.approvers.join(', ')}`}
        {' · asked '}
        <Time at={task.since} />
        {task.deadline && (
          <>
            {' · deadline '}
            <Time at={task.deadline} />
          </>
        )}
      </p>
      <AnswerForm execution={task.executionId} action={action} kind={task.kind === 'manual' ? 'manual' : 'approval'} />
    </div>
  );
}

const RESULTS: Record<string, string> = { 'approval Succeeded': 'Approved.', 'approval Failed': 'Rejected.', 'manual Succeeded': 'Completed.', 'manual Failed': 'Recorded as failed.' };

type Completed = Schemas['Completed'];
type Approvals = NonNullable<Completed['approvals']>;

/** An answer that is not the last one that the step needs. */
const countedText = ({ given, needed }: Approvals): string =>
  `Counted: ${given} of ${needed}; ${needed - given > 1 ? `${needed - given} other people have` : 'another person has'} to answer.`;

/** The completion token of a manual step is in the view of its execution only. */
async function readToken(execution: string, action: string): Promise<string | undefined> {
  const { waitingFor } = await api.get<{ waitingFor?: { actionId?: string; completionToken?: string }[] }>(`/executions/${execution}/status`);
  return waitingFor?.find(({ actionId }) => actionId === action)?.completionToken;
}

/** Answers an approval, or completes a manual step with the whole completion signal. */
export function AnswerForm({ execution, action, kind }: { execution: string; action: string; kind: 'approval' | 'manual' }) {
  const [notes, setNotes] = useState('');
  const [references, setReferences] = useState('');
  const session = useSession();
  const canAnswer = useCan('execute');
  const [counted, setCounted] = useState<Approvals>();
  const count = ({ approvals }: Completed) => {
    if (!approvals) return;
    setCounted(approvals);
    setNotes('');
    setReferences('');
  };
  const complete = useChange(async (outcome: string) => {
    const completionToken = kind === 'manual' ? await readToken(execution, action) : undefined;
    const evidenceRefs = references.split(/[\s,]+/).filter(Boolean);
    return api.post<Completed>(`/executions/${execution}/actions/${encodeURIComponent(action)}/complete`, {
      outcome,
      ...(notes && { notes }),
      ...(evidenceRefs.length > 0 && { evidenceRefs }),
      ...(completionToken && {
        schemaVersion: 1,
        runId: execution,
        actionId: action,
        completionToken,
        actorUserId: session.data?.id,
        completedAtIso: new Date().toISOString(),
      }),
    });
  }, count, (outcome, { approvals }) => (approvals ? countedText(approvals) : (RESULTS[`${kind} ${outcome}`] ?? 'Answered.')));
  if (!canAnswer) return null;
  const isApproval = kind === 'approval';
  if (counted) return <p className="note">{countedText(counted)}</p>;
  return (
    <>
      <div className="row wrap">
        <input aria-label="Notes" placeholder="Notes (optional)" maxLength={10_000} value={notes} onChange={(event) => setNotes(event.target.value)} />
        {!isApproval && (
          <input aria-label="References of evidence" placeholder="References, such as doc-7" value={references} onChange={(event) => setReferences(event.target.value)} />
        )}
        <button type="button" className="good" disabled={complete.isPending} onClick={() => complete.mutate('Succeeded')}>
          {isApproval ? 'Approve' : 'Complete'}
        </button>
        <button type="button" className="bad" disabled={complete.isPending} onClick={() => complete.mutate('Failed')}>
          {isApproval ? 'Reject' : 'Fail'}
        </button>
      </div>
      {complete.error && <Problem error={complete.error} />}
    </>
  );
}
