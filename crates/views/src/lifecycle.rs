//! Lines of the log that follow from the journal: changes of an execution and its nodes. They are derived when they
//! are read, and are the same each time.

use crate::entry::skip_reason;
use crate::large::reference;
use crate::projection::Projection;
use crate::timeline::{ExecutionChange, FiringChange, FiringRef, Occurrence, TimelineEntry};
use crate::wire::{execution_id, time};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_artifact::json_bytes;
use windlass_kernel::{
    ExecutionId, Failure, ManualOutcome, Millis, Net, NoteEffect, Outcome, Record, StepId, any_of,
};
use windlass_protocol::Level;

/// JSON of a line without its text and data, roughly.
const LINE_BYTES: usize = 250;

/// A line about an execution, or about one of its nodes.
#[derive(Debug)]
pub struct LifecycleLine {
    pub version: u64,
    pub at: Millis,
    /// Whether it ends an attempt or the execution: lines with the same time are listed before it.
    pub is_end: bool,
    pub level: Level,
    pub step: Option<StepId>,
    pub text: String,
    pub data: Value,
}

/// Derives lines of the log, at most one for each record.
#[derive(Debug, Clone)]
pub struct LogProjection {
    id: ExecutionId,
    /// The first entry of the net, which the first line names.
    trigger: Option<StepId>,
    inputs: Arc<Value>,
}

/// Level, node, text, data.
type LineParts = (Level, Option<StepId>, String, Value);

impl LogProjection {
    #[must_use]
    pub fn new(id: ExecutionId, net: &Net) -> LogProjection {
        LogProjection { id, trigger: net.entries().first().copied(), inputs: Arc::default() }
    }

    fn execution_line(&mut self, change: &ExecutionChange) -> Option<LineParts> {
        let line = |level, text: &str, data| Some((level, None, text.to_owned(), data));
        match change {
            ExecutionChange::Created { inputs, .. } => {
                self.inputs = inputs.clone();
                None
            }
            ExecutionChange::Forked { inputs, .. } => {
                self.inputs = inputs.as_ref().unwrap_or(&self.inputs).clone();
                None
            }
            ExecutionChange::Started => {
                let data = json!({ "inputs": reference(self.id, &self.inputs) });
                Some((Level::Info, self.trigger, "Workflow execution started".to_owned(), data))
            }
            ExecutionChange::Held { by, reason } => {
                line(Level::Info, "Workflow execution paused", json!({ "by": by, "reason": reason }))
            }
            ExecutionChange::Released { by } => {
                line(Level::Info, "Workflow execution resumed", json!({ "by": by }))
            }
            ExecutionChange::Restarted { .. } => {
                line(Level::Warn, "Workflow execution begins anew: its worker was lost", json!({}))
            }
            ExecutionChange::Ended { outcome, failure } => {
                let (level, text) = end(*outcome, failure.as_deref());
                let data = failure.as_ref().map_or(json!({}), |failure| json!({ "code": failure.code }));
                line(level, &text, data)
            }
            any_of![ExecutionChange: Paused Resumed Draining Compensating Finalizing NotCompensated
                Patched Bookkeeping] => None,
        }
    }
}

fn firing_line(firing: &FiringRef, change: &FiringChange, at: Millis) -> Option<LineParts> {
    let line = |level, text: &str, data| Some((level, Some(firing.step), text.to_owned(), data));
    match change {
        FiringChange::Fired { .. } if firing.is_whole() => line(Level::Info, "Node started", json!({})),
        FiringChange::Skipped(reason) => {
            line(Level::Debug, "Node skipped", json!({ "reason": skip_reason(*reason) }))
        }
        FiringChange::Offered { attempt: attempt @ 2.. } => {
            line(Level::Info, &format!("Attempt {attempt} started"), json!({ "attempt": attempt }))
        }
        FiringChange::Lost => line(Level::Warn, "The worker of the node was lost", json!({})),
        FiringChange::RetryScheduled { failure, until } => {
            let mut data = failed_data(firing, failure);
            data["retryAt"] = json!(time(*until));
            let text = format!("Attempt {} failed: {}", data["attempt"], failure.message);
            line(Level::Error, &text, data)
        }
        FiringChange::Failed { failure, .. } => {
            let text = format!("Node failed: {}", failure.message);
            line(Level::Error, &text, failed_data(firing, failure))
        }
        FiringChange::Done { times, .. } if firing.is_whole() => {
            let took = times.as_ref().map(|times| at.since(times.started_at));
            let data = took.map_or(json!({}), |took| json!({ "durationMs": took }));
            line(Level::Info, "Node completed", data)
        }
        FiringChange::ChildStarted { child, .. } => {
            line(Level::Info, "Another execution started", json!({ "executionId": execution_id(*child) }))
        }
        FiringChange::AwaitingManual { .. } => line(Level::Info, "Waiting for a person", json!({})),
        FiringChange::CompletedManually { note, .. } => {
            let data = json!({ "outcome": outcome(&note.outcome), "by": note.actor });
            line(Level::Info, "A person answered", data)
        }
        FiringChange::Noted { note } => {
            let data = json!({ "outcome": outcome(&note.outcome), "by": note.actor });
            let (level, text) = noted(&note.effect)?;
            line(level, &text, data)
        }
        any_of![FiringChange: Fired Done Waiting Woken Delayed Offered Yielded Dropped LoopStarted
            IterationStarted IterationEnded ChildPaused ChildReturned AgentDecided Routed] => None,
    }
}

/// Returns the text about an answer after which the node still waits.
fn noted(effect: &NoteEffect) -> Option<(Level, String)> {
    match effect {
        NoteEffect::Ends => None,
        NoteEffect::Counts => Some((Level::Info, "An approval was counted".to_owned())),
        NoteEffect::Refused { constraint, message } => {
            Some((Level::Warn, format!("An answer was refused by {constraint}: {message}")))
        }
    }
}

fn failed_data(firing: &FiringRef, failure: &Failure) -> Value {
    let attempt = firing.attempt.map_or(1, |attempt| attempt.number);
    json!({ "code": failure.code, "attempt": attempt, "retryAttempt": attempt })
}

impl Projection for LogProjection {
    type Item = LifecycleLine;

    fn project(&mut self, _: &Net, _: &Record, entry: &TimelineEntry) -> Vec<LifecycleLine> {
        let (at, version) = (entry.at, entry.version);
        let mut is_end = entry.ended_run().is_some();
        let line = match &entry.occurrence {
            Occurrence::Execution(change) => {
                is_end = matches!(change, ExecutionChange::Ended { .. });
                self.execution_line(change)
            }
            Occurrence::Firing(firing, change) => {
                is_end |= matches!(change, FiringChange::RetryScheduled { .. });
                firing_line(firing, change, at).map(|(level, step, text, mut data)| {
                    if !firing.path.0.is_empty() {
                        data["path"] = json!(firing.path.0);
                    }
                    (level, step, text, data)
                })
            }
            Occurrence::Token(_) | Occurrence::Cleared { .. } => None,
        };
        let line = line.map(|(level, step, text, data)| LifecycleLine {
            version,
            at,
            is_end,
            level,
            step,
            text,
            data,
        });
        line.into_iter().collect()
    }

    fn bytes(line: &LifecycleLine) -> usize {
        LINE_BYTES + line.text.len() + json_bytes(&line.data)
    }
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
