import { useState } from 'react';
import { useEvents } from '../../api/executions';
import { Empty, More, Result, Time } from '../../parts/basics';
import { Json } from '../../parts/Json';
import { pathText, plural } from '../../parts/words';

export function Events({ id, step }: { id: string; step: string | undefined }) {
  const found = useEvents(id);
  const [search, setSearch] = useState('');
  const all = found.data?.pages.flatMap((page) => page.events) ?? [];
  const events = all.filter((event) => (!step || event.step === step) && `${event.event} ${event.step ?? ''}`.includes(search));
  return (
    <>
      <div className="filters">
        <input type="search" aria-label="Search events" placeholder="step.failed …" value={search} onChange={(event) => setSearch(event.target.value)} />
        {step && <span className="faint">of the step {step}</span>}
      </div>
      <Result of={found}>
        {events.length === 0 && <Empty title={found.hasNextPage ? `No event matches among the first ${plural(all.length, 'event')}; later ones may.` : 'No event matches.'} />}
        <section className="steps" aria-label="Events">
          {events.map((event) => (
            <details key={event.sequence}>
              <summary>
                <span className="faint mono">{event.sequence}</span> <code>{event.event}</code>
                <strong>
                  {event.step}
                  {pathText(event.path)}
                </strong>
                <span className="faint">
                  <Time at={event.timestamp} />
                </span>
              </summary>
              <Json value={event.data} label={`event ${event.sequence}`} />
            </details>
          ))}
        </section>
      </Result>
      <More of={found} />
    </>
  );
}
