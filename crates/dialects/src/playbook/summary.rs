//! Reads of the final step in the summary that it gets as its arguments. Results of other steps are collected for it
//! only if it reads them.

use super::model::{Playbook, StepDef};
use serde_json::Value;
use windlass_kernel::net::LoopSpec;
use windlass_protocol::{CHILD_KIND, Tool};

/// Names in the summary that contain firings of other steps.
const OF_FIRINGS: [&str; 3] = ["results", "failures", "omitted"];
/// Names in the summary that a final step can read without a root.
pub(super) const NAMES: [&str; 4] = ["failures", "omitted", "branches", "status"];

fn final_step(playbook: &Playbook) -> Option<&StepDef> {
    let name = playbook.executor.final_step.as_ref()?;
    playbook.steps.iter().find(|step| step.name.text == name.text)
}

/// Returns whether the step is the final step and reads results or failures of other steps.
pub(super) fn reads_firings(playbook: &Playbook, step: &StepDef) -> bool {
    let reads_name = || {
        let of_loop = step.repeat.iter().flat_map(LoopSpec::reads);
        step.reads().chain(of_loop).any(|read| match (read.root.as_str(), read.key.as_deref()) {
            ("args" | "input", key) => key.is_none_or(|key| OF_FIRINGS.contains(&key)),
            (root, _) => OF_FIRINGS.contains(&root),
        })
    };
    let gets_all = || {
        let mut kinds = step.tasks.iter().map(|task| task.task.kind.as_str());
        // A kind that is no tool of ours is bound to one that may get all arguments.
        kinds.any(|kind| kind != CHILD_KIND && Tool::named(kind).is_none_or(|tool| tool.row().gets_args))
    };
    let name = playbook.executor.final_step.as_ref();
    name.is_some_and(|name| name.text == step.name.text) && (reads_name() || gets_all())
}

/// Returns whether the final step reads firings of other steps.
pub(super) fn is_read(playbook: &Playbook) -> bool {
    final_step(playbook).is_some_and(|step| reads_firings(playbook, step))
}

/// Returns whether the text of the final step has the word `results`: then loops keep the results of their iterations.
pub(super) fn mentions_results(playbook: &Playbook) -> bool {
    let Some(step) = final_step(playbook) else { return false };
    let of_loop = step.repeat.iter().flat_map(LoopSpec::reads);
    let is_results = |name: &str| name == "results";
    step.reads()
        .chain(of_loop)
        .any(|read| is_results(&read.root) || read.key.as_deref().is_some_and(is_results))
        || step.tasks.iter().flat_map(|task| task.task.config.values()).any(has_word)
}

fn has_word(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("results"),
        Value::Array(items) => items.iter().any(has_word),
        Value::Object(fields) => fields.values().any(has_word),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
