//! `/api/v1/actions`: programs that steps of plans refer to. A revision never changes.

use super::paging::Paged;
use super::shared::{BodyRefusals, Refusals, check_group};
use super::workflows::Text;
use crate::app::{App, unexpected_applied};
use crate::auth::{Caller, Permission};
use crate::body::{JsonBody, Params};
use crate::database::DatabaseReader;
use crate::host::now;
use crate::ids;
use crate::problem::{Problem, ProblemCode, Refused};
use crate::routing::targets::write_one;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_dialects::plan::{ActionDocument, is_builtin_action, parse_action};
use windlass_store::{
    ACTION_REVISIONS_MAX, ACTIONS_MAX, ActionId, ActionRevision, Applied, Entry, Registry as _,
    RegistryWrite, StoredAction, WhichAction,
};
use windlass_views::time;

const TAG: &str = "actions";
const LIST: Paged = Paged { name: "actions", usual: 50, most: 200 };
const REVISIONS: Paged = Paged { name: "action-revisions", usual: 50, most: 200 };
/// Maximum length of the document of an action. A plan has a copy of it for every step that uses it.
const DOCUMENT_MAX: usize = 256 << 10;

/// An action with one of its revisions
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionView {
    /// `act_` and 32 hexadecimal digits
    id: String,
    name: String,
    description: Option<String>,
    #[schema(minimum = 1)]
    revision: u32,
    /// Number of the newest revision
    #[schema(minimum = 1)]
    newest_revision: u32,
    /// Whether new plans may use it
    enabled: bool,
    /// `params`, `outputs`, `script`, `image`, `timeout` and `env` of the revision
    #[serde(flatten)]
    #[schema(value_type = Object)]
    document: Map<String, Value>,
    /// User who stored the revision
    created_by: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

/// An action in a list
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedAction {
    id: String,
    name: String,
    description: Option<String>,
    /// Number of the newest revision
    #[schema(minimum = 1)]
    revision: u32,
    enabled: bool,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionList {
    /// Ordered by name
    items: Vec<ListedAction>,
    /// Send as `cursor` to get the next page; null on the last page
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedRevision {
    #[schema(minimum = 1)]
    revision: u32,
    created_by: String,
    #[schema(format = DateTime)]
    created_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevisionList {
    /// Newest first
    items: Vec<ListedRevision>,
    next_cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ActionParams {
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RevisionParam {
    /// Number of the revision; the newest by default
    #[param(minimum = 1)]
    revision: Option<u32>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionChange {
    /// Whether new plans may use it
    enabled: bool,
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_actions))
        .routes(routes!(put_action, get_action, patch_action, delete_action))
        .routes(routes!(list_revisions))
}

impl ActionView {
    fn of(action: StoredAction, revision: ActionRevision) -> Result<ActionView, Problem> {
        let mut document: Map<String, Value> = serde_json::from_str(&revision.document)
            .map_err(|error| Problem::internal(format!("an action cannot be read: {error}")))?;
        let description = document.remove("description").and_then(|text| text.as_str().map(str::to_owned));
        document.remove("name");
        Ok(ActionView {
            id: ids::format_action(action.id),
            name: action.name,
            description,
            revision: revision.revision,
            newest_revision: action.revision,
            enabled: action.enabled,
            document,
            created_by: revision.author,
            created_at: time(action.created_at),
            updated_at: time(action.updated_at),
        })
    }
}

impl From<StoredAction> for ListedAction {
    fn from(action: StoredAction) -> ListedAction {
        ListedAction {
            id: ids::format_action(action.id),
            name: action.name,
            description: action.description,
            revision: action.revision,
            enabled: action.enabled,
            created_at: time(action.created_at),
            updated_at: time(action.updated_at),
        }
    }
}

/// Parses the name of an action in a path, which may be its id.
pub(crate) fn which(text: &str) -> WhichAction {
    match text.strip_prefix("act_").and_then(|digits| ids::number("", digits)) {
        Some(number) => WhichAction::Id(ActionId(number)),
        None => WhichAction::Name(text.to_owned()),
    }
}

async fn find(
    app: &App,
    caller: &Caller,
    name: &str,
    revision: Option<u32>,
) -> Result<(StoredAction, ActionRevision), Problem> {
    let (tenant, which) = (caller.tenant.clone(), which(name));
    let readers = app.readers.of(&caller.tenant);
    let found = readers.look(move |reader| reader.action(&tenant, &which, revision)).await?;
    found.ok_or_else(|| match revision {
        Some(revision) => Problem::not_found("revision of the action", &format!("{name}@{revision}")),
        None => Problem::not_found("action", name),
    })
}

/// List actions
#[utoipa::path(get, path = "/api/v1/actions", tag = TAG, security(("bearer" = [])), params(ActionParams),
    responses((status = 200, body = ActionList), Refusals))]
async fn list_actions(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<ActionParams>,
) -> Result<Json<ActionList>, Problem> {
    caller.may(Permission::View)?;
    let limit = LIST.limit(params.limit)?;
    let after = LIST.place(params.cursor.as_deref(), |name| Some(name.to_owned()))?;
    let tenant = caller.tenant.clone();
    let readers = app.readers.of(&caller.tenant);
    let mut found = readers.look(move |reader| reader.actions(&tenant, after.as_deref(), limit + 1)).await?;
    let next_cursor = LIST.cut(&mut found, limit, |last| last.name.clone()).cursor;
    Ok(Json(ActionList { items: found.into_iter().map(ListedAction::from).collect(), next_cursor }))
}

/// Get an action
#[utoipa::path(get, path = "/api/v1/actions/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name or id of the action"), RevisionParam),
    responses((status = 200, body = ActionView), Refusals))]
async fn get_action(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Params(params): Params<RevisionParam>,
) -> Result<Json<ActionView>, Problem> {
    caller.may(Permission::View)?;
    let (action, revision) = find(&app, &caller, &name, params.revision).await?;
    ActionView::of(action, revision).map(Json)
}

/// List the revisions of an action
#[utoipa::path(get, path = "/api/v1/actions/{name}/revisions", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name or id of the action"), ActionParams),
    responses((status = 200, body = RevisionList), Refusals))]
async fn list_revisions(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Params(params): Params<ActionParams>,
) -> Result<Json<RevisionList>, Problem> {
    caller.may(Permission::View)?;
    let limit = REVISIONS.limit(params.limit)?;
    let before = REVISIONS.place(params.cursor.as_deref(), |text| text.parse().ok())?;
    let (action, _) = find(&app, &caller, &name, None).await?;
    let tenant = caller.tenant.clone();
    let look =
        move |reader: &mut DatabaseReader| reader.action_revisions(&tenant, &action.name, before, limit + 1);
    let mut found = app.readers.of(&caller.tenant).look(look).await?;
    let next_cursor = REVISIONS.cut(&mut found, limit, |last| last.revision).cursor;
    let items = found.into_iter().map(|found| ListedRevision {
        revision: found.revision,
        created_by: found.author,
        created_at: time(found.at),
    });
    Ok(Json(RevisionList { items: items.collect(), next_cursor }))
}

/// Store a revision of an action
///
/// The body is the document of the action, as YAML or JSON. The first revision creates the action; a document that is
/// equal to the newest revision creates no new one. Existing plans keep the revision that they were created with.
#[utoipa::path(put, path = "/api/v1/actions/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name of the action")),
    request_body(content((Value = "application/json"), (Value = "application/yaml"), (Value = "text/yaml"), (String = "text/plain"))),
    responses((status = 200, body = ActionView),
        (status = 409, body = Refused, description = "The name is built in, or the tenant has reached a maximum"),
        Refusals, BodyRefusals))]
async fn put_action(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Text(text): Text,
) -> Result<Json<ActionView>, Problem> {
    caller.may(Permission::Edit)?;
    let name = check_group("name", &name)?;
    if is_builtin_action(&name) {
        return Err(Problem::conflict(format!("`{name}` is a built-in action; choose another name")));
    }
    if name.starts_with("act_") {
        return Err(Problem::invalid("name", "must not begin with `act_`, which is the beginning of ids"));
    }
    let (document, description) = read_document(&app, &caller, &name, text).await?;
    app.storage.check(&caller.tenant)?;
    let put = windlass_store::ActionDocument {
        id: ActionId(ids::fresh_number()?),
        tenant: caller.tenant.clone(),
        name: name.clone(),
        description,
        document,
        author: caller.id.clone(),
        at: now(),
    };
    let audit = caller.audit_entry("action.put", &name, json!({}));
    let write = RegistryWrite::PutAction(Box::new(put));
    match write_one(&app, Entry::Registry(Box::new(write)).audited(audit)).await? {
        Applied::Done | Applied::Duplicate => {}
        Applied::Conflict => {
            let message = format!(
                "a tenant has at most {ACTIONS_MAX} actions, and an action at most {ACTION_REVISIONS_MAX} revisions; \
                 delete the action, or use another name"
            );
            return Err(Problem::new(ProblemCode::LimitExceeded, message));
        }
        other => return Err(unexpected_applied(other)),
    }
    let (action, revision) = find(&app, &caller, &name, None).await?;
    ActionView::of(action, revision).map(Json)
}

/// Checks the document of an action. Returns it in the form in which it is stored, and its description.
async fn read_document(
    app: &App,
    caller: &Caller,
    name: &str,
    text: String,
) -> Result<(String, Option<String>), Problem> {
    if text.len() > DOCUMENT_MAX {
        let message = format!("the document of an action has at most {DOCUMENT_MAX} bytes");
        return Err(Problem::too_large(message));
    }
    let bytes = text.len();
    let parsed = app.compiling.run(&caller.tenant, bytes, move || parse_action(&text)).await?;
    let document: ActionDocument = parsed.map_err(|found| Problem::definition(found.iter()))?;
    if let Some(other) = document.name.as_deref().filter(|other| *other != name) {
        let message =
            format!("is `{other}`, but the path names `{name}`; make them equal, or omit the field");
        return Err(Problem::invalid("name", message));
    }
    let mut json = document.to_json();
    json["name"] = name.into();
    Ok((json.to_string(), document.description))
}

/// Enable or disable an action
///
/// A disabled action cannot be used by new plans. Existing plans are not affected.
#[utoipa::path(patch, path = "/api/v1/actions/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name or id of the action")), request_body = ActionChange,
    responses((status = 200, body = ActionView), Refusals, BodyRefusals))]
async fn patch_action(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(change): JsonBody<ActionChange>,
) -> Result<Json<ActionView>, Problem> {
    caller.may(Permission::Edit)?;
    let (action, _) = find(&app, &caller, &name, None).await?;
    let (tenant, enabled) = (caller.tenant.clone(), change.enabled);
    let write = RegistryWrite::EnableAction { tenant, name: action.name.clone(), enabled, at: now() };
    let does = if enabled { "action.enable" } else { "action.disable" };
    let audit = caller.audit_entry(does, &action.name, json!({}));
    write_one(&app, Entry::Registry(Box::new(write)).audited(audit)).await?;
    let (action, revision) = find(&app, &caller, &name, None).await?;
    ActionView::of(action, revision).map(Json)
}

/// Delete an action with its revisions
///
/// Existing plans are not affected: they have a copy.
#[utoipa::path(delete, path = "/api/v1/actions/{name}", tag = TAG, security(("bearer" = [])),
    params(("name" = String, Path, description = "Name or id of the action")),
    responses((status = 204), Refusals))]
async fn delete_action(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.may(Permission::Delete)?;
    let (action, _) = find(&app, &caller, &name, None).await?;
    let write = RegistryWrite::DeleteAction { tenant: caller.tenant.clone(), name: action.name.clone() };
    let audit = caller.audit_entry("action.delete", &action.name, json!({}));
    match write_one(&app, Entry::Registry(Box::new(write)).audited(audit)).await? {
        Applied::Done => Ok(StatusCode::NO_CONTENT),
        Applied::Duplicate => Err(Problem::not_found("action", &name)),
        other => Err(unexpected_applied(other)),
    }
}
