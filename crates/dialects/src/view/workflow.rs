//! A workflow's execution in the workflow's words: every node with what became of it. Results are not repeated here,
//! they are with the firings in `nodeExecutions`.

use super::entry::{NodeLabel, node_status};
use super::firing::Firing;
use super::large::reference;
use super::response::{Leases, status};
use super::shapes::{Course, NodeExecution};
use super::story::Story;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::net::FailureMode;
use windlass_kernel::{Net, StepId};

pub(super) fn view(net: &Net, story: &Story, leases: &Leases) -> Value {
    let mut newest: BTreeMap<StepId, (&Firing, u32)> = BTreeMap::new();
    for firing in story.whole() {
        let entry = newest.entry(firing.step).or_insert((firing, 0));
        *entry = (firing, entry.1 + 1);
    }
    let nodes = net.steps().map(|(id, step)| {
        let told = match newest.get(&id) {
            Some((firing, count)) => {
                json!({ "status": node_status(story, leases, firing), "firings": count })
            }
            None => json!({ "status": unreached(story), "firings": 0 }),
        };
        (step.name.clone(), told)
    });
    let ctx: Map<String, Value> = story
        .state
        .head
        .ctx
        .iter()
        .map(|(key, value)| (key.clone(), reference(story.state.head.id, value)))
        .collect();
    json!({
        "status": status(story.state.phase()),
        "failureMode": failure_mode(net),
        "nodes": nodes.collect::<Map<_, _>>(),
        "ctx": ctx,
    })
}

/// Entries of nodes that have not fired: they may, until the execution has ended.
pub(super) fn not_reached<'n>(net: &'n Net, story: &'n Story) -> impl Iterator<Item = NodeExecution> + 'n {
    let fired: BTreeSet<StepId> = story.whole().map(|firing| firing.step).collect();
    net.steps().filter(move |(id, _)| !fired.contains(id)).map(|(_, step)| {
        let NodeLabel { id, name, kind } = NodeLabel::of(step);
        NodeExecution {
            node_id: id,
            node_name: name,
            node_type: kind,
            firing: 0,
            path: Vec::new(),
            course: Course { status: unreached(story), ..Course::default() },
            iterations: Vec::new(),
            compensation: None,
        }
    })
}

fn unreached(story: &Story) -> &'static str {
    if story.state.phase().is_ended() { "skipped" } else { "pending" }
}

fn failure_mode(net: &Net) -> &'static str {
    match net.policy().failure {
        FailureMode::FailFast => "fail_fast",
        FailureMode::Continue => "continue_on_error",
        FailureMode::Collect => "collect_errors",
    }
}
