// Past occurrences by day: a mark for each, and the reason of the chosen one.
import { Link } from 'wouter';
import type { Schemas } from '../../api/client';
import { useAddress } from '../../parts/address';
import { Empty, shapeOf, StatusMark, Time } from '../../parts/basics';
import { exact, statusName, withLocalTimes } from '../../parts/words';

type Past = Schemas['PastOccurrence'];

const DAY = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });

export function Calendar({ past }: { past: readonly Past[] }) {
  const [query, change] = useAddress();
  const chosen = query.get('occurrence');
  if (past.length === 0) return <Empty title="There was no occurrence yet. “Trigger …” starts a run now." />;
  const days = [...Map.groupBy(past, ({ nominal_time }) => new Date(nominal_time).toDateString())];
  const shown = past.find(({ occurrence_key }) => occurrence_key === chosen) ?? past[0];
  return (
    <>
      <ol className="calendar">
        {days.map(([day, occurrences]) => (
          <li key={day} className="day">
            <strong>{DAY.format(new Date(day))}</strong>
            <div className="marks">
              {occurrences.map(({ occurrence_key, nominal_time, status, reason }) => (
                <button
                  key={occurrence_key}
                  type="button"
                  className={`status ${status}`}
                  aria-pressed={occurrence_key === shown?.occurrence_key}
                  aria-label={`${CLOCK.format(new Date(nominal_time))}, ${statusName(status)}`}
                  title={withLocalTimes(reason)}
                  onClick={() => change({ occurrence: occurrence_key })}
                >
                  {shapeOf(status)} {CLOCK.format(new Date(nominal_time))}
                </button>
              ))}
            </div>
          </li>
        ))}
      </ol>
      {shown && (
        <div className="note" role="status">
          <StatusMark status={shown.status} /> <strong>{exact(shown.nominal_time)}</strong>{' '}
          <span className="faint">
            (<Time at={shown.nominal_time} />)
          </span>
          <p>{withLocalTimes(shown.reason)}</p>
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
