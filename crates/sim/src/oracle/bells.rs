//! Timers: a bell counts when what it is for still waits, is due, and nothing is held.

use super::Checked;
use super::run::{End, RunId, State};
use super::world::{Cause, Outcome, Phase, World};
use crate::seen::{Bell, Class, Firing, Status};

impl World {
    pub(super) fn deadline_rang(&mut self, accepted: bool) -> Checked {
        let over = self.net.scenario.timeout_ms.is_some_and(|ms| self.elapsed >= ms.cast_signed());
        let runs = matches!(self.phase, Phase::Starting | Phase::Live) && self.status != Some(Status::Paused);
        let what = format!("the deadline after {} ms of running", self.elapsed);
        self.agree("deadline", over && runs && !self.held, accepted, &what)?;
        if accepted {
            self.stop_all_in_flight();
            self.decide(Outcome::Failed, Cause::Timeout);
            self.carry_on();
        }
        Ok(())
    }

    pub(super) fn bell_rang(&mut self, firing: Firing, bell: Bell, accepted: bool) -> Checked {
        let waiting =
            self.live_run(firing).filter(|&id| self.due(id, bell).is_some_and(|due| due <= self.now));
        let child = matches!(bell, Bell::Child { .. });
        let due = waiting.is_some() && (!self.held || child);
        // A child that was ordered to cancel is awaited; its own deadline may be forgotten or not.
        let given_up = waiting.is_some_and(|id| self.drains(id));
        self.agree("bell", if given_up { accepted } else { due }, accepted, &format!("{bell:?}"))?;
        if let (Some(id), true) = (waiting, accepted) {
            self.ring(id, bell);
            self.carry_on();
        }
        Ok(())
    }

    fn due(&self, id: RunId, bell: Bell) -> Option<i64> {
        match (&self.runs[id].state, bell) {
            (State::Backoff { until }, Bell::Backoff { .. }) => Some(*until),
            (State::Delay { due }, Bell::Delay { .. }) | (State::Route { due }, Bell::Route { .. }) => {
                Some(*due)
            }
            (State::Person { due }, Bell::Person { .. }) | (State::Child { due }, Bell::Child { .. }) => *due,
            (_, _) => None,
        }
    }

    fn ring(&mut self, id: RunId, bell: Bell) {
        match bell {
            Bell::Backoff { .. } => self.runs[id].state = State::Ready,
            Bell::Delay { .. } => self.work_done(id, None),
            Bell::Route { .. } | Bell::Person { .. } => self.finish(id, End::Failed),
            Bell::Child { firing } => {
                self.input.stops_owed.insert(firing);
                self.runs[id].strays += 1;
                self.attempt_failed(id, Class::Transient);
            }
            Bell::Deadline | Bell::Gate { .. } => {}
        }
    }

    /// Handles the timeout of a gate. It names only the step: several tokens may wait there, or may have waited there
    /// before.
    pub(super) fn gate_rang(&mut self, step: usize, accepted: bool) -> Checked {
        let standing = self.gates_due(step);
        let stale = self.gone_gates.iter().any(|&(at, due)| at == step && due <= self.now);
        let due = !standing.is_empty() && !self.held;
        let refused_rightly = !accepted && stale;
        self.agree("bell", due && !refused_rightly, accepted, &format!("the gate of step {step}"))?;
        if accepted {
            let among = standing.len().min(usize::from(u8::MAX)) as u8;
            let same = standing.iter().all(|&id| self.runs[id].arg == self.runs[standing[0]].arg);
            let chosen = if same { 0 } else { self.choose(among) };
            self.finish(standing[usize::from(chosen)], End::Failed);
            self.carry_on();
        }
        Ok(())
    }

    fn gates_due(&self, step: usize) -> Vec<RunId> {
        let due = |&id: &RunId| {
            let run = &self.runs[id];
            run.step == step && matches!(run.state, State::Gate { due: Some(due) } if due <= self.now)
        };
        (0..self.runs.len()).filter(due).collect()
    }
}
