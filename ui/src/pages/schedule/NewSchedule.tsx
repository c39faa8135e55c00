// Creates or changes a schedule as its document.
import { useLocation } from 'wouter';
import { api } from '../../api/client';
import { type Schedule, useSchedule } from '../../api/schedules';
import { useChange } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Loading, Problem, Section, Title } from '../../parts/basics';
import { Unsaved, useDraft } from '../../parts/drafts';

const EXAMPLE = `name: nightly-report
timezone: ${Intl.DateTimeFormat().resolvedOptions().timeZone}
schedule: {kind: cron, expr: "0 6 * * MON-FRI"}
target: {kind: workflow, workflow_id: NAME, input: {}}
policy: {overlap: forbid, misfire: run_once_if_late}
retry: {max_attempts: 3}
`;

export function NewSchedule() {
  const from = useAddress()[0].get('from');
  return from ? <Change id={from} /> : <ScheduleForm title="New schedule" source={EXAMPLE} name="new schedule" save={(source) => api.postText('/schedules', source)} />;
}

function Change({ id }: { id: string }) {
  const found = useSchedule(id);
  if (!found.data) return found.error ? <Problem error={found.error} retry={() => void found.refetch()} /> : <Loading />;
  const { id: _, revision, paused_at: _paused, next_run_at: _next, last_run_at: _last, created_at: _created, updated_at: _updated, ...document } = found.data;
  return (
    <ScheduleForm
      title={`Change ${found.data.name}`}
      source={JSON.stringify(document, null, 2)}
      version={revision}
      name={`schedule ${id}`}
      save={(source, version) => api.putText(`/schedules/${id}`, source, { 'If-Match': `"${version}"` })}
    />
  );
}

interface FormProps {
  title: string;
  source: string;
  /** The revision of the source, if it is stored. */
  version?: number;
  /** Name of the draft. */
  name: string;
  save: (source: string, version: number | undefined) => Promise<Schedule>;
}

function ScheduleForm({ title, source, version, name, save }: FormProps) {
  // A draft keeps the revision that it began with: another user may save one meanwhile.
  const draft = useDraft(name, { source, ...(version !== undefined && { version }) });
  const base = draft.base.version;
  const isStale = version !== undefined && version > (base ?? 0);
  const [, navigate] = useLocation();
  const change = useChange((text: string) => save(text, base), ({ id }) => {
    draft.drop();
    navigate(`/schedules/${id}`);
  });
  return (
    <>
      <Title title={title} />
      {isStale && (
        <div className="note">
          The schedule was changed meanwhile.{' '}
          <button type="button" onClick={draft.load}>
            Load it
          </button>
        </div>
      )}
      <Section title="Definition" aside={<Unsaved draft={draft} />}>
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault();
            change.mutate(draft.text);
          }}
        >
          <div className="field">
            <label htmlFor="schedule">YAML or JSON</label>
            <textarea id="schedule" rows={16} spellCheck={false} value={draft.text} onChange={(event) => draft.change(event.target.value)} />
            <span className="faint">
              A cron expression has five fields, or six with seconds in front. The target starts a workflow by its name, sends a request (<code>http</code>) or runs a program (
              <code>shell</code>).
            </span>
          </div>
          <div>
            <button type="submit" className="good" disabled={change.isPending}>
              Save
            </button>
          </div>
        </form>
        {change.error && <Problem error={change.error} />}
      </Section>
    </>
  );
}
