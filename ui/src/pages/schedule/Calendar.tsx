// Past occurrences by day: a mark for each, and the reason of the chosen one.
import { Link } from 'wouter';
import type { Schemas } from '../../api/client';
import { useAddress } from '../../parts/address';
import { Empty, shapeOf, StatusMark, Time } from '../../parts/basics';
import { exact, statusName, withLocalTimes, withoutColours } from '../../parts/words';

type Past = Schemas['PastOccurrence'];

const DAY = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });

const reasonOf = ({ reason }: Past): string => withLocalTimes(withoutColours(reason));

export function Calendar({ past, hasOlder }: { past: readonly Past[]; hasOlder: boolean }) {
  const [query, change] = useAddress();
  const chosen = query.get('occurrence');
  if (past.length === 0) return <Empty title="There was no occurrence yet. “Trigger …” starts a run now." />;
  const days = [...Map.groupBy(past, ({ nominal_time }) => new Date(nominal_time).toDateString())];
  const found = past.find(({ occurrence_key }) => occurrence_key === chosen);
  const shown = found ?? past[0];
  return (
    <>
      <ol className="calendar">
        {days.map(([day, occurrences]) => (
          <li key={day} className="day">
            <strong>{DAY.format(new Date(day))}</strong>
            <div className="marks">
              {occurrences.map((one) => (
                <button
                  key={one.occurrence_key}
                  type="button"
                  className={`status ${one.status}`}
                  aria-pressed={one.occurrence_key === shown?.occurrence_key}
                  aria-label={`${CLOCK.format(new Date(one.nominal_time))}, ${statusName(one.status)}`}
                  title={reasonOf(one)}
                  onClick={() => change({ occurrence: one.occurrence_key })}
                >
                  {shapeOf(one.status)} {CLOCK.format(new Date(one.nominal_time))}
                </button>
              ))}
            </div>
          </li>
        ))}
      </ol>
      {chosen && !found && <p className="faint">{hasOlder ? 'The chosen occurrence is older than those shown.' : 'The chosen occurrence is not stored any more.'}</p>}
      {shown && (
        <div className="note" role="status">
          <StatusMark status={shown.status} /> <strong>{exact(shown.nominal_time)}</strong>{' '}
          <span className="faint">
            (<Time at={shown.nominal_time} />)
          </span>
          <p>{reasonOf(shown)}</p>
          <p>
            {shown.run_ids.map((id, attempt) => (
              <span key={id}>
                {attempt > 0 && ' · '}
                <Link href={`/runs/${id}`}>run {attempt + 1}</Link>
              </span>
            ))}
          </p>
        </div>
      )}
    </>
  );
}
