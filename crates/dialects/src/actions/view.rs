//! A run of actions in the words of the document: every action with its state, and the summary of the compensation.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_kernel::net::Step;
use windlass_kernel::{Failure, Kind, Outcome, Phase, StepId};
use windlass_views::{
    AnswerBudget, DialectView, End, Firing, History, Leases, ViewInput, execution_id, time,
};

pub(crate) const VIEW: DialectView =
    DialectView { name: "actions", lists_unreached: true, reads_inputs_schema: false, build: build_view };

/// Characters of the message of an error; the whole is in `nodeExecutions`.
const MESSAGE_MAX: usize = 500;

fn build_view(input: &ViewInput<'_>, _: &mut AnswerBudget<'_>) -> Value {
    let ViewInput { net, history, leases, .. } = *input;
    let newest: BTreeMap<StepId, &Firing> = history.whole().map(|firing| (firing.step, firing)).collect();
    let approvals = net.steps().filter_map(|(id, step)| Some((step.approves?, *newest.get(&id)?))).collect();
    let view = RunView { history, leases, newest, approvals };
    let actions = net.steps().filter(|(_, step)| step.approves.is_none());
    json!({
        "runId": execution_id(history.state().head.id),
        "status": status(history.state().phase()),
        "actions": actions.map(|(id, step)| view.action(id, step)).collect::<Vec<_>>(),
        "compensation": history.compensation(net),
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
    history: &'v History,
    leases: &'v Leases,
    newest: BTreeMap<StepId, &'v Firing>,
    /// Approvals that were requested, by the actions that they precede.
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

    /// Returns the status of an action. One that was never started is cancelled once nothing new is scheduled.
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

    /// Returns the status of a live action, which stays Running between two attempts.
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
