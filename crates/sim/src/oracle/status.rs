//! The status as a user sees it: which moves are legal, and which status must be shown when all is settled.

use super::Checked;
use super::run::State;
use super::world::{Cause, Outcome, Phase, World};
use crate::seen::Status;

impl World {
    pub(super) fn turned(&mut self, status: Status) -> Checked {
        let legal = self.legal(self.status, status) || (self.input.restarted && self.legal(None, status));
        if !legal {
            return self.broken("status", format!("{:?} turns {status:?}", self.status));
        }
        self.input.restarted &= status == Status::Queued;
        self.status = Some(status);
        Ok(())
    }

    fn legal(&self, from: Option<Status>, to: Status) -> bool {
        use Status::{Compensating, Draining, Finalizing, Paused, Queued, Running, Starting};
        let cause = self.end.map(|end| end.cause);
        let finals = self.net.scenario.final_step.is_some() || self.net.scenario.uploads;
        match (from, to) {
            (None, Queued | Starting | Running) => true,
            // Nothing waits in between unless a worker must take the whole.
            (Some(Queued), Running) => !self.is_plan(),
            (Some(Queued), Starting) | (Some(Starting | Paused), Running) | (Some(Running), Paused) => true,
            (Some(Queued | Running), Draining) => self.decided(),
            (Some(Starting), Draining) => cause.is_some_and(|cause| cause != Cause::Cancel),
            (Some(Paused), Draining) => matches!(cause, Some(Cause::Cancel | Cause::Quiet)),
            (Some(Draining), Compensating) => self.may_compensate(),
            (Some(Draining | Compensating), Finalizing) => finals,
            (Some(Draining | Compensating | Finalizing), end) => {
                self.phase == Phase::Over && self.ends_as(end)
            }
            (_, _) => false,
        }
    }

    fn may_compensate(&self) -> bool {
        let owed = self.end.is_some_and(|end| end.compensate || end.outcome == Outcome::Failed);
        owed && self.net.has_hooks()
    }

    fn ends_as(&self, status: Status) -> bool {
        self.end.is_some_and(|end| status == shown(end.outcome))
    }

    /// Returns the status that must be shown when nothing is under way inside the engine.
    pub(super) fn due_status(&self) -> Status {
        match (self.phase, self.end) {
            (Phase::Queued, _) => Status::Queued,
            (Phase::Starting, _) => Status::Starting,
            (Phase::Live, _) if self.held || self.waits_for_people() => Status::Paused,
            (Phase::Live, _) => Status::Running,
            (Phase::Draining, _) => Status::Draining,
            (Phase::Compensating, _) => Status::Compensating,
            (Phase::Finalizing, _) => Status::Finalizing,
            (Phase::Over, Some(end)) => shown(end.outcome),
            (Phase::Over, None) => Status::Failed,
        }
    }

    /// Nothing can move without a person.
    pub(super) fn waits_for_people(&self) -> bool {
        let mut waits = false;
        for run in self.runs.iter().filter(|run| run.lives()) {
            match run.state {
                State::Gate { .. } | State::Person { .. } | State::Confirm => waits = true,
                State::Loop(_) => {}
                _ => return false,
            }
        }
        waits
    }
}

fn shown(outcome: Outcome) -> Status {
    match outcome {
        Outcome::Completed => Status::Completed,
        Outcome::Partial => Status::Partial,
        Outcome::Failed => Status::Failed,
        Outcome::Cancelled => Status::Cancelled,
    }
}
