//! `X-Idempotency-Key`: a repeated start returns the execution that the first request began.

use crate::app::App;
use crate::auth::Caller;
use crate::body::parse;
use crate::host::now;
use crate::problem::{Problem, ProblemCode};
use axum::http::HeaderMap;
use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_kernel::{ExecutionId, Millis};
use windlass_store::{Catalog, IdempotencyKey, WorkflowId};
use windlass_views::canonical;

const HEADER: &str = "x-idempotency-key";
const LENGTH_MAX: usize = 255;
/// Time for which a key is stored after the end of its execution.
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;

/// Returns the key of a request, if it has one, with the digest of the request.
pub(crate) fn key(
    headers: &HeaderMap,
    digest: impl FnOnce() -> Result<[u8; 32], Problem>,
) -> Result<Option<IdempotencyKey>, Problem> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| (1..=LENGTH_MAX).contains(&text.len()));
    let Some(text) = text else {
        let message = format!("must have 1 to {LENGTH_MAX} visible ASCII characters");
        return Err(Problem::invalid("X-Idempotency-Key", message));
    };
    let forgotten = Millis(now().0 - KEPT_MS);
    Ok(Some(IdempotencyKey { key: text.to_owned(), request: digest()?, forgotten }))
}

/// Returns the digest of a JSON body. Whitespace and the order of members do not change it.
pub(crate) fn of_json(body: &[u8]) -> Result<[u8; 32], Problem> {
    let body: Value = if body.is_empty() { Value::Null } else { parse(body)? };
    Ok(Sha256::digest(canonical(&body)).into())
}

/// Returns the digest of several parts. Each is hashed with its length, so that the boundaries count.
pub(crate) fn of_parts<const N: usize>(parts: [&[u8]; N]) -> [u8; 32] {
    let mut sha256 = Sha256::new();
    for part in parts {
        sha256.update((part.len() as u64).to_be_bytes());
        sha256.update(part);
    }
    sha256.finalize().into()
}

/// Returns the execution that an earlier request with the key began. Another request with the same key is a conflict.
pub(crate) async fn begun_before(
    app: &App,
    caller: &Caller,
    workflow: WorkflowId,
    key: Option<&IdempotencyKey>,
) -> Result<Option<ExecutionId>, Problem> {
    let Some(key) = key.cloned() else { return Ok(None) };
    let (tenant, request) = (caller.tenant.clone(), key.request);
    let readers = app.readers.of(&tenant);
    match readers.look(move |reader| reader.keyed(&tenant, workflow, &key)).await? {
        Some((id, first)) if first == request => Ok(Some(id)),
        Some(_) => {
            let message = "this idempotency key was used with another request; use another key";
            Err(Problem::new(ProblemCode::IdempotencyKeyReused, message))
        }
        None => Ok(None),
    }
}
