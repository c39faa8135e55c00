//! Steps that need no worker: routing and context patches that the kernel evaluates itself.

use super::model::{StepDef, TaskDef};
use serde_json::{Map, Value};
use windlass_expr::{Read, Template};
use windlass_kernel::net::{PatchEntry, Work};
use windlass_protocol::{Action, OnUnmatched, Tool};

/// Names that have a value only in a worker.
const WORKERS: [&str; 13] = [
    "outcome",
    "output",
    "_prev",
    "_task",
    "_attempt",
    "_idempotency_key",
    "results",
    "result",
    "response",
    "error",
    "keychain",
    "loop",
    "input",
];

/// Facts of the kernel about an iteration, apart from the item.
const ITERATION: [&str; 6] = ["index", "first", "last", "_index", "_first", "_last"];

/// Returns the step's work, if it needs no worker.
pub(super) fn pure(step: &StepDef) -> Option<Work> {
    if !step.tasks.iter().all(is_plain_noop) {
        return None;
    }
    let rules = step
        .tasks
        .iter()
        .filter_map(|task| task.task.rules.first().map(|rule| (&rule.set_ctx, &task.rule_reads)));
    let mut written: Map<String, Value> = Map::new();
    for (fields, reads) in rules.chain([(&step.set_ctx.fields, &step.set_ctx.reads)]) {
        // The keys of a patch are rendered at once: a key that reads an earlier one needs the worker's order.
        let sees_earlier =
            |read: &Read| !written.is_empty() && (read.root == "ctx" || written.contains_key(&read.root));
        if reads.iter().any(|read| needs_worker(step, read) || sees_earlier(read)) {
            return None;
        }
        written.extend(fields.clone());
    }
    let entry =
        |(key, value): (String, Value)| Some(PatchEntry { key, value: Template::compile(&value).ok()? });
    Some(Work::Pure { output: None, patch: written.into_iter().map(entry).collect::<Option<_>>()? })
}

fn is_plain_noop(task: &TaskDef) -> bool {
    let task = &task.task;
    let only_else = match &task.rules[..] {
        [] => true,
        [rule] => rule.when.is_none() && rule.action == Action::Continue && rule.set_iter.is_empty(),
        _ => false,
    };
    let says_nothing = task.config.keys().all(|key| key == "name" || key == "message");
    task.kind == Tool::Noop.kind() && says_nothing && only_else && task.on_unmatched != OnUnmatched::Fail
}

fn needs_worker(step: &StepDef, read: &Read) -> bool {
    let root = read.root.as_str();
    let own_args = root == "args" && !step.args.fields.is_empty();
    let own_field = step.args.fields.contains_key(root);
    let own_result = root == step.name.text
        || (root == "steps" && read.key.as_ref().is_none_or(|key| *key == step.name.text));
    let label = step.tasks.iter().any(|task| task.task.label == root);
    let is_known = |key: &str| {
        ITERATION.contains(&key) || step.repeat.as_ref().is_some_and(|repeat| repeat.iterator == key)
    };
    let iteration = root == "iter" && !read.key.as_deref().is_some_and(is_known);
    WORKERS.contains(&root) || own_args || own_field || own_result || label || iteration
}
