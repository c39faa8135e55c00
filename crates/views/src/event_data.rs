//! The names of a record's public events, and their field `data` in the form that the API promises: names of steps, times as
//! texts, and no numbers of the kernel.

use crate::entry::{NodeLabel, error, skip_reason};
use crate::large::reference;
use crate::place::ErrorPlace;
use crate::shapes::ExecutionError;
use crate::timeline::FiringRef;
use crate::wire::{execution_id, time};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_artifact::key;
use windlass_kernel::{
    AgentDecision, Created, Event, Execution, ExecutionId, Failure, Gone, Kind, ManualOutcome, Millis, Net,
    NoteEffect, Outcome, PauseReason, Role, RunId, StartWhen, StepId, TokenValue, any_of,
};
use windlass_protocol::TaskTry;

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
        Event::Done { run, metadata, .. } => {
            let names = ended_names(before, *run, ["step.done", "compensation.done"]);
            task_names(metadata.as_ref()).chain(names).collect()
        }
        Event::Failed { run, metadata, .. } => {
            let names = ended_names(before, *run, ["step.failed", "compensation.failed"]);
            task_names(metadata.as_ref()).chain(names).collect()
        }
        any_of![Event: Created Assigned TimeCame Started Held Released Paused Resumed Draining StopAsked Compensating
            Finalizing Ended Restarted Continued Denied Admitted Discarded Joined Fired Skipped Waiting Woken Delayed
            Offered Lost RetryScheduled Yielded AwaitingManual CompletedManually Dropped LoopStarted IterationStarted
            IterationEnded Patched ChildStarted ChildPaused Returned NotCompensated AgentDecided Forked] => {
            fixed_name(event).into_iter().collect()
        }
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
        Event::Joined { .. } => "token.joined",
        Event::Skipped { .. } => "step.skipped",
        Event::Waiting { .. } | Event::Delayed { .. } => "step.waiting",
        Event::Offered { .. } => "step.offered",
        Event::RetryScheduled { .. } | Event::Yielded { .. } => "step.retry_scheduled",
        Event::AwaitingManual { .. } => "step.awaiting_manual",
        Event::CompletedManually { by, .. } => match by.effect {
            NoteEffect::Ends => "step.completed_manually",
            NoteEffect::Counts => "step.approval_counted",
            NoteEffect::Refused { .. } => "step.answer_refused",
        },
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

/// Returns the events of the tries that a report carries.
fn task_names(metadata: Option<&Arc<Value>>) -> impl Iterator<Item = &'static str> {
    let name = |tried: &TaskTry| if tried.error.is_some() { "task.failed" } else { "task.done" };
    tries_of(metadata).into_iter().map(move |tried| name(&tried))
}

/// Reads the tries of tasks that a report carries: those of tasks that failed at least once.
pub(crate) fn tries_of(metadata: Option<&Arc<Value>>) -> Vec<TaskTry> {
    let tries = metadata.and_then(|metadata| metadata.get(TaskTry::KEY));
    tries.and_then(|tries| Vec::deserialize(tries).ok()).unwrap_or_default()
}

fn gone_name(how: Gone) -> &'static str {
    if how == Gone::Skipped { "step.skipped" } else { "step.cancelled" }
}

fn ended_names(before: &Execution<'_>, run: RunId, [step, hook]: [&'static str; 2]) -> Vec<&'static str> {
    let Some(run) = before.run(run) else { return vec![step] };
    match run.role {
        Role::Hook { .. } => return vec![hook],
        // The loop's own events report its iterations.
        Role::Iteration { .. } => return Vec::new(),
        any_of![Role: Routed Final Tool] => {}
    }
    match run.state.kind() {
        Kind::Looping => vec!["loop.done", step],
        Kind::Child | Kind::PausedChild => vec!["child.ended", step],
        any_of![Kind: Ready Waiting Delayed Offered Backoff Manual] => vec![step],
    }
}

/// Context that the data of an event refers to, apart from the event itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventContext<'c> {
    pub net: &'c Net,
    /// The execution, for links to large values.
    pub execution: ExecutionId,
    pub at: Millis,
    /// The step that the event is about.
    pub step: Option<StepId>,
    /// The firing that the event is about.
    pub firing: Option<&'c FiringRef>,
    /// The attempt of its firing, from 1.
    pub attempt: Option<u32>,
    /// The newest child of its firing.
    pub child: Option<ExecutionId>,
}

impl EventContext<'_> {
    /// Returns the data of the `index`-th public event of a record.
    pub(crate) fn data(&self, event: &Event, name: &str, index: usize) -> Value {
        let mut fields = Map::new();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                fields.insert(key.to_owned(), value);
            }
        };
        match event {
            Event::Done { metadata, .. } | Event::Failed { metadata, .. } if name.starts_with("task.") => {
                if let Some(tried) = tries_of(metadata.as_ref()).into_iter().nth(index) {
                    put("task", json!(tried.task));
                    put("try", json!(tried.number));
                    put("attempt", json!(self.attempt));
                    put("error", self.failure(tried.error.as_ref()));
                    put("startedAt", json!(tried.times.map(|times| time(Millis(times.started_ms)))));
                    put("endedAt", json!(tried.times.map(|times| time(Millis(times.ended_ms)))));
                }
            }
            Event::Created(created) => self.created(created, &mut put),
            Event::Forked(fork) => {
                put("retryOf", json!(execution_id(fork.parent)));
                put("inputs", self.optional(fork.inputs.as_ref()));
            }
            Event::Started { deadline } | Event::Resumed { deadline } | Event::Denied { deadline, .. } => {
                put("deadline", json!(deadline.map(time)));
            }
            Event::Paused { reason, .. } => put("reason", json!(pause_word(*reason))),
            Event::Draining { outcome, cause, failure, compensate } => {
                put("outcome", json!(outcome));
                put("cause", json!(cause));
                put("compensates", json!(compensate));
                put("error", self.failure(failure.as_deref()));
            }
            Event::Ended { failure, .. } => put("error", self.failure(failure.as_deref())),
            Event::Restarted { generation, .. } => put("generation", json!(generation)),
            Event::Routed { step, emitted, end, .. } => {
                let arcs = &self.net.step(*step).router.arcs;
                let target = |arc: u32| arcs.get(arc as usize).map(|arc| self.name(arc.to));
                let live: Vec<_> = emitted
                    .iter()
                    .filter_map(|emission| match &emission.token {
                        TokenValue::Live(args) => Some((target(emission.arc), args)),
                        TokenValue::Dead | TokenValue::Poisoned => None,
                    })
                    .collect();
                match index.checked_sub(1).and_then(|token| live.get(token)) {
                    Some((_, args)) => {
                        put("from", json!(self.name(*step)));
                        put("args", self.optional(args.as_ref()));
                    }
                    None => {
                        put("taken", json!(live.iter().map(|(target, _)| target).collect::<Vec<_>>()));
                        put("end", json!(end));
                    }
                }
            }
            Event::Joined { tokens, args, .. } => {
                put("arrived", json!(tokens.len()));
                put("args", self.optional(args.as_ref()));
            }
            Event::Fired { args, .. } => put("args", self.optional(args.as_ref())),
            Event::Skipped { reason, .. } => put("reason", json!(skip_reason(*reason))),
            Event::Waiting { target, until, .. } => {
                put("for", self.value(target));
                put("until", json!(time(*until)));
            }
            Event::Delayed { until, .. } | Event::Yielded { until, .. } => put("until", json!(time(*until))),
            Event::Offered { attempt, .. } => put("attempt", json!(attempt)),
            Event::RetryScheduled { until, failure, .. } => {
                put("attempt", json!(self.attempt));
                put("until", json!(time(*until)));
                put("error", self.failure(Some(failure)));
            }
            Event::AwaitingManual { output, deadline, .. } => {
                match key(output) {
                    Some(_) => put("message", self.value(output)),
                    None => {
                        put("message", output["message"].clone());
                        put("approvers", output["approvers"].clone());
                    }
                }
                put("deadline", json!(deadline.map(time)));
            }
            Event::CompletedManually { by, .. } => {
                put("outcome", json!(manual_word(&by.outcome)));
                put("by", json!(by.actor));
                put("notes", json!(by.notes));
                put("evidence", json!(by.evidence));
                if let NoteEffect::Refused { constraint, message } = &by.effect {
                    put("constraint", json!(constraint));
                    put("message", json!(message));
                }
            }
            Event::Done { output, .. } => match name {
                "loop.done" => {}
                "child.ended" => put("childId", json!(self.child.map(execution_id))),
                _ => {
                    put("attempt", json!(self.attempt));
                    put("output", self.value(output));
                }
            },
            Event::Failed { failure, handled, output, partial, .. } => {
                match name {
                    "child.ended" => put("childId", json!(self.child.map(execution_id))),
                    "loop.done" => {}
                    _ => {
                        put("attempt", json!(self.attempt));
                        put("handled", json!(handled));
                        put("output", self.optional(output.as_ref().filter(|_| *partial)));
                    }
                }
                put("error", self.failure(Some(failure)));
            }
            Event::LoopStarted { total, .. } => put("total", json!(total)),
            Event::IterationEnded { index, stop, .. } => {
                put("index", json!(index));
                put("stops", json!(stop));
            }
            Event::Patched { patch, by } => {
                let keys = patch.iter().map(|(key, value)| (key.clone(), self.value(value)));
                put("context", Value::Object(keys.collect()));
                put("by", json!(by));
            }
            Event::ChildStarted { attempt, child, definition, inputs, until, .. } => {
                put("attempt", json!(attempt));
                put("childId", json!(execution_id(*child)));
                put("definition", self.value(definition));
                put("inputs", self.value(inputs));
                put("deadline", json!(until.map(time)));
            }
            Event::Returned { .. } => put("childId", json!(self.child.map(execution_id))),
            Event::NotCompensated { runs } => put("count", json!(runs.len())),
            Event::AgentDecided { call, decision, .. } => {
                put("call", json!(call));
                self.decision(decision, &mut put);
            }
            any_of![Event: Assigned TimeCame Held Released Cleared StopAsked Compensating Finalizing Continued
                Admitted Discarded Woken Lost Dropped IterationStarted ChildPaused] => {}
        }
        Value::Object(fields)
    }

    fn created(&self, created: &Created, put: &mut impl FnMut(&str, Value)) {
        let create = &created.create;
        put("inputs", self.value(&create.inputs));
        put("timeout", json!(create.timeout_ms));
        if let StartWhen::At(at) = create.start {
            put("startsAt", json!(time(at)));
        }
        put("parentExecutionId", json!(create.parent.as_ref().map(|parent| execution_id(parent.execution))));
        put("retryOf", json!(create.retry_of.map(execution_id)));
        if !create.imports.is_empty() {
            let steps: Vec<String> = create.imports.iter().map(|import| self.name(import.step)).collect();
            put("imported", json!(steps));
        }
    }

    fn decision(&self, decision: &AgentDecision, put: &mut impl FnMut(&str, Value)) {
        match decision {
            AgentDecision::Execute { step, args, .. } => {
                put("decision", json!("execute"));
                put("node", json!(self.name(*step)));
                put("args", self.optional(args.as_ref()));
            }
            AgentDecision::Skip { step, reason } => {
                put("decision", json!("skip"));
                put("node", json!(self.name(*step)));
                put("reason", json!(reason));
            }
            AgentDecision::Pause { reason } => {
                put("decision", json!("pause"));
                put("reason", json!(reason));
            }
            AgentDecision::Fail { failure } => {
                put("decision", json!("fail"));
                put("error", self.failure(Some(failure)));
            }
        }
    }

    fn name(&self, step: StepId) -> String {
        self.net.step(step).name.clone()
    }

    /// Returns the error of the step that the event is about, or of the execution.
    fn failure(&self, failure: Option<&Failure>) -> Value {
        let Some(failure) = failure else { return Value::Null };
        let label = match self.step {
            Some(step) => Some(NodeLabel::of(self.net.step(step))),
            None => NodeLabel::of_failure(self.net, failure),
        };
        let site = label.as_ref().map(|label| label.site(self.attempt.unwrap_or(1)));
        let place = self.firing.map(|firing| ErrorPlace::of_record(self.net, &[], firing, failure));
        json!(ExecutionError { place: place.unwrap_or_default(), ..error(failure, site, self.at, false) })
    }

    fn value(&self, value: &Arc<Value>) -> Value {
        reference(self.execution, value)
    }

    fn optional(&self, value: Option<&Arc<Value>>) -> Value {
        value.map_or(Value::Null, |value| self.value(value))
    }
}

fn pause_word(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::Held => "held",
        PauseReason::Waiting => "waiting",
    }
}

pub(crate) fn manual_word(outcome: &ManualOutcome) -> &'static str {
    match outcome {
        ManualOutcome::Succeeded => "Succeeded",
        ManualOutcome::Failed => "Failed",
        ManualOutcome::Cancelled => "Cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect_file;
    use std::collections::BTreeSet;
    use windlass_kernel::net::{Join, JoinArc, NetSpec, Policy, Step, Work};
    use windlass_kernel::{Fence, LoopState, Path, Record, RunState, StepRun};

    /// Steps `s0` to `s4`, as many as the examples name; each has four arcs.
    fn net() -> Net {
        let steps = (0..5).map(|number: u32| {
            let mut step = Step::new(format!("s{number}"), Work::noop());
            step.router.arcs = (1..5).map(|arc| JoinArc::to(StepId((number + arc) % 5))).collect();
            step
        });
        let policy = Policy { join: Join::Each, entry: Some(StepId(0)), ..Policy::default() };
        Net::new(NetSpec { steps: steps.collect(), policy }).unwrap()
    }

    /// Returns states in which the end of a step-run has further names.
    fn states() -> Vec<Execution<'static>> {
        let with = |state: RunState| {
            let mut execution = Execution::default();
            let run = StepRun { state, ..StepRun::new(StepId(4), Path::default(), Role::Routed, None) };
            execution.runs.insert(RunId((1 << 32) + 5), Box::new(run));
            execution
        };
        let child = RunState::Child { fence: Fence(1), child: ExecutionId(9), until: None, paused: false };
        let hook = {
            let mut execution = with(RunState::Ready { waited: false });
            let role = Role::Hook { of: RunId(1) };
            let run = StepRun::new(StepId(4), Path::default(), role, None);
            execution.runs.insert(RunId((1 << 32) + 5), Box::new(run));
            execution
        };
        vec![Execution::default(), with(child), with(RunState::Looping(LoopState::default())), hook]
    }

    fn tried() -> Event {
        let tries = json!({ "retries": 1, "tries": [
            { "task": "fetch", "try": 1, "error": Failure::of_code("NETWORK_TIMEOUT", "too slow") },
            { "task": "fetch", "try": 2, "times": { "started_ms": 1_000, "ended_ms": 2_500 } },
        ] });
        Event::Done {
            run: RunId((1 << 32) + 5),
            fence: None,
            output: Arc::default(),
            patch: Default::default(),
            times: None,
            metadata: Some(Arc::new(tries)),
        }
    }

    /// Checks every public event of the stored examples, with its data.
    #[test]
    fn the_data_of_every_public_event_is_made_of_names_and_texts() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/golden/v1");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        let records = files.iter().flat_map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            serde_json::from_str::<Vec<Record>>(&text).unwrap()
        });
        let (net, states, mut shown) = (net(), states(), BTreeSet::new());
        let ended = |outcome| Event::Ended { outcome, failure: None };
        let others = [tried(), ended(Outcome::Partial), ended(Outcome::Cancelled)];
        for event in records.map(|record| record.event).chain(others) {
            for before in &states {
                for (index, name) in event_names(&event, before).into_iter().enumerate() {
                    let context = EventContext {
                        net: &net,
                        execution: ExecutionId(7),
                        at: Millis(0),
                        step: Some(StepId(4)),
                        firing: None,
                        attempt: Some(1),
                        child: Some(ExecutionId(9)),
                    };
                    shown.insert(format!("{name} {}\n", context.data(&event, name, index)));
                }
            }
        }
        let names: BTreeSet<&str> = shown.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(names.len(), 41, "{names:?}");
        expect_file!["../tests/events.txt"].assert_eq(&shown.into_iter().collect::<String>());
    }
}
