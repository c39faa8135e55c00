//! What a start needs of a version of a workflow. A version never changes, so it is read and compiled once.

use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::bounded::BoundedMap;
use crate::problem::{Detail, Problem};
use crate::rights::{RunsProgram, programs_of};
use axum::http::StatusCode;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_dialects::workflow::{HOOK, HOOK_IS_RESERVED, InputsSchema, Overrides, has_hook};
use windlass_dialects::{Child, Dialect, compile, compile_with};
use windlass_kernel::Net;
use windlass_kernel::net::{FailureMode, Work};
use windlass_protocol::{KeySource, Pipeline, Provider};
use windlass_schemas::SchemaProblem;
use windlass_store::{DefinitionId, StoredDefinition, Tenant};

/// Versions kept, and about the memory that they take.
const KEPT_MAX: usize = 1_000;
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Memory of a compiled schema of usual size.
const SCHEMA_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub struct Prepared {
    kept: Mutex<BoundedMap<DefinitionId, Arc<Version>>>,
}

impl Default for Prepared {
    fn default() -> Prepared {
        Prepared { kept: Mutex::new(BoundedMap::new(KEPT_MAX, KEPT_BYTES_MAX)) }
    }
}

#[derive(Debug)]
pub struct Version {
    pub definition: DefinitionId,
    pub dialect: Option<Dialect>,
    /// Defaults of the inputs.
    pub workload: Value,
    source: String,
    /// What the trigger says of the inputs; `Err`: why it cannot be used.
    schema: Result<Option<InputsSchema>, SchemaProblem>,
    pub warnings: Vec<Detail>,
    pub programs: Vec<RunsProgram>,
    /// What it compiles to now, where that is not what it compiled to when it was stored: an older release may have let
    /// values into programs.
    newer: Option<Arc<Net>>,
    /// Only callers who may edit definitions may start it.
    editors_only: bool,
    /// Requests to a hook start it.
    has_hook: bool,
    /// As the definition sets it.
    failure_mode: Option<FailureMode>,
    pub children: Vec<Child>,
    /// By step, as far as the definition names them.
    secrets: Vec<(String, String)>,
}

impl Prepared {
    pub async fn version(&self, app: &App, definition: &StoredDefinition) -> Result<Arc<Version>, Problem> {
        if let Some(version) = self.lock().get(&definition.id) {
            return Ok(version.clone());
        }
        let (tenant, definition) = (definition.tenant.clone(), definition.clone());
        let bytes = definition.source.len();
        let version = app.compiling.run(&tenant, bytes, move || Arc::new(Version::of(definition))).await?;
        self.lock().insert(version.definition, version.clone(), version.bytes());
        Ok(version)
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<DefinitionId, Arc<Version>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Version {
    /// About the memory that it takes: the text, values out of it, and the compiled schema.
    fn bytes(&self) -> usize {
        let schema = if matches!(self.schema, Ok(Some(_))) { SCHEMA_BYTES } else { 0 };
        let net = self.newer.as_ref().map_or(0, |net| 10 * net.bytes());
        1_024 + schema + net + 4 * self.source.len()
    }

    fn of(definition: StoredDefinition) -> Version {
        let compiled = compile(&definition.source);
        let dialect = Dialect::of_name(&definition.dialect);
        let is_playbook = dialect == Some(Dialect::Playbook);
        Version {
            definition: definition.id,
            dialect,
            workload: definition.workload,
            warnings: compiled.warnings().map(Detail::from).collect(),
            programs: compiled.net.as_ref().map(programs_of).unwrap_or_default(),
            secrets: compiled.net.as_ref().map(secrets).unwrap_or_default(),
            // A playbook that does not compile any more was stored when values were parts of programs.
            editors_only: compiled.net.as_ref().map_or(is_playbook, |net| net.policy().editors_only),
            has_hook: dialect == Some(Dialect::Workflow) && has_hook(&definition.source),
            failure_mode: compiled.failure_mode,
            newer: compiled.net.filter(|net| is_playbook && net.digest() != definition.net).map(Arc::new),
            children: compiled.children,
            schema: compiled.inputs_schema.as_ref().map(InputsSchema::new).transpose(),
            source: definition.source,
        }
    }

    /// A 403 for callers who may not edit definitions, where a start would give them more than the definition does.
    pub fn check_caller(&self, caller: &Caller, overrides: &Overrides) -> Result<(), Problem> {
        if caller.role.may(Permission::Edit) {
            return Ok(());
        }
        if self.editors_only {
            return Err(for_editors(caller));
        }
        let weaker = |own: FailureMode| {
            overrides.failure_mode.is_some_and(|asked| strictness(asked) < strictness(own))
        };
        match self.failure_mode {
            Some(own) if weaker(own) => Err(Problem::forbidden(format!(
                "the role `{}` may not weaken `settings.failureMode` of the workflow; leave options.failureMode out, or \
                 choose a stricter one",
                caller.role.name()
            ))),
            _ => Ok(()),
        }
    }

    /// The problem with a caller's key that only a request to a hook sets. Everything that a caller can set is asked:
    /// inputs, those of a retry, and the context, which comes before the inputs.
    pub fn check_reserved(&self, field: &str, given: &Map<String, Value>) -> Option<Detail> {
        let is_reserved = self.has_hook && given.contains_key(HOOK);
        is_reserved.then(|| Detail::new(format!("{field}.{HOOK}"), HOOK_IS_RESERVED.to_owned()))
    }

    /// Inputs as the trigger's schema wants them, with the defaults laid under them. A version of before schemas were
    /// bounded is refused here when its schema cannot be used.
    pub async fn check_inputs(
        self: &Arc<Version>,
        app: &App,
        tenant: &Tenant,
        inputs: &Map<String, Value>,
    ) -> Result<Vec<Detail>, Problem> {
        match &self.schema {
            Ok(None) => Ok(Vec::new()),
            Ok(Some(_)) => {
                let (version, inputs) = (self.clone(), inputs.clone());
                app.compiling.run(tenant, 0, move || version.misfits(inputs)).await
            }
            Err(problem) => {
                let message = format!(
                    "the schema of the inputs cannot be used: {problem}; upload a version with a simpler schema"
                );
                Err(Problem::new(StatusCode::CONFLICT, "DEFINITION_INVALID", message.clone())
                    .at(format!("inputs schema at {}", problem.pointer), message))
            }
        }
    }

    fn misfits(&self, inputs: Map<String, Value>) -> Vec<Detail> {
        let Ok(Some(schema)) = &self.schema else { return Vec::new() };
        let mut whole = self.workload.as_object().cloned().unwrap_or_default();
        whole.extend(inputs);
        let problems = schema.check(&Value::Object(whole));
        problems.into_iter().map(|problem| Detail::new(problem.path, problem.message)).collect()
    }

    /// Secrets that a step would look for in vain.
    pub async fn missing_secrets(&self, app: &App, tenant: &Tenant) -> Result<Vec<Detail>, Problem> {
        if self.secrets.is_empty() {
            return Ok(Vec::new());
        }
        let (vault, tenant) = (app.secrets.clone(), tenant.clone());
        let listed = app.aside(move || vault.with(|vault| vault.list(&tenant))).await??;
        let known: BTreeSet<&str> = listed.iter().map(|secret| secret.name.as_str()).collect();
        let missing = self.secrets.iter().filter(|(_, name)| !known.contains(name.as_str()));
        let told = missing.map(|(step, name)| {
            let message = format!("`{step}` reads the secret `{name}`, which is not there");
            Detail {
                hint: Some(format!("store it: PUT /api/v1/secrets/{name}, or `windlass secrets set {name}`")),
                ..Detail::new(step.clone(), message)
            }
        });
        Ok(told.collect())
    }

    /// The net that a start asks for; None when it is the one that is stored with the definition.
    pub async fn net(
        self: &Arc<Version>,
        app: &App,
        tenant: &Tenant,
        overrides: &Overrides,
    ) -> Result<Option<Arc<Net>>, Problem> {
        if overrides.is_empty() {
            return Ok(self.newer.clone());
        }
        if self.dialect != Some(Dialect::Workflow) {
            let field = if overrides.retry.is_some() { "options.retryPolicy" } else { "options.failureMode" };
            let message = "is for workflows; a definition of another dialect says it itself";
            return Err(Problem::invalid(field, message));
        }
        let (version, overrides) = (self.clone(), overrides.clone());
        let compile = move || compile_with(&version.source, &overrides);
        let compiled = app.compiling.run(tenant, 0, compile).await?;
        match compiled.net {
            Some(net) => Ok(Some(Arc::new(net))),
            None => Err(Problem::definition(compiled.errors())),
        }
    }
}

/// A refusal to start or to feed a definition whose templates are program text.
pub fn for_editors(caller: &Caller) -> Problem {
    Problem::forbidden(format!(
        "templates of this definition are program text (`executor.spec.templates: text`): the role `{}` may not edit \
         definitions, so it may neither start it nor change its values",
        caller.role.name()
    ))
}

/// How little goes on after a failure.
fn strictness(mode: FailureMode) -> u8 {
    match mode {
        FailureMode::FailFast => 2,
        FailureMode::Continue => 1,
        FailureMode::Collect => 0,
    }
}

/// Names of stored secrets, with the steps that read them; a name that is a template shows only at run time.
fn secrets(net: &Net) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (_, step) in net.steps() {
        let Work::Task { spec } = &step.work else { continue };
        let pipeline: Pipeline = serde_json::from_value((**spec).clone()).unwrap_or_default();
        let names = pipeline.keychain.iter().flat_map(|key| match &key.source {
            KeySource::Named { provider: Provider::Windlass, fields } => fields.values().collect(),
            KeySource::Secret { provider: Provider::Windlass, name } => vec![name],
            _ => Vec::new(),
        });
        let plain = names.filter_map(Value::as_str).filter(|name| !name.contains("{{"));
        found.extend(plain.map(|name| (step.name.clone(), name.to_owned())));
    }
    found
}
