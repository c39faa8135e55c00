//! One binding: a tool with its fields, a stored definition, or a group of workers.

use super::Binding;
use crate::document::{Entry, Node};
use crate::names;
use crate::playbook::bound_tool;
use crate::playbook::keychain::{KeyDef, check_declared, needed};
use crate::playbook::language::tools;
use crate::read::{Key, Reader, Unknown, first_line, key};
use serde_json::{Map, Value, json};
use std::ops::Range;
use windlass_expr::{Read, has_tags};
use windlass_protocol::{CHILD_KIND, GROUP_NAME_MAX, ToolRow, WORKER_KIND, field, is_group_name};

/// Kind of a binding to a stored definition.
const WORKFLOW_KIND: &str = "workflow";

/// Kinds that are no tools of workers in this process.
const OTHERS: [ToolRow; 2] = [
    ToolRow {
        kind: WORKFLOW_KIND,
        about: "A stored definition, as an execution of its own",
        needs: &["name"],
        fields: &[
            field("name", "The name, the path or the id of the definition"),
            field("version", "The number of a version, or `latest`"),
        ],
        ..ToolRow::USUAL
    },
    ToolRow {
        kind: WORKER_KIND,
        about: "Workers of a group, which claim it",
        needs: &["group"],
        fields: &[field("group", "The name of the group")],
        ..ToolRow::USUAL
    },
];

/// Keys that a binding has in addition to the fields of its tool.
const STRUCTURE: &[Key] =
    &[key("kind", "The tool"), key("desc", "For people"), key("spec", "Timeout and fields of the tool")];

/// Keys of tasks that a binding cannot have.
const ELSEWHERE: [(&str, &str); 5] = [
    ("args", "templates of the binding read the arguments of the call as `args`"),
    ("input", "templates of the binding read the arguments of the call as `args`"),
    ("retry", "the action or the task that calls it says how often it is tried"),
    ("next", "the action or the step that calls it says what follows"),
    ("adapters", "a binding names a tool and has no bindings of its own"),
];

/// Names that templates of a binding can read. Everything else belongs to the definition that calls it.
const READABLE: [&str; 6] = ["args", "input", "keychain", "execution_id", "_attempt", "_idempotency_key"];

/// Tools of playbooks that a binding cannot name, and the one whose operation a binding has already.
const NOT_BOUND_TO: [&str; 3] = [CHILD_KIND, "workbook", WORKER_KIND];

pub(super) fn parse_binding(entry: &Entry, keys: &[&KeyDef], reader: &mut Reader<'_, '_>) -> Option<Binding> {
    let (name, node) = (entry.key.as_str(), &entry.value);
    let what = format!("the binding of `{name}`");
    let entries = reader.map(node, &what)?;
    if reader.elsewhere(entries, &what, &ELSEWHERE).len() < entries.len() {
        return None;
    }
    let Some(kind) = node.get("kind") else {
        reader.error(
            "E0161",
            &entry.at,
            format!("{what} has no `kind`"),
            format!("known kinds: {}", kinds()),
        );
        return None;
    };
    match reader.text(kind, "`kind` of a binding")? {
        WORKFLOW_KIND => workflow(entry, reader),
        WORKER_KIND => worker(entry, reader),
        text if known().any(|row| row.kind == text) => tool(entry, keys, reader),
        text => {
            let near = names::hint(text, known().map(|row| row.kind)).filter(|hint| hint.starts_with("did"));
            let near = near.map(|near| format!("{near} ")).unwrap_or_default();
            let message = format!("{what} has the kind `{text}`, which does not exist");
            reader.error("E0161", &kind.at, message, format!("{near}known kinds: {}", kinds()));
            None
        }
    }
}

fn known() -> impl Iterator<Item = &'static ToolRow> + Clone {
    tools().filter(|row| !NOT_BOUND_TO.contains(&row.kind)).chain(&OTHERS)
}

fn kinds() -> String {
    known().map(|row| row.kind).collect::<Vec<_>>().join(", ")
}

fn tool(entry: &Entry, keys: &[&KeyDef], reader: &mut Reader<'_, '_>) -> Option<Binding> {
    let (task, reads) = bound_tool(&entry.value, reader)?;
    check_reads(&reads, &entry.at, reader);
    check_header(&entry.value, reader);
    check_declared(&reads, keys, &entry.at, reader.problems);
    let keychain = needed(keys, &task.config);
    Some(Binding { kind: task.kind, config: task.config, timeout_ms: task.timeout_ms, keychain })
}

fn check_reads(reads: &[Read], at: &Range<usize>, reader: &mut Reader<'_, '_>) {
    let unknown = reads.iter().find(|read| !READABLE.contains(&read.root.as_str()));
    if let Some(Read { root, .. }) = unknown {
        let message = format!("the binding reads `{root}`, which belongs to definitions that call it");
        let hint = "it can read `args`, `keychain`, `execution_id`, `_attempt` and `_idempotency_key`: pass the value as an \
                    argument of the call";
        reader.error("E0162", at, message, hint.to_owned());
    }
}

/// Refuses a binding that replaces the header of the key, which makes a repeated call safe.
fn check_header(node: &Node, reader: &mut Reader<'_, '_>) {
    let places = [Some(node), node.get("spec")].into_iter().flatten();
    let headers = places.filter_map(|place| place.get("headers")).flat_map(Node::entries);
    for header in headers.filter(|header| header.key.eq_ignore_ascii_case("idempotency-key")) {
        let message = "the header `Idempotency-Key` of a binding is always set by the engine";
        let hint = "remove it; other fields can read the key as `{{ _idempotency_key }}`";
        reader.error("E0163", &header.at, message, hint.to_owned());
    }
}

/// Reads a binding to a stored definition, which gets the arguments of the call as its inputs.
fn workflow(entry: &Entry, reader: &mut Reader<'_, '_>) -> Option<Binding> {
    let path = plain_field(entry, &OTHERS[0], "name", reader)?;
    let mut config = Map::from_iter([("path".to_owned(), path)]);
    match entry.value.get("version").filter(|version| !version.is_null()) {
        None => {}
        Some(version) if version.text() == Some("latest") => {}
        Some(version) => {
            let number = reader.whole(version, "`version` of a binding", 1..=u32::MAX)?;
            config.insert("version".to_owned(), json!(number));
        }
    }
    Some(Binding { kind: CHILD_KIND.to_owned(), config, timeout_ms: None, keychain: Vec::new() })
}

fn worker(entry: &Entry, reader: &mut Reader<'_, '_>) -> Option<Binding> {
    let group = plain_field(entry, &OTHERS[1], "group", reader)?;
    if !group.as_str().is_some_and(is_group_name) {
        let message = format!("the group {group} of a binding is not a plain name");
        let hint = format!("use at most {GROUP_NAME_MAX} letters, digits, `.`, `_` and `-`");
        reader.error("E0162", &entry.at, message, hint);
        return None;
    }
    let config = Map::from_iter([("group".to_owned(), group), ("operation".to_owned(), json!(entry.key))]);
    Some(Binding { kind: WORKER_KIND.to_owned(), config, timeout_ms: None, keychain: Vec::new() })
}

/// Reads the only required field of a binding: a name, and no template.
fn plain_field(entry: &Entry, row: &ToolRow, key: &str, reader: &mut Reader<'_, '_>) -> Option<Value> {
    let (kind, node) = (row.kind, &entry.value);
    let known: Vec<Key> =
        STRUCTURE.iter().filter(|key| key.name != "spec").chain(row.fields).copied().collect();
    let own = node.entries().iter().filter(|entry| ELSEWHERE.iter().all(|(key, _)| *key != entry.key));
    reader.known(own, &format!("a binding to `{kind}`"), &known, Unknown::Error);
    let Some(value) = node.get(key).filter(|value| !value.is_null()) else {
        let message = format!("a binding to `{kind}` has no `{key}`");
        reader.error("E0102", &first_line(node), message, format!("add `{key}: ...`"));
        return None;
    };
    let text = reader.text(value, &format!("`{key}` of a binding"))?;
    if has_tags(text) {
        let message = format!("`{key}` of a binding to `{kind}` cannot be a template");
        reader.error("E0162", &value.at, message, "write the name itself".to_owned());
        return None;
    }
    Some(json!(text.trim()))
}
