//! Entries of the progress of an execution, from the records of its journal.

use super::{
    FiringRole, ProgressChange, ProgressEntry, ProgressFailure, ProgressFiring, ProgressFiringChange,
    ProgressTimes, firing_id,
};
use crate::projection::Projection;
use crate::response::execution_status;
use crate::timeline::{
    ExecutionChange, FiringChange, FiringRef, Occurrence, TimelineEntry, TokenChange, TokenRef,
};
use crate::waiting::gate_keys;
use crate::wire::execution_id;
use serde_json::Value;
use windlass_kernel::{Failure, Net, PauseReason, Phase, Record, Role, StepId, Times, any_of};

/// JSON of an entry without its texts, roughly.
const ENTRY_BYTES: usize = 250;

/// Derives entries of progress, at most one for each record.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgressProjection;

impl Projection for ProgressProjection {
    type Item = ProgressEntry;

    fn project(&mut self, net: &Net, _: &Record, entry: &TimelineEntry) -> Vec<ProgressEntry> {
        let change = match &entry.occurrence {
            Occurrence::Execution(change) => execution_change(change),
            Occurrence::Firing(firing, change) => firing_change(firing, change)
                .map(|change| ProgressChange::Firing { firing: self::firing(net, firing), change }),
            Occurrence::Token(change) => token_change(net, change),
            Occurrence::Cleared { dropped, .. } => {
                let firings: Vec<_> = dropped.iter().map(|(dropped, _)| firing(net, dropped)).collect();
                (!firings.is_empty()).then_some(ProgressChange::GivenUp { firings })
            }
        };
        change.map(|change| ProgressEntry { timestamp: entry.at, change }).into_iter().collect()
    }

    fn bytes(entry: &ProgressEntry) -> usize {
        ENTRY_BYTES + text_bytes(&entry.change)
    }
}

/// Returns the bytes of texts whose length is not bounded by the definition's names.
fn text_bytes(change: &ProgressChange) -> usize {
    match change {
        ProgressChange::Held { reason, .. } => reason.len(),
        ProgressChange::ContextChanged { keys, .. } => keys.iter().map(String::len).sum(),
        ProgressChange::Ended { failure, .. } => failure.as_ref().map_or(0, |failure| failure.message.len()),
        ProgressChange::GivenUp { firings } => firings.len() * ENTRY_BYTES,
        ProgressChange::Firing { change, .. } => match change {
            ProgressFiringChange::RetryScheduled { failure, .. }
            | ProgressFiringChange::Failed { failure, .. } => failure.message.len(),
            ProgressFiringChange::AwaitingPerson { message, approvers, .. } => {
                approvers.iter().chain(message).map(String::len).sum()
            }
            any_of![ProgressFiringChange: Fired Skipped Queued Waiting Lost Yielded LoopStarted IterationEnded
                ChildStarted ChildPaused ChildContinued Done Cancelled] => 0,
        },
        any_of![ProgressChange: Started TakenOver Paused Released Restarted Gated Joined] => 0,
    }
}

fn execution_change(change: &ExecutionChange) -> Option<ProgressChange> {
    Some(match change {
        ExecutionChange::Started => ProgressChange::Started,
        ExecutionChange::Forked { parent, .. } => ProgressChange::TakenOver { from: execution_id(*parent) },
        ExecutionChange::Paused(PauseReason::Waiting) => ProgressChange::Paused,
        ExecutionChange::Held { by, reason } => {
            ProgressChange::Held { by: by.clone(), reason: reason.clone() }
        }
        ExecutionChange::Released { by } => ProgressChange::Released { by: by.clone() },
        ExecutionChange::Restarted { generation } => ProgressChange::Restarted { generation: *generation },
        ExecutionChange::Patched { patch, by } => {
            ProgressChange::ContextChanged { keys: patch.keys().cloned().collect(), by: by.clone() }
        }
        ExecutionChange::Ended { outcome, failure } => ProgressChange::Ended {
            status: execution_status(Phase::Ended(*outcome)),
            failure: failure.as_deref().map(self::failure),
        },
        ExecutionChange::Paused(PauseReason::Held)
        | any_of![ExecutionChange: Created Resumed Draining Compensating Finalizing NotCompensated
            Bookkeeping] => return None,
    })
}

fn token_change(net: &Net, change: &TokenChange) -> Option<ProgressChange> {
    let name = |step: StepId| net.step(step).name.clone();
    match change {
        TokenChange::Denied { at: Some(TokenRef { step, path }), deadline, .. } => {
            Some(ProgressChange::Gated {
                step: name(*step),
                path: path.0.clone(),
                keys: gate_keys(net, *step).into_iter().map(str::to_owned).collect(),
                deadline: *deadline,
            })
        }
        TokenChange::Joined { at, arrived } => {
            Some(ProgressChange::Joined { step: name(at.step), branches: *arrived })
        }
        TokenChange::Denied { at: None, .. } | TokenChange::Discarded(_) | TokenChange::Admitted(_) => None,
    }
}

/// Returns what a display shows of a change; None if it shows nothing.
fn firing_change(firing: &FiringRef, change: &FiringChange) -> Option<ProgressFiringChange> {
    let times = |times: &Option<Times>| ProgressTimes {
        queued_at: firing.began_at,
        started_at: times.map(|times| times.started_at),
    };
    Some(match change {
        FiringChange::Fired { .. } => ProgressFiringChange::Fired,
        FiringChange::Skipped(_) => ProgressFiringChange::Skipped,
        FiringChange::Offered { attempt } => ProgressFiringChange::Queued { attempt: *attempt },
        FiringChange::Waiting { until } | FiringChange::Delayed { until } => {
            ProgressFiringChange::Waiting { until: *until }
        }
        FiringChange::Lost => ProgressFiringChange::Lost,
        FiringChange::RetryScheduled { until, failure } => {
            ProgressFiringChange::RetryScheduled { until: *until, failure: self::failure(failure) }
        }
        FiringChange::Yielded { until } => ProgressFiringChange::Yielded { until: *until },
        FiringChange::AwaitingManual { question, deadline, .. } => ProgressFiringChange::AwaitingPerson {
            message: question["message"].as_str().map(str::to_owned),
            approvers: names(&question["approvers"]),
            deadline: *deadline,
        },
        FiringChange::LoopStarted { total } => ProgressFiringChange::LoopStarted { total: *total },
        FiringChange::IterationEnded => ProgressFiringChange::IterationEnded,
        FiringChange::ChildStarted { child, .. } => {
            ProgressFiringChange::ChildStarted { child_id: execution_id(*child) }
        }
        FiringChange::ChildPaused { child, paused: true } => {
            ProgressFiringChange::ChildPaused { child_id: child.map(execution_id) }
        }
        FiringChange::ChildPaused { paused: false, .. } => ProgressFiringChange::ChildContinued,
        FiringChange::Done { times: reported, .. } => ProgressFiringChange::Done { times: times(reported) },
        FiringChange::Failed { failure, handled, times: reported, .. } => ProgressFiringChange::Failed {
            times: times(reported),
            failure: self::failure(failure),
            handled: *handled,
        },
        FiringChange::Dropped(_) => ProgressFiringChange::Cancelled,
        any_of![FiringChange: Woken CompletedManually Noted IterationStarted ChildReturned AgentDecided
            Routed] => return None,
    })
}

/// Returns one name or a list of them.
fn names(approvers: &Value) -> Vec<String> {
    let listed = approvers.as_array().into_iter().flatten().filter_map(Value::as_str);
    listed.chain(approvers.as_str()).map(str::to_owned).collect()
}

fn firing(net: &Net, firing: &FiringRef) -> ProgressFiring {
    ProgressFiring {
        id: firing_id(firing.run),
        step: net.step(firing.step).name.clone(),
        path: firing.path.0.clone(),
        role: match firing.role {
            Role::Routed | Role::Final | Role::Tool { .. } => FiringRole::Whole,
            Role::Iteration { .. } => FiringRole::Iteration,
            Role::Hook { .. } => FiringRole::Compensation,
        },
    }
}

fn failure(failure: &Failure) -> ProgressFailure {
    ProgressFailure { code: failure.code.clone(), message: failure.message.clone() }
}
