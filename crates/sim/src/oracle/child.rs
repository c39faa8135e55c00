//! Ends of children. The trace names the parent's firing only, so a child that was given up may be meant.

use super::Checked;
use super::run::{End, RunId, State};
use super::world::World;
use crate::seen::{Firing, Reply};

impl World {
    pub(super) fn child_ended(&mut self, firing: Firing, result: Reply, accepted: bool) -> Checked {
        let run = self.live_run(firing);
        let open = run.filter(|&id| matches!(self.runs[id].state, State::Child { .. }));
        if let (Some(id), false) = (run.filter(|&id| self.runs[id].strays > 0), accepted) {
            self.runs[id].strays -= 1;
            return Ok(());
        }
        self.agree("child", open.is_some(), accepted, &format!("end of the child of {firing}"))?;
        if let (Some(id), true) = (open, accepted) {
            self.end_child(id, result);
            self.carry_on();
        }
        Ok(())
    }

    fn end_child(&mut self, id: RunId, result: Reply) {
        match (self.drains(id), result) {
            (true, Reply::Done { n }) => self.record_done(id, Some(n)),
            (true, _) => self.runs[id].state = State::Ended(End::Gone),
            (false, Reply::Done { n }) => self.work_done(id, Some(n)),
            (false, Reply::Failed(class)) => self.attempt_failed(id, class),
            (false, Reply::Cancelled | Reply::Stopped | Reply::Later { .. }) => self.finish(id, End::Failed),
        }
    }
}
