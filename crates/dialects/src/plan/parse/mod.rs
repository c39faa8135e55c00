//! A document of a plan: the plan, its parameters, steps and outputs.

mod action;
mod claim;
mod field;
mod routing;
mod step;

pub(super) use action::action_document;
pub(super) use field::first_misfit;

use super::language::{CLUSTER, PLAN, ROOT};
use super::model::{ClusterAffinity, Plan, Reference};
use super::reference;
use super::registry::ActionLookup;
use crate::document::Node;
use crate::read::{Name, Reader, Unknown, first_line};

/// Steps of one plan: far more than people review.
const STEPS_MAX: usize = 1_000;
/// Parameters, inputs or outputs in one list.
const FIELDS_MAX: usize = 200;
const TEXT_MAX: usize = 10_000;
/// Maximum length of the names of groups and clusters.
const NAME_MAX: usize = 100;

/// Returns the value of a key, if it has one.
fn given<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|value| !value.is_null())
}

pub(super) fn plan(root: &Node, lookup: &dyn ActionLookup, reader: &mut Reader<'_, '_>) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = spec(root, reader) else { return plan };
    let Some(entries) = reader.map(spec, "a plan") else { return plan };
    reader.known(entries, "the plan", PLAN, Unknown::Error);
    let text = |key: &str, max, reader: &mut Reader<'_, '_>| {
        given(spec, key).and_then(|node| reader.limited(node, &format!("`{key}` of the plan"), max))
    };
    plan.prompt = text("prompt", TEXT_MAX, reader);
    plan.selection_hint = text("selectionHint", TEXT_MAX, reader);
    plan.runner = text("runner", NAME_MAX, reader);
    plan.cluster = given(spec, "cluster").and_then(|node| cluster(node, reader));
    plan.params = field::fields(spec, "params", "the plan", reader);
    plan.steps = steps(spec, lookup, reader);
    plan.outputs = given(spec, "output").map(|node| outputs(node, reader)).unwrap_or_default();
    plan
}

/// Returns the plan itself: the document, or its `spec`.
fn spec<'n>(root: &'n Node, reader: &mut Reader<'_, '_>) -> Option<&'n Node> {
    let Some(spec) = root.get("spec") else { return Some(root) };
    const SERVERS: [(&str, &str); 2] =
        [("id", "the id follows from the content of the plan"), ("status", "the server sets it")];
    let entries = reader.elsewhere(root.entries(), "a plan that is created", &SERVERS);
    reader.known(entries, "the document", ROOT, Unknown::Error);
    Some(spec)
}

fn steps(spec: &Node, lookup: &dyn ActionLookup, reader: &mut Reader<'_, '_>) -> Vec<super::model::Step> {
    let list = spec.get("steps");
    let items = match list {
        Some(node) if !node.is_null() => reader.list(node, "`steps` of the plan").unwrap_or_default(),
        _ => &[],
    };
    let at = list.map_or(spec.at.start..spec.at.start, first_line);
    if items.is_empty() {
        let hint = "write `steps:` and under it `- {id: NAME, action: shell, args: {values: {script: ...}}}`";
        reader.error("E0104", &at, "the plan has no steps", hint.to_owned());
        return Vec::new();
    }
    if items.len() > STEPS_MAX {
        let message = format!("the plan has {} steps, more than {STEPS_MAX}", items.len());
        reader.error("E0143", &at, message, "divide it into several plans".to_owned());
        return Vec::new();
    }
    items.iter().filter_map(|item| step::step(item, lookup, reader)).collect()
}

fn outputs(node: &Node, reader: &mut Reader<'_, '_>) -> Vec<(Name, Reference)> {
    let entries = reader.map(node, "`output` of the plan").unwrap_or_default();
    if entries.len() > FIELDS_MAX {
        let message = format!("the plan has {} outputs, more than {FIELDS_MAX}", entries.len());
        reader.error("E0143", &first_line(node), message, "remove some of them".to_owned());
        return Vec::new();
    }
    let mut outputs = Vec::new();
    for entry in entries {
        field::check_name(&entry.key, &entry.at, "an output of the plan", reader);
        let what = format!("output `{}` of the plan", entry.key);
        let name = Name { text: entry.key.clone(), at: entry.at.clone() };
        outputs.extend(reference(&entry.value, &what, reader).map(|reference| (name, reference)));
    }
    outputs
}

fn reference(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<Reference> {
    let text = reader.text(node, what)?.trim();
    match reference::parse(text) {
        Ok((from, drill)) => Some(Reference { text: text.to_owned(), from, drill, at: node.at.clone() }),
        Err(message) => {
            reader.error("E0180", &node.at, format!("{what}: {message}"), reference::FORM.to_owned());
            None
        }
    }
}

fn cluster(node: &Node, reader: &mut Reader<'_, '_>) -> Option<ClusterAffinity> {
    let entries = reader.map(node, "`cluster` of the plan")?;
    reader.known(entries, "`cluster`", CLUSTER, Unknown::Error);
    let mut found = entries.iter().filter(|entry| !entry.value.is_null());
    let (first, second) = (found.next()?, found.next());
    if let Some(second) = second {
        let message = format!("`cluster` has `{}` and `{}`", first.key, second.key);
        reader.error("E0190", &second.at, message, "keep one of them".to_owned());
    }
    let key = CLUSTER.iter().find(|key| key.name == first.key)?.name;
    let value = reader.limited(&first.value, &format!("`{key}` of `cluster`"), NAME_MAX)?;
    Some(ClusterAffinity { key, value, at: first.value.at.clone() })
}
