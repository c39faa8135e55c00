//! Draining and cancelling: the outcome is decided, and tokens and waiting step-runs are removed in the same commit.

use super::{Accepted, Draft, finish, hold, start};
use crate::any_of;
use crate::event::{Cause, Cleared, Event, Gone};
use crate::ids::RunId;
use crate::input::Cancel;
use crate::phase::{Outcome, Phase};
use crate::step_run::{RunState, StepRun};
use windlass_failure::{Failure, codes};

/// Enters Draining, which decides the outcome (R6).
pub(super) fn drain(d: &mut Draft<'_>, outcome: Outcome, cause: Cause, failure: Option<Failure>) -> Accepted {
    let clear = if cause == Cause::Quiet { Clear::Rest } else { Clear::Waiting { cause } };
    drain_with(d, outcome, cause, failure, clear)
}

pub(super) fn drain_with(
    d: &mut Draft<'_>,
    outcome: Outcome,
    cause: Cause,
    failure: Option<Failure>,
    what: Clear,
) -> Accepted {
    match d.phase() {
        // Observers see the execution resume before it ends.
        Phase::Paused if cause != Cause::Cancel => hold::leave_pause(d)?,
        Phase::Queued if cause != Cause::Cancel => {
            d.emit(Event::Assigned { worker: String::new(), deadline: None })?;
        }
        any_of![Phase: Blank Queued Starting Running Paused Draining Compensating Finalizing Ended] => {}
    }
    let (failure, compensate) = (failure.map(Box::new), cause != Cause::Cancel);
    d.emit(Event::Draining { outcome, cause, failure, compensate })?;
    clear(d, what)
}

/// Extent of a clearing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clear {
    /// Tokens at gates that did not open.
    Rest,
    /// Everything that is not in flight; work in flight ends by itself.
    Waiting { cause: Cause },
    /// Everything, including work in flight.
    Everything,
    /// Everything, because the only worker of the execution is lost.
    Lost,
    /// Everything, because the execution starts again.
    Abandon,
}

pub(super) fn clear(d: &mut Draft<'_>, clear: Clear) -> Accepted {
    ask_to_stop(d, clear)?;
    let waiting = d.state.gated.keys().chain(d.state.joining.keys()).map(|(_, token)| *token);
    let tokens: Vec<_> = d.state.arrived.keys().copied().chain(waiting).collect();
    let dropped: Vec<_> = d.state.runs.iter().filter_map(|(id, run)| dropped_run(*id, run, clear)).collect();
    let nothing =
        tokens.is_empty() && dropped.is_empty() && d.state.joins.is_empty() && d.state.scopes.is_empty();
    if nothing { Ok(()) } else { d.emit(Event::Cleared(Box::new(Cleared { dropped, tokens }))) }
}

fn dropped_run(id: RunId, run: &StepRun, clear: Clear) -> Option<(RunId, Option<crate::ids::Fence>, Gone)> {
    let in_flight = run.state.kind().in_flight();
    let how = match (clear, &run.state) {
        (Clear::Rest, _) => return None,
        (Clear::Waiting { .. }, _) if in_flight => return None,
        (Clear::Abandon, _) => Gone::Abandoned,
        (Clear::Everything | Clear::Lost | Clear::Waiting { cause: Cause::Cancel }, _) => Gone::Cancelled,
        (Clear::Waiting { .. }, RunState::Manual { .. } | RunState::Looping(_)) => Gone::Cancelled,
        (Clear::Waiting { .. }, _) => Gone::Skipped,
    };
    Some((id, run.fence, how))
}

/// Asks children to stop in any case, and leases if their result is not wanted or not awaited.
fn ask_to_stop(d: &mut Draft<'_>, clear: Clear) -> Accepted {
    let stop_leases = match clear {
        // The drain has already asked the children of this execution to stop.
        Clear::Lost if d.phase() != Phase::Finalizing => return Ok(()),
        Clear::Lost => false,
        Clear::Rest => return Ok(()),
        Clear::Waiting { cause } => matches!(cause, Cause::Timeout | Cause::Cancel),
        Clear::Everything | Clear::Abandon => true,
    };
    let (mut leases, mut children) = (Vec::new(), Vec::new());
    for (id, run) in d.state.runs.iter() {
        match run.state {
            RunState::Offered { fence } if stop_leases => leases.push((*id, fence)),
            RunState::Child { child, .. } => children.push(child),
            any_of![RunState: Ready Waiting Delayed Offered Backoff Manual Looping] => {}
        }
    }
    if leases.is_empty() && children.is_empty() {
        Ok(())
    } else {
        d.emit(Event::StopAsked { leases, children })
    }
}

pub(super) fn cancel(d: &mut Draft<'_>, cancel: &Cancel) -> Accepted {
    match d.phase() {
        Phase::Queued => decide_cancelled(d, cancel),
        Phase::Starting => {
            start::start(d)?;
            decide_cancelled(d, cancel)
        }
        Phase::Running | Phase::Paused => decide_cancelled(d, cancel),
        Phase::Draining if finish::owes_compensation(d) && !cancel.force => Err(d.conflict(
            "the execution is failing and will be compensated; force the cancel to skip compensation",
        )),
        Phase::Draining if finish::owes_compensation(d) => skip_compensation(d),
        Phase::Draining => end_cancelled(d, cancel),
        Phase::Compensating if !cancel.force => {
            Err(d.conflict("the execution is being compensated; force the cancel to skip the rest"))
        }
        Phase::Compensating => skip_compensation(d),
        Phase::Finalizing => end_cancelled(d, cancel),
        Phase::Blank | Phase::Ended(_) => Err(d.conflict("there is nothing to cancel")),
    }
}

fn decide_cancelled(d: &mut Draft<'_>, cancel: &Cancel) -> Accepted {
    let failure = Some(Box::new(cancel_failure(cancel)));
    let compensate = cancel.compensate && d.net.policy().compensate && !cancel.force;
    d.emit(Event::Draining { outcome: Outcome::Cancelled, cause: Cause::Cancel, failure, compensate })?;
    // With compensation, work in flight has to end first, because it may have to be undone too.
    clear(d, if compensate { Clear::Waiting { cause: Cause::Cancel } } else { Clear::Everything })
}

pub(super) fn cancel_failure(cancel: &Cancel) -> Failure {
    let message = if cancel.reason.is_empty() { "cancelled".to_owned() } else { cancel.reason.clone() };
    Failure { details: serde_json::json!({ "by": cancel.by }), ..Failure::new(codes::CANCELLED, message) }
}

/// Ends the execution as cancelled. The decided outcome is kept only if compensation has already run.
fn end_cancelled(d: &mut Draft<'_>, cancel: &Cancel) -> Accepted {
    clear(d, Clear::Everything)?;
    let undone = d.head().counts.compensated > 0 || d.head().counts.compensation_failed > 0;
    let decided = d.head().decided.map(|decided| decided.outcome);
    let outcome = decided.filter(|_| undone).unwrap_or(Outcome::Cancelled);
    d.emit(Event::Ended { outcome, failure: Some(Box::new(cancel_failure(cancel))) })
}

/// Skips compensation that runs or is owed, on a forced cancel; the outcome stays (R8).
fn skip_compensation(d: &mut Draft<'_>) -> Accepted {
    clear(d, Clear::Everything)?;
    let runs: Vec<RunId> = d.state.owed.values().map(|(run, _)| *run).collect();
    if !runs.is_empty() {
        d.emit(Event::NotCompensated { runs })?;
    }
    finish::end_execution(d)
}
