//! `/api/v1/audit`: the audit log.
#![expect(unused_qualifications, reason = "the macro for parameters writes them")]

use super::paging::{Paged, Pagination};
use super::shared::{Refusals, parse_time};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::{Access, AuditQuery, StoredAudit, hex};
use windlass_views::time;

const LIST: Paged = Paged { name: "audit", usual: 50, most: 100 };

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditParams {
    /// Id of the user who acted
    actor: Option<String>,
    /// Name of the action: `workflow.create`, `token.revoke`, …
    action: Option<String>,
    /// Id of the resource that was changed
    target: Option<String>,
    /// Only entries after this time
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only entries before this time
    #[param(format = DateTime)]
    until: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    entries: Vec<AuditView>,
    pagination: Pagination,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditView {
    /// Number of the entry, increasing
    sequence: i64,
    timestamp: String,
    actor: String,
    role: String,
    action: String,
    target: String,
    details: Map<String, Value>,
    /// Keyed hash over the entry and the seal of the previous entry; null if there was no key
    seal: Option<String>,
}

/// The newest entry of a tenant's audit log. A copy kept elsewhere proves later that no entry up to it was changed or removed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditAnchor {
    /// Id of the key, which does not reveal the key
    key_id: Option<String>,
    sequence: i64,
    seal: Option<String>,
}

impl From<StoredAudit> for AuditView {
    fn from(stored: StoredAudit) -> AuditView {
        let audit = stored.audit;
        let details = match audit.details {
            Value::Object(details) => details,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        AuditView {
            sequence: stored.seq,
            seal: stored.seal.as_deref().map(hex),
            timestamp: time(audit.at),
            actor: audit.actor,
            role: audit.role,
            action: audit.action,
            target: audit.target,
            details,
        }
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_audit)).routes(routes!(get_anchor))
}

/// List audit entries, the newest first
///
/// Starts of executions are not listed: each execution records who started it.
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", security(("bearer" = [])), params(AuditParams),
    responses((status = 200, body = AuditList), Refusals))]
async fn list_audit(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<AuditParams>,
) -> Result<Json<AuditList>, Problem> {
    caller.may(Permission::Administer)?;
    let limit = LIST.limit(params.limit)?;
    let query = AuditQuery {
        tenant: caller.tenant,
        actor: params.actor,
        action: params.action,
        target: params.target,
        since: params.since.map(|text| parse_time("since", &text)).transpose()?,
        until: params.until.map(|text| parse_time("until", &text)).transpose()?,
        before: LIST.place(params.cursor.as_deref(), |text| text.parse().ok())?,
        limit: limit + 1,
    };
    let readers = app.readers.of(&query.tenant);
    let mut found = readers.look(move |reader| reader.audit(&query)).await?;
    let pagination = LIST.cut(&mut found, limit, |last| last.seq);
    let entries = found.into_iter().map(AuditView::from).collect();
    Ok(Json(AuditList { entries, pagination }))
}

/// Get number and seal of the newest entry
///
/// Keep a copy elsewhere: while the entry with that number has that seal, no entry up to it was changed or removed.
#[utoipa::path(get, path = "/api/v1/audit/anchor", tag = "audit", security(("bearer" = [])),
    responses((status = 200, body = AuditAnchor), Refusals))]
async fn get_anchor(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<AuditAnchor>, Problem> {
    caller.may(Permission::Administer)?;
    let query = AuditQuery {
        tenant: caller.tenant,
        actor: None,
        action: None,
        target: None,
        since: None,
        until: None,
        before: None,
        limit: 1,
    };
    let readers = app.readers.of(&query.tenant);
    let newest = readers.look(move |reader| reader.audit(&query)).await?.into_iter().next();
    let (sequence, seal) = newest.map_or((0, None), |newest| (newest.seq, newest.seal));
    let key_id = app.seal.as_ref().map(|seal| seal.id().to_owned());
    Ok(Json(AuditAnchor { key_id, sequence, seal: seal.as_deref().map(hex) }))
}
