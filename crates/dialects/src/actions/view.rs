//! A run of actions in the words of the document: every action with its state, and the summary of the compensation.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_kernel::net::{Step, Work};
use windlass_kernel::{Failure, Kind, Net, Outcome, Phase, RunId, StepId};
use windlass_protocol::Pipeline;
use windlass_views::{
    AnswerBudget, DialectView, End, Firing, History, Leases, ViewInput, execution_id, time,
};

pub(crate) const VIEW: DialectView =
    DialectView { name: "actions", lists_unreached: true, build: build_view };

/// Characters of the message of an error; the whole is in `nodeExecutions`.
const MESSAGE_MAX: usize = 500;

fn build_view(input: &ViewInput<'_>, _: &mut AnswerBudget<'_>) -> Value {
    let ViewInput { net, history, leases, .. } = *input;
    let newest: BTreeMap<StepId, &Firing> = history.whole().map(|firing| (firing.step, firing)).collect();
    let approvals = net.steps().filter_map(|(id, step)| Some((step.approves?, *newest.get(&id)?))).collect();
    let view = RunView { net, history, leases, newest, approvals };
    let actions = net.steps().filter(|(_, step)| step.approves.is_none());
    json!({
        "runId": execution_id(history.state().head.id),
        "status": status(history.state().phase()),
        "actions": actions.map(|(id, step)| view.action(id, step)).collect::<Vec<_>>(),
        "compensation": view.compensation(),
    })
}

fn status(phase: Phase) -> &'static str {
    match phase {
        Phase::Blank | Phase::Queued | Phase::Starting => "Pending",
        Phase::Running | Phase::Draining | Phase::Compensating | Phase::Finalizing => "Running",
        Phase::Paused => "Paused",
        Phase::Ended(Outcome::Completed) => "Succeeded",
        Phase::Ended(Outcome::Partial | Outcome::Failed) => "Failed",
        Phase::Ended(Outcome::Cancelled) => "Cancelled",
    }
}

struct RunView<'v> {
    net: &'v Net,
    history: &'v History,
    leases: &'v Leases,
    newest: BTreeMap<StepId, &'v Firing>,
    /// Approvals that were asked for, by the actions that they precede.
    approvals: BTreeMap<StepId, &'v Firing>,
}

impl RunView<'_> {
    fn action(&self, id: StepId, step: &Step) -> Value {
        let firing = self.newest.get(&id).copied();
        let status = self.action_status(firing);
        let is_begun = !matches!(status, "Pending") && firing.is_some_and(|firing| firing.began_at.is_some());
        let started = firing.filter(|_| is_begun).and_then(|firing| {
            let leased = self.leases.get(&firing.run).filter(|_| firing.end.is_none());
            leased.map(|lease| lease.since).or(firing.started_at())
        });
        let approval = self.approvals.get(&id).copied();
        let failure = firing.or(approval).and_then(|firing| firing.failure.as_ref());
        let mut entry = json!({
            "actionId": step.name,
            "order": step.order,
            "status": status,
            "attempts": firing.filter(|_| is_begun).map_or(0, |firing| firing.attempts),
            "startedAtIso": started.map(time),
            "endedAtIso": firing.and_then(|firing| firing.ended_at).map(time),
            "error": failure.map(error),
            "executionTier": step.tier.as_deref().unwrap_or("Auto"),
        });
        if let Some(approval) = approval {
            entry["approval"] = json!(approval_status(approval));
        }
        entry
    }

    /// An action that was never started is cancelled once nothing new is scheduled.
    fn action_status(&self, firing: Option<&Firing>) -> &'static str {
        let Some(firing) = firing else {
            return match self.history.state().phase() {
                Phase::Blank | Phase::Queued | Phase::Starting | Phase::Running | Phase::Paused => "Pending",
                Phase::Draining | Phase::Compensating | Phase::Finalizing | Phase::Ended(_) => "Cancelled",
            };
        };
        match firing.end {
            Some(End::Completed) => "Succeeded",
            Some(End::Failed { .. }) => "Failed",
            Some(End::Skipped(_) | End::Cancelled) => "Cancelled",
            None => self.live_status(firing),
        }
    }

    /// Between two attempts an action stays Running.
    fn live_status(&self, firing: &Firing) -> &'static str {
        let started = firing.attempts > 1 || self.leases.contains_key(&firing.run);
        match self.history.state().run(firing.run).map(|run| run.state.kind()) {
            Some(Kind::Manual) => "WaitingForManualCompletion",
            Some(Kind::Backoff | Kind::Delayed | Kind::Child | Kind::PausedChild | Kind::Looping) => {
                "Running"
            }
            Some(Kind::Ready | Kind::Waiting | Kind::Offered) if started => "Running",
            Some(Kind::Ready | Kind::Waiting | Kind::Offered) | None => "Pending",
        }
    }

    fn compensation(&self) -> Value {
        let entries = self.compensation_entries();
        let count = |outcomes: &[&str]| {
            let is_one = |entry: &&Value| outcomes.iter().any(|outcome| entry["outcome"] == *outcome);
            entries.iter().filter(is_one).count()
        };
        json!({
            "attempted": count(&["Succeeded", "Failed", "Running", "Cancelled"]),
            "succeeded": count(&["Succeeded"]),
            "failed": count(&["Failed"]),
            "nonCompensable": count(&["NonCompensable"]),
            "entries": entries,
        })
    }

    /// The hooks in the order in which they run, then the actions that have none.
    fn compensation_entries(&self) -> Vec<Value> {
        let state = self.history.state();
        let is_due = state.head.decided.is_some_and(|decided| match decided.outcome {
            Outcome::Failed | Outcome::Cancelled => decided.compensate,
            Outcome::Completed | Outcome::Partial => false,
        });
        if !is_due {
            return Vec::new();
        }
        let completed = self
            .history
            .whole()
            .filter(|firing| firing.end == Some(End::Completed) && self.net.step(firing.step).side_effecting);
        let (undoable, others): (Vec<&Firing>, Vec<&Firing>) =
            completed.partition(|firing| self.net.step(firing.step).compensation.is_some());
        let mut hooks: Vec<(&Firing, &Firing)> =
            undoable.iter().filter_map(|firing| Some((*firing, self.history.hook(firing.run)?))).collect();
        hooks.sort_by_key(|(_, hook)| hook.run);
        let owed: Vec<RunId> = state.owed.values().map(|(run, _)| *run).collect();
        let mut waiting: Vec<&Firing> =
            undoable.into_iter().filter(|firing| self.history.hook(firing.run).is_none()).collect();
        waiting.sort_by_key(|firing| owed.iter().position(|run| *run == firing.run));
        let waiting_as = if state.phase().is_ended() { "NotRun" } else { "Pending" };
        let ran =
            hooks.into_iter().map(|(of, hook)| self.hook_entry(of, Some(hook), self.hook_outcome(hook)));
        let not_ran = waiting.into_iter().map(|of| self.hook_entry(of, None, waiting_as));
        let none = others.into_iter().map(|of| self.hook_entry(of, None, "NonCompensable"));
        ran.chain(not_ran).chain(none).collect()
    }

    fn hook_outcome(&self, hook: &Firing) -> &'static str {
        match hook.end {
            Some(End::Completed) => "Succeeded",
            Some(End::Failed { .. }) => "Failed",
            Some(End::Skipped(_) | End::Cancelled) => "Cancelled",
            None => "Running",
        }
    }

    fn hook_entry(&self, of: &Firing, hook: Option<&Firing>, outcome: &str) -> Value {
        let step = self.net.step(of.step);
        let operation = step.compensation.as_ref().and_then(|hook| operation(&hook.work));
        let key = format!("{}:{}:compensate", execution_id(self.history.state().head.id), step.name);
        json!({
            "actionId": step.name,
            "operation": operation,
            "idempotencyKey": step.compensation.as_ref().map(|_| key),
            "attempts": hook.map_or(0, |hook| hook.attempts),
            "outcome": outcome,
            "error": hook.and_then(|hook| hook.failure.as_ref()).map(error),
        })
    }
}

/// The label of its task, which stays when an adapter replaces the kind.
fn operation(work: &Work) -> Option<String> {
    let Work::Task { spec } = work else { return None };
    let pipeline: Pipeline = serde_json::from_value((**spec).clone()).ok()?;
    pipeline.tasks.into_iter().next().map(|task| task.label)
}

fn approval_status(approval: &Firing) -> &'static str {
    match approval.end {
        Some(End::Completed) => "Approved",
        Some(End::Failed { .. }) => "Rejected",
        Some(End::Skipped(_) | End::Cancelled) => "Cancelled",
        None => "Waiting",
    }
}

fn error(failure: &Failure) -> Value {
    let message: String = failure.message.chars().take(MESSAGE_MAX).collect();
    json!({ "code": failure.code, "class": failure.class.name(), "message": message })
}
