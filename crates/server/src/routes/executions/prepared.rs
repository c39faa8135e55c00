//! What a start needs of a version of a workflow. A version never changes, so it is read and compiled once.

use crate::app::App;
use crate::problem::{Detail, Problem};
use crate::rights::{RunsProgram, programs_of};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_dialects::workflow::{Overrides, check_inputs};
use windlass_dialects::{Dialect, compile, compile_with};
use windlass_kernel::Net;
use windlass_store::{DefinitionId, StoredDefinition};

/// Versions kept; beyond it all are forgotten, which costs no more than reading them again.
const KEPT_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub struct Prepared {
    kept: Mutex<HashMap<DefinitionId, Arc<Version>>>,
}

#[derive(Debug)]
pub struct Version {
    pub definition: DefinitionId,
    pub dialect: Option<Dialect>,
    /// Defaults of the inputs.
    pub workload: Value,
    source: String,
    /// What the trigger says of the inputs.
    schema: Option<Value>,
    pub warnings: Vec<Detail>,
    pub programs: Vec<RunsProgram>,
}

impl Prepared {
    pub async fn version(&self, app: &App, definition: &StoredDefinition) -> Result<Arc<Version>, Problem> {
        if let Some(version) = self.lock().get(&definition.id) {
            return Ok(version.clone());
        }
        let definition = definition.clone();
        let version = Arc::new(app.aside(move || Version::of(definition)).await?);
        let mut kept = self.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(version.definition, version.clone());
        Ok(version)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DefinitionId, Arc<Version>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Version {
    fn of(definition: StoredDefinition) -> Version {
        let compiled = compile(&definition.source);
        Version {
            definition: definition.id,
            dialect: Dialect::of_name(&definition.dialect),
            workload: definition.workload,
            warnings: compiled.warnings().map(Detail::from).collect(),
            programs: compiled.net.as_ref().map(programs_of).unwrap_or_default(),
            schema: compiled.inputs_schema,
            source: definition.source,
        }
    }

    /// Inputs as the trigger's schema wants them, with the defaults laid under them.
    pub fn check_inputs(&self, inputs: &Map<String, Value>) -> Vec<Detail> {
        let Some(schema) = &self.schema else { return Vec::new() };
        let mut whole = self.workload.as_object().cloned().unwrap_or_default();
        whole.extend(inputs.clone());
        let problems = check_inputs(schema, &Value::Object(whole));
        problems.into_iter().map(|problem| Detail::new(problem.path, problem.message)).collect()
    }

    /// The net that a start asks for; None when it is the definition's own.
    pub fn net(&self, overrides: &Overrides) -> Result<Option<Arc<Net>>, Problem> {
        if overrides.is_empty() {
            return Ok(None);
        }
        if self.dialect != Some(Dialect::Workflow) {
            let field = if overrides.retry.is_some() { "options.retryPolicy" } else { "options.failureMode" };
            let message = "is for workflows; a definition of another dialect says it itself";
            return Err(Problem::invalid(field, message));
        }
        let compiled = compile_with(&self.source, overrides);
        match compiled.net {
            Some(net) => Ok(Some(Arc::new(net))),
            None => Err(Problem::definition(compiled.errors())),
        }
    }
}
