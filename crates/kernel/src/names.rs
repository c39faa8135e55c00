//! Public names of events. One record can stand for several public events, or for none.

use crate::any_of;
use crate::event::{Event, Gone, TokenValue};
use crate::execution::Execution;
use crate::ids::RunId;
use crate::phase::Outcome;
use crate::step_run::{Kind, Role};

impl Event {
    /// Returns the public names of this event. `before` is the state that the event was applied to; it distinguishes
    /// the end of a hook, a loop or a child from the end of a step.
    #[must_use]
    pub fn names(&self, before: &Execution<'_>) -> Vec<&'static str> {
        match self {
            Event::Routed { emitted, .. } => {
                let live = emitted.iter().filter(|emission| matches!(emission.token, TokenValue::Live(_)));
                std::iter::once("next.evaluated").chain(live.map(|_| "token.emitted")).collect()
            }
            Event::Cleared(cleared) => {
                let tokens = cleared.tokens.iter().map(|_| "token.discarded");
                tokens.chain(cleared.dropped.iter().map(|(_, _, how)| gone_name(*how))).collect()
            }
            Event::Fired { role: Role::Hook { .. }, .. } => vec!["compensation.started"],
            Event::Fired { token: Some(_), .. } => vec!["token.admitted"],
            Event::Done { run, .. } => ended_names(before, *run, ["step.done", "compensation.done"]),
            Event::Failed { run, .. } => ended_names(before, *run, ["step.failed", "compensation.failed"]),
            other => other.name().into_iter().collect(),
        }
    }

    /// Returns the name of an event whose name depends on nothing else; `None` if the event is internal.
    fn name(&self) -> Option<&'static str> {
        Some(match self {
            Event::Created(_) | Event::Forked(_) => "execution.created",
            Event::Started { .. } => "execution.started",
            Event::Paused { .. } => "execution.paused",
            Event::Resumed { .. } => "execution.resumed",
            Event::Draining { .. } => "execution.draining",
            Event::Compensating => "execution.compensating",
            Event::Finalizing => "execution.finalizing",
            Event::Ended { outcome: Outcome::Completed, .. } => "execution.completed",
            Event::Ended { outcome: Outcome::Partial, .. } => "execution.partial",
            Event::Ended { outcome: Outcome::Failed, .. } => "execution.failed",
            Event::Ended { outcome: Outcome::Cancelled, .. } => "execution.cancelled",
            Event::Restarted { .. } => "execution.restarted",
            Event::Denied { .. } => "token.denied",
            Event::Discarded { .. } => "token.discarded",
            Event::Skipped { .. } => "step.skipped",
            Event::Waiting { .. } | Event::Delayed { .. } => "step.waiting",
            Event::Offered { .. } => "step.offered",
            Event::RetryScheduled { .. } | Event::Yielded { .. } => "step.retry_scheduled",
            Event::AwaitingManual { .. } => "step.awaiting_manual",
            Event::CompletedManually { .. } => "step.completed_manually",
            Event::Dropped { how, .. } => gone_name(*how),
            Event::LoopStarted { .. } => "loop.started",
            Event::IterationEnded { failed: false, .. } => "loop.iteration.done",
            Event::IterationEnded { failed: true, .. } => "loop.iteration.failed",
            Event::Patched { .. } => "ctx.patched",
            Event::ChildStarted { .. } => "child.started",
            Event::Returned { .. } => "child.ended",
            Event::NotCompensated { .. } => "compensation.not_run",
            Event::AgentDecided { .. } => "agent.decided",
            any_of![Event: Assigned TimeCame Held Released StopAsked Continued Admitted Woken Lost IterationStarted
                Routed Cleared Fired Done Failed] => return None,
        })
    }
}

fn gone_name(how: Gone) -> &'static str {
    if how == Gone::Skipped { "step.skipped" } else { "step.cancelled" }
}

fn ended_names(before: &Execution<'_>, run: RunId, [step, hook]: [&'static str; 2]) -> Vec<&'static str> {
    match before.run(run) {
        Some(run) if matches!(run.role, Role::Hook { .. }) => vec![hook],
        // The loop's own events report its iterations.
        Some(run) if matches!(run.role, Role::Iteration { .. }) => Vec::new(),
        Some(run) if run.state.kind() == Kind::Looping => vec!["loop.done", step],
        Some(run) if run.state.kind() == Kind::Child => vec!["child.ended", step],
        _ => vec![step],
    }
}
