//! Versions of a workflow. They never change.
#![expect(unused_qualifications, reason = "the macro for parameters writes them")]

use super::{DialectName, current, hex, tagged};
use crate::answers::JsonParts;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::problem::Problem;
use crate::routes::paging::{Paged, Pagination};
use crate::routes::shared::Refusals;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use windlass_dialects::as_json;
use windlass_store::{Catalog, StoredVersion};
use windlass_views::{time, workflow_id};

const LIST: Paged = Paged { name: "versions", usual: 50, most: 100 };

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct VersionParams {
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionList {
    versions: Vec<VersionSummary>,
    pagination: Pagination,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionSummary {
    #[schema(minimum = 1)]
    version: u32,
    name: String,
    #[schema(value_type = DialectName)]
    dialect: String,
    net_digest: String,
    created_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionView {
    id: String,
    #[schema(minimum = 1)]
    version: u32,
    name: String,
    #[schema(value_type = DialectName)]
    dialect: String,
    net_digest: String,
    /// Definition as JSON
    definition: Value,
    /// Definition as it was sent
    source: String,
}

impl VersionSummary {
    fn of(stored: StoredVersion) -> VersionSummary {
        VersionSummary {
            version: stored.version,
            name: stored.name,
            dialect: stored.dialect,
            net_digest: hex(stored.net),
            created_at: time(stored.at),
        }
    }
}

/// List the versions of a workflow, the newest first
#[utoipa::path(get, path = "/api/v1/workflows/{id}/versions", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow's id"), VersionParams),
    responses((status = 200, body = VersionList), Refusals))]
pub(crate) async fn list_versions(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<VersionParams>,
) -> Result<Json<VersionList>, Problem> {
    caller.may(Permission::View)?;
    let limit = LIST.limit(params.limit)?;
    let before = LIST.place(params.cursor.as_deref(), |text| text.parse().ok())?;
    let workflow = current(&app, &caller, &id).await?.workflow.id;
    let tenant = caller.tenant.clone();
    let readers = app.readers.of(&tenant);
    let read = readers.look(move |reader| reader.versions(&tenant, workflow, before, limit + 1));
    let mut found = read.await?;
    let pagination = LIST.cut(&mut found, limit, |last| last.version);
    let versions = found.into_iter().map(VersionSummary::of).collect();
    Ok(Json(VersionList { versions, pagination }))
}

/// Get one version of a workflow
#[utoipa::path(get, path = "/api/v1/workflows/{id}/versions/{version}", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow's id"),
        ("version" = u32, Path, minimum = 1, description = "Its number, counted from 1")),
    responses((status = 200, body = VersionView, headers(("ETag" = String, description = "Its version"))), Refusals))]
pub(crate) async fn get_version(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, version)): Path<(String, String)>,
) -> Result<(HeaderMap, JsonParts), Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let missing = || Problem::not_found("version", &version);
    let number: u32 = version.parse().map_err(|_| missing())?;
    let workflow = current(&app, &caller, &id).await?.workflow.id;
    let tenant = caller.tenant.clone();
    let readers = app.readers.of(&tenant);
    let found = readers.look(move |reader| reader.version(&tenant, workflow, Some(number))).await?;
    let stored = found.ok_or_else(missing)?;
    let (headers, answers, tenant) = (tagged(stored.version), app.answers.clone(), caller.tenant);
    // A definition is as large as a body may be.
    let write = move || {
        let view = VersionView {
            id: workflow_id(workflow.0),
            version: stored.version,
            name: stored.name,
            dialect: stored.dialect,
            net_digest: hex(stored.net),
            definition: as_json(&stored.source).unwrap_or_default(),
            source: stored.source,
        };
        answers.json(&tenant, &view)
    };
    Ok((headers, app.run_blocking(write).await??))
}
