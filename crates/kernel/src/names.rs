//! The journal's names for the outside (DESIGN.md section 3, public event names).

use crate::event::{Event, Gone};
use crate::execution::Execution;
use crate::ids::RunId;
use crate::phase::Outcome;
use crate::step_run::{Kind, Role};

impl Event {
    /// The public name. `before` is the state the event was applied to: the end of a hook or of an iteration is
    /// told by another name than the end of a step.
    #[must_use]
    pub fn name(&self, before: &Execution<'_>) -> &'static str {
        match self {
            Event::Created(_) | Event::Forked(_) => "execution.created",
            Event::Assigned { .. } => "execution.assigned",
            Event::Started { .. } => "execution.started",
            Event::Held { .. } => "execution.held",
            Event::Released { .. } => "execution.released",
            Event::Paused { .. } => "execution.paused",
            Event::Resumed { .. } => "execution.resumed",
            Event::Draining { .. } => "execution.draining",
            Event::Cleared(_) => "token.discarded",
            Event::StopAsked { .. } => "step.stop_asked",
            Event::Compensating => "execution.compensating",
            Event::Finalizing => "execution.finalizing",
            Event::Ended { outcome, .. } => match outcome {
                Outcome::Completed => "execution.completed",
                Outcome::Partial => "execution.partial",
                Outcome::Failed => "execution.failed",
                Outcome::Cancelled => "execution.cancelled",
            },
            Event::Restarted { .. } => "execution.restarted",
            Event::Continued => "execution.continued",
            Event::Routed { .. } => "next.evaluated",
            Event::Denied { .. } => "token.denied",
            Event::Admitted { .. } => "token.admitted",
            Event::Discarded { .. } => "token.discarded",
            Event::Fired { role: Role::Hook { .. }, .. } => "compensation.started",
            Event::Fired { .. } => "step.fired",
            Event::Skipped { .. } => "step.skipped",
            Event::Waiting { .. } | Event::Delayed { .. } => "step.waiting",
            Event::Woken { .. } => "step.woken",
            Event::Offered { .. } => "step.offered",
            Event::Lost { .. } => "step.lost",
            Event::RetryScheduled { .. } => "step.retry_scheduled",
            Event::Yielded { .. } => "step.yielded",
            Event::AwaitingManual { .. } => "step.awaiting_manual",
            Event::CompletedManually { .. } => "step.completed_manually",
            Event::Done { run, .. } => end_name(before, *run, ["step.done", "loop.done", "compensation.done"]),
            Event::Failed { run, .. } => end_name(before, *run, ["step.failed", "loop.done", "compensation.failed"]),
            Event::Dropped { how: Gone::Skipped, .. } => "step.skipped",
            Event::Dropped { how: Gone::Cancelled | Gone::Abandoned, .. } => "step.cancelled",
            Event::LoopStarted { .. } => "loop.started",
            Event::IterationStarted { .. } => "loop.iteration.started",
            Event::IterationEnded { failed: false, .. } => "loop.iteration.done",
            Event::IterationEnded { failed: true, .. } => "loop.iteration.failed",
            Event::Patched { .. } => "ctx.patched",
            Event::ChildStarted { .. } => "child.started",
            Event::NotCompensated { .. } => "compensation.not_run",
            Event::AgentDecided { .. } => "agent.decided",
        }
    }
}

fn end_name(before: &Execution<'_>, run: RunId, [step, repeat, hook]: [&'static str; 3]) -> &'static str {
    match before.run(run) {
        Some(run) if matches!(run.role, Role::Hook { .. }) => hook,
        Some(run) if run.state.kind() == Kind::Looping => repeat,
        // The end of a child execution ends the step-run that waited for it.
        Some(run) if run.state.kind() == Kind::Child && step == "step.done" => "child.ended",
        _ => step,
    }
}
