//! Inputs of a start, checked against the schema that a definition has for them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::{PlanStep, drill_into};
use windlass_schemas::{Misfit, Schema, SchemaProblem};

/// The input that describes the request to a hook, added to the inputs that the request has.
pub const HOOK: &str = "hook";

/// Message for the input [`HOOK`], which only a request to a hook sets in a definition that has hooks, with the repair.
pub const HOOK_IS_RESERVED: &str = "only a request to the workflow's hook sets it, so that expressions can rely on it; \
                                    send the request to the hook, or give the value another name";

/// The input of a plan that binds parameters to stored secrets: their names, by parameter. No parameter has such a name.
pub const SECRETS: &str = PlanStep::SECRET_NAMES;

/// Key of the schema of [`SECRETS`] with the parameters that cannot be bound to secrets, and why.
pub(crate) const PLAIN: &str = "x-plain";

/// Key of the schema of [`SECRETS`] with the values that steps cannot run without, a list of [`NeededParam`].
pub(crate) const NEEDED: &str = "x-needed";

/// Key of the schema of an input that is a text because it was declared without a schema.
pub(crate) const TEXT: &str = "x-text";

/// A value of a parameter that a step cannot run without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NeededParam {
    pub(crate) param: String,
    /// Path to the part that the step reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) drill: Vec<String>,
    pub(crate) why: String,
}

/// Returns whether an input is a text: by the type that its schema has, or because it was declared without a schema. None if
/// neither determines it.
#[must_use]
pub fn is_text_input(schema: &Value) -> Option<bool> {
    if let Some(declared) = schema.get("type") {
        return Some(declared == "string");
    }
    let is_text = schema.get(TEXT).and_then(Value::as_bool).unwrap_or(false);
    is_text.then(|| schema.get("default").is_none_or(Value::is_string))
}

/// A problem with the inputs of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputProblem {
    /// `inputs.url`, `inputs.list[2]`.
    pub path: String,
    pub message: String,
}

/// The schema of a definition's inputs, compiled once for a version.
#[derive(Debug)]
pub struct InputsSchema {
    schema: Schema,
    /// Whether the schema describes the input that a hook adds.
    names_hook: bool,
    /// Inputs of a definition whose parameters can be bound to secrets.
    bindings: Option<SecretBindings>,
}

/// Rules for inputs of which each is a value or the name of a secret.
#[derive(Debug)]
struct SecretBindings {
    required: Vec<String>,
    /// Inputs that must be values, and why.
    plain: Vec<(String, String)>,
    /// Values that steps cannot run without.
    needed: Vec<NeededParam>,
    /// Defaults of the inputs in `needed`, by name: many steps may need parts of one large value.
    defaults: BTreeMap<String, Value>,
}

impl SecretBindings {
    /// Takes the rules out of a schema, which cannot express them readably.
    fn take(schema: &mut Value) -> Option<SecretBindings> {
        let properties = schema.get("properties")?;
        let plain = properties.get(SECRETS)?.get(PLAIN)?.as_object()?.clone();
        let needed = properties[SECRETS].get(NEEDED).cloned().unwrap_or_default();
        let needed: Vec<NeededParam> = serde_json::from_value(needed).unwrap_or_default();
        let names: BTreeSet<&String> = needed.iter().map(|needed| &needed.param).collect();
        let default = |name: &String| Some((name.clone(), properties.get(name)?.get("default")?.clone()));
        let defaults = names.into_iter().filter_map(default).collect();
        let required = schema.as_object_mut()?.remove("required");
        let text = |value: Value| value.as_str().map(str::to_owned);
        let required = required.and_then(|names| names.as_array().cloned()).unwrap_or_default();
        Some(SecretBindings {
            required: required.into_iter().filter_map(text).collect(),
            plain: plain.into_iter().filter_map(|(name, why)| Some((name, text(why)?))).collect(),
            needed,
            defaults,
        })
    }

    fn check(&self, inputs: &Value) -> Vec<InputProblem> {
        let secrets = inputs.get(SECRETS).and_then(Value::as_object);
        let is_secret = |name: &str| secrets.is_some_and(|secrets| secrets.contains_key(name));
        let missing =
            self.required.iter().filter(|name| inputs.get(name.as_str()).is_none() && !is_secret(name));
        let missing = missing.map(|name| InputProblem {
            path: format!("inputs.{name}"),
            message: "is required: give it a value, or bind it to a secret".to_owned(),
        });
        let both = secrets.into_iter().flatten().filter(|(name, _)| inputs.get(name.as_str()).is_some());
        let both = both.map(|(name, _)| InputProblem {
            path: format!("inputs.{SECRETS}.{name}"),
            message: format!("`{name}` has a value and is bound to a secret; keep one of them"),
        });
        let plain = self.plain.iter().filter(|(name, _)| is_secret(name)).map(|(name, why)| InputProblem {
            path: format!("inputs.{SECRETS}.{name}"),
            message: format!("`{name}` cannot be bound to a secret: {why}"),
        });
        let needed = self.needed.iter().filter(|needed| !is_secret(&needed.param));
        let needed = needed.filter_map(|NeededParam { param, drill, why }| {
            let message = match inputs.get(param.as_str()).or(self.defaults.get(param)) {
                // It was reported as missing.
                None if self.required.contains(param) => return None,
                None if drill.is_empty() => format!("has no value, and {why}: give it a value"),
                None => format!("has no value, and {why}, with `.{}`: give it a value", drill.join(".")),
                Some(value) if drill_into(value, drill).is_some() => return None,
                Some(_) => format!("has no `.{}`, and {why}: add it to the value", drill.join(".")),
            };
            Some(InputProblem { path: format!("inputs.{param}"), message })
        });
        missing.chain(both).chain(plain).chain(needed).collect()
    }
}

impl InputsSchema {
    pub fn new(schema: &Value) -> Result<InputsSchema, SchemaProblem> {
        let properties = schema.get("properties");
        let names_hook = properties.is_some_and(|properties| properties.get(HOOK).is_some());
        let mut schema = schema.clone();
        let bindings = SecretBindings::take(&mut schema);
        Ok(InputsSchema { schema: Schema::new(&schema)?, names_hook, bindings })
    }

    /// Returns what is wrong with the inputs of a start; nothing when they fit.
    #[must_use]
    pub fn check(&self, inputs: &Value) -> Vec<InputProblem> {
        let misfits = match self.without_request(inputs) {
            Some(inputs) => self.schema.validate(&inputs),
            None => self.schema.validate(inputs),
        };
        let problem = |misfit: Misfit| InputProblem { path: path(&misfit.pointer), message: misfit.message };
        let bound = self.bindings.as_ref().map(|bindings| bindings.check(inputs)).unwrap_or_default();
        misfits.err().unwrap_or_default().into_iter().map(problem).chain(bound).collect()
    }

    /// Returns the inputs without what a hook adds, which the schema does not describe; None when there is nothing to
    /// remove.
    fn without_request(&self, inputs: &Value) -> Option<Value> {
        let fields = inputs.as_object().filter(|fields| !self.names_hook && fields.contains_key(HOOK))?;
        Some(Value::Object(
            fields.iter().filter(|(name, _)| *name != HOOK).map(|(k, v)| (k.clone(), v.clone())).collect(),
        ))
    }
}

/// Formats a JSON pointer in the form of a path.
fn path(pointer: &str) -> String {
    let mut path = "inputs".to_owned();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.chars().all(|c| c.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            path.push('.');
            path.push_str(&part);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_default_that_many_steps_need_is_held_once() {
        let needed: Vec<Value> = (0..100)
            .map(|n| json!({ "param": "p", "drill": ["x"], "why": format!("step {n} reads it") }))
            .collect();
        let schema = json!({ "type": "object", "properties": {
            "p": { "default": { "y": "z".repeat(10 << 10) } },
            SECRETS: { "type": "object", PLAIN: {}, NEEDED: needed },
        } });
        let schema = InputsSchema::new(&schema).unwrap();
        let bindings = schema.bindings.as_ref().unwrap();
        assert_eq!((bindings.needed.len(), bindings.defaults.len()), (100, 1));
        let problems = schema.check(&json!({}));
        assert_eq!(problems.len(), 100);
        assert!(problems[0].message.starts_with("has no `.x`, and step 0 reads it"), "{:?}", problems[0]);
        assert_eq!(schema.check(&json!({ "p": { "x": 1 } })), []);
    }
}
