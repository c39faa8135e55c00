//! Checks of everything that must have happened when the engine is done with an input, and at the end of the world.

use super::Checked;
use super::run::{Run, RunId, State};
use super::world::{Input, Phase, World};
use crate::seen::Status;

impl World {
    pub(super) fn settled(&mut self) -> Checked {
        self.check_restart()?;
        self.check_begun()?;
        self.check_stops()?;
        self.check_status()?;
        self.input = Input::default();
        self.runs.iter_mut().for_each(|run| run.fresh = false);
        Ok(())
    }

    fn check_restart(&self) -> Checked {
        match self.input.restart_owed {
            None => Ok(()),
            Some(owed) => self.broken("restart", format!("generation {owed} did not begin")),
        }
    }

    /// Checks that every step that could begin has begun, and that no later step overtook one that waits for a slot.
    fn check_begun(&mut self) -> Checked {
        for id in 0..self.runs.len() {
            match self.runs[id].state {
                State::Ready | State::Confirm if self.held => {}
                State::Ready if self.wants_slot(id) && !self.slot_is_free() => self.check_turn(id)?,
                State::Ready | State::Confirm => {
                    return self.broken("dispatch", format!("did not begin: {}", self.runs[id].describe()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_turn(&mut self, waiting: RunId) -> Checked {
        if self.runs[waiting].fresh {
            return Ok(());
        }
        for began in self.input.began.clone() {
            let (first, then) = (self.order(began), self.order(waiting));
            let number = self.runs[began].firing.unwrap_or(0);
            let behind = match self.runs[waiting].firing {
                Some(firing) => (first, number) > (then, firing),
                None => first > then,
            };
            if behind {
                let (began, waiting) = (self.runs[began].describe(), self.runs[waiting].describe());
                return self.broken("order", format!("{began} went before {waiting}"));
            }
            if first == then {
                self.runs[waiting].above = self.runs[waiting].above.max(number);
            }
        }
        Ok(())
    }

    fn check_stops(&self) -> Checked {
        match self.input.stops_owed.difference(&self.input.stops_seen).next() {
            None => Ok(()),
            Some(firing) => self.broken("stop", format!("{firing} was not asked to stop")),
        }
    }

    fn check_status(&self) -> Checked {
        let due = self.due_status();
        match self.status {
            Some(status) if status == due => Ok(()),
            // A first status may be known without an event.
            None if due == Status::Queued => Ok(()),
            shown => self.broken("status", format!("{shown:?} is shown, due is {due:?}")),
        }
    }

    /// Everyone has answered and every timer rang: what is left waits for people who will not come.
    pub(super) fn over(&mut self) -> Checked {
        let stuck = match self.phase {
            Phase::Over | Phase::Queued => None,
            Phase::Live if self.held => None,
            Phase::Live | Phase::Finalizing => self.runs.iter().find(|run| !waits_for_good(run)),
            Phase::Starting | Phase::Draining | Phase::Compensating => {
                self.runs.iter().find(|run| run.lives())
            }
        };
        let stands_still = matches!(self.phase, Phase::Starting | Phase::Draining | Phase::Compensating)
            || (self.phase == Phase::Finalizing && self.uploads_owed);
        match (stuck, stands_still) {
            (Some(run), _) => self.broken("stuck", run.describe()),
            (None, true) => self.broken("stuck", "nothing moves it any more"),
            (None, false) => Ok(()),
        }
    }
}

/// Returns true if only a person can continue the run, or if it does not wait for anything itself.
fn waits_for_good(run: &Run) -> bool {
    match run.state {
        State::Gate { due } | State::Person { due } => due.is_none(),
        State::Loop(_) | State::Ended(_) => true,
        _ => false,
    }
}
