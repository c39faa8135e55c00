//! Creation and start: Queued, Starting, Running. A phase has a commit of its own only if the execution waits in it.

use super::{Accepted, Draft, cancel, hold, settle};
use crate::any_of;
use crate::event::{Cause, Created, Event, StartWhen};
use crate::execution::Clock;
use crate::input::{Create, Rejected};
use crate::net::Affinity;
use crate::phase::{Outcome, Phase};
use windlass_failure::Failure;

pub(super) fn create(d: &mut Draft<'_>, create: &Create) -> Accepted {
    if create.depth > d.net.policy().limits.depth {
        return Err(Rejected::Malformed("executions are nested too deeply"));
    }
    let timeout_ms = create.timeout_ms.or(d.net.policy().timeout_ms);
    let create = &Create { timeout_ms, ..create.clone() };
    d.emit(Event::Created(Box::new(Created { net: d.net.digest(), create: create.clone() })))?;
    match create.start {
        StartWhen::Now => start_now(d),
        StartWhen::At(at) if at <= d.at => start_now(d),
        StartWhen::At(_) | StartWhen::Called => Ok(()),
    }
}

/// Starts the execution, unless it waits for its one worker.
pub(crate) fn start_now(d: &mut Draft<'_>) -> Accepted {
    if d.net.policy().affinity == Affinity::AnyWorker { start(d) } else { Ok(()) }
}

pub(super) fn assign(d: &mut Draft<'_>, worker: &str) -> Accepted {
    if d.phase() != Phase::Queued || d.net.policy().affinity != Affinity::OneWorker || is_scheduled(d) {
        return Err(d.conflict("the execution does not wait for a worker"));
    }
    d.emit(Event::Assigned { worker: worker.to_owned(), deadline: hold::deadline_from_now(d) })
}

fn is_scheduled(d: &Draft<'_>) -> bool {
    matches!(d.head().start, StartWhen::At(at) if at > d.at)
}

pub(super) fn begin(d: &mut Draft<'_>) -> Accepted {
    let ready = match d.phase() {
        Phase::Starting => true,
        Phase::Queued => d.net.policy().affinity == Affinity::AnyWorker && !is_scheduled(d),
        any_of![Phase: Blank Running Paused Draining Compensating Finalizing Ended] => false,
    };
    if ready {
        start(d)
    } else {
        Err(d.conflict("it has already started, or still waits for its time or its worker"))
    }
}

/// Starts the execution. The deadline counts from the first start; a restart does not extend it.
pub(super) fn start(d: &mut Draft<'_>) -> Accepted {
    let deadline = match (d.head().clock, d.head().timeout_ms) {
        (Clock::Until(until), _) => Some(until),
        (Clock::Left(left), _) => Some(d.at.plus(left)),
        (Clock::None, timeout) => timeout.map(|timeout_ms| d.at.plus(timeout_ms)),
    };
    d.emit(Event::Started { deadline })
}

pub(super) fn fail_start(d: &mut Draft<'_>, failure: &Failure) -> Accepted {
    if !matches!(d.phase(), Phase::Queued | Phase::Starting) {
        return Err(d.conflict("it has started already"));
    }
    cancel::drain(d, Outcome::Failed, Cause::Failure, Some(failure.clone()))
}

pub(super) fn continue_work(d: &mut Draft<'_>) -> Accepted {
    if settle::has_work(d) { Ok(()) } else { Err(d.conflict("there is no work to continue")) }
}
