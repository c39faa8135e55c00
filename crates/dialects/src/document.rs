//! A YAML or JSON text as a tree in which every key and value has its position.

mod build;
mod scalar;

pub(crate) use build::parse;

use serde_json::{Map, Value};
use std::ops::Range;

/// A value and the bytes it was written in.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) at: Range<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Range<usize>,
    pub(crate) value: Node,
}

/// Characters of a key that are shown in a path.
const KEY_SHOWN_MAX: usize = 100;

impl Node {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Returns the entries of a map; none for other values.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the items of a list; none for other values.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.kind, Kind::Map(_))
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// Describes the kind of the value, for a message.
    pub(crate) fn noun(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }

    pub(crate) fn json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Node::json).collect()),
            Kind::Map(entries) => Value::Object(json_map(entries)),
        }
    }

    /// Returns the path of the value at a position: `workflow[1].step`. An empty range means the largest value that begins there.
    pub(crate) fn path_to(&self, place: &Range<usize>) -> String {
        let at = place.start;
        let mut path = String::new();
        let mut node = self;
        loop {
            match &node.kind {
                Kind::Map(_) if place.is_empty() && node.at.start == at => break,
                Kind::Map(entries) => {
                    let around = |entry: &&Entry| entry.at.start <= at && at <= entry.value.at.end;
                    let Some(entry) = entries.iter().rfind(around) else { break };
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.extend(entry.key.chars().take(KEY_SHOWN_MAX));
                    if entry.at.contains(&at) {
                        break;
                    }
                    node = &entry.value;
                }
                Kind::List(items) => {
                    // Items are in the order of their positions.
                    let after = items.partition_point(|item| item.at.start <= at);
                    let Some(index) = after.checked_sub(1).filter(|index| at <= items[*index].at.end) else {
                        break;
                    };
                    let item = &items[index];
                    path.push_str(&format!("[{index}]"));
                    node = item;
                }
                _ => break,
            }
        }
        path
    }
}

pub(crate) fn json_map(entries: &[Entry]) -> Map<String, Value> {
    entries.iter().map(|entry| (entry.key.clone(), entry.value.json())).collect()
}
