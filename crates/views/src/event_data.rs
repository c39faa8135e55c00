//! The field `data` of a public event: the fields of its record, in the form that the API promises. A field that is added
//! to an event does not compile until it is listed or left out here.

use serde_json::{Map, Value, json};
use windlass_kernel::{Create, Created, Delegated, Event, Fork};

/// An object with the fields of an event under its name. A field in brackets is absent when it has no value.
macro_rules! fields {
    (@insert $fields:ident [$field:ident]) => {
        $fields.extend($field.as_ref().map(|value| (stringify!($field).to_owned(), json!(value))))
    };
    (@insert $fields:ident $field:ident) => {
        $fields.insert(stringify!($field).to_owned(), json!($field))
    };
    ($event:literal $($field:tt)+) => {{
        let mut fields = Map::new();
        $(fields!(@insert fields $field);)+
        json!({ $event: fields })
    }};
}

#[must_use]
pub fn event_data(event: &Event) -> Value {
    match event {
        Event::Created(created) => {
            let Created { net, create } = &**created;
            let Create { id, inputs, timeout_ms, start, parent, depth, retry_of, imports } = create;
            let create = json!({
                "id": id, "inputs": inputs, "timeout_ms": timeout_ms, "start": start, "parent": parent,
                "depth": depth, "retry_of": retry_of, "imports": imports,
            });
            fields!("created" net create)
        }
        Event::Forked(fork) => {
            let Fork { parent, id, generation, inputs, deadline } = &**fork;
            fields!("forked" parent id generation inputs deadline)
        }
        Event::Assigned { worker, deadline } => fields!("assigned" worker deadline),
        Event::TimeCame => json!("time_came"),
        Event::Started { deadline } => fields!("started" deadline),
        Event::Held { by, reason } => fields!("held" by reason),
        Event::Released { by } => fields!("released" by),
        Event::Paused { reason, remaining_ms } => fields!("paused" reason remaining_ms),
        Event::Resumed { deadline } => fields!("resumed" deadline),
        Event::Draining { outcome, cause, failure, compensate } => {
            fields!("draining" outcome cause failure compensate)
        }
        Event::Cleared(cleared) => {
            json!({ "cleared": { "dropped": cleared.dropped, "tokens": cleared.tokens } })
        }
        Event::StopAsked { leases, children } => fields!("stop_asked" leases children),
        Event::Compensating => json!("compensating"),
        Event::Finalizing => json!("finalizing"),
        Event::Ended { outcome, failure } => fields!("ended" outcome failure),
        Event::Restarted { generation, remaining_ms } => fields!("restarted" generation remaining_ms),
        Event::Continued => json!("continued"),
        Event::Routed { run, step, path, emitted, end } => fields!("routed" run step path emitted end),
        Event::Denied { token, deadline } => fields!("denied" token deadline),
        Event::Admitted { tokens } => fields!("admitted" tokens),
        Event::Discarded { token } => fields!("discarded" token),
        Event::Fired { run, step, path, token, role, args } => {
            fields!("fired" run step path token role args)
        }
        Event::Skipped { run, token, step, path, reason } => fields!("skipped" run token step path reason),
        Event::Waiting { run, target, until } => fields!("waiting" run target until),
        Event::Woken { run } => fields!("woken" run),
        Event::Delayed { run, until } => fields!("delayed" run until),
        Event::Offered { run, fence, attempt, reads } => fields!("offered" run fence attempt reads),
        Event::Lost { run, fence, started, cursor } => fields!("lost" run fence started cursor),
        Event::RetryScheduled { run, fence, until, failure, reported, patch, cursor } => {
            fields!("retry_scheduled" run fence until failure reported patch [cursor])
        }
        Event::Yielded { run, fence, until, cursor, patch } => {
            fields!("yielded" run fence until cursor patch)
        }
        Event::AwaitingManual { run, fence, answered, output, patch, deadline, times } => {
            fields!("awaiting_manual" run fence answered output patch deadline times)
        }
        Event::CompletedManually { run, fence, by } => fields!("completed_manually" run fence by),
        Event::Done { run, fence, output, patch, times, metadata } => {
            fields!("done" run fence output patch times [metadata])
        }
        Event::Failed { run, fence, failure, handled, reported, output, patch, times, metadata } => {
            fields!("failed" run fence failure handled reported [output] patch times [metadata])
        }
        Event::Dropped { run, fence, how, reported } => fields!("dropped" run fence how reported),
        Event::LoopStarted { run, total, items } => fields!("loop_started" run total items),
        Event::IterationStarted { run, index } => fields!("iteration_started" run index),
        Event::IterationEnded { run, index, failed, stop, output } => {
            fields!("iteration_ended" run index failed stop [output])
        }
        Event::Patched { patch, by } => fields!("patched" patch by),
        Event::ChildStarted { run, fence, attempt, child, definition, inputs, until, delegated } => {
            let delegated = delegated.as_deref().map(|Delegated { fence, cursor, patch }| {
                json!({ "fence": fence, "cursor": cursor, "patch": patch })
            });
            fields!("child_started" run fence attempt child definition inputs until [delegated])
        }
        Event::Returned { run, fence, cursor } => fields!("returned" run fence cursor),
        Event::NotCompensated { runs } => fields!("not_compensated" runs),
        Event::AgentDecided { run, call, decision } => fields!("agent_decided" run call decision),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_kernel::Record;

    /// The API has shown records as they are stored from the first release on.
    #[test]
    fn data_of_every_golden_event_is_what_was_always_shown() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/golden/v1");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let mut count = 0;
        for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let stored: Vec<Value> = serde_json::from_str(&text).unwrap();
            let records: Vec<Record> = serde_json::from_str(&text).unwrap();
            for (stored, record) in stored.iter().zip(records) {
                assert_eq!(event_data(&record.event).to_string(), stored["event"].to_string(), "{file:?}");
                count += 1;
            }
        }
        assert!(count > 40, "{count} golden events");
    }
}
