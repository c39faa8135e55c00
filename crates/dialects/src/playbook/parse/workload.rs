//! The defaults of the inputs. Templates in them are rendered when an execution starts.

use crate::document::{Entry, Node, json_map};
use crate::read::{Reader, first_line};
use serde_json::{Map, Value};
use windlass_expr::{Read, Template, circular_defaults, known_at_start};

pub(super) fn workload(node: &Node, reader: &mut Reader<'_, '_>) -> Map<String, Value> {
    let Some(entries) = reader.map(node, "`workload`") else { return Map::new() };
    reader.fields(entries);
    let defaults = Value::Object(json_map(entries));
    for entry in entries {
        kept_for_later(entry, &defaults, reader);
    }
    if let [first, ..] = &circular_defaults(&defaults)[..]
        && let Some(entry) = entries.iter().find(|entry| entry.key == *first)
    {
        let message = format!("input `{first}` needs itself, or another input that needs it");
        let hint = "write a value that is not a template for one of them".to_owned();
        reader.error("E0119", &entry.at, message, hint);
    }
    json_map(entries)
}

/// Warns of a default that reads values which only a step has: it is stored as text and is not a template of the
/// start.
fn kept_for_later(entry: &Entry, defaults: &Value, reader: &mut Reader<'_, '_>) {
    let Ok(template) = Template::compile(&entry.value.json()) else { return };
    let unknown = |read: &&Read| !known_at_start(defaults, read);
    if let Some(read) = template.reads().iter().find(unknown) {
        let message =
            format!("`{}` stays text: `{}` is not known when an execution starts", entry.key, read.root);
        let hint = "a default may read other inputs, `execution_id` and `job.uuid`; write `{% raw %}...{% endraw %}` \
                    for text with braces";
        reader.error("W0209", &first_line(&entry.value), message, hint.to_owned());
    }
}
