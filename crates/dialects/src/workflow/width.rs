//! Nodes that refer to the whole workflow. Each holds a list of it in the net, so the lists are bounded together.

use super::language::Kind;
use super::model::{NodeDef, Workflow};
use super::reads::reads_all;
use crate::diagnostic::Problems;

/// Entries of all such lists: some hundred agents in a workflow that a person can draw, and some ten MiB.
const LISTED_MAX: usize = 200_000;

pub(super) fn check(workflow: &Workflow, problems: &mut Problems) {
    let mut left = LISTED_MAX;
    for node in &workflow.nodes {
        match left.checked_sub(listed(workflow, node)) {
            Some(rest) => left = rest,
            None => return refuse(workflow, node, problems),
        }
    }
}

/// An agent is given all nodes and edges; an expression that reads the whole of `nodes` needs the outputs of all nodes.
fn listed(workflow: &Workflow, node: &NodeDef) -> usize {
    let (nodes, edges) = (workflow.nodes.len(), workflow.edges.len());
    let of_agent = if node.kind.kind == Kind::AiAgent { nodes + edges } else { 0 };
    let of_reads = if node.seen.iter().any(|seen| reads_all(&seen.read)) { nodes } else { 0 };
    of_agent + of_reads
}

fn refuse(workflow: &Workflow, node: &NodeDef, problems: &mut Problems) {
    let message = format!(
        "too many nodes refer to the whole workflow of {} nodes: agents, and expressions that read all of `nodes`",
        workflow.nodes.len()
    );
    let hint =
        "read single nodes (`nodes.ID.output`), or put parts of it into workflows of their own".to_owned();
    problems.add("E0143", &node.id.at, message, hint);
}
