//! A workflow's execution in the workflow's words: every node with what became of it. Results are not repeated here,
//! they are with the firings in `nodeExecutions`.

use super::entry::{NodeLabel, node_status};
use super::firing::Firing;
use super::large::Room;
use super::response::{Leases, status};
use super::shapes::{Course, NodeExecution};
use super::story::Story;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use windlass_kernel::net::FailureMode;
use windlass_kernel::{Net, StepId};

pub(super) fn view(net: &Net, story: &Story, leases: &Leases, room: &mut Room<'_>) -> Value {
    let newest: BTreeMap<StepId, &Firing> = story.whole().map(|firing| (firing.step, firing)).collect();
    let nodes = net.steps().map(|(id, step)| {
        let told = match newest.get(&id) {
            Some(firing) => {
                json!({ "status": node_status(story, leases, firing), "firings": story.fired(id) })
            }
            None => json!({ "status": unreached(story), "firings": 0 }),
        };
        (step.name.clone(), told)
    });
    json!({
        "status": status(story.state.phase()),
        "failureMode": failure_mode(net),
        "nodes": nodes.collect::<Map<_, _>>(),
        "ctx": room.context(&story.state.head.ctx),
    })
}

/// Entries of nodes that have not fired: they may, until the execution has ended.
pub(super) fn not_reached<'n>(net: &'n Net, story: &'n Story) -> impl Iterator<Item = NodeExecution> + 'n {
    net.steps().filter(|(id, _)| story.fired(*id) == 0).map(|(_, step)| {
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
