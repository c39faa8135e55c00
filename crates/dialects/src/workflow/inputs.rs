//! The inputs of a workflow: what its trigger says of them, and whether those of a start fit.

use super::config::{given, schema_of};
use super::hooks::HOOK;
use super::language::{Kind, NodeKind};
use crate::detect::{Dialect, detect};
use crate::diagnostic::Problems;
use crate::document::{self, Node};
use serde_json::{Map, Value};
use windlass_schemas::{Misfit, Schema, SchemaProblem};

/// A problem with the inputs of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputProblem {
    /// `inputs.url`, `inputs.list[2]`.
    pub path: String,
    pub message: String,
}

/// Of the first trigger that has one.
pub(super) fn schema(root: &Node) -> Option<Value> {
    let nodes = root.get("nodes").map(Node::items).unwrap_or_default();
    nodes.iter().find_map(|node| {
        let data = given(node, "data").filter(|data| data.is_map());
        let get = |key: &str| data.and_then(|data| given(data, key)).or_else(|| given(node, key));
        let kind = get("nodeType").or_else(|| given(node, "type"))?.text()?;
        NodeKind::of(kind).filter(|kind| kind.kind == Kind::Trigger)?;
        schema_of(given(given(get("config")?, "manualConfig")?, "inputPayload")?)
    })
}

/// Defaults that the schema gives to inputs.
pub(super) fn defaults(schema: Option<&Value>) -> Map<String, Value> {
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let default =
        |(name, property): (&String, &Value)| Some((name.clone(), property.get("default")?.clone()));
    properties.into_iter().flatten().filter_map(default).collect()
}

/// The schema of a definition's inputs, ready to check starts with. Made once for a version of a definition.
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

    /// The schema in the text of a definition; None where it has none. Cheap for definitions that say nothing of their
    /// inputs.
    pub fn of_source(source: &str) -> Result<Option<InputsSchema>, SchemaProblem> {
        // A name may be written with escapes.
        if !source.contains("inputPayload") && !source.contains('\\') {
            return Ok(None);
        }
        let Some(root) = document::parse(source, &mut Problems::default()) else { return Ok(None) };
        let is_workflow = detect(&root, &mut Problems::default()) == Some(Dialect::Workflow);
        schema(&root).filter(|_| is_workflow).as_ref().map(InputsSchema::new).transpose()
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
