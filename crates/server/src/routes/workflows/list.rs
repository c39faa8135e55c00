//! Listing and showing workflows.
#![expect(unused_qualifications, reason = "the macro for parameters writes them")]

use super::{StatusName, WorkflowSummary, WorkflowView, current, tagged};
use crate::answers::JsonParts;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::problem::Problem;
use crate::routes::paging::Paged;
use crate::routes::shared::{NAME_MAX, Refusals};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use windlass_store::{Catalog, WorkflowQuery};

const LIST: Paged = Paged { name: "workflows", usual: 50, most: 100 };
/// Maximum offset; `search` finds workflows beyond it.
const OFFSET_MAX: usize = 1_000_000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WorkflowParams {
    #[param(inline)]
    status: Option<StatusName>,
    /// Part of the name
    #[param(max_length = 255)]
    search: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    #[param(minimum = 0, maximum = 1_000_000)]
    offset: Option<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkflowList {
    workflows: Vec<WorkflowSummary>,
    pagination: OffsetPagination,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OffsetPagination {
    limit: usize,
    offset: usize,
    has_more: bool,
}

/// List workflows, the newest first
#[utoipa::path(get, path = "/api/v1/workflows", tag = "workflows", security(("bearer" = [])), params(WorkflowParams),
    responses((status = 200, body = WorkflowList), Refusals))]
pub(crate) async fn list_workflows(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<WorkflowParams>,
) -> Result<Json<WorkflowList>, Problem> {
    caller.may(Permission::View)?;
    let limit = LIST.limit(params.limit)?;
    let offset = params.offset.unwrap_or_default();
    if offset > OFFSET_MAX {
        return Err(Problem::invalid("offset", format!("must be at most {OFFSET_MAX}")));
    }
    if params.search.as_ref().is_some_and(|text| text.chars().count() > NAME_MAX) {
        return Err(Problem::invalid("search", format!("must have at most {NAME_MAX} characters")));
    }
    let status = params.status.map(Into::into);
    let query = WorkflowQuery {
        tenant: caller.tenant,
        status,
        search: params.search,
        dialect: None,
        limit: limit + 1,
        offset,
    };
    let readers = app.readers.of(&query.tenant);
    let mut found = readers.look(move |reader| reader.workflows(&query)).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let workflows = found.iter().map(WorkflowSummary::of).collect();
    Ok(Json(WorkflowList { workflows, pagination: OffsetPagination { limit, offset, has_more } }))
}

/// Get a workflow with its newest version
#[utoipa::path(get, path = "/api/v1/workflows/{id}", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow's id")),
    responses((status = 200, body = WorkflowView, headers(("ETag" = String, description = "Its version"))), Refusals))]
pub(crate) async fn get_workflow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(HeaderMap, JsonParts), Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let current = current(&app, &caller, &id).await?;
    let (headers, answers) = (tagged(current.workflow.version), app.answers.clone());
    // A definition can be as large as a body.
    let write = move || answers.json(&caller.tenant, &WorkflowView::of(&current));
    Ok((headers, app.run_blocking(write).await??))
}
