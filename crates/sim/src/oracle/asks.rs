//! Requests of users: hold, resume, patch, complete, route ready. (Cancel is in `cancel.rs`.)

use super::Checked;
use super::run::{End, RunId, State};
use super::world::{Phase, World};
use crate::scenario::When;
use crate::seen::{Firing, Verdict};

impl World {
    pub(super) fn hold(&mut self, accepted: bool) -> Checked {
        self.agree("hold", self.phase == Phase::Live, accepted, "a hold")?;
        self.held |= accepted;
        Ok(())
    }

    pub(super) fn resume(&mut self, accepted: bool) -> Checked {
        let due = match self.phase {
            Phase::Live => self.held,
            // Only a hold that outlived a restart; whether it can be lifted before the start is not written.
            Phase::Queued | Phase::Starting => self.held && accepted,
            Phase::Draining | Phase::Compensating | Phase::Finalizing | Phase::Over => false,
        };
        self.agree("hold", due, accepted, "a resume")?;
        if accepted {
            self.held = false;
            self.carry_on();
        }
        Ok(())
    }

    pub(super) fn patch(&mut self, flag: usize, value: bool, accepted: bool) -> Checked {
        let due = match self.phase {
            Phase::Live => true,
            Phase::Queued | Phase::Starting => accepted,
            Phase::Draining | Phase::Compensating | Phase::Finalizing | Phase::Over => false,
        };
        self.agree("patch", due, accepted, "a context patch")?;
        if accepted {
            self.set_flag(flag, value);
            self.carry_on();
        }
        Ok(())
    }

    pub(super) fn complete(
        &mut self,
        firing: Firing,
        verdict: Verdict,
        open: bool,
        repeated: bool,
        accepted: bool,
    ) -> Checked {
        let waiting =
            self.live_run(firing).filter(|&id| open && matches!(self.runs[id].state, State::Person { .. }));
        let before = self.verdicts.get(&firing) == Some(&verdict);
        let due = match (waiting, before && repeated) {
            (Some(_), _) => true,
            // After the decision the state may be looked at before the repetition.
            (None, true) => accepted || !self.decided(),
            (None, false) => false,
        };
        self.agree("person", due, accepted, &format!("{verdict:?} for {firing}"))?;
        if let (Some(id), true) = (waiting, accepted) {
            self.verdicts.insert(firing, verdict);
            self.confirm(id, verdict);
            self.carry_on();
        }
        Ok(())
    }

    fn confirm(&mut self, id: RunId, verdict: Verdict) {
        match verdict {
            Verdict::Succeeded => {
                let n = self.confirmed_n(id);
                self.finish(id, End::Done(n));
            }
            Verdict::Failed | Verdict::Cancelled => self.finish(id, End::Failed),
        }
    }

    /// Whether a guard after a manual step reads the worker's result or the person's is not written.
    fn confirmed_n(&mut self, id: RunId) -> Option<i64> {
        let run = &self.runs[id];
        let n = run.n?;
        let step = self.net.step(run.step);
        let read = step.arcs.iter().any(|arc| matches!(arc.when, When::AtLeast(least) if n >= least));
        if read && self.either() { None } else { Some(n) }
    }

    /// A repeated request for a firing that no longer waits changes nothing. Both answers are allowed.
    pub(super) fn route_ready(&mut self, firing: Firing, accepted: bool) -> Checked {
        let waiting = self.live_run(firing).filter(|&id| matches!(self.runs[id].state, State::Route { .. }));
        match (waiting, accepted) {
            (None, true) if self.phase == Phase::Over => self.broken("route", "a route counts after the end"),
            (None, _) => Ok(()),
            (Some(_), false) => self.broken("route", format!("the route of {firing} was refused")),
            (Some(id), true) => {
                self.runs[id].routed = true;
                self.runs[id].state = State::Ready;
                self.carry_on();
                Ok(())
            }
        }
    }
}
