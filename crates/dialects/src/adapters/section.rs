//! The section `adapters` of a definition, which is also the content of an adapters file.

use super::parse::parse_binding;
use super::{Adapters, Binding, Sort, is_built_in};
use crate::document::{Entry, Node};
use crate::playbook::keychain::{KeyDef, check_entries, keychain};
use crate::read::{Key, Reader, Unknown, first_line, key};
use crate::source::Written;
use serde_json::{Map, Value, json};

/// The key of the section in a definition.
pub(crate) const ADAPTERS: &str = "adapters";

pub(crate) const SECTION: &[Key] = &[
    key("operations", "Tools for operations, by `entity:verb`"),
    key("tools", "Tools for kinds that are not built in, by kind"),
    key("keychain", "Credentials that the bindings read, as in playbooks"),
];

/// Maximum number of bindings in one section.
const BINDINGS_MAX: usize = 1_000;

/// Reads the section. `place` names its secrets; `outer` is the keychain of the definition, which bindings may read, too.
pub(crate) fn parse_section(
    node: &Node,
    place: &str,
    outer: &[KeyDef],
    reader: &mut Reader<'_, '_>,
    written: &mut Vec<Written>,
) -> Adapters {
    let mut adapters = Adapters::default();
    let Some(entries) = reader.map(node, "`adapters`") else { return adapters };
    reader.known(entries, "`adapters`", SECTION, Unknown::Error);
    let present = |key: &str| node.get(key).filter(|node| !node.is_null());
    let own = present("keychain").map(|node| keychain(node, place, reader, written)).unwrap_or_default();
    check_entries(&own, reader.problems);
    check_twice(outer, &own, reader);
    let keys: Vec<&KeyDef> = outer.iter().chain(&own).collect();
    for sort in [Sort::Operation, Sort::Tool] {
        let Some(section) = present(sort.section()) else { continue };
        let what = format!("`adapters.{}`", sort.section());
        let entries = reader.map(section, &what).unwrap_or_default();
        if entries.len() > BINDINGS_MAX {
            let message = format!("{what} has more than {BINDINGS_MAX} bindings");
            reader.error("E0002", &first_line(section), message, "remove those that are not used".to_owned());
            continue;
        }
        for entry in entries {
            if let Some(binding) = named(entry, sort, &keys, reader) {
                adapters.bindings.insert(entry.key.clone(), binding);
            }
        }
    }
    adapters
}

fn check_twice(outer: &[KeyDef], own: &[KeyDef], reader: &mut Reader<'_, '_>) {
    for def in own.iter().filter(|def| outer.iter().any(|other| other.name.text == def.name.text)) {
        let message = format!("keychain entry `{}` is defined twice", def.name.text);
        reader.error("E0112", &def.name.at, message, "rename one".to_owned());
    }
}

fn named(entry: &Entry, sort: Sort, keys: &[&KeyDef], reader: &mut Reader<'_, '_>) -> Option<Binding> {
    let name = entry.key.as_str();
    let parts: Vec<&str> = name.split(':').collect();
    let is_word = |part: &&str| !part.is_empty() && !part.contains(char::is_whitespace);
    let is_well_formed = parts.iter().all(is_word) && name.len() <= NAME_MAX;
    let refused = match sort {
        Sort::Operation if parts.len() != 2 || !is_well_formed => {
            Some((format!("`{name}` is not an operation"), "write it as `entity:verb`"))
        }
        Sort::Tool if parts.len() != 1 || !is_well_formed => Some((
            format!("`{name}` is not a kind of tool"),
            "write one word; an operation belongs under `operations`",
        )),
        Sort::Tool if is_built_in(name) || BUILT_IN.contains(&name) => {
            Some((format!("the tool `{name}` is built in and cannot be bound"), "bind another name"))
        }
        Sort::Operation | Sort::Tool => None,
    };
    if let Some((message, hint)) = refused {
        reader.error("E0160", &entry.at, message, hint.to_owned());
        return None;
    }
    parse_binding(entry, keys, reader)
}

/// Maximum bytes of a bound name.
const NAME_MAX: usize = 200;

/// Words with a meaning of their own as the kind of a tool or of a binding.
const BUILT_IN: [&str; 2] = ["workbook", "workflow"];

/// Returns the JSON Schema of the section. The parser checks the fields of each binding.
pub(crate) fn section_schema() -> Value {
    let binding =
        json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } } });
    let bindings = json!({ "type": ["object", "null"], "additionalProperties": binding });
    let value = |key: &Key| match key.name {
        "keychain" => json!({ "type": ["array", "null"], "description": key.about }),
        _ => {
            let mut bindings = bindings.clone();
            bindings["description"] = json!(key.about);
            bindings
        }
    };
    let properties: Map<String, Value> =
        SECTION.iter().map(|key| (key.name.to_owned(), value(key))).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}
