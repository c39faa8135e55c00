//! `GET /api/v1/executions/{executionId}/events`: the journal in public names.

use super::{TAG, told};
use crate::app::App;
use crate::auth::Caller;
use crate::body::Params;
use crate::follow::Witness;
use crate::problem::Problem;
use crate::routes::shared::Pagination;
use crate::routes::shared::Refusals;
use crate::told::TellError;
use crate::wire;
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::view::{execution_id, time};

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
pub struct Events {
    /// In the order in which they happened.
    events: Vec<PublicEvent>,
    pagination: Pagination,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublicEvent {
    execution_id: String,
    /// The place of its record in the journal; events of one record share it.
    sequence: u64,
    #[schema(format = DateTime)]
    timestamp: String,
    /// `step.done`, `execution.completed`, …
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    step: Option<String>,
    /// Iteration numbers, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    path: Vec<u32>,
    /// The record.
    data: Value,
}

/// What happened to an execution.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/events", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), Asked),
    responses((status = 200, body = Events), Refusals))]
pub async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<Asked>,
) -> Result<Json<Events>, Problem> {
    let limit = wire::limit(asked.limit, LIMIT, LIMIT_MAX)?;
    let read = |text: &str| text.parse::<usize>().ok();
    let skipped = asked.cursor.as_deref().map(|cursor| wire::place(cursor, read)).transpose()?.unwrap_or(0);
    let found = told(&app, &caller, &id).await?;
    let id = found.facts.execution;
    let mut witness = Witness::default();
    let mut events = Vec::new();
    for record in found.journal {
        let happened = witness.see(&found.net, record).map_err(|illegal| TellError::Broken(id, illegal))?;
        for (name, subject) in &happened.names {
            events.push(PublicEvent {
                execution_id: execution_id(id),
                sequence: happened.version,
                timestamp: time(happened.record.at),
                event: (*name).to_owned(),
                step: subject.as_ref().map(|subject| subject.name.clone()),
                path: subject.as_ref().map(|subject| subject.path.0.clone()).unwrap_or_default(),
                data: json!(happened.record.event),
            });
        }
    }
    let has_more = events.len() > skipped.saturating_add(limit);
    let cursor = has_more.then(|| wire::cursor(&(skipped + limit).to_string()));
    let events = events.into_iter().skip(skipped).take(limit).collect();
    Ok(Json(Events { events, pagination: Pagination { has_more, cursor } }))
}
