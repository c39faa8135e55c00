//! `GET /api/v1/executions/{executionId}/artifacts/{digest}` and `…/values/{address}`: values that an answer about an
//! execution refers to or omits.

use super::{TAG, stored_of};
use crate::answers::JsonParts;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::histories::read_value;
use crate::ids;
use crate::problem::Problem;
use crate::readers::Slice;
use crate::routes::shared::Refusals;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use windlass_artifact::digest;
use windlass_kernel::{ExecutionId, Need, references};
use windlass_store::{JournalPage, PageBounds, Reader, StoreError};
use windlass_views::{ValueAddress, reference};

/// Bounds of one read of the journal.
const PAGE: PageBounds = PageBounds { rows_max: 256, bytes_max: 1 << 20 };

/// Get a large value
///
/// Responses have references `{"$artifact": DIGEST, "bytes": N, "url": …}` to large values; this route is the `url`. Only
/// values that the journal of the execution references are found.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/artifacts/{digest}", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), ("digest" = String, Path, description = "`sha256:` and 64 digits"),
        ("If-None-Match" = Option<String>, Header, description = "The ETag of a value that the caller has")),
    responses((status = 200, body = Value, headers(("ETag" = String, description = "Its digest"))),
        (status = 304, description = "The caller has it"), Refusals))]
pub(crate) async fn artifact(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let id = ids::execution(&id)?;
    let missing = Problem::not_found("artifact", &key);
    if digest(&key).is_none() {
        return Err(missing);
    }
    let tag = HeaderValue::from_str(&format!("\"{key}\"")).map_err(Problem::internal)?;
    let (readers, answers) = (app.readers.of(&caller.tenant), app.answers.clone());
    let found = readers.read_in_slices(0, move |reader, version, slice| {
        stored_of(reader, &caller, id)?;
        // A referenced value that the tenant does not have is answered like one that is not referenced.
        Ok::<_, Problem>(match names(reader, id, &key, version, slice)? {
            Some(true) => {
                let found = reader.values(id, &[Need::Artifact(key.clone())])?.artifacts.remove(&key);
                Some(found.flatten().map(|value| answers.json(&caller.tenant, &*value)).transpose()?)
            }
            Some(false) => Some(None),
            None => None,
        })
    });
    let value = found.await?.ok_or(missing)?;
    let has_it = headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == tag);
    let kept = [
        (header::ETAG, tag),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, immutable, max-age=31536000")),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        // A browser must not show a value of a tenant as a page of the server.
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
    ];
    Ok(match has_it {
        true => (StatusCode::NOT_MODIFIED, kept).into_response(),
        false => (kept, value.into_body()).into_response(),
    })
}

/// Reports whether the journal references the key, from a version on, so that values of other executions are not found by
/// their digests. Returns None if the slice ends first.
fn names(
    reader: &mut impl Reader,
    id: ExecutionId,
    key: &str,
    version: &mut u64,
    slice: Slice,
) -> Result<Option<bool>, StoreError> {
    loop {
        let JournalPage { rows, more } = reader.journal_page(id, *version, PAGE)?;
        let mut records = rows.iter().flat_map(|row| &row.records);
        if records.any(|record| references(&record.event).iter().any(|named| named == key)) {
            return Ok(Some(true));
        }
        match rows.last() {
            Some(last) if more => *version = last.version + last.records.len() as u64,
            _ => return Ok(Some(false)),
        }
        if slice.is_over() {
            return Ok(None);
        }
    }
}

/// Get a value that a response omits
///
/// Responses have `{"$omitted": true, "bytes": N, "url": …}` in place of a result or arguments that would make them too
/// large; this route is the `url`.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/values/{address}", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path),
        ("address" = String, Path, description = "The number of a record and of a value in it: `57.0`")),
    responses((status = 200, body = Value), Refusals))]
pub(crate) async fn value(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, address)): Path<(String, String)>,
) -> Result<JsonParts, Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let id = ids::execution(&id)?;
    let missing = Problem::not_found("value", &address);
    let Ok(address) = address.parse::<ValueAddress>() else { return Err(missing) };
    let (readers, answers) = (app.readers.of(&caller.tenant), app.answers.clone());
    let read = readers.read(move |reader| {
        stored_of(reader, &caller, id)?;
        let value = read_value(reader, id, address)?.ok_or(missing)?;
        answers.json(&caller.tenant, &reference(id, &value))
    });
    read.await
}
