//! Answers of workers and the ends of leases: only the open fence counts.

use super::Checked;
use super::retry::{delay_ms, retryable};
use super::run::{End, Kind, RunId, State};
use super::world::{Answer, World};
use crate::scenario::{Recovery, Work};
use crate::seen::{Class, Firing, Reply};

/// The started loss that fails a step-run for good (`resume_step`).
const LOSSES_OF_ONE_RUN_MAX: u32 = 3;

impl World {
    pub(super) fn offered(&self, firing: Firing, fence: u64) -> Option<RunId> {
        self.live_run(firing).filter(|&id| self.runs[id].state == State::Offered { fence })
    }

    pub(super) fn reported(&mut self, firing: Firing, fence: u64, answer: Answer, accepted: bool) -> Checked {
        let before = self.answered.get(&(firing, fence));
        match (self.offered(firing, fence), accepted) {
            (Some(id), _) => self.reported_open(id, (firing, fence), answer, accepted),
            (None, false) => Ok(()),
            (None, true) if before == Some(&answer) => Ok(()),
            (None, true) => {
                self.broken("fence", format!("{answer:?} of {firing} counts under fence {fence}"))
            }
        }
    }

    fn reported_open(&mut self, id: RunId, under: (Firing, u64), answer: Answer, accepted: bool) -> Checked {
        let unasked = answer.0 == Reply::Stopped && !self.decided() && !self.stopped.contains(&under.0);
        self.agree("report", !unasked, accepted, &format!("{answer:?} under {under:?}"))?;
        if accepted {
            self.answered.insert(under, answer);
            self.answer(id, answer);
            self.carry_on();
        }
        Ok(())
    }

    fn answer(&mut self, id: RunId, (result, sets): Answer) {
        match (self.drains(id), result) {
            // What ends while the execution drains is written like its result, for the final step to see.
            (true, Reply::Done { n }) => {
                if self.net.step(self.runs[id].step).manual.is_none() {
                    self.write(sets);
                }
                self.record_done(id, Some(n));
            }
            (true, Reply::Failed(_)) => {
                self.write(sets);
                self.runs[id].state = State::Ended(End::Gone);
            }
            (true, _) => self.runs[id].state = State::Ended(End::Gone),
            (false, Reply::Done { .. }) if self.contradicts(id, sets) => self.finish(id, End::Failed),
            (false, _) => {
                self.write(sets);
                self.answer_live(id, result, sets);
            }
        }
    }

    fn answer_live(&mut self, id: RunId, result: Reply, sets: Option<(usize, bool)>) {
        match result {
            Reply::Done { n } => {
                self.note_write(id, sets);
                self.work_done(id, Some(n));
            }
            Reply::Failed(class) => self.attempt_failed(id, class),
            Reply::Later { ms } => {
                self.runs[id].state = State::Backoff { until: self.now + ms.cast_signed() }
            }
            Reply::Stopped | Reply::Cancelled => self.finish(id, End::Failed),
        }
    }

    fn write(&mut self, sets: Option<(usize, bool)>) {
        if let Some((flag, value)) = sets {
            self.set_flag(flag, value);
        }
    }

    /// The work itself ended well; a person may have to confirm.
    pub(super) fn work_done(&mut self, id: RunId, n: Option<i64>) {
        let step = self.net.step(self.runs[id].step);
        let hook = matches!(self.runs[id].of, Kind::Hook { .. });
        match (&step.manual, &step.work, hook) {
            (Some(_), Work::Task | Work::Noop { .. } | Work::Delay { .. } | Work::Child, false) => {
                self.runs[id].n = n;
                self.runs[id].state = State::Confirm;
            }
            (_, _, _) => self.finish(id, End::Done(n)),
        }
    }

    /// While draining. Work whose person was never asked is done in one sense and not in another: its hook may be
    /// owed or not.
    pub(super) fn record_done(&mut self, id: RunId, n: Option<i64>) {
        let step = self.net.step(self.runs[id].step);
        let unconfirmed = step.manual.is_some() && step.hook.is_some();
        let plain = step.manual.is_none();
        self.runs[id].state = State::Ended(End::Done(n));
        if self.runs[id].of == Kind::Step && (plain || (unconfirmed && self.either())) {
            self.completed.push(id);
        }
    }

    pub(super) fn attempt_failed(&mut self, id: RunId, class: Class) {
        let run = &self.runs[id];
        let retry = self.net.retry(run);
        let again = retryable(self.net.scenario.dialect, class) && run.attempt < retry.attempts;
        match (self.drains(id), again) {
            (true, _) => self.runs[id].state = State::Ended(End::Gone),
            (false, false) => self.finish(id, End::Failed),
            (false, true) => {
                let until = self.now + delay_ms(retry, self.runs[id].attempt);
                self.runs[id].attempt += 1;
                self.runs[id].state = State::Backoff { until };
            }
        }
    }

    pub(super) fn timed_out(&mut self, firing: Firing, fence: u64, accepted: bool) -> Checked {
        let open = self.offered(firing, fence);
        self.agree("fence", open.is_some(), accepted, &format!("timeout of {firing} under fence {fence}"))?;
        if let (Some(id), true) = (open, accepted) {
            match self.drains(id) {
                true => self.input.stops_allowed.insert(firing),
                false => self.input.stops_owed.insert(firing),
            };
            self.attempt_failed(id, Class::Transient);
            self.carry_on();
        }
        Ok(())
    }

    pub(super) fn lost(&mut self, firing: Firing, fence: u64, started: bool, accepted: bool) -> Checked {
        let open = self.offered(firing, fence);
        self.agree("fence", open.is_some(), accepted, &format!("loss of {firing} under fence {fence}"))?;
        if let (Some(id), true) = (open, accepted) {
            self.lose(id, started);
            self.carry_on();
        }
        Ok(())
    }

    fn lose(&mut self, id: RunId, started: bool) {
        match (self.drains(id), started, self.net.scenario.recovery) {
            (true, _, _) => self.runs[id].state = State::Ended(End::Gone),
            (false, false, _) => self.offer_again(id),
            (false, true, Recovery::ResumeStep) => self.lose_started(id),
            (false, true, Recovery::FailAttempt) => self.attempt_failed(id, Class::Transient),
            (false, true, Recovery::RestartExecution) if !self.decided() => {
                self.runs[id].state = State::Ended(End::Gone);
                self.restart_or_fail();
            }
            // Too late to begin anew; what then is not written.
            (false, true, Recovery::RestartExecution) => match self.either() {
                true => self.finish(id, End::Failed),
                false => self.offer_again(id),
            },
        }
    }

    fn lose_started(&mut self, id: RunId) {
        self.runs[id].losses += 1;
        match self.runs[id].losses < LOSSES_OF_ONE_RUN_MAX {
            true => self.offer_again(id),
            false => self.finish(id, End::Failed),
        }
    }

    fn offer_again(&mut self, id: RunId) {
        self.runs[id].again = true;
        self.runs[id].state = State::Ready;
    }
}
