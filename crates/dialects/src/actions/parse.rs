//! A document of actions: the head of the workflow, and its list of actions.

mod action;
mod retry;

use super::language::{ROOT, TIERS};
use super::model::{Action, Tier, Workflow};
use super::policy;
use crate::bounded::TIMEOUT_MAX_MS;
use crate::document::{Kind, Node};
use crate::read::{Reader, Unknown, first_line};

/// Maximum length of the columns that store them.
const ID_MAX: usize = 100;
const NAME_MAX: usize = 255;
/// Actions of one workflow: far more than people approve and read.
const ACTIONS_MAX: usize = 5_000;

/// Returns the value of a key, if it has one.
fn given<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|value| !value.is_null())
}

pub(super) fn workflow(root: &Node, reader: &mut Reader<'_, '_>) -> Workflow {
    let mut workflow = Workflow::default();
    let Some(entries) = reader.map(root, "a workflow of actions") else { return workflow };
    reader.known(entries, "the workflow", ROOT, Unknown::Error);
    let version = schema_version(root, reader);
    workflow.id = needed_text(root, "workflowId", ID_MAX, reader);
    workflow.name = needed_text(root, "name", NAME_MAX, reader);
    for (key, max) in [("workspaceId", NAME_MAX), ("description", usize::MAX)] {
        if let Some(node) = given(root, key) {
            reader.limited(node, &format!("`{key}` of the workflow"), max);
        }
    }
    if let Some(node) = given(root, "version") {
        reader.whole(node, "`version` of the workflow", 1..=u32::MAX);
    }
    if let Some(node) = given(root, "active") {
        let active = reader.boolean(node, "`active` of the workflow");
        workflow.status = active.map(|active| if active { "active" } else { "paused" });
    }
    if let Some(node) = given(root, "executionTier") {
        workflow.tier = reader.choice(node, "executionTier", &TIERS).unwrap_or_default();
    }
    workflow.timeout_ms = timeout_ms(root, "the workflow", reader);
    workflow.inputs =
        given(root, "inputs").and_then(|node| reader.json_schema(node, "`inputs` of the workflow"));
    if let Some(node) = given(root, "policy") {
        workflow.constraints = policy::constraints(node, reader);
    }
    workflow.actions = actions(root, Head { version, tier: workflow.tier }, reader);
    workflow
}

/// Facts about the workflow that its actions are checked against.
#[derive(Clone, Copy)]
struct Head {
    version: Option<i64>,
    tier: Tier,
}

fn schema_version(root: &Node, reader: &mut Reader<'_, '_>) -> Option<i64> {
    let hint = "write `schemaVersion: 1`, or 2 if every action names its capability".to_owned();
    let Some(node) = given(root, "schemaVersion") else {
        reader.error("E0102", &first_line(root), "the workflow has no `schemaVersion`", hint);
        return None;
    };
    let version = integer(node);
    if matches!(version, Some(1 | 2)) {
        return version;
    }
    let written = reader.source.get(first_line(node)).unwrap_or_default();
    reader.error("E0170", &first_line(node), format!("Unsupported schemaVersion: {written}"), hint);
    None
}

/// Returns a whole number that is written as a number.
fn integer(node: &Node) -> Option<i64> {
    match &node.kind {
        Kind::Number(number) => number.as_i64(),
        _ => None,
    }
}

fn needed_text(root: &Node, key: &str, max: usize, reader: &mut Reader<'_, '_>) -> Option<String> {
    match given(root, key) {
        Some(node) => reader.limited(node, &format!("`{key}` of the workflow"), max),
        None => {
            let message = format!("the workflow has no `{key}`");
            reader.error("E0102", &first_line(root), message, format!("add `{key}: ...`"));
            None
        }
    }
}

fn timeout_ms(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<u64> {
    milliseconds(node, "timeoutMs", what, reader)
}

fn milliseconds(node: &Node, key: &str, what: &str, reader: &mut Reader<'_, '_>) -> Option<u64> {
    let label = format!("`{key}` of {what}");
    let found = reader.number_between(given(node, key)?, &label, 1.0, TIMEOUT_MAX_MS)?;
    Some(found as u64)
}

fn actions(root: &Node, head: Head, reader: &mut Reader<'_, '_>) -> Vec<Action> {
    let list = root.get("actions");
    let items = list.map(Node::items).unwrap_or_default();
    let at = list.map_or(root.at.start..root.at.start, first_line);
    if items.is_empty() {
        let hint = "write `actions:` and under it `- {actionId: NAME, order: 1, operation: entity:verb}`";
        reader.error("E0104", &at, "actions must be a non-empty array", hint.to_owned());
        return Vec::new();
    }
    if items.len() > ACTIONS_MAX {
        let message = format!("the workflow has {} actions, more than {ACTIONS_MAX}", items.len());
        reader.error("E0143", &at, message, "put parts of it into workflows of their own".to_owned());
        return Vec::new();
    }
    items.iter().filter_map(|item| action::action(item, head, reader)).collect()
}
