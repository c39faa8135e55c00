//! Agents: what a worker may ask for while it runs.

use super::Checked;
use super::run::{End, Kind, Run, RunId};
use super::world::{Cause, Outcome, Phase, World};
use crate::seen::{Firing, Wish};

impl World {
    /// Checks a call of an agent: only the open offer may make calls. A repeated call is accepted again and has no effect.
    pub(super) fn agent_asks(
        &mut self,
        (firing, fence): (Firing, u64),
        call: u32,
        wish: Wish,
        accepted: bool,
    ) -> Checked {
        let open = self.offered(firing, fence);
        let known = self.calls.contains(&(firing, call));
        let due = match (open, known) {
            (None, _) => false,
            (Some(_), true) => true,
            (Some(_), false) => self.phase == Phase::Live && self.is_possible(wish),
        };
        self.agree("agent", due, accepted, &format!("{wish:?} of {firing}"))?;
        if let (Some(agent), true, false) = (open, accepted, known) {
            self.calls.insert((firing, call));
            self.grant(agent, wish);
            self.carry_on();
        }
        Ok(())
    }

    fn is_possible(&self, wish: Wish) -> bool {
        match wish {
            Wish::Execute { step, .. } | Wish::Skip { step } => {
                self.net.step(step).tool && !self.ruled_out.contains(&step)
            }
            Wish::Pause | Wish::Fail => true,
        }
    }

    fn grant(&mut self, agent: RunId, wish: Wish) {
        match wish {
            Wish::Execute { step, arg } => {
                self.runs.push(Run::new(step, Vec::new(), Kind::Tool { of: agent }, arg, self.firing_max));
            }
            Wish::Skip { step } => {
                self.ruled_out.insert(step);
            }
            Wish::Pause => self.held = true,
            Wish::Fail => {
                self.finish(agent, End::Failed);
                if self.phase == Phase::Live {
                    self.decide(Outcome::Failed, Cause::Failure);
                }
            }
        }
    }
}
