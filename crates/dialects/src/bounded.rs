//! Values of a document that have bounds: texts, numbers, JSON Schemas. For every dialect.

use crate::document::{Kind, Node};
use crate::read::{Reader, first_line};
use serde_json::{Map, Value};
use windlass_kernel::ErrorClass;
use windlass_schemas::Schema;

/// Maximum timeout of an execution or an attempt: a year.
pub(crate) const TIMEOUT_MAX_MS: f64 = 365.0 * 86_400_000.0;

/// Maximum pause between tries: a month.
pub(crate) const DELAY_MAX_MS: u32 = 30 * 24 * 60 * 60 * 1_000;

/// Maximum length of a code in characters; stores have a column of this length for it.
pub(crate) const CODE_MAX: usize = 50;

impl Reader<'_, '_> {
    /// Reads a text that is not empty. A text that is too long is reported, and returned all the same.
    pub(crate) fn limited(&mut self, node: &Node, what: &str, max: usize) -> Option<String> {
        let text = self.text(node, what)?;
        if text.chars().count() > max {
            let message = format!("{what} has {} characters, more than {max}", text.chars().count());
            self.error("E0143", &first_line(node), message, "shorten it".to_owned());
        }
        Some(text.to_owned())
    }

    pub(crate) fn number_between(&mut self, node: &Node, what: &str, from: f64, to: f64) -> Option<f64> {
        let number = self.number(node, what)?;
        if !(from..=to).contains(&number) {
            self.error("E0118", &node.at, format!("{what} must be a number from {from} to {to}"), None);
            return None;
        }
        Some(number)
    }

    /// Reads a JSON Schema, as an object or as a text, that is within its bounds.
    pub(crate) fn json_schema(&mut self, node: &Node, what: &str) -> Option<Value> {
        let Some(schema) = schema_of(node) else {
            let message = format!("{what} is not a JSON Schema");
            let hint = "write an object: `{type: object, properties: {...}}`".to_owned();
            self.error("E0101", &first_line(node), message, hint);
            return None;
        };
        if let Err(problem) = Schema::new(&schema) {
            let message = format!("{what} is not a usable JSON Schema: {problem}");
            self.error("E0140", &first_line(at_pointer(node, &problem.pointer)), message, None);
            return None;
        }
        Some(schema)
    }
}

/// Returns why an entry of `retryableErrors` can have no effect: errors of some classes are never retried.
pub(crate) fn never_retried(code: &str) -> Option<String> {
    let all = [ErrorClass::Validation, ErrorClass::Policy, ErrorClass::Auth, ErrorClass::Conflict];
    let class = all.into_iter().find(|class| class.name() == code).unwrap_or(ErrorClass::of_code(code));
    let never = class.retryable() == Some(false);
    never.then(|| format!("`{code}` can never be retried: errors of the class `{}` are final", class.name()))
}

pub(crate) fn schema_of(node: &Node) -> Option<Value> {
    let found = match &node.kind {
        Kind::Text(text) => serde_json::from_str(text).ok()?,
        _ => node.json(),
    };
    Some(found).filter(Value::is_object)
}

/// Returns the defaults that a schema has for the properties of an object.
pub(crate) fn schema_defaults(schema: Option<&Value>) -> Map<String, Value> {
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let default =
        |(name, property): (&String, &Value)| Some((name.clone(), property.get("default")?.clone()));
    properties.into_iter().flatten().filter_map(default).collect()
}

/// Returns the part of a document that a JSON pointer names, as far as it exists.
fn at_pointer<'n>(node: &'n Node, pointer: &str) -> &'n Node {
    let steps = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
    steps.fold(node, |node, step| {
        let item = || node.items().get(step.parse::<usize>().ok()?);
        node.get(&step).or_else(item).unwrap_or(node)
    })
}
