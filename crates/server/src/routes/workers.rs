//! `/api/v1/workers`: workers outside of the server claim work of their group, renew their leases and report results.

use super::shared::{BodyRefusals, Refusals, check_group};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::JsonBody;
use crate::database::DatabaseReader;
use crate::host::now;
use crate::problem::{Problem, ProblemCode, Refused};
use crate::remote::{
    CallVerdict, ClaimRequest, ClaimedUnit, GROUPS_MAX, ReportedResult, SessionHandle, session_key, stale,
};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_engine::SessionKey;
use windlass_kernel::{ExecutionId, Fence, RunId};
use windlass_protocol::{Failure, Unit, codes};
use windlass_store::{Entry, RunnerGroup, Session, Workers as _};
use windlass_views::{execution_id, time};

const TAG: &str = "workers";
/// Maximum number of units of one claim: as many as the engine dispatches in one batch without delaying others.
const SLOTS_MAX: u32 = 1_000;
/// Maximum number of units in one heartbeat, which is that of a session.
const HELD_MAX: usize = 10_000;
const KINDS_MAX: usize = 100;
/// Maximum length of a code in characters; stores have a column of this length for it.
const CODE_MAX: usize = 50;

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(claim_work))
        .routes(routes!(send_heartbeat))
        .routes(routes!(report_result))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewClaim {
    /// The group whose work is claimed; it exists from its first claim on
    #[schema(min_length = 1, max_length = 64)]
    group: String,
    /// The cluster of the worker; a group may be restricted to one
    #[schema(min_length = 1, max_length = 64)]
    cluster: Option<String>,
    /// Operations that the worker performs; default: every operation of its group
    #[schema(max_items = 100)]
    kinds: Option<Vec<String>>,
    /// Maximum number of units
    #[schema(minimum = 1, maximum = 1000)]
    slots: u32,
    /// Time to wait for work, in milliseconds, at most half of `leaseTtlMs`; default: as long as possible
    wait_ms: Option<u64>,
    /// The session that the claim continues; default: a new one
    session: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaimView {
    /// Identifies the worker in its next calls; only the worker knows it
    session: String,
    /// Time after which the work of a silent worker counts as lost
    lease_ttl_ms: u64,
    work: Vec<UnitView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnitView {
    /// Identifies the unit in heartbeats and in its report
    unit: String,
    execution_id: String,
    step_id: String,
    /// The operation
    kind: String,
    /// The rendered arguments
    input: Value,
    /// The same for every attempt of the step
    idempotency_key: String,
    /// Counts from 1
    attempt: u32,
    /// Time at which the engine stops waiting for the result
    #[schema(format = DateTime)]
    deadline: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Heartbeat {
    session: String,
    /// Every unit that the worker still has
    #[schema(max_items = 10000)]
    held: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HeldView {
    /// Listed units that the session does not hold any more: their results would be refused
    lost: Vec<String>,
    /// Units that have to be stopped, until they are reported or not listed any more
    stop: Vec<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReport {
    session: String,
    unit: String,
    /// The result of the call, unless it failed
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    error: Option<ReportedError>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ReportedError {
    /// Default: `WORKER_ERROR`. Reserved codes have their class: `RATE_LIMIT_EXCEEDED`, `VALIDATION_ERROR`, …
    #[schema(max_length = 50)]
    code: Option<String>,
    message: String,
    /// Whether another attempt may succeed, for a code without a class
    retryable: Option<bool>,
    /// Time before which another attempt makes no sense
    retry_after_ms: Option<u64>,
    #[serde(default)]
    details: Value,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedReport {
    /// Always true
    accepted: bool,
}

/// Reads a field that is present, so that a result of null stays distinct from no result.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Claim work
///
/// Waits until there is work for the group, or until `waitMs` have passed. What is claimed stays with the session until it
/// is reported, or until the session expires.
#[utoipa::path(post, path = "/api/v1/workers/claim", tag = TAG, security(("bearer" = [])), request_body = NewClaim,
    responses((status = 200, body = ClaimView), (status = 409, body = Refused), Refusals, BodyRefusals))]
async fn claim_work(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(request): JsonBody<NewClaim>,
) -> Result<Json<ClaimView>, Problem> {
    caller.may(Permission::Work)?;
    let claim = check_claim(&app, &request)?;
    let group = check_group("group", &request.group)?;
    check_own_group(&caller, &group)?;
    let cluster = request.cluster.as_deref().map(|name| check_group("cluster", name)).transpose()?;
    // A refused claim opens no session.
    let _slot = app.take_stream_slot(&caller.tenant)?;
    admit(&app, &caller, &group, cluster.as_deref()).await?;
    let handle = match &request.session {
        Some(text) => read_session(text)?,
        None => app.remote.open(&caller.tenant, &group, cluster).await?,
    };
    let key = session_key(&handle, &caller.tenant, Some(&group));
    let stopping = Arc::clone(&app);
    let units = app.remote.claim(key.clone(), claim, async move { stopping.stopped().await }).await?;
    let work = units.into_iter().map(|unit| hand_out(&app, &handle, &key, unit)).collect();
    Ok(Json(ClaimView { session: handle.text(), lease_ttl_ms: app.remote.lease_ttl_ms(), work }))
}

fn check_claim(app: &App, request: &NewClaim) -> Result<ClaimRequest, Problem> {
    if !(1..=SLOTS_MAX).contains(&request.slots) {
        return Err(Problem::invalid("slots", format!("must be between 1 and {SLOTS_MAX}")));
    }
    if request.kinds.as_ref().is_some_and(|kinds| kinds.len() > KINDS_MAX) {
        return Err(Problem::invalid("kinds", format!("must have at most {KINDS_MAX} entries")));
    }
    let longest = app.remote.longest_wait();
    let wait = request.wait_ms.map_or(longest, |wait_ms| Duration::from_millis(wait_ms).min(longest));
    let kinds = request.kinds.as_ref().map(|kinds| kinds.iter().cloned().collect::<BTreeSet<_>>());
    Ok(ClaimRequest { slots: request.slots, kinds, wait, opens: request.session.is_none() })
}

/// Refuses with 403 a token that is for another group.
pub(super) fn check_own_group(caller: &Caller, group: &str) -> Result<(), Problem> {
    match &caller.group {
        Some(own) if own != group => Err(Problem::forbidden(format!(
            "the token is for the group `{own}` only; claim work of that group"
        ))),
        _ => Ok(()),
    }
}

/// Lets a worker into a group, which exists from its first claim on.
pub(super) async fn admit(
    app: &App,
    caller: &Caller,
    group: &str,
    cluster: Option<&str>,
) -> Result<(), Problem> {
    let known = match app.remote.groups.get(&caller.tenant, group) {
        Some(known) => known,
        None => create_group(app, caller, group).await?,
    };
    match known.cluster {
        Some(own) if Some(own.as_str()) != cluster => Err(Problem::conflict(format!(
            "the group `{group}` is restricted to the cluster `{own}`; send that cluster with the claim"
        ))),
        _ => Ok(()),
    }
}

/// Creates a group, unless another request has created it in the meantime.
async fn create_group(app: &App, caller: &Caller, name: &str) -> Result<RunnerGroup, Problem> {
    let _changing = app.remote.groups.change().await;
    if let Some(known) = app.remote.groups.get(&caller.tenant, name) {
        return Ok(known);
    }
    if app.remote.groups.of(&caller.tenant).len() >= GROUPS_MAX {
        let message = format!("the tenant has {GROUPS_MAX} groups, which is the maximum; delete some first");
        return Err(Problem::new(ProblemCode::LimitExceeded, message));
    }
    let (tenant, at) = (caller.tenant.clone(), now());
    let group = RunnerGroup { tenant, name: name.to_owned(), cluster: None, created_at: at, updated_at: at };
    let audit = caller.audit_entry("runner-group.create", name, json!({ "by": "claim" }));
    app.store_entries(vec![Entry::RunnerGroup(Box::new(group.clone())).audited(audit)]).await?;
    app.remote.groups.put(group.clone());
    Ok(group)
}

fn hand_out(app: &App, handle: &SessionHandle, key: &SessionKey, claimed: ClaimedUnit) -> UnitView {
    let ClaimedUnit { unit, step, kind, input, idempotency_key, attempt, limit_ms, call_ms } = claimed;
    if let Some(call_ms) = call_ms {
        app.remote.limit_call(key.clone(), unit, call_ms, now());
    }
    UnitView {
        unit: handle.unit_text(unit),
        execution_id: execution_id(ExecutionId(unit.execution)),
        step_id: step,
        kind,
        input,
        idempotency_key,
        attempt,
        deadline: limit_ms.map(|limit_ms| time(now().plus(limit_ms))),
    }
}

/// Renew leases
///
/// Lists every unit that the worker still has, at least twice in `leaseTtlMs`.
#[utoipa::path(post, path = "/api/v1/workers/heartbeat", tag = TAG, security(("bearer" = [])), request_body = Heartbeat,
    responses((status = 200, body = HeldView), Refusals, BodyRefusals))]
async fn send_heartbeat(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(beat): JsonBody<Heartbeat>,
) -> Result<Json<HeldView>, Problem> {
    caller.may(Permission::Work)?;
    if beat.held.len() > HELD_MAX {
        return Err(Problem::invalid("held", format!("must have at most {HELD_MAX} entries")));
    }
    let handle = read_session(&beat.session)?;
    let key = session_key(&handle, &caller.tenant, caller.group.as_deref());
    let (mut units, mut lost) = (Vec::with_capacity(beat.held.len()), Vec::new());
    for text in beat.held {
        match handle.read_unit(&text) {
            Some(unit) => units.push(unit),
            None => lost.push(text),
        }
    }
    let held = app.remote.beat(key, units).await?;
    lost.extend(held.lost.into_iter().map(|unit| handle.unit_text(unit)));
    let stop = held.stop.into_iter().map(|unit| handle.unit_text(unit)).collect();
    Ok(Json(HeldView { lost, stop }))
}

/// Report the result of a unit
///
/// The result is on disk when it is accepted. The same report again is accepted again; another one is a conflict, and so is
/// a report on a unit that the session does not hold any more.
#[utoipa::path(post, path = "/api/v1/workers/report", tag = TAG, security(("bearer" = [])), request_body = NewReport,
    responses((status = 200, body = AcceptedReport), (status = 409, body = Refused), Refusals, BodyRefusals))]
async fn report_result(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(report): JsonBody<NewReport>,
) -> Result<Json<AcceptedReport>, Problem> {
    caller.may(Permission::Work)?;
    let handle = read_session(&report.session)?;
    let key = session_key(&handle, &caller.tenant, caller.group.as_deref());
    let unit = handle.read_unit(&report.unit).ok_or_else(|| Problem::not_found("unit", &report.unit))?;
    let outcome = match (report.result, report.error) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(failure(error)?),
        (Some(_), Some(_)) => return Err(Problem::invalid("error", "must not be sent with `result`")),
        (None, None) => return Err(Problem::invalid("result", "is missing; send it, or `error`")),
    };
    let receipt = handle.receipt(unit, &outcome);
    let verdict = app.remote.report(&key, unit, ReportedResult { outcome, receipt }).await?;
    let accepted = match verdict {
        CallVerdict::Accepted => true,
        CallVerdict::IfReceipted => is_receipted(&app, &key, unit, receipt).await?,
        CallVerdict::Stale => false,
    };
    if accepted { Ok(Json(AcceptedReport { accepted })) } else { Err(stale()) }
}

/// Returns whether this very report was accepted before, also by an earlier process (R16).
async fn is_receipted(app: &App, key: &SessionKey, unit: Unit, receipt: [u8; 32]) -> Result<bool, Problem> {
    let (session, execution) = (Session(key.id.0), ExecutionId(unit.execution));
    let place = (RunId(unit.run), Fence(unit.fence));
    let read = move |reader: &mut DatabaseReader| reader.receipt(execution, place, session);
    Ok(app.readers.of(&key.tenant).look(read).await? == Some(receipt))
}

fn failure(error: ReportedError) -> Result<Box<Failure>, Problem> {
    let code = error.code.unwrap_or_else(|| codes::WORKER_ERROR.name().to_owned());
    if code.is_empty() || code.chars().count() > CODE_MAX {
        return Err(Problem::invalid("error.code", format!("must have 1 to {CODE_MAX} characters")));
    }
    let failure = Failure::of_code(&code, error.message);
    let (retryable, retry_after_ms, details) = (error.retryable, error.retry_after_ms, error.details);
    Ok(Box::new(Failure { retryable, retry_after_ms, details, ..failure }))
}

/// Parses a session. A malformed one is answered like an unknown one.
pub(super) fn read_session(text: &str) -> Result<SessionHandle, Problem> {
    SessionHandle::read(text).ok_or_else(crate::remote::no_session)
}
