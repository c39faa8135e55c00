//! The start and restart of an execution.

use super::Checked;
use super::run::{End, State};
use super::world::{Cause, Outcome, Phase, World};
use crate::scenario::Dialect;

/// The loss that fails the execution instead of restarting it.
const LOSSES_MAX: u32 = 5;

impl World {
    pub(super) fn is_plan(&self) -> bool {
        self.net.scenario.dialect == Dialect::Plan
    }

    pub(super) fn created(&mut self) -> Checked {
        if !self.is_plan() {
            self.start();
        }
        Ok(())
    }

    pub(super) fn assigned(&mut self, accepted: bool) -> Checked {
        let due = self.is_plan() && self.phase == Phase::Queued;
        self.agree("start", due, accepted, "a worker that takes the execution")?;
        if accepted {
            self.phase = Phase::Starting;
        }
        Ok(())
    }

    pub(super) fn begun(&mut self, accepted: bool) -> Checked {
        let due = self.phase == Phase::Starting;
        self.agree("start", due, accepted, "a worker that has prepared the execution")?;
        if accepted {
            self.start();
        }
        Ok(())
    }

    fn start(&mut self) {
        self.phase = Phase::Live;
        let entries = self.net.entries(None);
        for step in entries {
            // Whether a final step that nothing leads to is an entry too is not written anywhere.
            let only_final = !self.net.is_playbook() && self.net.scenario.final_step == Some(step);
            if !self.decided() && (!only_final || self.either()) {
                self.fire(step, Vec::new(), None);
            }
        }
        self.carry_on();
    }

    pub(super) fn lost_whole(&mut self, generation: u32, accepted: bool) -> Checked {
        let due = match self.phase {
            Phase::Starting | Phase::Live | Phase::Draining | Phase::Finalizing => true,
            Phase::Queued | Phase::Over => false,
            // No net has both hooks and a worker for the whole.
            Phase::Compensating => accepted,
        };
        let due = due && self.is_plan() && generation == self.generation;
        self.agree("restart", due, accepted, "the loss of the whole execution")?;
        match (accepted, self.phase) {
            (false, _) => {}
            (true, Phase::Draining | Phase::Compensating) => self.lose_all_in_flight(),
            (true, Phase::Finalizing) if self.ended_early() && self.either() => self.lose_all_in_flight(),
            (true, Phase::Queued | Phase::Starting | Phase::Live | Phase::Finalizing | Phase::Over) => {
                self.restart_or_fail();
            }
        }
        Ok(())
    }

    /// A plan that came to its own end begins again when its uploads are lost; of one that failed or ran out of time
    /// that is not written.
    fn ended_early(&self) -> bool {
        self.end.is_some_and(|end| end.cause != Cause::Quiet)
    }

    /// Drops everything in flight. While draining, a lost firing is not run again and a lost upload is not repeated.
    fn lose_all_in_flight(&mut self) {
        self.uploads_owed = false;
        for run in self.runs.iter_mut().filter(|run| run.in_flight()) {
            self.input.stops_allowed.extend(run.firing);
            run.state = State::Ended(End::Gone);
        }
        self.carry_on();
    }

    /// Restarts the execution or fails it, also while it finalizes: uploads that are not done are lost with the worker.
    pub(super) fn restart_or_fail(&mut self) {
        self.end = None;
        self.uploads_owed = false;
        self.losses += 1;
        let in_flight = self.runs.iter().filter(|run| run.in_flight()).filter_map(|run| run.firing);
        self.input.stops_allowed.extend(in_flight);
        match self.losses >= LOSSES_MAX {
            true => self.fail_by_loss(),
            false => self.restart(),
        }
    }

    fn fail_by_loss(&mut self) {
        if self.is_plan() {
            let tasks = self.runs.iter_mut().filter(|run| matches!(run.state, State::Offered { .. }));
            tasks.for_each(|run| run.state = State::Ended(End::Gone));
        }
        self.decide(Outcome::Failed, Cause::Failure);
        self.carry_on();
    }

    fn restart(&mut self) {
        self.generation += 1;
        self.input.restart_owed = Some(self.generation);
        self.void_generation();
        // A hold is a person's wish, but a queued execution cannot be held: both are thinkable.
        self.held = self.held && self.either();
        match self.is_plan() {
            true => self.phase = Phase::Queued,
            false => self.start(),
        }
    }

    fn void_generation(&mut self) {
        let gates = self.runs.iter().filter_map(|run| match run.state {
            State::Gate { due: Some(due) } => Some((run.step, due)),
            _ => None,
        });
        self.gone_gates.extend(gates);
        self.runs.clear();
        self.joins.clear();
        self.gathered.clear();
        self.flags.clear();
        self.completed.clear();
        self.failures = 0;
        self.well = false;
    }

    pub(super) fn restarted(&mut self, generation: u32) -> Checked {
        match self.input.restart_owed.take() {
            Some(owed) if owed == generation => {
                self.input.restarted = true;
                Ok(())
            }
            Some(owed) => self.broken("restart", format!("generation {generation} begins, not {owed}")),
            None => self.broken("restart", format!("generation {generation} begins without a cause")),
        }
    }
}
