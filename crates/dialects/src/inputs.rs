//! Inputs of a start, checked against the schema that a definition has for them.

use serde_json::Value;
use windlass_schemas::{Misfit, Schema, SchemaProblem};

/// The input that describes the request to a hook, added to the inputs that the request has.
pub const HOOK: &str = "hook";

/// Why only a request to a hook sets [`HOOK`] in a definition that has hooks, and what to do instead.
pub const HOOK_IS_RESERVED: &str = "only a request to the workflow's hook sets it, so that expressions can rely on it; \
                                    send the request to the hook, or give the value another name";

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
    /// The schema describes what a hook adds about the request.
    names_hook: bool,
}

impl InputsSchema {
    pub fn new(schema: &Value) -> Result<InputsSchema, SchemaProblem> {
        let properties = schema.get("properties");
        let names_hook = properties.is_some_and(|properties| properties.get(HOOK).is_some());
        Ok(InputsSchema { schema: Schema::new(schema)?, names_hook })
    }

    /// Returns what is wrong with the inputs of a start; nothing when they fit.
    #[must_use]
    pub fn check(&self, inputs: &Value) -> Vec<InputProblem> {
        let misfits = match self.without_request(inputs) {
            Some(inputs) => self.schema.validate(&inputs),
            None => self.schema.validate(inputs),
        };
        let problem = |misfit: Misfit| InputProblem { path: path(&misfit.pointer), message: misfit.message };
        misfits.err().unwrap_or_default().into_iter().map(problem).collect()
    }

    /// A schema describes what is sent, not what a hook adds about the request; None when there is nothing to remove.
    fn without_request(&self, inputs: &Value) -> Option<Value> {
        let fields = inputs.as_object().filter(|fields| !self.names_hook && fields.contains_key(HOOK))?;
        Some(Value::Object(
            fields.iter().filter(|(name, _)| *name != HOOK).map(|(k, v)| (k.clone(), v.clone())).collect(),
        ))
    }
}

/// A JSON pointer as people write it.
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
