//! Meaning of the edges: the order of nodes, the bodies of loops, the nodes that an agent may run.

mod regions;
mod tools;

use super::form::literal;
use super::language::{Exit, Kind};
use super::model::{Flow, Form, NodeDef, Workflow};
use crate::diagnostic::Problems;
use crate::names;
use crate::read::Name;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes named in a message.
const NAMED_MAX: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Edges without those that only make a node available, and those from a body back to its loop.
    pub(super) flows: Vec<Flow>,
    /// The loop around each node.
    pub(super) region: Vec<Option<usize>>,
    /// Nodes that each agent may run.
    pub(super) tools: BTreeMap<usize, Vec<usize>>,
    pub(super) on_demand: BTreeSet<usize>,
}

pub(super) fn plan(workflow: &Workflow, problems: &mut Problems) -> Plan {
    let index = index(workflow, problems);
    let flows: Vec<Flow> = flows(workflow, &index, problems);
    let mut plan = tools::parted(workflow, flows, problems);
    regions::found(workflow, &mut plan, problems);
    cycles(workflow, &plan, problems);
    entries(workflow, &plan, problems);
    plan
}

type Index<'w> = BTreeMap<&'w str, usize>;

fn index<'w>(workflow: &'w Workflow, problems: &mut Problems) -> Index<'w> {
    let mut index = BTreeMap::new();
    for (place, node) in workflow.nodes.iter().enumerate() {
        if index.insert(node.id.text.as_str(), place).is_some() {
            let message = format!("node `{}` is defined twice", node.id.text);
            problems.add("E0105", &node.id.at, message, "give one of them another `id`".to_owned());
        }
    }
    index
}

fn flows(workflow: &Workflow, index: &Index<'_>, problems: &mut Problems) -> Vec<Flow> {
    let mut found = Vec::new();
    for edge in &workflow.edges {
        let mut end = |name: &Name| match index.get(name.text.as_str()) {
            Some(place) => Some(*place),
            None => {
                if !problems.is_full() {
                    let hint = names::hint(&name.text, index.keys().copied());
                    problems.add("E0107", &name.at, format!("there is no node `{}`", name.text), hint);
                }
                None
            }
        };
        let (Some(from), Some(to)) = (end(&edge.source), end(&edge.target)) else { continue };
        let source = &workflow.nodes[from];
        let Some((exit, branch)) = exit(source, edge.handle.as_ref(), problems) else { continue };
        // A drawing may name the agent's end of an edge only.
        let at_tools =
            edge.target_handle.as_deref().is_some_and(|handle| ["tools", "tool"].contains(&handle));
        let exit = if at_tools && workflow.nodes[to].kind.kind == Kind::AiAgent { Exit::Tools } else { exit };
        if workflow.nodes[to].kind.kind == Kind::Trigger {
            let message = format!("an edge leads to the trigger `{}`", edge.target.text);
            problems.add(
                "E0146",
                &edge.target.at,
                message,
                "a trigger starts the workflow; reverse the edge".to_owned(),
            );
            continue;
        }
        found.push(Flow { from, to, exit, branch, at: edge.at.start..edge.at.start });
    }
    found
}

/// Returns the condition under which an edge with this handle is taken.
fn exit(node: &NodeDef, handle: Option<&Name>, problems: &mut Problems) -> Option<(Exit, Option<String>)> {
    let Some(handle) = handle else {
        let exit = if node.kind.kind == Kind::AiAgent { Exit::Tools } else { Exit::Done };
        return Some((exit, None));
    };
    let word = handle.text.as_str();
    let conditional = if let Form::Conditional(conditional) = &node.form { Some(conditional) } else { None };
    let own = conditional.is_some_and(|conditional| {
        conditional.branches.iter().any(|branch| branch == word)
            || (conditional.default_branch.as_deref() == Some(word)
                && !node.kind.handles.iter().any(|handle| handle.name == word))
    });
    if own {
        return Some((Exit::Done, Some(word.to_owned())));
    }
    let found = node.kind.handles.iter().find(|handle| handle.name == word).map(|handle| (handle.exit, None));
    // The handles of a broken conditional are not known.
    if found.is_none() && !matches!(node.form, Form::Broken) && !problems.is_full() {
        let branches = conditional.map_or(&[][..], |conditional| conditional.branches.as_slice());
        let known =
            || branches.iter().map(String::as_str).chain(node.kind.handles.iter().map(|handle| handle.name));
        let near = names::hint(word, known()).filter(|hint| hint.starts_with("did"));
        let all: Vec<&str> = known().collect();
        let message = format!("node `{}` has no handle `{word}`", node.id.text);
        let hint = near.unwrap_or_else(|| format!("its handles are {}", all.join(", ")));
        problems.add("E0145", &handle.at, message, hint);
    }
    found
}

fn cycles(workflow: &Workflow, plan: &Plan, problems: &mut Problems) {
    let mut into = vec![0_usize; workflow.nodes.len()];
    plan.flows.iter().for_each(|flow| into[flow.to] += 1);
    let mut onward = vec![Vec::new(); workflow.nodes.len()];
    plan.flows.iter().for_each(|flow| onward[flow.from].push(flow.to));
    let mut free: Vec<usize> = (0..into.len()).filter(|place| into[*place] == 0).collect();
    while let Some(place) = free.pop() {
        for to in &onward[place] {
            into[*to] -= 1;
            if into[*to] == 0 {
                free.push(*to);
            }
        }
    }
    let left: Vec<&Name> =
        (0..into.len()).filter(|place| into[*place] > 0).map(|place| &workflow.nodes[place].id).collect();
    let Some(first) = left.first() else { return };
    let shown: Vec<String> = left.iter().take(NAMED_MAX).map(|name| format!("`{}`", name.text)).collect();
    let more = if left.len() > NAMED_MAX { ", …" } else { "" };
    let message = format!("the edges form a cycle through {}{more}", shown.join(", "));
    let hint = "connect what is to be repeated to the handle `body` of a `loop` node".to_owned();
    problems.add("E0149", &first.at, message, hint);
}

fn entries(workflow: &Workflow, plan: &Plan, problems: &mut Problems) {
    let reached: BTreeSet<usize> = plan.flows.iter().map(|flow| flow.to).collect();
    let starts: Vec<usize> = (0..workflow.nodes.len())
        .filter(|place| !reached.contains(place) && !plan.on_demand.contains(place))
        .collect();
    if starts.is_empty() && !workflow.nodes.is_empty() && !problems.has_errors() {
        let hint = "add a trigger, and an edge from it".to_owned();
        problems.add("E0150", &workflow.nodes[0].id.at, "no node starts the workflow", hint);
    }
    let has_trigger = workflow.nodes.iter().any(|node| node.kind.kind == Kind::Trigger);
    if !has_trigger || problems.has_errors() {
        return;
    }
    for place in starts {
        let node = &workflow.nodes[place];
        if node.kind.kind != Kind::Trigger {
            let message =
                format!("no edge leads to node `{}`: it starts at once, with the trigger", node.id.text);
            problems.add("W0202", &node.id.at, message, "add an edge to it, or remove it".to_owned());
        }
    }
}

/// Returns the guard of an edge; None: it is taken whenever the node completes.
pub(super) fn guard(node: &NodeDef, flow: &Flow) -> Option<String> {
    let Form::Conditional(_) = &node.form else { return None };
    let of = format!("steps[{}]", literal(&json!(node.id.text)));
    match (flow.exit, &flow.branch) {
        (_, Some(branch)) => Some(format!("{of}.branch == {}", literal(&json!(branch)))),
        (Exit::Yes, None) => Some(format!("{of}.result")),
        (Exit::No, None) => Some(format!("not {of}.result")),
        (Exit::Default, None) => Some(format!("{of}.matched is none")),
        (Exit::Done | Exit::Error | Exit::Body | Exit::Tools, None) => None,
    }
}
