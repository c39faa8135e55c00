//! Translation of records to observations of a user.

use super::World;
use crate::invariants::Broken;
use crate::seen::{Firing, Of, Status, Waits, What};
use windlass_kernel::*;

impl World {
    /// Returns the observations that follow from an event; `self.state` is the state before it.
    pub(super) fn show(&mut self, event: &Event) -> Vec<What> {
        match event {
            Event::Offered { run, fence, attempt, .. } => self.dispatched(*run, *fence, *attempt),
            Event::ChildStarted { run, fence, child, .. } => {
                self.children.insert(run.0, (fence.0, *child));
                self.opened(*run, Waits::Child)
            }
            Event::AwaitingManual { run, .. } => self.opened(*run, Waits::Person),
            Event::Waiting { run, .. } => self.opened(*run, Waits::Route),
            Event::Delayed { run, .. } => self.opened(*run, Waits::Delay),
            Event::StopAsked { leases, children } => {
                vec![What::StopAsked { firings: self.asked(leases, children) }]
            }
            Event::Restarted { generation, .. } => vec![What::Restarted { generation: *generation }],
            _ => Vec::new(),
        }
    }

    fn dispatched(&self, run: RunId, fence: Fence, attempt: u32) -> Vec<What> {
        let Some(found) = self.state.run(run) else { return Vec::new() };
        vec![What::Dispatched {
            firing: run.0,
            step: found.step.index(),
            path: found.path.0.clone(),
            of: of(&found.role),
            attempt,
            fence: fence.0,
            arg: arg(found),
        }]
    }

    fn opened(&self, run: RunId, what: Waits) -> Vec<What> {
        let Some(found) = self.state.run(run) else { return Vec::new() };
        vec![What::Opened {
            firing: run.0,
            step: found.step.index(),
            path: found.path.0.clone(),
            of: of(&found.role),
            what,
            arg: arg(found),
        }]
    }

    fn asked(&self, leases: &[(RunId, Fence)], children: &[ExecutionId]) -> Vec<Firing> {
        let of_child = |id: &ExecutionId| {
            let found = self
                .state
                .runs
                .iter()
                .find(|(_, run)| matches!(run.state, RunState::Child { child, .. } if child == *id));
            found.map(|(run, _)| run.0)
        };
        leases.iter().map(|(run, _)| run.0).chain(children.iter().filter_map(of_child)).collect()
    }

    pub(super) fn status(&mut self, phase: Phase) -> Result<(), Broken> {
        let status = match phase {
            Phase::Blank => return Ok(()),
            Phase::Queued => Status::Queued,
            Phase::Starting => Status::Starting,
            Phase::Running => Status::Running,
            Phase::Paused => Status::Paused,
            Phase::Draining => Status::Draining,
            Phase::Compensating => Status::Compensating,
            Phase::Finalizing => Status::Finalizing,
            Phase::Ended(Outcome::Completed) => Status::Completed,
            Phase::Ended(Outcome::Partial) => Status::Partial,
            Phase::Ended(Outcome::Failed) => Status::Failed,
            Phase::Ended(Outcome::Cancelled) => Status::Cancelled,
        };
        self.plan_status(status);
        self.observe(What::Status(status))
    }
}

fn of(role: &Role) -> Of {
    match role {
        Role::Routed => Of::Step,
        Role::Tool { .. } => Of::Tool,
        Role::Iteration { .. } => Of::Iteration,
        Role::Final => Of::Final,
        Role::Hook { of } => Of::Hook { of: of.0 },
    }
}

fn arg(run: &StepRun) -> Option<i64> {
    run.args.as_ref()?.get("a")?.as_i64()
}
