//! The fields of one object, read one by one; what is wrong with them is collected.

use super::FieldProblem;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub struct Fields<'d> {
    object: Option<&'d Map<String, Value>>,
    /// Path of the object, with a dot at its end unless it is the document.
    path: String,
    known: BTreeSet<&'static str>,
    problems: Vec<FieldProblem>,
    allows_unknown: bool,
}

/// Names that the server manages. They are accepted, so that a document that was read can be sent back, and ignored.
const MANAGED: [&str; 7] =
    ["id", "workflow_id", "paused_at", "next_run_at", "last_run_at", "created_at", "updated_at"];

impl<'d> Fields<'d> {
    pub fn of(value: &'d Value, path: &str) -> Fields<'d> {
        let path = if path.is_empty() { String::new() } else { format!("{path}.") };
        let mut fields = Fields {
            object: value.as_object(),
            path,
            known: BTreeSet::new(),
            problems: Vec::new(),
            allows_unknown: false,
        };
        if fields.path.is_empty() {
            fields.known.extend(MANAGED);
        }
        if fields.object.is_none() {
            fields.problem("", "must be an object");
        }
        fields
    }

    /// Returns a value that is set. Null is the same as absent.
    pub fn value(&mut self, name: &'static str) -> Option<&'d Value> {
        self.known.insert(name);
        self.object?.get(name).filter(|value| !value.is_null())
    }

    pub fn problem(&mut self, name: &str, message: &str) {
        let field = format!("{}{name}", self.path);
        let field = field.strip_suffix('.').unwrap_or(&field).to_owned();
        self.problems.push(FieldProblem { field, message: message.to_owned() });
    }

    pub fn text(&mut self, name: &'static str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text.clone()),
            _ => {
                self.problem(name, "must be a string");
                None
            }
        }
    }

    pub fn required_text(&mut self, name: &'static str, kind: &str) -> Option<String> {
        let is_absent = self.value(name).is_none();
        let text = self.text(name).filter(|text| !text.trim().is_empty());
        if text.is_none() && (is_absent || self.value(name).is_some_and(Value::is_string)) {
            self.problem(name, &format!("is required for {kind}"));
        }
        text
    }

    pub fn boolean(&mut self, name: &'static str, default: bool) -> bool {
        match self.value(name) {
            None => default,
            Some(Value::Bool(value)) => *value,
            Some(_) => {
                self.problem(name, "must be true or false");
                default
            }
        }
    }

    pub fn number(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Option<u32> {
        let number = self.value(name)?.as_u64().filter(|number| range.contains(number));
        if number.is_none() {
            self.problem(name, &format!("must be a whole number from {} to {}", range.start(), range.end()));
        }
        number.and_then(|number| u32::try_from(number).ok())
    }

    pub fn time(&mut self, name: &'static str) -> Option<Timestamp> {
        let parsed = self.text(name)?.parse();
        if parsed.is_err() {
            self.problem(name, "must be a time as in 2030-01-31T00:00:00Z");
        }
        parsed.ok()
    }

    pub fn choice<T: DeserializeOwned>(&mut self, name: &'static str, default: T, all: &str) -> T {
        let Some(value) = self.value(name) else { return default };
        match serde_json::from_value(value.clone()) {
            Ok(choice) => choice,
            Err(_) => {
                self.problem(name, &format!("must be one of {all}"));
                default
            }
        }
    }

    /// Returns the fields of an object that must be there.
    pub fn object(&mut self, name: &'static str) -> Fields<'d> {
        static NULL: Value = Value::Null;
        let path = format!("{}{name}", self.path);
        Fields::of(self.value(name).unwrap_or(&NULL), &path)
    }

    pub fn optional_object(&mut self, name: &'static str) -> Option<Fields<'d>> {
        let path = format!("{}{name}", self.path);
        self.value(name).map(|value| Fields::of(value, &path))
    }

    /// Reports no unknown fields: which of them are known depends on a field that is wrong.
    pub fn ignore_rest(&mut self) {
        self.allows_unknown = true;
    }

    /// Returns all problems, with those of unknown fields.
    pub fn finish(mut self) -> Vec<FieldProblem> {
        let names = self.object.into_iter().flat_map(Map::keys);
        let unknown: Vec<String> = names
            .filter(|name| !self.allows_unknown && !self.known.contains(name.as_str()))
            .cloned()
            .collect();
        for name in unknown {
            self.problem(&name, "is not a field that is known here");
        }
        // An object of the wrong type has no other problem.
        if self.object.is_none() {
            self.problems.truncate(1);
        }
        self.problems
    }
}
