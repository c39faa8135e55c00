//! Work after every input: control proceeds until it waits for something outside, and then the execution pauses or
//! ends. Whether nothing is left to do follows from counters, without a search.

use super::{Accepted, Draft, cancel, finish, firing, hold, joining, loops, working};
use crate::any_of;
use crate::event::{Cause, Event};
use crate::ids::StepId;
use crate::input::Rejected;
use crate::net::{EndPolicy, Join};
use crate::phase::{Outcome, Phase};
use windlass_failure::{Failure, codes};

pub(crate) fn settle(d: &mut Draft<'_>) -> Accepted {
    loop {
        let phase = d.phase();
        proceed(d)?;
        if d.phase() != phase {
            continue;
        }
        if d.is_full() && has_work(d) {
            return d.emit(Event::Continued);
        }
        match phase {
            // A held execution does not end by itself.
            Phase::Running | Phase::Paused if d.head().held || !d.state.is_quiet(d.net) => {
                return hold::pause_or_resume(d);
            }
            Phase::Running | Phase::Paused => match joining::find_last(d) {
                Some(step) => joining::join_branches(d, step)?,
                None => cancel::drain(d, quiet_outcome(d), Cause::Quiet, None)?,
            },
            Phase::Draining if d.head().census.in_flight() == 0 => finish::finish_drain(d)?,
            Phase::Compensating if d.state.runs.is_empty() => finish::fire_next_hook(d)?,
            Phase::Finalizing if d.state.runs.is_empty() && !finish::awaits_uploads(d) => {
                finish::end_execution(d)?;
            }
            any_of![Phase: Blank Queued Starting Draining Compensating Finalizing Ended] => return Ok(()),
        }
    }
}

/// Returns whether work can proceed without another input.
pub(super) fn has_work(d: &Draft<'_>) -> bool {
    let startable = !d.head().held && working::can_begin(d);
    match d.phase() {
        Phase::Running | Phase::Paused => {
            !d.state.arrived.is_empty()
                || !d.state.hungry.is_empty()
                || startable
                || joining::find_complete(d).is_some()
        }
        Phase::Compensating | Phase::Finalizing => !d.state.hungry.is_empty() || startable,
        Phase::Blank | Phase::Queued | Phase::Starting | Phase::Draining | Phase::Ended(_) => false,
    }
}

/// Fires tokens, opens iterations and begins ready work until the limit of one decision or until nothing is left.
fn proceed(d: &mut Draft<'_>) -> Accepted {
    while !d.is_full() && has_work(d) {
        if d.is_open() && check_limits(d)? {
            return Ok(());
        }
        if let Some(token) = d.state.arrived.first().map(|(id, _)| *id) {
            firing::fire_token(d, token)?;
        } else if let Some(step) = joining::find_complete(d) {
            joining::join_branches(d, step)?;
        } else if let Some(run) = d.state.hungry.first().map(|(id, ())| *id) {
            loops::open_next(d, run)?;
        } else {
            working::begin_ready(d)?;
        }
    }
    Ok(())
}

/// Fails the execution if a limit of R5 was reached, and returns whether it was.
fn check_limits(d: &mut Draft<'_>) -> Result<bool, Rejected> {
    let limits = &d.net.policy().limits;
    let standing = d.state.arrived.len() + d.state.gated.len() + d.state.joining.len();
    let ready = || d.state.ready.keys().next().and_then(|(_, _, run)| d.state.run(*run)).map(|run| run.step);
    let step = d.state.arrived.first().map(|(_, token)| token.step).or_else(ready);
    if d.head().counts.firings >= limits.firings_per_execution {
        fail_at_limit(d, step, "firings_per_execution", limits.firings_per_execution)?;
    } else if standing > limits.standing_tokens {
        fail_at_limit(d, step, "standing_tokens", limits.standing_tokens as u64)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn fail_at_limit(d: &mut Draft<'_>, step: Option<StepId>, limit: &str, bound: u64) -> Accepted {
    let at = step.map_or("a loop", |step| d.net.step(step).name.as_str());
    let message = format!("limit {limit} ({bound}) reached at step `{at}`; check that its routing ends");
    let mut failure = Failure::new(codes::LIMIT_EXCEEDED, message);
    failure.facts.step = step.map(|step| d.net.step(step).name.clone());
    cancel::drain(d, Outcome::Failed, Cause::Limit, Some(failure))
}

/// Returns the outcome of an execution that has nothing left to do.
fn quiet_outcome(d: &Draft<'_>) -> Outcome {
    let counts = &d.head().counts;
    if counts.unhandled == 0 {
        return Outcome::Completed;
    }
    let well = match d.net.policy().join {
        Join::Each => counts.branches_well,
        Join::All | Join::AnyLive => counts.completed_without_triggers,
    };
    match d.net.policy().end {
        EndPolicy::Partial if well > 0 => Outcome::Partial,
        EndPolicy::Partial | EndPolicy::FailOnAny => Outcome::Failed,
    }
}
