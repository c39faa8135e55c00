//! One step: its action, arguments, condition, extra fields and routing context.

use super::super::language::{ARGS, STEP};
use super::super::model::{Condition, Reference, Step};
use super::super::registry::ActionLookup;
use super::{action, field, given, reference, routing};
use crate::document::{Entry, Kind, Node};
use crate::read::{Name, Reader, Unknown, first_line};
use serde_json::Value;

/// Maximum length of a path component on all file systems, less the room for a suffix.
const ID_MAX: usize = 100;

pub(super) fn step(item: &Node, lookup: &dyn ActionLookup, reader: &mut Reader<'_, '_>) -> Option<Step> {
    let entries = reader.map(item, "a step")?;
    let id = id(item, reader)?;
    let what = format!("step `{}`", id.text);
    reader.known(entries, &what, STEP, Unknown::Error);
    let args = given(item, "args");
    if let Some(entries) = args.and_then(|node| reader.map(node, &format!("`args` of {what}"))) {
        reader.known(entries, &format!("`args` of {what}"), ARGS, Unknown::Error);
    }
    Some(Step {
        action: action::action_of(item, &what, lookup, reader),
        values: args.map(|node| values(node, &what, reader)).unwrap_or_default(),
        refs: args.map(|node| refs(node, &what, reader)).unwrap_or_default(),
        condition: given(item, "condition").and_then(|node| condition(node, &what, reader)),
        extra_inputs: field::fields(item, "extraInputs", &what, reader),
        extra_outputs: field::fields(item, "extraOutputs", &what, reader),
        routing: given(item, "routingContext").and_then(|node| routing::routing(node, &what, reader)),
        id,
    })
}

fn id(item: &Node, reader: &mut Reader<'_, '_>) -> Option<Name> {
    let Some(node) = given(item, "id") else {
        reader.error("E0102", &first_line(item), "a step has no `id`", "add `id: NAME`".to_owned());
        return None;
    };
    let id = reader.name(node, "`id` of a step")?;
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    if id.text.starts_with('-') || !id.text.chars().all(is_part) || id.text.len() > ID_MAX {
        let message = format!("a step cannot have the id `{}`", id.text);
        let hint = format!("use letters, digits, `_` and `-`, not `-` first, at most {ID_MAX} of them");
        reader.error("E0109", &id.at, message, hint);
    }
    Some(id)
}

fn map_of<'n>(args: &'n Node, key: &str, what: &str, reader: &mut Reader<'_, '_>) -> &'n [Entry] {
    given(args, key).and_then(|node| reader.map(node, &format!("`args.{key}` of {what}"))).unwrap_or_default()
}

fn values(args: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Vec<(Name, Value)> {
    let entries = map_of(args, "values", what, reader);
    let named = |entry: &Entry| (Name { text: entry.key.clone(), at: entry.at.clone() }, entry.value.json());
    entries.iter().map(named).collect()
}

fn refs(args: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Vec<(Name, Reference)> {
    let mut refs = Vec::new();
    for entry in map_of(args, "refs", what, reader) {
        let name = Name { text: entry.key.clone(), at: entry.at.clone() };
        let found = reference(&entry.value, &format!("`args.refs.{}` of {what}", entry.key), reader);
        refs.extend(found.map(|reference| (name, reference)));
    }
    refs
}

fn condition(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<Condition> {
    let text = match node.kind {
        Kind::Bool(value) => value.to_string(),
        _ => reader.text(node, &format!("`condition` of {what}"))?.to_owned(),
    };
    Some(Condition { text, at: node.at.clone() })
}
