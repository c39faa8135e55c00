//! Routes of `windlass worker`: a process that runs steps itself registers, fetches orders and makes calls of the protocol.
//! Their bodies are the types of the protocol, which has a version of its own.

use super::shared::{BodyRefusals, Refusals, check_group};
use super::workers::{admit, check_own_group, read_session};
use crate::app::App;
use crate::audit::{RefusedCall, note_refused_calls};
use crate::auth::{Caller, Permission};
use crate::body::collect_up_to;
use crate::problem::{Problem, Refused};
use crate::remote::{NewRunner, session_key};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_protocol::{
    CALLS_BYTES_MAX, CALLS_PER_BATCH_MAX, Call, CallBatch, NewSession, OpenedSession, OrderList,
    OrdersRequest, PROTOCOL_VERSION, Registered, Reply, ReplyBatch, ResourceAsk, ResourceReply, codes,
};

const TAG: &str = "workers";
/// Maximum number of slots of one worker: as many as orders can be kept for.
const SLOTS_MAX: u32 = 1_000;
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
    request_body = serde_json::Value,
    responses((status = 201, body = serde_json::Value), (status = 409, body = Refused), Refusals, BodyRefusals))]
async fn register_worker(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<OpenedSession>), Problem> {
    caller.may(Permission::Work)?;
    let new: NewSession = read(&app, request).await?;
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
    request_body = serde_json::Value,
    responses((status = 200, body = serde_json::Value), Refusals, BodyRefusals))]
async fn fetch_orders(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Json<OrderList>, Problem> {
    caller.may(Permission::Work)?;
    let wanted: OrdersRequest = read(&app, request).await?;
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
    request_body = serde_json::Value,
    responses((status = 200, body = serde_json::Value), Refusals, BodyRefusals))]
async fn make_calls(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Json<ReplyBatch>, Problem> {
    caller.may(Permission::Work)?;
    let CallBatch { session, calls } = read(&app, request).await?;
    if calls.len() > CALLS_PER_BATCH_MAX {
        return Err(Problem::invalid("calls", format!("must have at most {CALLS_PER_BATCH_MAX} entries")));
    }
    let handle = read_session(&session)?;
    let key = session_key(&handle, &caller.tenant, caller.group.as_deref());
    if calls.iter().any(carries_bytes) {
        let message = "the bytes of an artifact are sent and fetched at /api/v1/workers/artifacts/{key}";
        return Err(Problem::invalid("calls", message));
    }
    let described: Vec<Option<RefusedCall>> = calls.iter().map(describe).collect();
    let replies = app.remote.relay(&key, calls).await?;
    let refused = described.into_iter().zip(&replies).filter(|(_, reply)| is_denied(reply.as_ref()));
    note_refused_calls(&app, &caller, refused.filter_map(|(call, _)| call));
    Ok(Json(ReplyBatch { replies }))
}

fn describe(call: &Call) -> Option<RefusedCall> {
    if let Call::Resource(call) = call { Some(RefusedCall::of(call)) } else { None }
}

/// Returns whether a worker asked for something that its unit may not have.
fn is_denied(reply: Option<&Reply>) -> bool {
    let Some(Reply::Resource(reply)) = reply else { return false };
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

/// Reads a message of the protocol. Values in it may be nested deeper than those of other requests.
async fn read<T: DeserializeOwned + Send + 'static>(app: &App, request: Request) -> Result<T, Problem> {
    let bytes = collect_up_to(request.into_body(), app, CALLS_BYTES_MAX).await?;
    let parse = move || {
        serde_json::from_slice(&bytes).map_err(|error| {
            Problem::bad_request(format!("the message cannot be read: {error}; run the same release of both"))
        })
    };
    // Parsing a large value takes milliseconds.
    tokio::task::spawn_blocking(parse).await.map_err(|error| Problem::internal(error.to_string()))?
}
