//! The names of a record's public events, and their field `data`: the fields of the record in the form that the API
//! promises. A field that is added to an event does not compile until it is listed or left out here.

use serde_json::{Map, Value, json};
use windlass_kernel::{
    Create, Created, Delegated, Event, Execution, Fork, Gone, Kind, Outcome, Role, RunId, TokenValue, any_of,
};

/// Returns the public names of an event: one or several, or none for an internal event. `before` is the state that the
/// event was applied to; it distinguishes the end of a hook, a loop or a child from the end of a step.
pub(crate) fn event_names(event: &Event, before: &Execution<'_>) -> Vec<&'static str> {
    match event {
        Event::Routed { emitted, .. } => {
            let live = emitted.iter().filter(|emission| matches!(emission.token, TokenValue::Live(_)));
            std::iter::once("next.evaluated").chain(live.map(|_| "token.emitted")).collect()
        }
        Event::Cleared(cleared) => {
            let tokens = cleared.tokens.iter().map(|_| "token.discarded");
            tokens.chain(cleared.dropped.iter().map(|(_, _, how)| gone_name(*how))).collect()
        }
        Event::Fired { role: Role::Hook { .. }, .. } => vec!["compensation.started"],
        Event::Fired { token: Some(_), .. } => vec!["token.admitted"],
        Event::Done { run, .. } => ended_names(before, *run, ["step.done", "compensation.done"]),
        Event::Failed { run, .. } => ended_names(before, *run, ["step.failed", "compensation.failed"]),
        other => fixed_name(other).into_iter().collect(),
    }
}

/// Returns the name of an event whose name depends on nothing else; `None` if the event is internal.
fn fixed_name(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::Created(_) | Event::Forked(_) => "execution.created",
        Event::Started { .. } => "execution.started",
        Event::Paused { .. } => "execution.paused",
        Event::Resumed { .. } => "execution.resumed",
        Event::Draining { .. } => "execution.draining",
        Event::Compensating => "execution.compensating",
        Event::Finalizing => "execution.finalizing",
        Event::Ended { outcome: Outcome::Completed, .. } => "execution.completed",
        Event::Ended { outcome: Outcome::Partial, .. } => "execution.partial",
        Event::Ended { outcome: Outcome::Failed, .. } => "execution.failed",
        Event::Ended { outcome: Outcome::Cancelled, .. } => "execution.cancelled",
        Event::Restarted { .. } => "execution.restarted",
        Event::Denied { .. } => "token.denied",
        Event::Discarded { .. } => "token.discarded",
        Event::Skipped { .. } => "step.skipped",
        Event::Waiting { .. } | Event::Delayed { .. } => "step.waiting",
        Event::Offered { .. } => "step.offered",
        Event::RetryScheduled { .. } | Event::Yielded { .. } => "step.retry_scheduled",
        Event::AwaitingManual { .. } => "step.awaiting_manual",
        Event::CompletedManually { .. } => "step.completed_manually",
        Event::Dropped { how, .. } => gone_name(*how),
        Event::LoopStarted { .. } => "loop.started",
        Event::IterationEnded { failed: false, .. } => "loop.iteration.done",
        Event::IterationEnded { failed: true, .. } => "loop.iteration.failed",
        Event::Patched { .. } => "ctx.patched",
        Event::ChildStarted { .. } => "child.started",
        Event::Returned { .. } => "child.ended",
        Event::NotCompensated { .. } => "compensation.not_run",
        Event::AgentDecided { .. } => "agent.decided",
        any_of![Event: Assigned TimeCame Held Released StopAsked Continued Admitted Woken Lost IterationStarted
                ChildPaused Routed Cleared Fired Done Failed] => return None,
    })
}

fn gone_name(how: Gone) -> &'static str {
    if how == Gone::Skipped { "step.skipped" } else { "step.cancelled" }
}

fn ended_names(before: &Execution<'_>, run: RunId, [step, hook]: [&'static str; 2]) -> Vec<&'static str> {
    match before.run(run) {
        Some(run) if matches!(run.role, Role::Hook { .. }) => vec![hook],
        // The loop's own events report its iterations.
        Some(run) if matches!(run.role, Role::Iteration { .. }) => Vec::new(),
        Some(run) if run.state.kind() == Kind::Looping => vec!["loop.done", step],
        Some(run) if matches!(run.state.kind(), Kind::Child | Kind::PausedChild) => vec!["child.ended", step],
        _ => vec![step],
    }
}

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
            let Fork { parent, id, generation, inputs, deadline, taken_over, child_of } = &**fork;
            let taken_over = taken_over.then_some(true);
            fields!("forked" parent id generation inputs deadline [taken_over] [child_of])
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
        Event::Failed {
            run,
            fence,
            failure,
            handled,
            reported,
            output,
            partial,
            deferred,
            patch,
            times,
            metadata,
        } => {
            let (partial, deferred) = (partial.then_some(true), deferred.then_some(true));
            fields!("failed" run fence failure handled reported [output] [partial] [deferred] patch times [metadata])
        }
        Event::Dropped { run, fence, how, reported } => fields!("dropped" run fence how reported),
        Event::LoopStarted { run, total, items } => fields!("loop_started" run total items),
        Event::IterationStarted { run, index } => fields!("iteration_started" run index),
        Event::IterationEnded { run, index, failed, stop, output } => {
            fields!("iteration_ended" run index failed stop [output])
        }
        Event::Patched { patch, by } => fields!("patched" patch by),
        Event::ChildStarted {
            run,
            fence,
            attempt,
            child,
            definition,
            inputs,
            until,
            delegated,
            continues,
        } => {
            let delegated = delegated.as_deref().map(|Delegated { fence, cursor, patch }| {
                json!({ "fence": fence, "cursor": cursor, "patch": patch })
            });
            fields!("child_started" run fence attempt child definition inputs until [delegated] [continues])
        }
        Event::ChildPaused { run, paused } => fields!("child_paused" run paused),
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
