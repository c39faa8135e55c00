//! Artifacts of `windlass worker` processes, as streams. Only the session that holds a unit sends and fetches for it.

use super::plan_executions::ranged::{Content, ObjectContent, respond};
use super::runners::{check_protocol, read_session_header};
use super::shared::Refusals;
use crate::app::App;
use crate::audit::{RefusedCall, note_refused_calls};
use crate::auth::{Caller, Permission};
use crate::database::DatabaseReader;
use crate::problem::{Problem, ProblemCode, Refused};
use crate::remote::{RelayedCall, session_key};
use crate::resources::other_artifact;
use axum::Json;
use axum::body::Body as RequestBody;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use std::fs::File;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_engine::SessionKey;
use windlass_kernel::ExecutionId;
use windlass_protocol::{
    BYTES_TYPE, Body, BodyFile, Call, Failure, Reply, ResourceAsk, ResourceCall, ResourceReply, UNIT_HEADER,
    Unit, codes,
};
use windlass_store::{ObjectState, Objects as _, StoredObject, Tenant, Upload, Workers as _};

const TAG: &str = "workers";

/// Bytes that are collected before they are written: few writes, and little memory for each upload.
const PIECE_BYTES: usize = 128 << 10;

/// Maximum size of one artifact: that of an output of a step.
const ARTIFACT_BYTES_MAX: u64 = 64 << 30;

/// Maximum bytes of a refused artifact that are read. A longer one is rare; its worker learns from a heartbeat that it has
/// lost the unit.
const DISCARDED_BYTES_MAX: usize = 64 << 20;

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(put_worker_artifact)).routes(routes!(get_worker_artifact))
}

/// Store an artifact of a unit of work
///
/// For `windlass worker`. The key is `sha256:` and the digest of the bytes; other bytes are refused. After the reply a crash
/// does not lose them.
#[utoipa::path(put, path = "/api/v1/workers/artifacts/{key}", tag = TAG, security(("bearer" = [])),
    params(("key" = String, Path, description = "`sha256:` and 64 hexadecimal digits"),
        ("windlass-protocol" = Option<u32>, Header, description = "Version of the worker protocol; any other one, and none, is refused with 409"),
        ("windlass-session" = Option<String>, Header, description = "Session of the worker; a request without it is refused"),
        ("windlass-unit" = Option<String>, Header, description = "Unit that the session holds, as JSON")),
    request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 200, body = serde_json::Value), (status = 409, body = Refused), Refusals))]
async fn put_worker_artifact(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(key): Path<String>,
    request: Request,
) -> Result<Json<ResourceReply>, Problem> {
    let holder = Holder::read(&caller, request.headers())?;
    let _slot = app.take_stream_slot(&caller.tenant)?;
    // Nothing is received for a unit that the session does not hold.
    match holder.ask(&app, ResourceAsk::GetRights).await? {
        ResourceReply::Rights(_) => {}
        refused => {
            discard(&app, request.into_body()).await;
            return Ok(Json(refused));
        }
    }
    let upload = receive(&app, &caller.tenant, request.into_body()).await?;
    if upload.key() != key {
        let message = format!("the {} bytes of an artifact arrived damaged or truncated", upload.length());
        let failure = Failure::new(codes::ARTIFACT_NOT_KEPT, message);
        return Ok(Json(ResourceReply::Failed(failure)));
    }
    let body = Body::of_file(upload.length(), BodyFile::Moved(upload.path().to_owned()));
    holder.ask(&app, ResourceAsk::PutArtifact { key, body }).await.map(Json)
}

/// Fetch an artifact for a unit of work
///
/// For `windlass worker`. The answer has the type `application/octet-stream`, or is a reply of the protocol that says why
/// there are no bytes.
#[utoipa::path(get, path = "/api/v1/workers/artifacts/{key}", tag = TAG, security(("bearer" = [])),
    params(("key" = String, Path, description = "`sha256:` and 64 hexadecimal digits"),
        ("windlass-protocol" = Option<u32>, Header, description = "Version of the worker protocol; any other one, and none, is refused with 409"),
        ("windlass-session" = Option<String>, Header, description = "Session of the worker; a request without it is refused"),
        ("windlass-unit" = Option<String>, Header, description = "Unit that the session holds, as JSON")),
    responses((status = 200, body = String, content_type = "application/octet-stream"),
        (status = 409, body = Refused), Refusals))]
async fn get_worker_artifact(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(key): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let holder = Holder::read(&caller, &headers)?;
    let _slot = app.take_stream_slot(&caller.tenant)?;
    if let Some(copy) = find_copy(&app, &caller.tenant, &key).await? {
        return match holder.ask(&app, ResourceAsk::GetRights).await? {
            ResourceReply::Rights(_) if !holder.owns(&app, &key).await? => {
                holder.note_refused(&app, &caller, &key);
                Ok(Json(ResourceReply::Failed(*other_artifact(&key))).into_response())
            }
            ResourceReply::Rights(_) => {
                respond(Content::Object(copy), &HeaderValue::from_static(BYTES_TYPE), &HeaderMap::new()).await
            }
            refused => Ok(Json(refused).into_response()),
        };
    }
    let reply = holder.ask(&app, ResourceAsk::GetArtifactFile { key: key.clone() }).await?;
    if matches!(&reply, ResourceReply::Failed(failure) if failure.has_code(codes::PERMISSION_DENIED)) {
        holder.note_refused(&app, &caller, &key);
    }
    let ResourceReply::Artifact(Some(Body {
        length,
        file: Some(BodyFile::Shared(path) | BodyFile::Moved(path)),
        ..
    })) = reply
    else {
        return Ok(Json(reply).into_response());
    };
    let file = app.run_blocking(move || File::open(path)).await?.map_err(Problem::internal)?;
    respond(Content::File(file, length), &HeaderValue::from_static(BYTES_TYPE), &HeaderMap::new()).await
}

/// Returns the copy of an artifact without a file. Its bytes are sent to the worker as they arrive.
async fn find_copy(app: &Arc<App>, tenant: &Tenant, key: &str) -> Result<Option<ObjectContent>, Problem> {
    let Some(bucket) = app.bucket.clone() else { return Ok(None) };
    let (artifacts, tenant, key) = (app.artifacts.clone(), tenant.clone(), key.to_owned());
    let find = move |reader: &mut DatabaseReader| match artifacts.find_file(&tenant, &key)? {
        Some(_) => Ok(None),
        None => Ok(reader.object(&tenant, &key)?.filter(|object| object.state == ObjectState::Stored)),
    };
    let found = app.readers.look(find).await?;
    Ok(found.map(|StoredObject { tenant, key, bytes, .. }| ObjectContent {
        bucket,
        tenant,
        key,
        length: bytes,
    }))
}

/// A worker that acts for a unit.
struct Holder {
    session: SessionKey,
    unit: Unit,
}

impl Holder {
    fn read(caller: &Caller, headers: &HeaderMap) -> Result<Holder, Problem> {
        caller.may(Permission::Work)?;
        check_protocol(headers)?;
        let handle = read_session_header(headers)?;
        let unit = headers.get(UNIT_HEADER).and_then(|unit| unit.to_str().ok());
        let missing = || {
            Problem::bad_request(format!(
                "the header `{UNIT_HEADER}` is missing or is not text; send the `unit` of the work"
            ))
        };
        let unit = serde_json::from_str(unit.ok_or_else(missing)?).map_err(|_| {
            Problem::bad_request(format!(
                "the header `{UNIT_HEADER}` is not a unit; send the `unit` of the work"
            ))
        })?;
        Ok(Holder { session: session_key(&handle, &caller.tenant, caller.group.as_deref()), unit })
    }

    /// Returns whether an artifact belongs to the execution of the unit.
    async fn owns(&self, app: &App, key: &str) -> Result<bool, Problem> {
        let (execution, key) = (ExecutionId(self.unit.execution), key.to_owned());
        app.readers
            .of(&self.session.tenant)
            .look(move |reader: &mut DatabaseReader| reader.owns_artifact(execution, &key))
            .await
    }

    fn note_refused(&self, app: &Arc<App>, caller: &Caller, key: &str) {
        let ask = ResourceAsk::GetArtifactFile { key: key.to_owned() };
        let call = RefusedCall::of(&ResourceCall { unit: self.unit, ask });
        note_refused_calls(app, caller, [call]);
    }

    async fn ask(&self, app: &App, ask: ResourceAsk) -> Result<ResourceReply, Problem> {
        let call = Call::Resource(Box::new(ResourceCall { unit: self.unit, ask }));
        let answers = app.remote.relay(&self.session, vec![RelayedCall { call, audit: None }]).await?;
        match answers.into_iter().next().and_then(|answer| answer.reply) {
            Some(Reply::Resource(reply)) => Ok(*reply),
            Some(_) | None => {
                Err(Problem::unavailable("the engine is overloaded; retry after the time in Retry-After"))
            }
        }
    }
}

/// Reads the rest of a body that is not wanted: a client that still sends it would not see the answer.
async fn discard(app: &App, body: RequestBody) {
    let mut received = body.into_data_stream();
    let mut length = 0;
    let read = async {
        while length < DISCARDED_BYTES_MAX
            && let Some(Ok(bytes)) = received.next().await
        {
            length += bytes.len();
        }
    };
    // What does not arrive in time is not waited for.
    let _ = tokio::time::timeout(app.settings.request_timeout, read).await;
}

/// Receives a body into a file. The bytes count as storage of the tenant while they arrive.
async fn receive(app: &Arc<App>, tenant: &Tenant, body: RequestBody) -> Result<Upload, Problem> {
    let artifacts = app.artifacts.clone();
    let mut upload = app.run_blocking(move || artifacts.begin_upload()).await??;
    let mut counted = app.storage.count_arriving(tenant);
    let mut received = body.into_data_stream();
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    loop {
        let next = tokio::time::timeout(app.settings.request_timeout, received.next()).await;
        let next = next.map_err(|_| {
            Problem::new(
                ProblemCode::RequestTimeout,
                "the bytes of the artifact did not arrive in time; send it again",
            )
        })?;
        let is_last = next.is_none();
        if let Some(bytes) = next {
            let broken = |_| {
                Problem::bad_request("the body of the artifact is incomplete or malformed; send it again")
            };
            piece.extend_from_slice(&bytes.map_err(broken)?);
        }
        if piece.len() < PIECE_BYTES && !is_last {
            continue;
        }
        counted.add(piece.len() as u64);
        app.storage.check(tenant)?;
        if upload.length() + piece.len() as u64 > ARTIFACT_BYTES_MAX {
            let limit = ARTIFACT_BYTES_MAX >> 30;
            return Err(Problem::too_large(format!(
                "the artifact is larger than the maximum of {limit} GiB; split it"
            )));
        }
        (upload, piece) = app.run_blocking(move || upload.write(&piece).map(|()| (upload, piece))).await??;
        piece.clear();
        if is_last {
            return Ok(upload);
        }
    }
}
