// Runs the occurrences of a time in the past, after a preview of which ones.
import { useState } from 'react';
import { api, type Schemas } from '../../api/client';
import { useChange } from '../../api/shared';
import { Problem } from '../../parts/basics';
import { Dialog } from '../../parts/Dialog';
import { exact, localTime, plural } from '../../parts/words';

type Backfilled = Schemas['Backfilled'];

const DAY_MS = 86_400_000;
const SHOWN_MAX = 50;

export function Backfill({ id, close }: { id: string; close: () => void }) {
  const [from, setFrom] = useState(localTime(Date.now() - DAY_MS));
  const [to, setTo] = useState(localTime(Date.now() - 60_000));
  const send = (dry_run: boolean) => api.post<Backfilled>(`/schedules/${id}/backfill`, { from: new Date(from).toISOString(), to: new Date(to).toISOString(), dry_run });
  const preview = useChange(() => send(true));
  const run = useChange(() => send(false));
  const error = preview.error ?? run.error;
  const found = preview.data?.occurrences;
  const change = (set: (text: string) => void) => (event: { target: { value: string } }) => {
    set(event.target.value);
    preview.reset();
    run.reset();
  };
  return (
    <Dialog
      title="Backfill"
      close={close}
      actions={
        <>
          <button type="button" disabled={!from || !to || preview.isPending} onClick={() => preview.mutate(undefined)}>
            Preview
          </button>
          {found && !run.data && (
            <button type="button" className="good" disabled={found.length === 0 || run.isPending} onClick={() => run.mutate(undefined)}>
              Run {plural(found.length, 'occurrence')}
            </button>
          )}
        </>
      }
    >
      <p>Occurrences of this time that did not run, or were skipped, run now. Those that ran are left out.</p>
      <div className="form grid">
        <div className="field">
          <label htmlFor="backfill-from">From</label>
          <input id="backfill-from" type="datetime-local" value={from} onChange={change(setFrom)} />
        </div>
        <div className="field">
          <label htmlFor="backfill-to">To</label>
          <input id="backfill-to" type="datetime-local" value={to} onChange={change(setTo)} />
        </div>
      </div>
      {error && <Problem error={error} />}
      {found && (
        <div role="status">
          <p>{found.length === 0 ? 'No occurrence of this time is missing.' : `${plural(found.length, 'occurrence')} would run:`}</p>
          <ul className="short">
            {found.slice(0, SHOWN_MAX).map((at) => (
              <li key={at}>{exact(at)}</li>
            ))}
          </ul>
          {found.length > SHOWN_MAX && <p className="faint">and {found.length - SHOWN_MAX} more</p>}
          {run.data && <p>{plural(run.data.created, 'run was', 'runs were')} created.</p>}
        </div>
      )}
    </Dialog>
  );
}
