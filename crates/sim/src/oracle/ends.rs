//! The end of an execution: the outcome, decided once, and the phases that follow.

use super::Checked;
use super::run::{End, Kind, Run, RunId, State};
use super::world::{Cause, Decided, Outcome, Phase, World};

impl World {
    /// One move of the life cycle; false when it waits for something.
    pub(super) fn turn_phase(&mut self) -> bool {
        let live = self.runs.iter().any(Run::lives);
        match self.phase {
            Phase::Live if !self.held && self.is_quiet() => {
                if !self.gather_last() {
                    self.decide(self.quiet_outcome(), Cause::Quiet);
                }
            }
            Phase::Draining if !live => self.after_draining(),
            Phase::Compensating if !live => self.next_hook(),
            Phase::Finalizing if !live && !self.uploads_owed => self.phase = Phase::Over,
            Phase::Queued | Phase::Starting | Phase::Live | Phase::Over => return false,
            Phase::Draining | Phase::Compensating | Phase::Finalizing => return false,
        }
        true
    }

    fn is_quiet(&self) -> bool {
        let idle_gate =
            |run: &Run| self.net.scenario.gates_complete && matches!(run.state, State::Gate { .. });
        self.runs.iter().filter(|run| run.lives()).all(idle_gate)
    }

    fn quiet_outcome(&self) -> Outcome {
        match (self.failures, self.net.scenario.partial && self.well) {
            (0, _) => Outcome::Completed,
            (_, true) => Outcome::Partial,
            (_, false) => Outcome::Failed,
        }
    }

    /// Enters draining: tokens, waiting steps and backoffs are dropped, work in flight is awaited.
    pub(super) fn decide(&mut self, outcome: Outcome, cause: Cause) {
        self.held = false;
        self.gathered.clear();
        self.phase = Phase::Draining;
        self.end = Some(Decided { outcome, cause, compensate: false, hooks_ran: false });
        for id in 0..self.runs.len() {
            if self.runs[id].lives() && !self.runs[id].in_flight() && !self.slips_through(id, cause) {
                self.drop_run(id);
            }
        }
        if cause == Cause::Failure {
            self.stop_children();
        }
    }

    fn drop_run(&mut self, id: RunId) {
        if let State::Gate { due: Some(due) } = self.runs[id].state {
            self.gone_gates.push((self.runs[id].step, due));
        }
        self.runs[id].state = State::Ended(End::Gone);
    }

    /// A failure found while steps begin (a condition that cannot be evaluated): those whose turn came first may
    /// have begun already.
    fn slips_through(&mut self, id: RunId, cause: Cause) -> bool {
        if cause != Cause::Failure || !self.input.instant || !self.is_ready(id) {
            return false;
        }
        match (self.wants_slot(id), self.runs[id].again) {
            (true, false) => self.room_for(id) && self.either(),
            (false, _) => {
                self.input.passing.push(id);
                false
            }
            (true, true) => false,
        }
    }

    fn stop_children(&mut self) {
        let children = self.runs.iter().filter(|run| matches!(run.state, State::Child { .. }));
        let firings: Vec<_> = children.filter_map(|run| run.firing).collect();
        self.input.stops_owed.extend(firings);
    }

    pub(super) fn stop_all_in_flight(&mut self) {
        let firings: Vec<_> =
            self.runs.iter().filter(|run| run.in_flight()).filter_map(|run| run.firing).collect();
        self.input.stops_owed.extend(firings);
    }

    pub(super) fn compensates(&self) -> bool {
        self.end.is_some_and(|end| end.compensate || end.outcome == Outcome::Failed)
    }

    pub(super) fn next_to_undo(&self) -> Option<RunId> {
        let undone = |id: RunId| self.runs.iter().any(|run| run.of == Kind::Hook { undoes: id });
        let has_hook = |id: RunId| self.net.step(self.runs[id].step).hook.is_some();
        self.completed.iter().rev().copied().find(|&id| has_hook(id) && !undone(id))
    }

    fn after_draining(&mut self) {
        match self.compensates() && self.next_to_undo().is_some() {
            true => self.phase = Phase::Compensating,
            false => self.finalize(),
        }
    }

    /// Hooks run one at a time, newest completion first.
    fn next_hook(&mut self) {
        let Some(undoes) = self.next_to_undo() else { return self.finalize() };
        if let Some(end) = &mut self.end {
            end.hooks_ran = true;
        }
        let done = &self.runs[undoes];
        let hook = Run::new(done.step, done.path.clone(), Kind::Hook { undoes }, done.arg, self.firing_max);
        self.runs.push(hook);
    }

    fn finalize(&mut self) {
        self.phase = Phase::Finalizing;
        let cause = self.end.map(|end| end.cause);
        if let (Some(step), true) = (self.net.scenario.final_step, self.final_is_due()) {
            self.runs.push(Run::new(step, Vec::new(), Kind::Final, None, self.firing_max));
        }
        // That uploads are awaited after a timeout or a failure that drained is not written.
        self.uploads_owed = self.net.scenario.uploads
            && match cause {
                Some(Cause::Quiet) | None => true,
                Some(Cause::Failure | Cause::Timeout) => self.either(),
                Some(Cause::Cancel) => false,
            };
    }

    /// Returns whether the final step has to run: once, unless routing ran it before. The documents do not say whether
    /// a token that reached it and never ran counts.
    fn final_is_due(&mut self) -> bool {
        let cancelled = self.end.is_some_and(|end| end.cause == Cause::Cancel);
        let Some(step) = self.net.scenario.final_step else { return false };
        let routed = |run: &&Run| run.step == step && run.of == Kind::Step;
        let ran = self.runs.iter().filter(routed).any(|run| run.began);
        let had_token = self.runs.iter().any(|run| routed(&run));
        match (cancelled && !self.net.scenario.final_on_cancel, ran, had_token) {
            (true, _, _) | (_, true, _) => false,
            (false, false, true) => self.either(),
            (false, false, false) => true,
        }
    }

    pub(super) fn final_ended(&mut self, end: End) {
        let partial = self.net.scenario.final_partial;
        let Some(before) = self.end.map(|end| end.outcome) else { return };
        let after = match (end, before, partial) {
            (End::Done(_) | End::Skipped | End::Gone, before, _) => before,
            (End::Failed, Outcome::Completed | Outcome::Partial, true) => Outcome::Partial,
            (End::Failed, Outcome::Completed | Outcome::Partial, false) => Outcome::Failed,
            (End::Failed, Outcome::Failed, _) => Outcome::Failed,
            // "Worse" than cancelled is not written.
            (End::Failed, Outcome::Cancelled, _) if self.either() => Outcome::Failed,
            (End::Failed, Outcome::Cancelled, _) => Outcome::Cancelled,
        };
        self.set_outcome(after);
    }

    pub(super) fn set_outcome(&mut self, outcome: Outcome) {
        if let Some(end) = &mut self.end {
            end.outcome = outcome;
        }
    }

    pub(super) fn uploaded(&mut self, failed: bool, accepted: bool) -> Checked {
        let due = self.phase == Phase::Finalizing && self.uploads_owed;
        self.agree("upload", due, accepted, "the end of the uploads")?;
        if accepted {
            self.end_uploads(failed);
            self.carry_on();
        }
        Ok(())
    }

    pub(super) fn end_uploads(&mut self, failed: bool) {
        self.uploads_owed = false;
        if failed {
            self.set_outcome(Outcome::Failed);
        }
    }
}
