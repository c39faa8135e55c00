//! Outputs of plans and of their steps, as bytes.

use super::ranged::{Content, ObjectContent, respond};
use super::{TAG, load};
use crate::app::App;
use crate::auth::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::routes::shared::Refusals;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::io::Read as _;
use std::sync::Arc;
use windlass_protocol::{DRILLED_BYTES_MAX, drill_into};
use windlass_store::{Artifacts, Tenant};

/// Get an output of a plan
///
/// A string is sent as text, other values as JSON. `Range` selects a part.
#[utoipa::path(get, path = "/api/v1/plan-executions/{id}/outputs/{name}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the execution"), ("name" = String, Path, description = "Name of the output"),
        ("Range" = Option<String>, Header, description = "`bytes=0-99`")),
    responses((status = 200, body = String, content_type = "application/octet-stream"),
        (status = 206, body = String, content_type = "application/octet-stream"),
        (status = 416, description = "The range is outside of the output"), Refusals))]
pub(super) async fn get_plan_output(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let execution = load(&app, &caller, &id).await?;
    let output = named(&execution.status["outputs"], &name);
    send(&app, &caller, output, ("output", &name), &headers).await
}

/// Get an output of a step
#[utoipa::path(get, path = "/api/v1/plan-executions/{id}/steps/{step}/outputs/{name}", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the execution"), ("step" = String, Path, description = "Id of the step"),
        ("name" = String, Path, description = "Name of the output"),
        ("Range" = Option<String>, Header, description = "`bytes=0-99`")),
    responses((status = 200, body = String, content_type = "application/octet-stream"),
        (status = 206, body = String, content_type = "application/octet-stream"),
        (status = 416, description = "The range is outside of the output"), Refusals))]
pub(super) async fn get_step_output(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, step, name)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let execution = load(&app, &caller, &id).await?;
    let found = find_step(&execution.status, &step)?;
    send(&app, &caller, named(&found["outputs"], &name), ("output", &name), &headers).await
}

pub(super) fn find_step<'s>(status: &'s Value, step: &str) -> Result<&'s Value, Problem> {
    let steps = status["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    steps.iter().find(|found| found["id"] == step).ok_or_else(|| Problem::not_found("step", step))
}

fn named<'v>(outputs: &'v Value, name: &str) -> Option<&'v Value> {
    outputs.as_array()?.iter().find(|output| output["name"] == name)
}

/// Responds with an entry that has a `value` or an `artifact`.
pub(super) async fn send(
    app: &Arc<App>,
    caller: &Caller,
    entry: Option<&Value>,
    (what, name): (&str, &str),
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let entry = entry.ok_or_else(|| Problem::not_found(what, name))?;
    let content = match entry.get("artifact") {
        Some(artifact) => {
            let (key, drill) = (artifact_key(artifact, name)?, drill(entry));
            let (tenant, artifacts) = (caller.tenant.clone(), app.artifacts.clone());
            let size = artifact["size"].as_u64();
            let open = {
                let (tenant, key) = (tenant.clone(), key.clone());
                move || open_artifact(&artifacts, &tenant, &key, &drill)
            };
            match (app.run_blocking(open).await??, &app.bucket, size) {
                (Some(content), ..) => content,
                (None, Some(bucket), Some(length)) => {
                    Content::Object(ObjectContent { bucket: bucket.clone(), tenant, key, length })
                }
                (None, ..) => return Err(Problem::not_found("artifact of the output", name)),
            }
        }
        None => Content::Value(bytes_of(&entry["value"], &entry["metadata"])),
    };
    respond(content, &media_type(entry), headers).await
}

/// Returns the key of an artifact, which is its checksum. One that is not uploaded yet is not available.
fn artifact_key(artifact: &Value, name: &str) -> Result<String, Problem> {
    if artifact["ready"] != true {
        let why = artifact["error"].as_str().unwrap_or("it is being uploaded; retry later");
        let message = format!("`{name}` is not available: {why}");
        return Err(Problem::new(ProblemCode::Unavailable, message).retry_after(1));
    }
    let checksum = artifact["checksum"].as_str().and_then(|text| STANDARD.decode(text).ok());
    let checksum = checksum.ok_or_else(|| Problem::internal("an artifact without a checksum"))?;
    let digits: String = checksum.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{digits}"))
}

fn drill(entry: &Value) -> Vec<String> {
    let segments = entry["drill"].as_array().into_iter().flatten();
    segments.filter_map(|segment| segment.as_str().map(str::to_owned)).collect()
}

/// Opens the file of an artifact, or reads a part of its value. A missing file is fetched into the data folder only if
/// the output is a part of the value; otherwise its bytes are sent as they arrive.
fn open_artifact(
    artifacts: &Artifacts,
    tenant: &Tenant,
    key: &str,
    drill: &[String],
) -> Result<Option<Content>, Problem> {
    if !drill.is_empty() {
        artifacts.fetch_missing(tenant, key).map_err(|error| Problem::unavailable(error.to_string()))?;
    }
    let Some(mut file) = artifacts.open(tenant, key)? else { return Ok(None) };
    let length = file.metadata().map_err(Problem::internal)?.len();
    if drill.is_empty() {
        return Ok(Some(Content::File(file, length)));
    }
    if length > DRILLED_BYTES_MAX {
        let message = format!(
            "the output of {length} bytes is too large for a path to select a part; read the whole output"
        );
        return Err(Problem::conflict(message));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(Problem::internal)?;
    let whole: Value = serde_json::from_slice(&bytes).map_err(|_| {
        Problem::conflict("the output is not JSON, so a path cannot select a part; read the whole output")
    })?;
    Ok(drill_into(&whole, drill).map(|part| Content::Value(bytes_of(part, &Value::Null))))
}

/// Returns a string as text, or decoded, and any other value as JSON.
fn bytes_of(value: &Value, metadata: &Value) -> Vec<u8> {
    match value {
        Value::String(text) if metadata["encoding"] == "base64" => {
            STANDARD.decode(text).unwrap_or_else(|_| text.clone().into_bytes())
        }
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

fn media_type(entry: &Value) -> HeaderValue {
    let declared = entry["metadata"]["contentType"].as_str();
    let declared = declared.and_then(|text| HeaderValue::from_str(text).ok());
    declared.unwrap_or_else(|| {
        HeaderValue::from_static(match entry.get("value") {
            Some(Value::String(_)) => "text/plain; charset=utf-8",
            Some(_) => "application/json",
            None => "application/octet-stream",
        })
    })
}
