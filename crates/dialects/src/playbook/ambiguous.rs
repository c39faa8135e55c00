//! Inputs and context keys whose bare names have another meaning: a step, a task, a part of the event.

use super::model::{Playbook, StepDef};
use crate::diagnostic::Problems;
use crate::document::{Entry, Node};
use std::collections::{BTreeMap, BTreeSet};
use windlass_expr::{Expr, Read, Template};
use windlass_kernel::net::LoopKind;

/// Parts of the event that arcs read by their own names.
const EVENT: [&str; 4] = ["error", "result", "response", "loop"];

/// Warns only of names that an expression reads bare: a step may well have the name of an input.
pub(super) fn check(playbook: &Playbook, root: &Node, problems: &mut Problems) {
    let meanings = meanings(playbook);
    for Entry { key, at, .. } in root.get("workload").map(Node::entries).unwrap_or_default() {
        if let Some(meaning) = meanings.get(key.as_str()) {
            let message =
                format!("`{key}` is an input and {meaning}: expressions that read `{key}` get {meaning}");
            let hint = format!("write `workload.{key}` for the input, or rename one of them");
            problems.add("W0250", at, message, Some(hint));
        }
    }
    for step in &playbook.steps {
        let rules = step.tasks.iter().flat_map(|task| &task.task.rules);
        let keys: BTreeSet<&String> =
            rules.flat_map(|rule| rule.set_ctx.keys()).chain(step.set_ctx.fields.keys()).collect();
        for (key, meaning) in keys.into_iter().filter_map(|key| Some((key, meanings.get(key.as_str())?))) {
            let name = &step.name.text;
            let message =
                format!("step `{name}` sets `ctx.{key}`: expressions that read `{key}` get {meaning}");
            let hint = format!("write `ctx.{key}` for the context, or rename one of them");
            problems.add("W0250", &step.name.at, message, Some(hint));
        }
    }
}

/// Returns the names that expressions read bare, with the meaning of each.
fn meanings(playbook: &Playbook) -> BTreeMap<&str, &'static str> {
    let steps: BTreeSet<&str> = playbook.steps.iter().map(|step| step.name.text.as_str()).collect();
    let mut meanings = BTreeMap::new();
    for step in &playbook.steps {
        let is_argument = |read: &Read| step.args.fields.contains_key(&read.root);
        let all = step.reads().chain(gates_and_loops(step));
        for read in all.filter(|read| steps.contains(read.root.as_str()) && !is_argument(read)) {
            meanings.insert(read.root.as_str(), "the result of a step");
        }
        let labels: BTreeSet<&str> = step.tasks.iter().map(|task| task.task.label.as_str()).collect();
        let tasks = step.tasks.iter().flat_map(|task| &task.reads);
        for read in tasks.filter(|read| labels.contains(read.root.as_str()) && !is_argument(read)) {
            meanings.entry(read.root.as_str()).or_insert("the result of a task");
        }
        let arcs = step.arcs.iter().flat_map(|arc| {
            arc.guard.iter().flat_map(Expr::reads).chain(arc.args.iter().flat_map(Template::reads))
        });
        for read in arcs.filter(|read| EVENT.contains(&read.root.as_str())) {
            meanings.entry(read.root.as_str()).or_insert("a part of the event");
        }
    }
    meanings
}

fn gates_and_loops(step: &StepDef) -> impl Iterator<Item = &Read> {
    let rules = step.admit.iter().flat_map(|admit| &admit.rules);
    let gates = rules.filter_map(|rule| rule.when.as_ref()).flat_map(Expr::reads);
    let items = step.repeat.iter().filter_map(|repeat| match &repeat.kind {
        LoopKind::ForEach { items } => Some(items),
        LoopKind::Count { .. } | LoopKind::While { .. } => None,
    });
    gates.chain(items.flat_map(Template::reads))
}
