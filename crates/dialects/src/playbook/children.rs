//! Playbooks that a playbook starts, as far as it names them literally: a name from a template is known only at run
//! time.

use super::model::{Playbook, TaskDef};
use crate::diagnostic::{ErrorAt, Problems, place_errors};
use crate::document::Node;
use crate::manifest::Child;
use serde_json::Value;
use windlass_protocol::CHILD_KIND;

/// Word for the newest version.
const NEWEST: &str = "latest";

pub(super) fn children(playbook: &Playbook, source: &str, root: &Node) -> Vec<Child> {
    let tasks = playbook.steps.iter().flat_map(|step| &step.tasks);
    let (found, errors): (Vec<_>, Vec<_>) = tasks.filter_map(child).unzip();
    let nowhere = place_errors("E0119", errors, source, root);
    found
        .into_iter()
        .zip(nowhere)
        .map(|((path, version), nowhere)| Child { path, version, nowhere })
        .collect()
}

/// Returns the path and version that a task names, and the error if there is no such playbook.
fn child(def: &TaskDef) -> Option<((String, Option<u32>), ErrorAt)> {
    let path = path(def)?;
    let hint = format!(
        "save it as `{path}.yaml` in the folder of this file, or write that as `metadata.path` of a playbook in this folder"
    );
    let error = ErrorAt { at: def.at.clone(), message: format!("there is no playbook `{path}`"), hint };
    Some(((path.to_owned(), version(def).ok().flatten()), error))
}

/// Checks that the versions of tasks can exist.
pub(super) fn check(playbook: &Playbook, problems: &mut Problems) {
    for def in playbook.steps.iter().flat_map(|step| &step.tasks) {
        if let (Some(path), Err(written)) = (path(def), version(def)) {
            let hint = format!("versions are counted from 1, in the order of registration; or `{NEWEST}`");
            let message = format!("playbook `{path}` cannot have the version `{written}`");
            problems.add("E0120", &def.at, message, hint);
        }
    }
}

fn path(def: &TaskDef) -> Option<&str> {
    let of_playbook = def.task.kind == CHILD_KIND;
    let found = ["path", "catalog_id"].iter().find_map(|key| def.task.config.get(*key)?.as_str());
    found.filter(|path| of_playbook && !is_template(path))
}

fn version(def: &TaskDef) -> Result<Option<u32>, String> {
    let number =
        |text: &str| text.parse().ok().filter(|version| *version > 0).ok_or(text.to_owned()).map(Some);
    match def.task.config.get("version") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text == NEWEST || is_template(text) => Ok(None),
        Some(Value::String(text)) => number(text),
        Some(other) => number(&other.to_string()),
    }
}

fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}
