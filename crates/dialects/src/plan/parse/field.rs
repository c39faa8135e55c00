//! Fields: parameters, inputs and outputs, with their schemas.

use super::super::language::FIELD;
use super::super::model::Field;
use super::{FIELDS_MAX, given};
use crate::document::{Kind, Node};
use crate::read::{Name, Reader, Unknown, first_line};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use windlass_schemas::Schema;

const NAME_MAX: usize = 100;
const METADATA_MAX: usize = 50;

/// Reads the fields of a list, without those that could not be read.
pub(super) fn fields(node: &Node, key: &str, of: &str, reader: &mut Reader<'_, '_>) -> Vec<Field> {
    let Some(list) = given(node, key) else { return Vec::new() };
    let what = format!("`{key}` of {of}");
    let items = reader.list(list, &what).unwrap_or_default();
    if items.len() > FIELDS_MAX {
        let message = format!("{what} has {} entries, more than {FIELDS_MAX}", items.len());
        reader.error("E0143", &first_line(list), message, "remove some of them".to_owned());
        return Vec::new();
    }
    let fields: Vec<Field> = items.iter().filter_map(|item| field(item, &what, reader)).collect();
    let mut seen = BTreeSet::new();
    for field in &fields {
        if !seen.insert(field.name.text.as_str()) {
            let message = format!("{what} has `{}` twice", field.name.text);
            reader.error("E0105", &field.name.at, message, "rename one of them".to_owned());
        }
    }
    fields
}

fn field(item: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<Field> {
    let entries = reader.map(item, &format!("an entry of {what}"))?;
    const MOVED: [(&str, &str); 1] = [("schemaRef", "write the schema in place, under `schema`")];
    let entries = reader.elsewhere(entries, &format!("an entry of {what}"), &MOVED);
    reader.known(entries, &format!("an entry of {what}"), FIELD, Unknown::Error);
    let Some(node) = given(item, "name") else {
        let message = format!("an entry of {what} has no `name`");
        reader.error("E0102", &first_line(item), message, "add `name: NAME`".to_owned());
        return None;
    };
    let name = reader.name(node, &format!("`name` in {what}"))?;
    check_name(&name.text, &name.at, &format!("a name in {what}"), reader);
    let of = format!("`{}` in {what}", name.text);
    let required =
        given(item, "required").and_then(|node| reader.boolean(node, &format!("`required` of {of}")));
    let schema =
        given(item, "schema").and_then(|node| reader.json_schema(node, &format!("`schema` of {of}")));
    let default = item.get("default").map(|node| (node.json(), node));
    if let (Some((value, node)), Some(schema)) = (&default, &schema)
        && let Some(misfit) = first_misfit(schema, value)
    {
        let message = format!("the default of {of} does not fit its schema: {misfit}");
        reader.error("E0189", &first_line(node), message, "change the default or the schema".to_owned());
    }
    let metadata = given(item, "metadata").map(|node| metadata(node, &of, reader)).unwrap_or_default();
    let (required, default) = (required.unwrap_or(false), default.map(|(value, _)| value));
    Some(Field { name, required, default, schema, metadata })
}

/// Returns the reason for which a value does not match a schema that is known to be usable.
pub(in super::super) fn first_misfit(
    schema: &serde_json::Value,
    value: &serde_json::Value,
) -> Option<String> {
    let misfits = Schema::new(schema).ok()?.validate(value).err()?;
    let misfit = misfits.into_iter().next()?;
    let place = if misfit.pointer.is_empty() { String::new() } else { format!("at `{}`: ", misfit.pointer) };
    Some(format!("{place}{}", misfit.message))
}

/// Names become names of files and of variables.
pub(super) fn check_name(name: &str, at: &Range<usize>, what: &str, reader: &mut Reader<'_, '_>) {
    let is_first = |sign: char| sign.is_ascii_alphabetic() || sign == '_';
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    if !name.starts_with(is_first) || !name.chars().all(is_part) || name.len() > NAME_MAX {
        let message = format!("{what} cannot be `{name}`");
        let hint = format!("use letters, digits and `_`, not a digit first, at most {NAME_MAX} of them");
        reader.error("E0109", at, message, hint);
    }
}

fn metadata(node: &Node, of: &str, reader: &mut Reader<'_, '_>) -> BTreeMap<String, String> {
    let what = format!("`metadata` of {of}");
    let entries = reader.map(node, &what).unwrap_or_default();
    if entries.len() > METADATA_MAX {
        let message = format!("{what} has {} keys, more than {METADATA_MAX}", entries.len());
        reader.error("E0143", &first_line(node), message, "remove some of them".to_owned());
        return BTreeMap::new();
    }
    let mut found = BTreeMap::new();
    for entry in entries {
        let text = match &entry.value.kind {
            Kind::Text(text) => Some(text.clone()),
            _ => reader.text(&entry.value, &format!("`{}` in {what}", entry.key)).map(str::to_owned),
        };
        found.extend(text.map(|text| (entry.key.clone(), text)));
    }
    found
}

/// Returns a field of a built-in action.
pub(super) fn built_in(name: &str, required: bool, schema: Option<serde_json::Value>) -> Field {
    let name = Name { text: name.to_owned(), at: 0..0 };
    Field { name, required, default: None, schema, metadata: BTreeMap::new() }
}
