//! Schemas of inputs by version of a definition, kept between the starts of sub-workflows. A version never changes.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_dialects::workflow::{HOOK, HOOK_IS_RESERVED, InputsSchema, has_hook};
use windlass_store::{DefinitionId, StoredDefinition};

/// Schemas kept; beyond it all are forgotten, which costs no more than reading them again. A compiled schema has at most
/// some megabytes, a usual one some kilobytes.
const KEPT_MAX: usize = 100;

/// What a version says of its inputs.
#[derive(Debug)]
struct Read {
    /// `Err`: why it cannot be used.
    schema: Result<Option<InputsSchema>, String>,
    has_hook: bool,
}

#[derive(Debug, Default)]
pub struct InputsSchemas {
    kept: Mutex<HashMap<DefinitionId, Arc<Read>>>,
}

impl InputsSchemas {
    /// Checks the inputs of a sub-execution; what people start is checked where they ask for it.
    pub fn check(&self, definition: &StoredDefinition, inputs: &Value) -> Result<(), String> {
        let name = &definition.name;
        let read = self.of(definition);
        let hook = inputs.get(HOOK).filter(|hook| definition.workload.get(HOOK) != Some(hook));
        if read.has_hook && hook.is_some() {
            return Err(format!("the inputs do not fit `{name}`: inputs.{HOOK}: {HOOK_IS_RESERVED}"));
        }
        match &read.schema {
            Err(why) => Err(format!("`{name}` cannot start, because of the schema of its inputs: {why}")),
            Ok(None) => Ok(()),
            Ok(Some(schema)) => {
                let problems = schema.check(inputs);
                let problems: Vec<String> =
                    problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect();
                match problems.is_empty() {
                    true => Ok(()),
                    false => Err(format!("the inputs do not fit `{name}`: {}", problems.join("; "))),
                }
            }
        }
    }

    fn of(&self, definition: &StoredDefinition) -> Arc<Read> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = lock().get(&definition.id) {
            return kept.clone();
        }
        let schema = InputsSchema::of_source(&definition.source)
            .map_err(|problem| format!("{problem} (at `{}`)", problem.pointer));
        let read = Arc::new(Read { schema, has_hook: has_hook(&definition.source) });
        let mut kept = lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(definition.id, read.clone());
        read
    }
}
