//! Cancel: at once, or with compensation, or on top of an outcome that is decided.

use super::Checked;
use super::run::{End, State};
use super::world::{Cause, Outcome, Phase, World};

/// Whether compensation is owed while draining.
#[derive(Debug, Clone, Copy)]
enum Owed {
    Yes,
    No,
    Unclear,
}

impl World {
    pub(super) fn cancel(&mut self, force: bool, compensate: bool, accepted: bool) -> Checked {
        let owed = self.compensation_owed();
        let due = match (self.phase, owed) {
            (Phase::Over, _) => false,
            (Phase::Queued | Phase::Starting | Phase::Live | Phase::Finalizing, _) => true,
            (Phase::Compensating, _) => force,
            (Phase::Draining, Owed::Yes) => force,
            (Phase::Draining, Owed::No) => true,
            (Phase::Draining, Owed::Unclear) => force || accepted,
        };
        self.agree("cancel", due, accepted, "a cancel")?;
        // A definition without hooks has no compensation to ask for, or one that is empty: both are thinkable.
        let compensate = compensate && !force && (self.decided() || self.net.has_hooks() || self.either());
        match (accepted, self.decided(), compensate) {
            (false, _, _) => {}
            (true, true, _) => self.cancel_decided(force, owed),
            (true, false, true) => self.cancel_compensating(),
            (true, false, false) => self.cancel_at_once(force),
        }
        Ok(())
    }

    fn compensation_owed(&self) -> Owed {
        match (self.compensates(), self.next_to_undo(), self.net.has_hooks()) {
            (true, Some(_), _) => Owed::Yes,
            // Something in flight may complete and would have to be undone.
            (true, None, true) => Owed::Unclear,
            (true, None, false) | (false, _, _) => Owed::No,
        }
    }

    /// Stops the work in flight. If hooks are owed or ran, the decided outcome stays.
    fn cancel_decided(&mut self, force: bool, owed: Owed) {
        let hooks_ran = self.end.is_some_and(|end| end.hooks_ran);
        let is_final = match (self.phase, owed) {
            (Phase::Compensating, _) | (Phase::Draining, Owed::Yes) => true,
            (Phase::Draining, Owed::Unclear) => force && self.either(),
            (_, _) => hooks_ran,
        };
        if !is_final {
            self.set_outcome(Outcome::Cancelled);
        }
        self.stop_all_in_flight();
        self.end_now();
    }

    fn cancel_compensating(&mut self) {
        self.stop_all_in_flight();
        self.decide(Outcome::Cancelled, Cause::Cancel);
        if let Some(end) = &mut self.end {
            end.compensate = true;
        }
        self.carry_on();
    }

    /// Terminal in its own commit. With a final step after cancels, whether it waits for what is in flight, and
    /// whether force or an early cancel spares it, is not written.
    fn cancel_at_once(&mut self, force: bool) {
        let early = self.phase != Phase::Live;
        self.stop_all_in_flight();
        self.decide(Outcome::Cancelled, Cause::Cancel);
        let final_step = self.net.scenario.final_step.is_some() && self.net.scenario.final_on_cancel;
        let way = match (final_step, force || early) {
            (false, _) => 0,
            (true, false) => 1 + self.choose(2),
            (true, true) => self.choose(3),
        };
        match way {
            0 => self.end_now(),
            1 => self.drop_all(),
            _ => {}
        }
        self.carry_on();
    }

    fn drop_all(&mut self) {
        self.runs.iter_mut().filter(|run| run.lives()).for_each(|run| run.state = State::Ended(End::Gone));
    }

    fn end_now(&mut self) {
        self.drop_all();
        self.uploads_owed = false;
        self.phase = Phase::Over;
    }
}
