//! Holds and pauses. An execution is paused if it is held or if only people can continue it (R10).

use super::{Accepted, Draft};
use crate::any_of;
use crate::event::{Event, PauseReason};
use crate::execution::Clock;
use crate::ids::Millis;
use crate::phase::Phase;

pub(super) fn hold(d: &mut Draft<'_>, by: &str, reason: &str) -> Accepted {
    if !d.is_open() {
        return Err(d.conflict("only a running execution can be paused"));
    }
    if d.head().held {
        return Ok(());
    }
    d.emit(Event::Held { by: by.to_owned(), reason: reason.to_owned() })
}

/// Releases a hold. It opens no gate and completes no manual step.
pub(super) fn resume(d: &mut Draft<'_>, by: &str) -> Accepted {
    if !d.head().held {
        return Err(
            d.conflict("it is not held; patch the context to open a gate, or complete the manual step")
        );
    }
    d.emit(Event::Released { by: by.to_owned() })
}

/// Starts or ends a pause, after everything else is settled. The deadline does not run during a pause.
pub(super) fn pause_or_resume(d: &mut Draft<'_>) -> Accepted {
    let people = d.state.waits_for_people();
    let pause = d.head().held || people;
    match d.phase() {
        Phase::Running if pause => {
            let reason = if d.head().held { PauseReason::Held } else { PauseReason::Waiting };
            d.emit(Event::Paused { reason, remaining_ms: remaining_ms(d) })
        }
        Phase::Paused if !pause => leave_pause(d),
        any_of![Phase: Blank Queued Starting Running Paused Draining Compensating Finalizing Ended] => Ok(()),
    }
}

pub(super) fn leave_pause(d: &mut Draft<'_>) -> Accepted {
    let deadline = deadline_from_now(d);
    d.emit(Event::Resumed { deadline })
}

/// Returns the remaining time of the execution if its clock stops now.
pub(super) fn remaining_ms(d: &Draft<'_>) -> Option<u64> {
    match d.head().clock {
        Clock::Until(until) => Some(until.since(d.at)),
        Clock::Left(left) => Some(left),
        Clock::None => None,
    }
}

/// Returns the deadline if a stopped clock runs again from now.
pub(super) fn deadline_from_now(d: &Draft<'_>) -> Option<Millis> {
    match d.head().clock {
        Clock::Left(left) => Some(d.at.plus(left)),
        Clock::None | Clock::Until(_) => None,
    }
}
