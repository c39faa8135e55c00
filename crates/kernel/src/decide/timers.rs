//! Due timers. Each names its purpose, so that a late one changes nothing.

use super::ending::{self, EndDetails};
use super::{Accepted, Draft, cancel, context, firing, retry, start, working};
use crate::event::{Cause, Event, StartWhen};
use crate::execution::Clock;
use crate::ids::{Fence, Millis, RunId, StepId, TokenId};
use crate::input::{Rejected, Timer};
use crate::net::Affinity;
use crate::phase::{Outcome, Phase};
use crate::step_run::RunState;
use windlass_failure::{Failure, FailureCode, codes};

pub(super) fn handle_due(d: &mut Draft<'_>, timer: Timer) -> Accepted {
    // Nothing new begins during a hold: timers stay due until it is released (R10).
    if d.head().held && !matches!(timer, Timer::Attempt { .. }) {
        return Err(d.conflict("it is held; the timer stays due"));
    }
    match timer {
        Timer::Start => start_scheduled(d),
        Timer::Deadline => expire_deadline(d),
        Timer::Backoff { run } => match d.run(run)?.state {
            RunState::Backoff { until } => {
                check_passed(d, until)?;
                d.emit(Event::Woken { run })
            }
            _ => Err(Rejected::NotWaiting { run, why: "no retry is scheduled" }),
        },
        Timer::Delay { run } => match d.run(run)?.state {
            RunState::Delayed { until } => {
                check_passed(d, until)?;
                working::end_delay(d, run)
            }
            _ => Err(Rejected::NotWaiting { run, why: "it is not delayed" }),
        },
        Timer::Routing { run } => match d.run(run)?.state {
            RunState::Waiting { until, ref target } => {
                check_passed(d, until)?;
                let message = format!("the awaited route {target} did not become ready in time");
                fail_run(d, run, codes::ROUTING_TIMEOUT, &message, None)
            }
            _ => Err(Rejected::NotWaiting { run, why: "no route is awaited" }),
        },
        Timer::Manual { run } => match d.run(run)?.state {
            RunState::Manual { fence, deadline: Some(until), .. } => {
                check_passed(d, until)?;
                fail_run(d, run, codes::MANUAL_TIMEOUT, "the step was not completed in time", Some(fence))
            }
            _ => Err(Rejected::NotWaiting { run, why: "no manual completion with a deadline is awaited" }),
        },
        Timer::Gate { step, token } => expire_gate(d, step, token),
        Timer::Attempt { run, fence } => expire_attempt(d, run, fence),
    }
}

fn check_passed(d: &Draft<'_>, until: Millis) -> Accepted {
    if until <= d.at { Ok(()) } else { Err(Rejected::NotDue { until }) }
}

fn start_scheduled(d: &mut Draft<'_>) -> Accepted {
    match (d.phase(), d.head().start) {
        (Phase::Queued, StartWhen::At(at)) => {
            check_passed(d, at)?;
            match d.net.policy().affinity {
                Affinity::AnyWorker => start::start(d),
                Affinity::OneWorker => d.emit(Event::TimeCame),
            }
        }
        _ => Err(d.conflict("no start time is scheduled")),
    }
}

/// Expires the deadline. Against a concurrent report, commit order decides: the later one finds nothing to change
/// (R9).
fn expire_deadline(d: &mut Draft<'_>) -> Accepted {
    match (d.phase(), d.head().clock) {
        (Phase::Starting | Phase::Running, Clock::Until(until)) => {
            check_passed(d, until)?;
            let failure =
                Failure::new(codes::EXECUTION_TIMEOUT, "the execution took longer than its timeout");
            cancel::drain(d, Outcome::Failed, Cause::Timeout, Some(failure))
        }
        _ => Err(d.conflict("no deadline is running")),
    }
}

fn fail_run(
    d: &mut Draft<'_>,
    run: RunId,
    code: FailureCode,
    message: &str,
    fence: Option<Fence>,
) -> Accepted {
    let failure = Failure::new(code, message);
    ending::fail(d, run, failure, EndDetails { fence, ..EndDetails::default() })
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
        _ => return Err(Rejected::StaleFence { given: fence }),
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
