//! Runs the tools of [`windlass_protocol::Tool`]: one file per tool, and an arm of `run`.

mod artifact;
mod auth;
mod code;
mod container;
mod fields;
mod filter;
mod http;
mod memory;
mod model;
mod noop;
mod plan;
mod postgres;
mod program;
mod python;
mod script;
mod secrets;
mod shell;
mod source;
mod sql;

use crate::claim::Claim;
use crate::command::OwnCommand;
use crate::failure;
use crate::footprint::{Room, Share};
use crate::halt::{Halt, limited};
use crate::keeper::Keeper;
use crate::keychain::{Tokens, stored};
use crate::node::NodeContext;
use crate::pipeline::{Call, CallResult, execution_id, own_key};
use crate::pool::Lines;
use crate::sandbox::{Bounds, DatabaseQuota, Job, Places, Sandbox};
pub(crate) use http::Clients;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_artifact::INLINE_BYTES;
use windlass_protocol::{
    Failure, Pipeline, RoutingTarget, STOP_GRACE_MS, Tool, Unit, Work, codes, idempotency_key,
};
use windlass_secrets::Zeroizing;

/// Time between TERM and KILL when a task times out or leaves processes behind.
pub const GRACE_MS: u64 = STOP_GRACE_MS;

/// The step that calls a tool, and the resources of the tool.
#[derive(Debug)]
pub(crate) struct ToolContext {
    /// Variables for the environment of processes.
    pub(crate) names: [(&'static str, String); 4],
    attempt: u32,
    pub(crate) unit: Unit,
    /// Whether the definition determines the idempotency key, so that every call has it.
    pub(crate) has_own_key: bool,
    pub(crate) lines: Lines,
    pub(crate) kit: Arc<Kit>,
    /// The resolved keychain.
    pub(crate) keychain: Map<String, Value>,
    /// Context of a workflow node.
    pub(crate) node: Option<NodeContext>,
    /// Memory for the answers to its calls.
    pub(crate) share: Share,
    /// Length of a value above which it is stored as an artifact.
    pub(crate) inline_bytes: usize,
    /// Facts about the call that its report carries as metadata.
    notes: Mutex<Map<String, Value>>,
}

/// Shared limits of the work of one tenant.
#[derive(Debug, Default)]
pub(crate) struct TenantBounds {
    pub(crate) room: Room,
    pub(crate) places: Places,
}

/// Resources that the tools of one unit share.
#[derive(Debug)]
pub(crate) struct Kit {
    pub(crate) supervisor: OwnCommand,
    pub(crate) claim: Claim,
    pub(crate) clients: Arc<Clients>,
    pub(crate) keeper: Arc<Keeper>,
    /// Resources of the tenant.
    pub(crate) tokens: Arc<Tokens>,
    /// Program behind `windlass-node`.
    pub(crate) helper: Option<PathBuf>,
    /// Parent of the folders of nodes.
    pub(crate) folders: PathBuf,
    /// Whether the folders of executions are kept.
    pub(crate) keeps_workdirs: bool,
    /// Parent of databases of nodes, by tenant.
    pub(crate) databases: Option<PathBuf>,
    pub(crate) database_quota: DatabaseQuota,
    pub(crate) sandbox: Sandbox,
    pub(crate) bounds: Arc<TenantBounds>,
    /// Folder of caches.
    pub(crate) cache: PathBuf,
    /// Environments of packages, created one after the other.
    pub(crate) venvs: Arc<tokio::sync::Mutex<()>>,
}

impl ToolContext {
    pub(crate) fn new(work: &Work, lines: Lines, kit: Arc<Kit>, node: Option<NodeContext>) -> ToolContext {
        let own_key = own_key(work);
        let key = idempotency_key(work.unit, own_key);
        let names = [
            ("WINDLASS_EXECUTION_ID", execution_id(work)),
            ("WINDLASS_STEP", work.step.clone()),
            ("WINDLASS_ATTEMPT", (work.attempt + work.losses).to_string()),
            ("WINDLASS_IDEMPOTENCY_KEY", key),
        ];
        let share = Share::new(Arc::clone(&kit.bounds));
        let (attempt, has_own_key, keychain) = (work.attempt, own_key.is_some(), Map::new());
        let (unit, notes) = (work.unit, Mutex::default());
        let inline_bytes = Pipeline::inline_bytes_of(&work.spec).unwrap_or(INLINE_BYTES);
        ToolContext {
            names,
            attempt,
            unit,
            has_own_key,
            lines,
            kit,
            keychain,
            node,
            share,
            inline_bytes,
            notes,
        }
    }

    /// Returns the node, for tools that only nodes of workflows have.
    pub(crate) fn node(&self, tool: Tool) -> Result<&NodeContext, Box<Failure>> {
        let kind = tool.kind();
        let missing =
            || failure::invalid(format!("`{kind}` is a tool of workflow nodes, and this step is none"));
        self.node.as_ref().ok_or_else(missing)
    }

    /// Returns the name of the step.
    fn step(&self) -> &str {
        let [_, (_, step), ..] = &self.names;
        step
    }

    /// Notes a fact for the report.
    fn note(&self, key: &str, value: Value) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), value);
    }

    /// Returns the facts that were noted since the last time.
    pub(crate) fn take_notes(&self) -> Map<String, Value> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the routing key of a target.
    async fn routing_key(&self, target: &RoutingTarget) -> Result<Option<String>, Box<Failure>> {
        match &target.routing_key {
            Some(key) => Ok(Some(key.clone())),
            None => self.kit.claim.find_routing_key(target).await,
        }
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the idempotency key, which is the same on all attempts.
    pub(crate) fn key(&self) -> &str {
        let [.., (_, key)] = &self.names;
        key
    }

    /// Resolves `auth: NAME` of a tool to a string or a map of fields: the keychain entry of that name, or the secret.
    pub(crate) async fn credential(&self, name: &str) -> Result<Value, Box<Failure>> {
        match self.keychain.get(name) {
            Some(entry) => Ok(entry.clone()),
            None => self.open(name).await.map(|text| stored(&text)),
        }
    }

    /// Runs a job in a sandbox process, when the tenant has a free permit.
    pub(crate) async fn compute(
        &self,
        job: Job,
        bounds: &Bounds,
        halt: Halt,
    ) -> Result<Vec<u8>, Box<Failure>> {
        self.kit.sandbox.run(&self.kit.bounds.places, job, bounds, halt).await
    }

    /// Refuses actions that the tenant's definitions may not take: run programs and read files as the user of the
    /// worker.
    pub(crate) async fn may_run_programs(&self, kind: &str) -> Result<(), Box<Failure>> {
        if self.kit.claim.rights().await?.programs { Ok(()) } else { Err(denied(kind)) }
    }

    /// Returns a secret of the tenant of the work.
    pub(crate) async fn open(&self, handle: &str) -> Result<Zeroizing<String>, Box<Failure>> {
        self.kit.keeper.open(handle).await
    }
}

/// Makes one call. It ends early when the halt is pulled or its own time limit is reached, but never before its
/// processes have ended.
pub(crate) async fn call(call: &Call, cx: &ToolContext, halt: Halt) -> CallResult {
    let Some(tool) = Tool::named(&call.kind) else {
        return Err(unknown(&call.kind)).into();
    };
    if tool.row().runs_programs
        && let Err(failure) = cx.may_run_programs(&call.kind).await
    {
        return Err(failure).into();
    }
    // The memory of the last call is freed.
    cx.share.release();
    let limit_ms = match limit_ms(call) {
        Ok(limit_ms) => limit_ms,
        Err(failure) => return Err(failure).into(),
    };
    let called = limited(limit_ms, GRACE_MS, halt, |halt| run(tool, call, cx, halt)).await;
    match limit_ms {
        Some(limit_ms) if called.timed_out => {
            Err(failure::timeout(&format!("task `{}`", call.label), limit_ms)).into()
        }
        _ => called.result,
    }
}

/// Returns the id of the execution as users see it.
fn execution_of(cx: &ToolContext) -> String {
    format!("exec_{:032x}", cx.unit.execution)
}

async fn run(tool: Tool, call: &Call, cx: &ToolContext, halt: Halt) -> CallResult {
    match tool {
        Tool::Artifact => artifact::run(&call.config, cx).await.into(),
        Tool::Code => code::run(call, cx, halt).await,
        Tool::Noop => noop::run(&call.config).into(),
        Tool::Shell => shell::run(&call.config, cx, halt).await.into(),
        Tool::Python => python::run(call, cx, halt).await,
        Tool::Script => script::run(call, cx, halt).await,
        Tool::Container => container::run(&call.config, cx, halt).await.into(),
        Tool::Http => http::run(call, cx, halt).await,
        Tool::Postgres => postgres::run(call, cx, halt).await,
        Tool::Secrets => secrets::run(&call.config, cx).await.into(),
        Tool::Llm => model::llm::run(call, cx, halt).await.into(),
        Tool::AiAgent => model::agent::run(call, cx, halt).await.into(),
        Tool::MemoryStore => memory::store(call, cx).await.into(),
        Tool::MemorySearch => memory::search(call, cx).await.into(),
        Tool::PlanStep => plan::run(call, cx, halt).await,
        Tool::Sql => sql::run(call, cx, halt).await,
        Tool::Filter => filter::run(&call.config, halt).await.into(),
        // The pipeline is passed to the group before such a call.
        Tool::Worker => Err(failure::invalid("a worker of the group makes this call")).into(),
    }
}

/// Returns the timeout: the task's own, or the tool's field of that name; the shorter of both.
pub(crate) fn limit_ms(call: &Call) -> Result<Option<u64>, Box<Failure>> {
    let Some(field) = call.config.get("timeout_seconds").filter(|field| !field.is_null()) else {
        return Ok(call.timeout_ms);
    };
    let Some(limit) = fields::seconds(field) else {
        let label = &call.label;
        let message =
            format!("`timeout_seconds` of task `{label}` is a number of seconds above 0, not {field}");
        return Err(failure::invalid(message));
    };
    let own_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    Ok(Some(own_ms.min(call.timeout_ms.unwrap_or(u64::MAX))))
}

fn denied(kind: &str) -> Box<Failure> {
    let message = format!("`{kind}` runs a program, and definitions of this tenant may not");
    failure::failure(codes::PERMISSION_DENIED, message)
}

fn unknown(kind: &str) -> Box<Failure> {
    // The other fields are set by dialects only.
    let known: Vec<&str> =
        Tool::ALL.iter().filter(|tool| tool.row().in_playbooks).map(|tool| tool.kind()).collect();
    failure::invalid(format!("this worker has no tool `{kind}`; it has {}", known.join(", ")))
}
