//! Things that an execution waits for and people can answer.

use crate::entry::NodeLabel;
use crate::history::History;
use crate::large::{AnswerBudget, ValueBudget, WAITING_MAX};
use crate::shapes::{Waiting, WaitingKind};
use crate::wire::time;
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_artifact::key;
use windlass_kernel::net::{Step, Work};
use windlass_kernel::{Millis, Net, Path, RunState, StepId};

/// Lists a pause first, then approvals and manual steps, then gates; at most [`WAITING_MAX`] of them.
#[must_use]
pub fn waiting_for(net: &Net, history: &History, budget: &mut AnswerBudget<'_>) -> Vec<Waiting> {
    let (mut found, mut values) = (Vec::new(), ValueBudget::default());
    if let Some(hold) = history.hold().filter(|_| history.state().head.held) {
        let (reason, by) = (Some(hold.reason.clone()), Some(hold.by.clone()));
        found.push(Waiting { reason, by, ..waiting(WaitingKind::Pause, Some(hold.at), None) });
    }
    for (run, live) in history.state().runs.iter() {
        if found.len() == WAITING_MAX {
            return found;
        }
        if let RunState::Manual { output, deadline, .. } = &live.state {
            let step = net.step(live.step);
            let since = history.asked_at(*run);
            let waits = match step.work {
                Work::Approval { .. } => {
                    let waits = waiting(WaitingKind::Approval, since, *deadline);
                    asking(waits, output, budget, &mut values)
                }
                _ => waiting(WaitingKind::Manual, since, *deadline),
            };
            found.push(at_node(waits, step, &live.path));
        }
    }
    for gate in history.gates().into_iter().take(WAITING_MAX - found.len()) {
        let waits = waiting(WaitingKind::Gate, gate.since, gate.deadline);
        found.push(at_node(waits, net.step(gate.step), &Path::default()));
    }
    found
}

fn waiting(kind: WaitingKind, since: Option<Millis>, deadline: Option<Millis>) -> Waiting {
    Waiting {
        kind,
        since: since.map(time),
        deadline: deadline.map(time),
        node_id: None,
        node_name: None,
        path: Vec::new(),
        message: None,
        approvers: None,
        reason: None,
        by: None,
    }
}

/// Adds the question of an approval, or the reference to one that was set aside.
fn asking(waits: Waiting, asked: &Value, budget: &mut AnswerBudget<'_>, values: &mut ValueBudget) -> Waiting {
    let mut show = |value: &Value| budget.show_reference(values, value);
    match key(asked) {
        Some(_) => Waiting { message: Some(show(asked)), ..waits },
        None => {
            let (message, approvers) =
                (asked.get("message").map(&mut show), asked.get("approvers").map(&mut show));
            Waiting { message, approvers, ..waits }
        }
    }
}

fn at_node(waits: Waiting, step: &Step, path: &Path) -> Waiting {
    let NodeLabel { id, name, .. } = NodeLabel::of(step);
    Waiting { node_id: Some(id), node_name: Some(name), path: path.0.clone(), ..waits }
}

/// Returns the context keys that the rules of a step's gate read.
#[must_use]
pub fn gate_keys(net: &Net, step: StepId) -> BTreeSet<&str> {
    let rules = net.step(step).admit.iter().flat_map(|admit| &admit.rules);
    let reads = rules.filter_map(|rule| rule.when.as_ref()).flat_map(|when| when.reads());
    reads.filter(|read| read.root == "ctx").filter_map(|read| read.key.as_deref()).collect()
}
