//! Due timers. Each names its purpose, so that a late one changes nothing.

use super::ending::{self, EndDetails};
use super::{Accepted, Draft, cancel, context, firing, retry, start, working};
use crate::any_of;
use crate::event::{Cause, Event};
use crate::execution::Execution;
use crate::ids::{Fence, Millis, RunId, StepId, TokenId};
use crate::input::{Rejected, Timer};
use crate::net::Affinity;
use crate::phase::Outcome;
use crate::step_run::RunState;
use windlass_failure::{Failure, codes};

pub(super) fn handle_due(d: &mut Draft<'_>, timer: Timer) -> Accepted {
    // Nothing new begins during a hold: timers stay due until it is released (R10).
    if d.head().held && !matches!(timer, Timer::Attempt { .. }) {
        return Err(d.conflict("it is held; the timer stays due"));
    }
    match timer {
        Timer::Start => start_scheduled(d),
        Timer::Deadline => expire_deadline(d),
        Timer::Gate { step, token } => expire_gate(d, step, token),
        Timer::Attempt { run, fence } => expire_attempt(d, run, fence),
        Timer::Backoff { run } | Timer::Delay { run } | Timer::Routing { run } | Timer::Manual { run } => {
            end_wait(d, run, timer)
        }
    }
}

/// Ends the wait of a step-run, if the timer is the one of its state.
fn end_wait(d: &mut Draft<'_>, id: RunId, timer: Timer) -> Accepted {
    let run = d.run(id)?;
    let running = Execution::timer_of(id, run).filter(|(running, _)| *running == timer);
    let stale = Rejected::NotWaiting { run: id, why: "this timer does not run" };
    let Some((_, until)) = running else { return Err(stale) };
    check_passed(d, until)?;
    let (code, message, fence) = match &run.state {
        RunState::Backoff { .. } => return d.emit(Event::Woken { run: id }),
        RunState::Delayed { .. } => return working::end_delay(d, id),
        RunState::Waiting { target, .. } => {
            let message = format!("the awaited route {target} did not become ready in time");
            (codes::ROUTING_TIMEOUT, message, None)
        }
        RunState::Manual { fence, .. } => {
            (codes::MANUAL_TIMEOUT, "the step was not completed in time".to_owned(), Some(*fence))
        }
        any_of![RunState: Ready Offered Child Looping] => return Err(stale),
    };
    ending::fail(d, id, Failure::new(code, message), EndDetails { fence, ..EndDetails::default() })
}

fn check_passed(d: &Draft<'_>, until: Millis) -> Accepted {
    if until <= d.at { Ok(()) } else { Err(Rejected::NotDue { until }) }
}

fn start_scheduled(d: &mut Draft<'_>) -> Accepted {
    let Some((Timer::Start, at)) = d.head().timer() else {
        return Err(d.conflict("no start time is scheduled"));
    };
    check_passed(d, at)?;
    match d.net.policy().affinity {
        Affinity::AnyWorker => start::start(d),
        Affinity::OneWorker => d.emit(Event::TimeCame),
    }
}

/// Expires the deadline. Against a concurrent report, commit order decides: the later one finds nothing to change
/// (R9).
fn expire_deadline(d: &mut Draft<'_>) -> Accepted {
    let Some((Timer::Deadline, until)) = d.head().timer() else {
        return Err(d.conflict("no deadline is running"));
    };
    check_passed(d, until)?;
    let failure = Failure::new(codes::EXECUTION_TIMEOUT, "the execution took longer than its timeout");
    cancel::drain(d, Outcome::Failed, Cause::Timeout, Some(failure))
}

/// Fails the step behind the gate, so that its arcs can handle the failure.
fn expire_gate(d: &mut Draft<'_>, step: StepId, id: TokenId) -> Accepted {
    let Some(gate) = d.state.gated.get(&(step, id)).cloned() else { return Err(Rejected::UnknownToken(id)) };
    let Some(until) = gate.deadline else { return Err(Rejected::UnknownToken(id)) };
    check_passed(d, until)?;
    d.emit(Event::Admitted { tokens: vec![(step, id)] })?;
    let args = context::token_args(&gate.token);
    let failure = Failure::new(codes::GATE_TIMEOUT, "the gate did not open in time");
    firing::fail(d, id, &gate.token, args, failure)
}

/// Expires an attempt; its late result finds the fence closed (ACT-09).
fn expire_attempt(d: &mut Draft<'_>, id: RunId, fence: Fence) -> Accepted {
    let run = d.state.run(id).ok_or(Rejected::StaleFence { given: fence })?;
    let role = run.role.clone();
    let stop = match run.state {
        RunState::Offered { fence: open } if open == fence => {
            Event::StopAsked { leases: vec![(id, fence)], children: Vec::new() }
        }
        RunState::Child { fence: open, child, until, .. } if open == fence => {
            until.map_or(Ok(()), |until| check_passed(d, until))?;
            Event::StopAsked { leases: Vec::new(), children: vec![child] }
        }
        any_of![RunState: Ready Waiting Delayed Offered Backoff Manual Child Looping] => {
            return Err(Rejected::StaleFence { given: fence });
        }
    };
    d.emit(stop)?;
    let failure = Failure::new(codes::NETWORK_TIMEOUT, "the attempt took longer than its timeout");
    if ending::control_continues(d, &role) {
        let cursor = d.given.values.checkpoints.get(&(id, fence)).cloned();
        retry::fail_attempt(d, id, failure, EndDetails { cursor, ..EndDetails::under(fence) })
    } else {
        ending::fail(d, id, failure, EndDetails::under(fence))
    }
}
