//! Holding and pausing. Paused means: held, or only people can move it (R10).

use super::Draft;
use crate::event::{Event, PauseReason};
use crate::execution::Clock;
use crate::ids::Millis;
use crate::input::Rejected;
use crate::phase::Phase;

pub(super) fn hold(d: &mut Draft<'_>, by: &str, reason: &str) -> Result<(), Rejected> {
    if !d.is_open() {
        return Err(d.conflict("only a running execution can be paused"));
    }
    if d.head().held {
        return Ok(());
    }
    d.emit(Event::Held { by: by.to_owned(), reason: reason.to_owned() })
}

/// Clears a hold. It opens no gate and answers for nobody.
pub(super) fn resume(d: &mut Draft<'_>, by: &str) -> Result<(), Rejected> {
    if !d.head().held {
        return Err(
            d.conflict("it is not held; a gate opens by a context patch, a manual step by its completion")
        );
    }
    d.emit(Event::Released { by: by.to_owned() })
}

/// After everything else: is this a pause, or the end of one? The deadline stands still in between.
pub(super) fn pause_or_resume(d: &mut Draft<'_>) -> Result<(), Rejected> {
    let people = d.state.waits_for_people();
    let pause = d.head().held || people;
    match (d.phase(), pause) {
        (Phase::Running, true) => {
            let reason = if d.head().held { PauseReason::Held } else { PauseReason::Waiting };
            d.emit(Event::Paused { reason, remaining_ms: remaining_ms(d) })
        }
        (Phase::Paused, false) => leave_pause(d),
        _ => Ok(()),
    }
}

pub(super) fn leave_pause(d: &mut Draft<'_>) -> Result<(), Rejected> {
    let deadline = deadline_on(d);
    d.emit(Event::Resumed { deadline })
}

/// What is left of the execution's time when its clock is stopped now.
pub(super) fn remaining_ms(d: &Draft<'_>) -> Option<u64> {
    match d.head().clock {
        Clock::Until(until) => Some(until.since(d.at)),
        Clock::Left(left) => Some(left),
        Clock::None => None,
    }
}

/// The deadline when a stopped clock runs on from now.
pub(super) fn deadline_on(d: &Draft<'_>) -> Option<Millis> {
    match d.head().clock {
        Clock::Left(left) => Some(d.at.plus(left)),
        Clock::None | Clock::Until(_) => None,
    }
}
