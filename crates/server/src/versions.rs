//! Versions of definitions, ready to be started. A version never changes, so its manifest is read once; nothing is compiled
//! here.

use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::cache::{Cache, CacheBounds};
use crate::database::Database;
use crate::problem::{Detail, Problem, ProblemCode};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use windlass_artifact::INLINE_BYTES;
use windlass_dialects::plan::{ROUTING_TIMEOUT, with_routing_timeout};
use windlass_dialects::{
    Adapters, COMPILER, HOOK, HOOK_IS_RESERVED, InputsSchema, Manifest, Outside, Overrides, ProgramUse,
    SECRETS, SecretUse, Settings, Unbound, bind, compile_for, limit_inline, programs_of, recompile,
    secrets_of,
};
use windlass_duties::SodConstraint;
use windlass_kernel::net::{Affinity, FailureMode, Finish};
use windlass_kernel::{Net, NetDigest};
use windlass_schemas::SchemaProblem;
use windlass_store::{
    Catalog as _, DefinitionId, Entry, Origin, Reader, Store as _, StoreError, StoredDefinition,
    StoredManifest, Tenant, Write,
};
use windlass_views::CodePlace;

/// Maximum number of versions in memory, and of bytes that they take.
const VERSIONS: CacheBounds = CacheBounds { entries_max: 1_000, weight_max: 64 << 20 };

/// Memory of a compiled schema of usual size.
const SCHEMA_BYTES: usize = 64 << 10;

/// Versions that are compiled again in one transaction.
const RECOMPILED_MAX: usize = 100;

/// Versions that were started lately.
#[derive(Debug)]
pub struct Versions {
    cached: Cache<DefinitionId, Arc<Version>>,
    process: ProcessNets,
}

/// Changes that a process makes to the Nets of all definitions. They are fixed while the process runs.
#[derive(Debug, Clone)]
pub struct ProcessNets {
    /// Bindings of operations and kinds of tools.
    pub adapters: Arc<Adapters>,
    /// Length of a value above which it is stored as an artifact.
    pub inline_bytes: usize,
    /// Executions that one worker takes as a whole wait until their artifacts are uploaded.
    pub awaits_uploads: bool,
    /// Time in which the routes that steps of plans wait for have to become ready.
    pub routing_timeout: Duration,
}

impl Default for ProcessNets {
    fn default() -> ProcessNets {
        ProcessNets {
            adapters: Arc::default(),
            inline_bytes: INLINE_BYTES,
            awaits_uploads: false,
            routing_timeout: ROUTING_TIMEOUT,
        }
    }
}

impl ProcessNets {
    /// Returns a Net as this process runs it.
    pub fn bind(&self, net: &Net) -> Result<Net, Vec<Unbound>> {
        let bound = bind(net, &self.adapters)?;
        Ok(self.limit(self.time(self.finish(bound))))
    }

    /// Sets the routing timeout. A valid Net stays valid with another timeout.
    fn time(&self, net: Net) -> Net {
        match self.routing_timeout {
            ROUTING_TIMEOUT => net,
            timeout => with_routing_timeout(&net, timeout).unwrap_or(net),
        }
    }

    /// Sets the length above which values are artifacts. A valid Net stays valid with another length.
    fn limit(&self, net: Net) -> Net {
        match self.inline_bytes {
            INLINE_BYTES => net,
            bytes => limit_inline(&net, bytes).unwrap_or(net),
        }
    }

    /// Lets executions that one worker takes as a whole wait for their uploads.
    fn finish(&self, net: Net) -> Net {
        let policy = net.policy();
        let may_wait = policy.affinity == Affinity::OneWorker && policy.finish == Finish::Nothing;
        if !self.awaits_uploads || !may_wait {
            return net;
        }
        let mut spec = net.spec().clone();
        spec.policy.finish = Finish::Uploads;
        Net::new(spec).unwrap_or(net)
    }
}

impl Default for Versions {
    fn default() -> Versions {
        Versions::new(ProcessNets::default())
    }
}

/// A version of a definition.
#[derive(Debug)]
pub struct Version {
    pub definition: DefinitionId,
    pub name: String,
    /// Defaults of the inputs.
    pub workload: Value,
    pub manifest: Manifest,
    net: NetDigest,
    /// `Err` has the reason for which the schema of the inputs cannot be used.
    schema: Result<Option<InputsSchema>, SchemaProblem>,
    /// The Net with the bindings of this process, once an execution has started.
    bound: OnceLock<BoundNet>,
    /// Estimate of the memory that it takes.
    bytes: usize,
}

/// A Net with the bindings of this process, and the secrets and programs that it needs.
#[derive(Debug)]
struct BoundNet {
    net: Arc<Net>,
    programs: Vec<ProgramUse>,
    secrets: Vec<SecretUse>,
}

/// Returns a manifest in the form in which it is stored.
#[must_use]
pub(crate) fn stored_manifest(manifest: &Manifest) -> StoredManifest {
    StoredManifest { compiler: COMPILER, json: serde_json::to_string(manifest).unwrap_or_default() }
}

/// Returns the schema of the inputs, as far as the manifest can be read.
pub(crate) fn inputs_schema_of(definition: &StoredDefinition) -> Option<Value> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Inputs {
        inputs_schema: Option<Value>,
    }
    serde_json::from_str::<Inputs>(&definition.manifest.json).unwrap_or_default().inputs_schema
}

/// The parts of a manifest that every view of an execution reads.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct ViewedManifest {
    /// Positions of the code.
    pub code: Vec<CodePlace>,
    /// Constraints on the people of its executions.
    pub sod_constraints: Vec<SodConstraint>,
}

/// Returns the parts of a version's manifest that views read. A manifest that cannot be read is an error: without the
/// constraints, everyone could answer.
pub(crate) fn viewed_manifest(definition: &StoredDefinition) -> Result<ViewedManifest, Problem> {
    if definition.manifest.compiler != COMPILER {
        let Manifest { code, sod_constraints, .. } = manifest_of(definition);
        return Ok(ViewedManifest { code, sod_constraints });
    }
    serde_json::from_str(&definition.manifest.json).map_err(|error| {
        Problem::internal(format!("the manifest of `{}` cannot be read: {error}", definition.name))
    })
}

/// Returns the positions of the code of an execution's version.
pub(crate) fn code_places(reader: &mut impl Reader, origin: &Origin) -> Result<Vec<CodePlace>, StoreError> {
    let definition = origin.definition.map(|definition| reader.definition(definition)).transpose()?.flatten();
    let viewed = definition.and_then(|definition| viewed_manifest(&definition).ok());
    Ok(viewed.unwrap_or_default().code)
}

/// Returns the manifest of a version. Only a folder that no process has opened since an update has versions of older
/// compilers; these are compiled.
fn manifest_of(definition: &StoredDefinition) -> Manifest {
    match definition.manifest.compiler {
        COMPILER => serde_json::from_str(&definition.manifest.json).unwrap_or_default(),
        _ => compile_for(&definition.source, Outside::Unknown).manifest,
    }
}

/// Compiles versions again that an older compiler stored (docs/adr/0032).
pub(crate) fn recompile_stored(store: &mut Database) -> Result<(), StoreError> {
    let mut reader = store.reader()?;
    loop {
        let outdated = reader.outdated_versions(COMPILER, RECOMPILED_MAX)?;
        if outdated.is_empty() {
            return Ok(());
        }
        let mut writes = Vec::new();
        for version in outdated {
            let Some(stored) = reader.net(version.net)? else {
                let name = &version.name;
                return Err(StoreError::Corrupt(format!("the net of definition `{name}` is missing")));
            };
            let text = (version.dialect.as_str(), version.source.as_str());
            let recompiled = recompile(text, version.manifest.compiler, &stored);
            let manifest = stored_manifest(&recompiled.manifest);
            let net = recompiled.net.as_ref().map_or(version.net, Net::digest);
            writes.extend(recompiled.net.map(|net| Write::Net(Arc::new(net))));
            let entry = Entry::Recompiled { definition: version.id, net, manifest };
            writes.push(Write::Entry(Box::new(entry)));
        }
        store.write(&writes)?;
    }
}

impl Versions {
    #[must_use]
    pub fn new(process: ProcessNets) -> Versions {
        Versions { cached: Cache::new(VERSIONS), process }
    }

    /// Returns the bindings of this process.
    #[must_use]
    pub fn adapters(&self) -> &Arc<Adapters> {
        &self.process.adapters
    }

    /// Returns the changes that this process makes to Nets.
    #[must_use]
    pub fn process(&self) -> &ProcessNets {
        &self.process
    }

    pub async fn version(&self, app: &App, definition: &StoredDefinition) -> Result<Arc<Version>, Problem> {
        if let Some(version) = self.cached.get(&definition.id) {
            return Ok(version);
        }
        let (tenant, definition) = (definition.tenant.clone(), definition.clone());
        let bytes = definition.manifest.json.len();
        // The author of a schema determines its cost.
        let version = app.compiling.run(&tenant, bytes, move || Arc::new(Version::of(&definition))).await?;
        Ok(self.cache_version(version))
    }

    /// Checks the inputs of a sub-execution, and returns its Net if bindings of this process change it. Inputs from
    /// people are checked by the routes.
    pub fn check_child(
        &self,
        definition: &StoredDefinition,
        net: &Net,
        inputs: &Value,
    ) -> Result<Option<Arc<Net>>, String> {
        let known = self.cached.get(&definition.id);
        let version = known.unwrap_or_else(|| self.cache_version(Arc::new(Version::of(definition))));
        version.check_child(inputs)?;
        version.bind(net, &self.process).map_err(|left| {
            let first = left.first().map(describe_unbound).unwrap_or_default();
            format!("`{}` cannot start: {first}", version.name)
        })
    }

    fn cache_version(&self, version: Arc<Version>) -> Arc<Version> {
        self.cached.insert(version.definition, version.clone(), version.bytes as u64);
        version
    }
}

impl Version {
    fn check_child(&self, inputs: &Value) -> Result<(), String> {
        let name = &self.name;
        let hook = inputs.get(HOOK).filter(|hook| self.workload.get(HOOK) != Some(hook));
        if hook.is_some() && !self.manifest.hooks.is_empty() {
            return Err(format!("the inputs do not fit `{name}`: inputs.{HOOK}: {HOOK_IS_RESERVED}"));
        }
        let schema = match &self.schema {
            Ok(None) => return Ok(()),
            Ok(Some(schema)) => schema,
            Err(problem) => {
                let pointer = &problem.pointer;
                return Err(format!(
                    "`{name}` cannot start, because of the schema of its inputs: {problem} (at `{pointer}`)"
                ));
            }
        };
        let problems = schema.check(inputs).into_iter();
        let problems: Vec<String> =
            problems.map(|problem| format!("{}: {}", problem.path, problem.message)).collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(format!("the inputs do not fit `{name}`: {}", problems.join("; "))),
        }
    }

    /// Returns whether this process runs another Net than the stored one.
    fn is_rebound(&self, process: &ProcessNets) -> bool {
        let awaits_uploads = process.awaits_uploads && self.manifest.one_worker;
        let is_timed = process.routing_timeout != ROUTING_TIMEOUT && self.manifest.awaits_routes;
        !self.manifest.unbound.is_empty()
            || process.inline_bytes != INLINE_BYTES
            || awaits_uploads
            || is_timed
    }

    /// Returns the Net as this process runs it; `None` when that is the stored one.
    fn bind(&self, stored: &Net, process: &ProcessNets) -> Result<Option<Arc<Net>>, Vec<Unbound>> {
        if !self.is_rebound(process) {
            return Ok(None);
        }
        if let Some(bound) = self.bound.get() {
            return Ok(Some(bound.net.clone()));
        }
        let net = Arc::new(process.bind(stored)?);
        let bound = BoundNet { programs: programs_of(&net), secrets: secrets_of(&net), net };
        Ok(Some(self.bound.get_or_init(|| bound).net.clone()))
    }

    fn of(definition: &StoredDefinition) -> Version {
        let manifest = manifest_of(definition);
        let schema = manifest.inputs_schema.as_ref().map(InputsSchema::new).transpose();
        let schema_bytes = if matches!(schema, Ok(Some(_))) { SCHEMA_BYTES } else { 0 };
        Version {
            definition: definition.id,
            name: definition.name.clone(),
            workload: definition.workload.clone(),
            net: definition.net,
            bytes: 1_024 + schema_bytes + 4 * (definition.manifest.json.len() + definition.source.len()),
            manifest,
            schema,
            bound: OnceLock::new(),
        }
    }

    /// Returns 403 for callers who may not edit definitions, if a start would permit more than the definition does.
    pub fn check_caller(&self, caller: &Caller, overrides: &Overrides) -> Result<(), Problem> {
        if caller.role.may(Permission::Edit) {
            return Ok(());
        }
        if self.manifest.editors_only {
            return Err(for_editors(caller));
        }
        let own = self.manifest.settings.as_ref().and_then(|settings| settings.failure_mode);
        let is_weaker = |own: FailureMode| {
            overrides.failure_mode.is_some_and(|asked| strictness(asked) < strictness(own))
        };
        match own {
            Some(own) if is_weaker(own) => Err(Problem::forbidden(format!(
                "the role `{}` may not weaken `settings.failureMode` of the workflow; leave options.failureMode out, or \
                 choose a stricter one",
                caller.role.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the problem with a key that only a request to a hook sets. Everything that a caller can set is checked:
    /// inputs, those of a retry, and the context, which hides the inputs.
    pub fn check_reserved(&self, field: &str, given: &Map<String, Value>) -> Option<Detail> {
        let is_reserved = !self.manifest.hooks.is_empty() && given.contains_key(HOOK);
        is_reserved.then(|| Detail::new(format!("{field}.{HOOK}"), HOOK_IS_RESERVED.to_owned()))
    }

    /// Checks the inputs, with the defaults under them, against the schema of the definition. A version from before schemas
    /// were bounded is refused here when its schema cannot be used.
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
                Err(Problem::new(ProblemCode::DefinitionInvalid, message.clone())
                    .at(format!("inputs schema at {}", problem.pointer), message))
            }
        }
    }

    /// Returns whether inputs may be names of secrets.
    pub(crate) fn binds_secrets(&self) -> bool {
        let properties = self.manifest.inputs_schema.as_ref().and_then(|schema| schema.get("properties"));
        properties.is_some_and(|properties| properties.get(SECRETS).is_some())
    }

    fn misfits(&self, inputs: Map<String, Value>) -> Vec<Detail> {
        let Ok(Some(schema)) = &self.schema else { return Vec::new() };
        let mut whole = self.workload.as_object().cloned().unwrap_or_default();
        whole.extend(inputs);
        let problems = schema.check(&Value::Object(whole));
        problems.into_iter().map(|problem| Detail::new(problem.path, problem.message)).collect()
    }

    /// Returns the Net with the bindings of this process and the settings of one start; `None` when that is the stored one.
    pub async fn net(
        self: &Arc<Version>,
        app: &App,
        tenant: &Tenant,
        overrides: &Overrides,
    ) -> Result<Option<Arc<Net>>, Problem> {
        if overrides.is_empty() && !self.is_rebound(app.versions.process()) {
            return Ok(None);
        }
        let is_general = overrides.retry.is_none() && overrides.failure_mode.is_none();
        if !is_general && self.manifest.settings.is_none() {
            let field = if overrides.retry.is_some() { "options.retryPolicy" } else { "options.failureMode" };
            let message = "is for workflows; set it in a definition of another dialect";
            return Err(Problem::invalid(field, message));
        }
        let (digest, overrides) = (self.net, overrides.clone());
        let stored = app.readers.of(tenant).look(move |reader| reader.net(digest)).await?;
        let stored = stored.ok_or_else(|| Problem::internal("the net of a definition is missing"))?;
        let (version, process) = (self.clone(), app.versions.process().clone());
        let make = move || {
            let bound = version.bind(&stored, &process).map_err(|left| not_bound(&left))?;
            if overrides.is_empty() {
                return Ok(bound);
            }
            let settings = version.manifest.settings.clone().unwrap_or_default();
            apply(&overrides, bound.as_deref().unwrap_or(&stored), &settings).map(Some)
        };
        let net: Option<Arc<Net>> = app.compiling.run(tenant, 0, make).await??;
        // Bindings of this process may add programs and secrets to a definition.
        if let Some(bound) = self.bound.get().filter(|_| !self.manifest.unbound.is_empty()) {
            app.rights.check(tenant, &bound.programs)?;
            all_stored(missing_secrets(app, tenant, &bound.secrets).await?)?;
        }
        Ok(net)
    }
}

/// Refuses a start that misses secrets.
pub(crate) fn all_stored(missing: Vec<Detail>) -> Result<(), Problem> {
    let Some(first) = missing.first() else { return Ok(()) };
    let message = format!("{}; {}", first.message, first.hint.as_deref().unwrap_or_default());
    Err(Problem { details: missing, ..Problem::bad_request(message) })
}

/// Refuses a start with calls that are not bound. Each detail has the line that binds the call.
pub(crate) fn not_bound(left: &[Unbound]) -> Problem {
    let message = left.first().map(describe_unbound).unwrap_or_default();
    let detail = |one: &Unbound| Detail { hint: one.hint(), ..Detail::new(one.step.clone(), one.message()) };
    Problem { details: left.iter().map(detail).collect(), ..Problem::bad_request(message) }
}

fn describe_unbound(one: &Unbound) -> String {
    match one.hint() {
        Some(hint) => format!("{}; {hint}", one.message()),
        None => one.message(),
    }
}

fn apply(overrides: &Overrides, net: &Net, settings: &Settings) -> Result<Arc<Net>, Problem> {
    let net = overrides.apply(net, settings);
    net.map(Arc::new).map_err(|error| Problem::invalid("options", error.to_string()))
}

/// Returns the refusal to start or to change an execution whose templates are program text.
pub(crate) fn for_editors(caller: &Caller) -> Problem {
    Problem::forbidden(format!(
        "templates of this definition are program text (`executor.spec.templates: text`): the role `{}` may not edit \
         definitions, so it may neither start it nor change its values",
        caller.role.name()
    ))
}

/// Ranks failure modes by how early they stop.
fn strictness(mode: FailureMode) -> u8 {
    match mode {
        FailureMode::FailFast => 2,
        FailureMode::Continue => 1,
        FailureMode::Collect => 0,
    }
}

/// Returns the secrets that steps read and that are not stored.
pub(crate) async fn missing_secrets(
    app: &App,
    tenant: &Tenant,
    secrets: &[SecretUse],
) -> Result<Vec<Detail>, Problem> {
    if secrets.is_empty() {
        return Ok(Vec::new());
    }
    let (vault, tenant) = (app.secrets.clone(), tenant.clone());
    let listed = app.run_blocking(move || vault.with(|vault| vault.list(&tenant))).await??;
    let known: BTreeSet<&str> = listed.iter().map(|secret| secret.name.as_str()).collect();
    let missing = secrets.iter().filter(|used| !known.contains(used.secret.as_str()));
    let details = missing.map(|used| {
        let (step, name) = (&used.step, &used.secret);
        let message = format!("`{step}` reads the secret `{name}`, which is not stored");
        Detail {
            hint: Some(format!("store it with `windlass secrets set {name}`, or PUT /api/v1/secrets/{name}")),
            ..Detail::new(step.clone(), message)
        }
    });
    Ok(details.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_dialects::compile;
    use windlass_kernel::Millis;
    use windlass_kernel::net::Work;
    use windlass_store::{Definition, Target, WorkflowId};

    fn source(command: &str) -> String {
        json!({ "metadata": { "name": "p" }, "workflow": [{ "step": "a", "tool": { "kind": "shell", "command": command } }] })
            .to_string()
    }

    /// Returns a Net of the playbook from a compiler without a version number: the value is a part of the command.
    fn older_net(command: &str) -> Net {
        let mut spec = compile(&source("true")).net.expect("it compiles").spec().clone();
        if let Work::Task { spec } = &mut spec.steps[0].work {
            let mut older = (**spec).clone();
            older["tasks"][0]["config"]["command"] = json!(command);
            *spec = Arc::new(older);
        }
        Net::new(spec).expect("a net")
    }

    /// The version after a store with it was opened, and its Net.
    fn reopened(command: &str) -> (StoredDefinition, Net) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Database::open(&folder.path().join("windlass.db")).expect("a store");
        let definition = Definition {
            tenant: Tenant::default(),
            target: Target::New(WorkflowId(1)),
            name: "p".to_owned(),
            dialect: "playbook".to_owned(),
            source: source(command),
            workload: json!({}),
            manifest: StoredManifest::default(),
            net: Arc::new(older_net(command)),
            hooks: Vec::new(),
            schedules: Vec::new(),
            status: None,
            at: Millis(0),
            author: None,
        };
        store.write(&[Write::Define(Box::new(definition))]).expect("it is written");
        recompile_stored(&mut store).expect("it is compiled again");
        let mut reader = store.reader().expect("a reader");
        assert!(reader.outdated_versions(COMPILER, 1).expect("a list").is_empty());
        let version = reader
            .version(&Tenant::default(), WorkflowId(1), None)
            .expect("it is read")
            .expect("it is there");
        let net = reader.net(version.net).expect("it is read").expect("it is there");
        (version, net)
    }

    #[test]
    fn versions_of_older_compilers_are_compiled_again_at_opening() {
        let (version, net) = reopened("echo {{ workload.x }}");
        assert_eq!(Some(net.digest()), compile(&source("echo {{ workload.x }}")).net.map(|net| net.digest()));
        let manifest = manifest_of(&version);
        assert_eq!((manifest.programs.len(), manifest.editors_only), (1, false));
        let (version, net) = reopened("echo plain");
        assert_eq!((version.net, version.version), (net.digest(), 1));
    }

    #[test]
    fn a_process_changes_the_nets_whose_manifests_need_it() {
        let (stored, _) = reopened("echo plain");
        let is_rebound = |text: &str, process: &ProcessNets| {
            let manifest = stored_manifest(&compile(text).manifest);
            Version::of(&StoredDefinition { manifest, ..stored.clone() }).is_rebound(process)
        };
        let plan = |routing: &str| {
            format!(
                "params: [{{name: box}}]\nsteps: [{{id: a, action: {{script: 'true'}}{routing}}}]\n\
                 cluster: {{fromSandbox: box}}\nrunner: default\n"
            )
        };
        let (plain, routed) = (plan(""), plan(", routingContext: {literal: {sandbox: s}}"));
        let uploads = ProcessNets { awaits_uploads: true, ..ProcessNets::default() };
        let timed = ProcessNets { routing_timeout: Duration::from_secs(1), ..ProcessNets::default() };
        for (text, process, expected) in [
            (&source("true"), &uploads, false),
            (&plain, &uploads, true),
            (&plain, &timed, false),
            (&routed, &timed, true),
            (&routed, &ProcessNets::default(), false),
        ] {
            assert_eq!(is_rebound(text, process), expected, "{text} {process:?}");
        }
    }

    #[test]
    fn constraints_are_never_taken_for_absent() {
        let (mut version, _) = reopened("echo plain");
        let constraint = SodConstraint::MakerChecker;
        let manifest = Manifest { sod_constraints: vec![constraint.clone()], ..Manifest::default() };
        version.manifest = stored_manifest(&manifest);
        let viewed = viewed_manifest(&version).expect("it is read");
        assert_eq!((viewed.sod_constraints, viewed.code.len()), (vec![constraint], 0));
        version.manifest.json = "{".to_owned();
        assert!(viewed_manifest(&version).is_err());
    }

    #[test]
    fn a_version_that_does_not_compile_any_more_is_for_editors() {
        let (version, net) = reopened("{{ workload.x }}");
        assert!(net.policy().editors_only && manifest_of(&version).editors_only);
    }
}
