//! Routes of `windlass worker`: a process that runs steps itself registers, fetches orders and makes calls of the protocol.
//! Their bodies are the types of the protocol, which has a version of its own.

use super::shared::{BodyRefusals, Refusals, check_group};
use super::workers::{admit, check_own_group, read_session};
use crate::app::App;
use crate::audit::{RefusedCall, note_refused_calls};
use crate::auth::{Caller, Permission};
use crate::body::collect_up_to;
use crate::problem::{Problem, Refused};
use crate::remote::{NewRunner, RelayAnswer, RelayedCall, SessionHandle, session_key};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_protocol::{
    CALLS_BYTES_MAX, CALLS_PER_BATCH_MAX, Call, CallBatch, NewSession, OpenedSession, OrderList,
    OrdersRequest, Outcome, PROTOCOL_HEADER, PROTOCOL_VERSION, Registered, Reply, ReplyBatch, ResourceAsk,
    ResourceReply, SESSION_HEADER, codes,
};
use windlass_store::Audit;

const TAG: &str = "workers";
/// Maximum number of slots of one worker: as many as orders can be kept for.
const SLOTS_MAX: u32 = 1_000;
/// Maximum size of a message other than a batch of calls, and of a batch that needs no budget.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a worker's name in characters.
const NAME_MAX: usize = 200;

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(register_worker))
        .routes(routes!(fetch_orders))
        .routes(routes!(make_calls))
}

/// Register a worker process
///
/// For `windlass worker`, which runs steps itself. The body is a message of the worker protocol; another version of it is
/// refused.
#[utoipa::path(post, path = "/api/v1/workers/register", tag = TAG, security(("bearer" = [])),
    params(("windlass-protocol" = Option<u32>, Header, description = "Version of the worker protocol; any other one, and none, is refused with 409")),
    request_body = serde_json::Value,
    responses((status = 201, body = serde_json::Value), (status = 409, body = Refused), Refusals, BodyRefusals))]
async fn register_worker(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<OpenedSession>), Problem> {
    caller.may(Permission::Work)?;
    check_protocol(request.headers())?;
    let new: NewSession = read(&app, request, SMALL_BYTES_MAX).await?;
    check_version(&new)?;
    if !(1..=SLOTS_MAX).contains(&new.slots) {
        return Err(Problem::invalid("slots", format!("must be between 1 and {SLOTS_MAX}")));
    }
    let group = check_group("group", &new.group)?;
    check_own_group(&caller, &group)?;
    let cluster = new.cluster.as_deref().map(|name| check_group("cluster", name)).transpose()?;
    admit(&app, &caller, &group, cluster.as_deref()).await?;
    let worker = new.worker.chars().take(NAME_MAX).collect();
    let runner = NewRunner { tenant: caller.tenant.clone(), group, cluster, slots: new.slots, worker };
    let handle = app.remote.register(runner).await?;
    let registered = Registered { session: handle.id(), rules: app.remote.rules() };
    Ok((StatusCode::CREATED, Json(OpenedSession { session: handle.text(), registered })))
}

/// Refuses a request of a worker that speaks another version of the protocol. A worker may outlive an upgrade of the server.
pub(super) fn check_protocol(headers: &HeaderMap) -> Result<(), Problem> {
    let spoken = headers.get(PROTOCOL_HEADER).and_then(|version| version.to_str().ok());
    if spoken.is_some_and(|version| version.parse() == Ok(PROTOCOL_VERSION)) {
        return Ok(());
    }
    let spoken = spoken.map_or("an earlier version".to_owned(), |version| format!("version {version}"));
    Err(Problem::conflict(format!(
        "the worker speaks {spoken} of the worker protocol, and this server (release {}) version {PROTOCOL_VERSION}; run the \
         same release of both",
        env!("CARGO_PKG_VERSION"),
    )))
}

/// Returns the session that a request names in its header.
pub(super) fn read_session_header(headers: &HeaderMap) -> Result<SessionHandle, Problem> {
    let text = headers.get(SESSION_HEADER).and_then(|session| session.to_str().ok());
    let missing = || Problem::bad_request(format!("the header `{SESSION_HEADER}` is missing or is not text"));
    read_session(text.ok_or_else(missing)?)
}

/// Refuses a body of another session than that of the header.
fn check_same(handle: &SessionHandle, session: &str) -> Result<(), Problem> {
    match handle.text() == session {
        true => Ok(()),
        false => {
            Err(Problem::conflict(format!("the header `{SESSION_HEADER}` and the body name two sessions")))
        }
    }
}

fn check_version(new: &NewSession) -> Result<(), Problem> {
    if new.protocol == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(Problem::conflict(format!(
        "the worker (release {}) speaks version {} of the worker protocol, and this server (release {}) version \
         {PROTOCOL_VERSION}; run the same release of both",
        new.release,
        new.protocol,
        env!("CARGO_PKG_VERSION"),
    )))
}

/// Fetch orders
///
/// For `windlass worker`. Waits until there is an order for the session, at most half of the time of a lease.
#[utoipa::path(post, path = "/api/v1/workers/orders", tag = TAG, security(("bearer" = [])),
    params(("windlass-protocol" = Option<u32>, Header, description = "Version of the worker protocol; any other one, and none, is refused with 409")),
    request_body = serde_json::Value,
    responses((status = 200, body = serde_json::Value), (status = 409, body = Refused), Refusals, BodyRefusals))]
async fn fetch_orders(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Json<OrderList>, Problem> {
    caller.may(Permission::Work)?;
    check_protocol(request.headers())?;
    let wanted: OrdersRequest = read(&app, request, SMALL_BYTES_MAX).await?;
    let handle = read_session(&wanted.session)?;
    let key = session_key(&handle, &caller.tenant, caller.group.as_deref());
    let _slot = app.take_stream_slot(&caller.tenant)?;
    let stopping = Arc::clone(&app);
    let orders = app.remote.orders(key, async move { stopping.stopped().await }).await?;
    Ok(Json(OrderList { orders }))
}

/// Make calls of the worker protocol
///
/// For `windlass worker`: reports, checkpoints, heartbeats, log lines and requests for secrets and large values. A session
/// speaks for the units that it holds, and for no other.
#[utoipa::path(post, path = "/api/v1/workers/calls", tag = TAG, security(("bearer" = [])),
    params(("windlass-protocol" = Option<u32>, Header, description = "Version of the worker protocol; any other one, and none, is refused with 409"),
        ("windlass-session" = Option<String>, Header, description = "Session of the worker; a request without it is refused")),
    request_body = serde_json::Value,
    responses((status = 200, body = serde_json::Value), (status = 409, body = Refused), Refusals, BodyRefusals))]
async fn make_calls(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Json<ReplyBatch>, Problem> {
    caller.may(Permission::Work)?;
    check_protocol(request.headers())?;
    let handle = read_session_header(request.headers())?;
    let key = session_key(&handle, &caller.tenant, caller.group.as_deref());
    let bytes = body_bytes(request.headers());
    let _budget = match bytes > SMALL_BYTES_MAX {
        true => {
            // Nothing large is received for a session that does not exist.
            app.remote.check_session(&key).await?;
            Some(app.remote.call_bytes.take(&caller.tenant, bytes)?)
        }
        false => None,
    };
    let CallBatch { session, calls } = read(&app, request, bytes).await?;
    check_same(&handle, &session)?;
    if calls.len() > CALLS_PER_BATCH_MAX {
        return Err(Problem::invalid("calls", format!("must have at most {CALLS_PER_BATCH_MAX} entries")));
    }
    if calls.iter().any(carries_bytes) {
        let message = "the bytes of an artifact are sent and fetched at /api/v1/workers/artifacts/{key}";
        return Err(Problem::invalid("calls", message));
    }
    let described: Vec<Option<RefusedCall>> = calls.iter().map(describe).collect();
    let relayed = |call: Call| RelayedCall { audit: audit_of(&call, &caller), call };
    let answers = app.remote.relay(&key, calls.into_iter().map(relayed).collect()).await?;
    let refused = described.into_iter().zip(&answers).filter(|(_, answer)| is_denied(answer));
    note_refused_calls(&app, &caller, refused.filter_map(|(call, _)| call));
    Ok(Json(ReplyBatch { replies: answers.into_iter().map(|answer| answer.reply).collect() }))
}

fn describe(call: &Call) -> Option<RefusedCall> {
    match call {
        Call::Resource(call) => Some(RefusedCall::of(call)),
        Call::Agent(call) => Some(RefusedCall::of_agent(call)),
        _ => None,
    }
}

/// Returns the entry for a report that starts another execution, which the engine writes with the end of the step if it refuses
/// that. It needs no window: each such report ends a unit of work.
fn audit_of(call: &Call, caller: &Caller) -> Option<Box<Audit>> {
    match call {
        Call::Report(report) if matches!(report.outcome, Outcome::Child { .. }) => {
            Some(Box::new(RefusedCall::of_child(report.unit).audit(caller)))
        }
        _ => None,
    }
}

/// Returns whether a worker asked for something that its unit may not have.
fn is_denied(answer: &RelayAnswer) -> bool {
    let Some(Reply::Resource(reply)) = &answer.reply else { return answer.is_denied };
    matches!(&**reply, ResourceReply::Failed(failure) if failure.has_code(codes::PERMISSION_DENIED))
}

fn carries_bytes(call: &Call) -> bool {
    let Call::Resource(call) = call else { return false };
    match call.ask {
        ResourceAsk::PutArtifact { .. }
        | ResourceAsk::GetArtifact { .. }
        | ResourceAsk::GetArtifactFile { .. } => true,
        ResourceAsk::GetRights
        | ResourceAsk::OpenSecret { .. }
        | ResourceAsk::StoreMemory { .. }
        | ResourceAsk::SearchMemory(_)
        | ResourceAsk::FindRoutingKey { .. } => false,
    }
}

/// Returns the number of bytes that a body has at most.
fn body_bytes(headers: &HeaderMap) -> usize {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    length.map_or(CALLS_BYTES_MAX, |length| length.clamp(SMALL_BYTES_MAX, CALLS_BYTES_MAX))
}

/// Reads a message of the protocol with at most `limit` bytes. Values in it may be nested deeper than those of other requests.
async fn read<T: DeserializeOwned + Send + 'static>(
    app: &App,
    request: Request,
    limit: usize,
) -> Result<T, Problem> {
    let bytes = collect_up_to(request.into_body(), app, limit).await?;
    let parse = move || {
        serde_json::from_slice(&bytes).map_err(|error| {
            Problem::bad_request(format!("the message cannot be read: {error}; run the same release of both"))
        })
    };
    // Parsing a large value takes milliseconds.
    tokio::task::spawn_blocking(parse).await.map_err(|error| Problem::internal(error.to_string()))?
}
