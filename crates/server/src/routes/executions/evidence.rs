//! `GET /api/v1/executions/{executionId}/evidence`: what shows how everything came out.

use super::{TAG, stored_of};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::evidence::{self, Evidence};
use crate::problem::Problem;
use crate::routes::shared::Pagination;
use crate::routes::shared::Refusals;
use crate::wire;
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

const LIMIT: u32 = 100;
const LIMIT_MAX: u32 = 1_000;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct Asked {
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Entries {
    /// In the order in which they happened, each with the hash of the one before.
    evidence: Vec<Evidence>,
    pagination: Pagination,
}

/// Attempts, ends and what people did, as a chain of hashes.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/evidence", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), Asked),
    responses((status = 200, body = Entries), Refusals))]
pub async fn evidence(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<Asked>,
) -> Result<Json<Entries>, Problem> {
    let limit = wire::limit(asked.limit, LIMIT, LIMIT_MAX)?;
    let read = |text: &str| text.parse::<usize>().ok();
    let skipped = asked.cursor.as_deref().map(|cursor| wire::place(cursor, read)).transpose()?.unwrap_or(0);
    caller.may(Permission::View)?;
    let id = wire::execution(&id)?;
    let read = app.readers.read(move |reader| {
        let stored = stored_of(reader, &caller, id)?;
        evidence::evidence(reader, &stored).map_err(Problem::from)
    });
    let mut entries = read.await?;
    let has_more = entries.len() > skipped.saturating_add(limit);
    let cursor = has_more.then(|| wire::cursor(&(skipped + limit).to_string()));
    let evidence = entries.drain(skipped.min(entries.len())..).take(limit).collect();
    Ok(Json(Entries { evidence, pagination: Pagination { has_more, cursor } }))
}
