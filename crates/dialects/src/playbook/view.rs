//! A playbook's execution in the playbook's words: tokens, gates, context, branches. Results are not repeated here,
//! they are with the firings in `nodeExecutions`.

use serde_json::{Value, json};
use windlass_kernel::{Kind, Net, Outcome, Phase, StepId};
use windlass_views::{
    AnswerBudget, DialectView, End, Firing, History, ViewInput, WaitingGate, WaitingJoin, gate_keys, time,
    waiting_joins,
};

pub(crate) const VIEW: DialectView =
    DialectView { name: "playbook", lists_unreached: false, reads_inputs_schema: false, build: build_view };

/// `steps` are those of the newest firings, which `nodeExecutions` has, too.
fn build_view(input: &ViewInput<'_>, budget: &mut AnswerBudget<'_>) -> Value {
    let ViewInput { net, history, firings, .. } = *input;
    let head = &history.state().head;
    let mut steps: Vec<_> =
        history.whole().rev().take(firings).map(|f| step(net, history, f, budget)).collect();
    steps.reverse();
    let mut view = json!({
        "status": status(history.state().phase()),
        "ctx": budget.show_context(&head.ctx),
        "steps": steps,
        "gates": history.gates().iter().map(|found| gate(net, found)).collect::<Vec<_>>(),
        "branches": { "well": head.counts.branches_well, "failed": head.counts.branches_failed },
    });
    if !net.join_steps().is_empty() {
        let joins = waiting_joins(net, history.state());
        view["joins"] = joins.iter().map(|found| join(net, found)).collect();
    }
    view
}

/// `waitsFor`: steps whose branches can still reach the join step.
fn join(net: &Net, join: &WaitingJoin) -> Value {
    let names = |steps: &[StepId]| steps.iter().map(|step| net.step(*step).name.clone()).collect::<Vec<_>>();
    json!({
        "step": net.step(join.step).name,
        "arrived": names(&join.arrived),
        "waitsFor": names(&join.awaited),
    })
}

fn status(phase: Phase) -> &'static str {
    match phase {
        Phase::Blank | Phase::Queued => "pending",
        Phase::Starting | Phase::Running | Phase::Draining | Phase::Compensating | Phase::Finalizing => {
            "running"
        }
        Phase::Paused => "paused",
        Phase::Ended(Outcome::Completed) => "success",
        Phase::Ended(Outcome::Partial) => "partial",
        Phase::Ended(Outcome::Failed) => "failed",
        Phase::Ended(Outcome::Cancelled) => "cancelled",
    }
}

/// `event` is what the arcs of the step saw; a live firing has none yet.
fn step(net: &Net, history: &History, firing: &Firing, budget: &mut AnswerBudget<'_>) -> Value {
    let is_loop = net.step(firing.step).repeat.is_some();
    let (status, event) = match firing.end {
        Some(End::Completed) if is_loop => ("done", Some("loop.done")),
        Some(End::Completed) => ("done", Some("step.done")),
        Some(End::Failed { .. }) if is_loop => ("failed", Some("loop.done")),
        Some(End::Failed { .. }) => ("failed", Some("step.failed")),
        Some(End::Skipped(_)) => ("skipped", None),
        Some(End::Cancelled) => ("cancelled", None),
        None => (live(history, firing), None),
    };
    let mut entry = json!({ "step": net.step(firing.step).name, "firing": firing.number, "status": status });
    if let Some(event) = event {
        entry["event"] = json!(event);
    }
    if let Some(End::Failed { handled }) = firing.end {
        entry["handled"] = json!(handled);
    }
    if let Some(args) = &firing.args {
        entry["args"] = (*budget.show(args)).clone();
    }
    entry
}

fn live(history: &History, firing: &Firing) -> &'static str {
    match history.state().run(firing.run).map(|run| run.state.kind()) {
        Some(Kind::Ready) | None => "ready",
        Some(Kind::Backoff) => "retrying",
        Some(Kind::Waiting | Kind::Delayed | Kind::Manual | Kind::PausedChild) => "waiting",
        Some(Kind::Offered | Kind::Child | Kind::Looping) => "started",
    }
}

/// `reads`: context keys that its rules look at; a patch of one of them may open it.
fn gate(net: &Net, gate: &WaitingGate) -> Value {
    let mut entry = json!({ "step": net.step(gate.step).name, "reads": gate_keys(net, gate.step) });
    if let Some(since) = gate.since {
        entry["since"] = json!(time(since));
    }
    if let Some(deadline) = gate.deadline {
        entry["deadline"] = json!(time(deadline));
    }
    entry
}
