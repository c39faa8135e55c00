// What an execution waits for, with the answer in place.
import { useState } from 'react';
import { Link } from 'wouter';
import { api, type Execution, type Waiting } from '../api/client';
import { useChange, useSession } from '../api/queries';
import { Problem, Time } from './basics';
import { text, waitingFor } from './why';

export function Answers({ execution, canAnswer }: { execution: Execution; canAnswer: boolean }) {
  const waiting = execution.waitingFor ?? [];
  if (waiting.length === 0) return null;
  return (
    <section aria-label="Waiting for people">
      {waiting.map((one, place) => (
        <Answer key={`${one.nodeId}${one.path?.join()}${place}`} execution={one.childId ?? execution.executionId} waiting={one} canAnswer={canAnswer} />
      ))}
    </section>
  );
}

/** A manual step ends by the whole completion signal; an approval needs the answer only. */
const signal = (runId: string, actionId: string, completionToken: string, actorUserId: string | undefined) => ({
  schemaVersion: 1,
  runId,
  actionId,
  completionToken,
  actorUserId,
  completedAtIso: new Date().toISOString(),
});

function Answer({ execution, waiting, canAnswer }: { execution: string; waiting: Waiting; canAnswer: boolean }) {
  const [notes, setNotes] = useState('');
  const session = useSession();
  const action = waiting.actionId ?? `${waiting.nodeId ?? ''}${(waiting.path ?? []).map((index) => `[${index}]`).join('')}`;
  const complete = useChange((outcome: string) => {
    const answer = { outcome, ...(notes && { notes }) };
    return api.post(`/executions/${execution}/actions/${encodeURIComponent(action)}/complete`, {
      ...answer,
      ...(waiting.completionToken && signal(execution, action, waiting.completionToken, session.data?.id)),
    });
  });
  const resume = useChange(() => api.post(`/executions/${execution}/resume`, {}));
  const isQuestion = waiting.kind === 'approval' || waiting.kind === 'manual';
  return (
    <div className="answer">
      <strong>{waiting.kind === 'approval' ? text(waiting.message) || 'Approval' : waitingFor(waiting)}</strong>
      <p className="faint">
        {waiting.nodeName && `${waiting.nodeName} · `}
        {waiting.approvers ? `for ${text(waiting.approvers)} · ` : ''}
        waits since <Time at={waiting.since} />
        {waiting.deadline && (
          <>
            {' '}
            · deadline <Time at={waiting.deadline} />
          </>
        )}
        {waiting.childId && (
          <>
            {' '}
            · in <Link href={`/executions/${waiting.childId}`}>a child execution</Link>
          </>
        )}
      </p>
      {isQuestion && canAnswer && (
        <div className="row">
          <input aria-label="Notes" placeholder="Notes (optional)" value={notes} onChange={(event) => setNotes(event.target.value)} />
          <button type="button" className="good" disabled={complete.isPending} onClick={() => complete.mutate('Succeeded')}>
            {waiting.kind === 'approval' ? 'Approve' : 'Complete'}
          </button>
          <button type="button" className="bad" disabled={complete.isPending} onClick={() => complete.mutate('Failed')}>
            {waiting.kind === 'approval' ? 'Reject' : 'Fail'}
          </button>
        </div>
      )}
      {waiting.kind === 'pause' && canAnswer && (
        <button type="button" disabled={resume.isPending} onClick={() => resume.mutate(undefined)}>
          Resume
        </button>
      )}
      {complete.error && <Problem error={complete.error} />}
      {resume.error && <Problem error={resume.error} />}
    </div>
  );
}
