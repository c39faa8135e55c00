import { memo, useDeferredValue } from 'react';
import type { PublicEvent } from '../../api/client';
import { useEvents } from '../../api/executions';
import { useAddress, useTyped } from '../../parts/address';
import { Empty, More, Result, Time } from '../../parts/basics';
import { Json } from '../../parts/Json';
import { Bounded, Unfolding } from '../../parts/Rows';
import { pathText, plural } from '../../parts/words';

// An event never changes; its text is made once.
const texts = new WeakMap<PublicEvent, string>();

/** What is searched in an event: its name, its step and its data. */
function textOf(event: PublicEvent): string {
  const known = texts.get(event);
  if (known !== undefined) return known;
  const made = `${event.event} ${event.step ?? ''}${pathText(event.path)} ${JSON.stringify(event.data)}`.toLowerCase();
  texts.set(event, made);
  return made;
}

export function Events({ id, step }: { id: string; step: string | undefined }) {
  const found = useEvents(id);
  const [, change] = useAddress();
  const [search, setSearch] = useTyped('find');
  const words = useDeferredValue(search).toLowerCase();
  const all = found.data?.pages.flatMap((page) => page.events) ?? [];
  const events = all.filter((event) => (!step || event.step === step) && textOf(event).includes(words));
  return (
    <>
      <div className="filters">
        <input type="search" aria-label="Search events" placeholder="Name, step or data" value={search} onChange={(event) => setSearch(event.target.value)} />
        {step && (
          <button type="button" onClick={() => change({ step: undefined })}>
            step {step} ✕
          </button>
        )}
      </div>
      <Result of={found}>
        {events.length === 0 && (
          <Empty title={found.hasNextPage ? `No event matches among the first ${plural(all.length, 'event')}; later ones may.` : 'No event matches.'}>
            <button type="button" className="quiet" onClick={() => change({ find: undefined, step: undefined })}>
              Show all events
            </button>
          </Empty>
        )}
        <section className="steps" aria-label="Events">
          <Bounded key={`${words} ${step}`} rows={events} name="event">
            {(event) => <EventRow key={event.sequence} event={event} />}
          </Bounded>
        </section>
      </Result>
      <More of={found} />
    </>
  );
}

const EventRow = memo(function EventRow({ event }: { event: PublicEvent }) {
  return (
    <Unfolding
      summary={
        <>
          <span className="faint mono">{event.sequence}</span> <code>{event.event}</code>
          <strong>
            {event.step}
            {pathText(event.path)}
          </strong>
          <span className="faint">
            <Time at={event.timestamp} />
          </span>
        </>
      }
    >
      {() => <Json value={event.data} label={`event ${event.sequence}`} />}
    </Unfolding>
  );
});
