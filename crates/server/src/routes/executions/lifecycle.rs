//! Lines of the log that nobody wrote: what the journal says of an execution and its nodes. They cost nothing until they are
//! read, and are the same whenever they are.

use crate::follow::{Happened, Subject};
use crate::walk::Teller;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_artifact::json_bytes;
use windlass_kernel::{
    Event, ExecutionId, Failure, ManualOutcome, Millis, Net, Outcome, Role, RunId, SkipReason, StepId,
};
use windlass_protocol::Level;
use windlass_views::{execution_id, reference, time};

/// JSON of a line without its text and data, roughly.
const LINE_BYTES: usize = 250;

/// A line about an execution, or about one of its nodes.
#[derive(Debug)]
pub struct Told {
    pub version: u64,
    pub at: Millis,
    /// What was said before the end stands before it.
    pub is_end: bool,
    pub level: Level,
    pub step: Option<StepId>,
    pub text: String,
    pub data: Value,
}

/// Tells records in words; one line at most for each.
#[derive(Debug, Clone)]
pub struct LogTeller {
    id: ExecutionId,
    /// Where the execution begins.
    trigger: Option<StepId>,
    inputs: Arc<Value>,
    /// Of step-runs that live.
    attempts: BTreeMap<RunId, u32>,
}

impl LogTeller {
    pub fn new(id: ExecutionId, net: &Net) -> LogTeller {
        let trigger = net.entries().first().copied();
        LogTeller { id, trigger, inputs: Arc::default(), attempts: BTreeMap::new() }
    }

    /// What is needed later on.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Created(created) => self.inputs = created.create.inputs.clone(),
            Event::Forked(fork) => self.inputs = fork.inputs.clone().unwrap_or_else(|| self.inputs.clone()),
            Event::Offered { run, attempt, .. } | Event::ChildStarted { run, attempt, .. } => {
                self.attempts.insert(*run, *attempt);
            }
            _ => {}
        }
    }

    fn said(&self, happened: &Happened) -> Option<Said> {
        let of_node =
            |level, text: &str, data| Some((level, Some(happened.subject()?.step), text.to_owned(), data));
        let of_all = |level, text: &str, data| Some((level, None, text.to_owned(), data));
        match &happened.record.event {
            Event::Started { .. } => {
                let data = json!({ "inputs": reference(self.id, &self.inputs) });
                Some((Level::Info, self.trigger, "Workflow execution started".to_owned(), data))
            }
            Event::Fired { .. } if is_whole(happened) => of_node(Level::Info, "Node started", json!({})),
            Event::Skipped { reason, .. } => {
                of_node(Level::Debug, "Node skipped", json!({ "reason": why_skipped(*reason) }))
            }
            Event::Offered { attempt, .. } if *attempt > 1 => {
                of_node(Level::Info, &format!("Attempt {attempt} started"), json!({ "attempt": attempt }))
            }
            Event::Lost { .. } => of_node(Level::Warn, "The worker of the node was lost", json!({})),
            Event::RetryScheduled { run, failure, until, .. } => {
                let mut data = self.failed(*run, failure);
                data["retryAt"] = json!(time(*until));
                let text = format!("Attempt {} failed: {}", data["attempt"], failure.message);
                of_node(Level::Error, &text, data)
            }
            Event::Failed { run, failure, .. } => {
                let text = format!("Node failed: {}", failure.message);
                of_node(Level::Error, &text, self.failed(*run, failure))
            }
            Event::Done { times, .. } if is_whole(happened) => {
                let took = times.as_ref().map(|times| happened.record.at.since(times.started_at));
                let data = took.map_or(json!({}), |took| json!({ "durationMs": took }));
                of_node(Level::Info, "Node completed", data)
            }
            Event::ChildStarted { child, .. } => {
                let data = json!({ "executionId": execution_id(*child) });
                of_node(Level::Info, "Another execution started", data)
            }
            Event::AwaitingManual { .. } => of_node(Level::Info, "Waiting for a person", json!({})),
            Event::CompletedManually { by, .. } => {
                let data = json!({ "outcome": outcome(&by.outcome), "by": by.actor });
                of_node(Level::Info, "A person answered", data)
            }
            Event::Held { by, reason } => {
                of_all(Level::Info, "Workflow execution paused", json!({ "by": by, "reason": reason }))
            }
            Event::Released { by } => of_all(Level::Info, "Workflow execution resumed", json!({ "by": by })),
            Event::Restarted { .. } => {
                of_all(Level::Warn, "Workflow execution begins anew: its worker was lost", json!({}))
            }
            Event::Ended { outcome, failure } => {
                let (level, text) = end(*outcome, failure.as_ref());
                let data = failure.as_ref().map_or(json!({}), |failure| json!({ "code": failure.code }));
                of_all(level, &text, data)
            }
            _ => None,
        }
    }

    fn failed(&self, run: RunId, failure: &Failure) -> Value {
        let attempt = self.attempts.get(&run).copied().unwrap_or(1);
        json!({ "code": failure.code, "attempt": attempt, "retryAttempt": attempt })
    }
}

/// Level, node, text, data.
type Said = (Level, Option<StepId>, String, Value);

impl Teller for LogTeller {
    type Entry = Told;

    fn tell(&mut self, happened: &Happened) -> Vec<Told> {
        let event = &happened.record.event;
        self.note(event);
        let said = self.said(happened);
        let ended = happened.ended_run();
        if let Some(run) = ended {
            self.attempts.remove(&run);
        }
        let is_end = ended.is_some() || matches!(event, Event::RetryScheduled { .. } | Event::Ended { .. });
        let told = said.map(|(level, step, text, mut data)| {
            let path = happened.subject().map(|subject| &subject.path.0).filter(|path| !path.is_empty());
            if let (Some(path), true) = (path, step.is_some()) {
                data["path"] = json!(path);
            }
            Told { version: happened.version, at: happened.record.at, is_end, level, step, text, data }
        });
        told.into_iter().collect()
    }

    fn bytes(entry: &Told) -> usize {
        LINE_BYTES + entry.text.len() + json_bytes(&entry.data)
    }
}

/// A part of a firing (an iteration of its own loop, a hook) is not a node.
fn is_whole(happened: &Happened) -> bool {
    let whole = |subject: &Subject| matches!(subject.role, Role::Routed | Role::Final | Role::Tool { .. });
    happened.subject().is_some_and(whole)
}

fn end(outcome: Outcome, failure: Option<&Failure>) -> (Level, String) {
    let (level, how) = match outcome {
        Outcome::Completed => (Level::Info, "completed"),
        Outcome::Partial => (Level::Warn, "completed in part"),
        Outcome::Failed => (Level::Error, "failed"),
        Outcome::Cancelled => (Level::Warn, "was cancelled"),
    };
    let why = failure.map(|failure| format!(": {}", failure.message)).unwrap_or_default();
    (level, format!("Workflow execution {how}{why}"))
}

fn outcome(outcome: &ManualOutcome) -> &'static str {
    match outcome {
        ManualOutcome::Succeeded => "Succeeded",
        ManualOutcome::Failed => "Failed",
        ManualOutcome::Cancelled => "Cancelled",
    }
}

fn why_skipped(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::NotTaken => "not_taken",
        SkipReason::Upstream => "upstream",
        SkipReason::Condition => "condition",
    }
}
