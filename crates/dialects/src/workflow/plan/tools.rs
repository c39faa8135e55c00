//! Edges that touch an agent: they make nodes available to it and do not fire them.

use super::Plan;
use crate::diagnostic::Problems;
use crate::workflow::language::{Exit, Kind};
use crate::workflow::model::{Flow, Workflow};
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::any_of;

/// Separates the nodes that agents may run: those that an edge connects to an agent, and those that only such nodes lead to.
pub(super) fn parted(workflow: &Workflow, flows: Vec<Flow>, problems: &mut Problems) -> Plan {
    let kind = |place: usize| workflow.nodes[place].kind.kind;
    let region = vec![None; workflow.nodes.len()];
    if !workflow.nodes.iter().any(|node| node.kind.kind == Kind::AiAgent) {
        return Plan { flows, region, ..Plan::default() };
    }
    let given: BTreeSet<(usize, usize)> =
        flows.iter().filter(|flow| flow.exit == Exit::Tools).map(|flow| (flow.from, flow.to)).collect();
    let reached: BTreeSet<usize> = flows.iter().map(|flow| flow.to).collect();
    let is_tool = |place: usize, agent: usize| {
        given.contains(&(agent, place)) || (!reached.contains(&place) && kind(place) != Kind::Trigger)
    };
    let mut tools: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut rest = Vec::new();
    for flow in flows {
        let (from, to) = (flow.from, flow.to);
        let owner = match flow.exit {
            Exit::Tools if kind(from) == Kind::AiAgent => Some((from, to)),
            Exit::Tools => Some((to, from)),
            // Back from a tool, or a node that nothing else leads to.
            Exit::Done if kind(to) == Kind::AiAgent && is_tool(from, to) => Some((to, from)),
            any_of![Exit: Done Error Body Yes No Default] => None,
        };
        match owner {
            Some((agent, tool)) => tools.entry(agent).or_default().push(tool),
            None => rest.push(flow),
        }
    }
    let (onward, into) = neighbours(workflow.nodes.len(), &rest);
    for owned in tools.values_mut() {
        reached_from_tools(owned, &onward, &into);
    }
    let on_demand: BTreeSet<usize> = tools.values().flatten().copied().collect();
    rest.retain(|flow| !(on_demand.contains(&flow.from) && on_demand.contains(&flow.to)));
    refused(workflow, &rest, &on_demand, problems);
    rest.retain(|flow| !on_demand.contains(&flow.from) && !on_demand.contains(&flow.to));
    for owned in tools.values_mut() {
        owned.sort_unstable();
        owned.dedup();
    }
    Plan { flows: rest, region, tools, on_demand }
}

/// Targets of each node, and the number of edges that lead to it.
fn neighbours(count: usize, flows: &[Flow]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let (mut onward, mut into) = (vec![Vec::new(); count], vec![0; count]);
    for flow in flows {
        onward[flow.from].push(flow.to);
        into[flow.to] += 1;
    }
    (onward, into)
}

/// Adds the nodes that only tools lead to, which are tools as well.
fn reached_from_tools(owned: &mut Vec<usize>, onward: &[Vec<usize>], into: &[usize]) {
    owned.sort_unstable();
    owned.dedup();
    let mut from_tools: BTreeMap<usize, usize> = BTreeMap::new();
    let mut known: BTreeSet<usize> = owned.iter().copied().collect();
    let mut at = 0;
    while let Some(place) = owned.get(at).copied() {
        at += 1;
        for to in &onward[place] {
            let seen = from_tools.entry(*to).or_default();
            *seen += 1;
            if *seen == into[*to] && known.insert(*to) {
                owned.push(*to);
            }
        }
    }
}

/// Refuses nodes that are run both by an agent and by edges, and tools with a body.
fn refused(workflow: &Workflow, rest: &[Flow], on_demand: &BTreeSet<usize>, problems: &mut Problems) {
    for flow in rest {
        let tool = [flow.from, flow.to].into_iter().find(|place| on_demand.contains(place));
        let Some(tool) = tool else { continue };
        let name = &workflow.nodes[tool].id;
        let message = format!("node `{}` is a tool of an agent and part of the flow", name.text);
        let hint =
            "connect later nodes to the handle `done` of the agent; its tools have no other edges".to_owned();
        problems.add("E0147", &flow.at, message, hint);
    }
    for place in on_demand {
        let node = &workflow.nodes[*place];
        if matches!(node.kind.kind, Kind::Loop | Kind::Trigger) {
            let message = format!("node `{}` is a {}, which no agent can run", node.id.text, node.kind.name);
            let hint = "put it into a workflow of its own, and connect a `workflow` node".to_owned();
            problems.add("E0147", &node.id.at, message, hint);
        }
    }
}
