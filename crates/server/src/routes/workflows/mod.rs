//! `/api/v1/workflows`: definitions of any dialect, in versions that never change.

mod change;
mod create;
mod graph;
mod list;
mod named;
mod source;
mod versions;

pub(crate) use create::{missing_children, register_plan, register_target};
pub(crate) use source::{Text, compiled};

use crate::app::App;
use crate::auth::Caller;
use crate::definitions::Current;
use crate::ids;
use crate::problem::{Detail, Problem};
use crate::routes::shared;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_dialects::{Dialects, as_json};
use windlass_kernel::NetDigest;
use windlass_store::{StoredWorkflow, WorkflowStatus};
use windlass_views::{time, workflow_id};

/// A registered version.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Registered {
    /// `wf_` and 32 hexadecimal digits
    pub id: String,
    pub name: String,
    #[schema(minimum = 1)]
    pub version: u32,
    #[schema(value_type = DialectName)]
    pub dialect: String,
    /// SHA-256 of the compiled net, in hexadecimal
    pub net_digest: String,
    pub warnings: Vec<Detail>,
}

/// Schema of the name of a dialect.
pub(crate) struct DialectName;

impl PartialSchema for DialectName {
    fn schema() -> RefOr<Schema> {
        let names =
            ObjectBuilder::new().schema_type(Type::String).enum_values(Some(Dialects::builtin().names()));
        names.into()
    }
}

impl ToSchema for DialectName {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StatusName {
    Draft,
    Active,
    Paused,
    Archived,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkflowSummary {
    id: String,
    name: String,
    status: StatusName,
    /// Number of the newest version
    #[schema(minimum = 1)]
    version: u32,
    #[schema(value_type = DialectName)]
    dialect: String,
    created_at: String,
    updated_at: String,
}

/// A workflow and its newest version.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkflowView {
    #[serde(flatten)]
    summary: WorkflowSummary,
    net_digest: String,
    /// Definition as JSON
    definition: Value,
    /// Definition as it was sent. Secrets in it are replaced by handles.
    source: String,
}

impl From<WorkflowStatus> for StatusName {
    fn from(status: WorkflowStatus) -> StatusName {
        match status {
            WorkflowStatus::Draft => StatusName::Draft,
            WorkflowStatus::Active => StatusName::Active,
            WorkflowStatus::Paused => StatusName::Paused,
            WorkflowStatus::Archived => StatusName::Archived,
        }
    }
}

impl From<StatusName> for WorkflowStatus {
    fn from(status: StatusName) -> WorkflowStatus {
        match status {
            StatusName::Draft => WorkflowStatus::Draft,
            StatusName::Active => WorkflowStatus::Active,
            StatusName::Paused => WorkflowStatus::Paused,
            StatusName::Archived => WorkflowStatus::Archived,
        }
    }
}

impl WorkflowSummary {
    fn of(stored: &StoredWorkflow) -> WorkflowSummary {
        WorkflowSummary {
            id: workflow_id(stored.id.0),
            name: stored.name.clone(),
            status: stored.status.into(),
            version: stored.version,
            dialect: stored.dialect.clone(),
            created_at: time(stored.created_at),
            updated_at: time(stored.updated_at),
        }
    }
}

impl WorkflowView {
    fn of(current: &Current) -> WorkflowView {
        let source = current.definition.source.clone();
        WorkflowView {
            summary: WorkflowSummary::of(&current.workflow),
            net_digest: hex(current.definition.net),
            definition: as_json(&source).unwrap_or_default(),
            source,
        }
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create::create_workflow, list::list_workflows, named::put_named))
        .routes(routes!(
            list::get_workflow,
            change::put_workflow,
            change::patch_workflow,
            change::delete_workflow
        ))
        .routes(routes!(create::duplicate_workflow))
        .routes(routes!(versions::list_versions))
        .routes(routes!(versions::get_version))
        .routes(routes!(graph::workflow_graph))
        .routes(routes!(create::validate))
}

/// Returns the caller's workflow of that id; those of other tenants are not found.
pub(crate) async fn current(app: &App, caller: &Caller, id: &str) -> Result<Arc<Current>, Problem> {
    let found = app.definitions.current(&app.readers, &caller.tenant, ids::workflow(id)?).await?;
    found.ok_or_else(|| Problem::not_found("workflow", id))
}

/// Returns the version as an entity tag, with which `If-Match` is compared.
fn tagged(version: u32) -> HeaderMap {
    shared::tagged(version.into())
}

fn hex(digest: NetDigest) -> String {
    digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
}
