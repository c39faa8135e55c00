//! New workflows, and definitions that are only checked.

use super::source::{Text, compiled, storable};
use super::{DialectName, Registered, current, hex, tagged};
use crate::app::{App, unexpected_answer};
use crate::auth::{Caller, Permission};
use crate::body::OptionalJsonBody;
use crate::hooks;
use crate::host::now;
use crate::ids;
use crate::problem::{Detail, Problem, ProblemCode};
use crate::routes::schedules::check_room;
use crate::routes::shared::{BodyRefusals, Refusals, check_name};
use crate::scheduler::triggers::schedules_of;
use crate::versions::{missing_secrets, stored_manifest};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::{Child, Compiled, DIAGNOSTICS_MAX, Dialect, Identity};
use windlass_engine::{Answer, Refusal, Request};
use windlass_store::{
    Catalog, Definition, HookClaim, HookReader as _, Reader, StoredWorkflow, Target, Tenant, Which,
    WorkflowId, WorkflowStatus,
};
use windlass_views::workflow_id;

/// Name of a definition without a name.
const UNNAMED: &str = "unnamed";

/// Whether a definition is a copy of a stored one. Its hooks belong to the original until it has paths of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    Yes,
    No,
}

type Created = (StatusCode, HeaderMap, Json<Registered>);

/// Register a definition as a new workflow
///
/// The body is a definition of any dialect, as YAML or JSON, without a wrapper.
#[utoipa::path(post, path = "/api/v1/workflows", tag = "workflows", security(("bearer" = [])),
    request_body(content((Value = "application/json"), (Value = "application/yaml"), (Value = "text/yaml"), (String = "text/plain"))),
    responses((status = 201, body = Registered, headers(
        ("Location" = String, description = "Where the workflow is"), ("ETag" = String, description = "Its version"))),
        Refusals, BodyRefusals))]
pub(crate) async fn create_workflow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Text(text): Text,
) -> Result<Created, Problem> {
    caller.may(Permission::Edit)?;
    let compiled = storable(&app, &caller.tenant, text).await?;
    let target = Target::New(WorkflowId(ids::fresh_number()?));
    let registered = register(&app, &caller, compiled, target, (None, Copies::No)).await?;
    Ok(created(registered))
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Duplicate {
    /// Name of the copy; by default the name of the workflow and `(copy)`
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
}

/// Register the newest version of a workflow as a new workflow
#[utoipa::path(post, path = "/api/v1/workflows/{id}/duplicate", tag = "workflows", security(("bearer" = [])),
    params(("id" = String, Path, description = "The workflow's id")), request_body(content = Option<Duplicate>),
    responses((status = 201, body = Registered, headers(
        ("Location" = String, description = "Where the copy is"), ("ETag" = String, description = "Its version"))),
        Refusals, BodyRefusals))]
pub(crate) async fn duplicate_workflow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalJsonBody(asked): OptionalJsonBody<Duplicate>,
) -> Result<Created, Problem> {
    caller.may(Permission::Edit)?;
    let current = current(&app, &caller, &id).await?;
    let name = match &asked.name {
        Some(name) => check_name("name", name)?,
        None => format!("{} (copy)", current.workflow.name),
    };
    let compiled = storable(&app, &caller.tenant, current.definition.source.clone()).await?;
    let target = Target::New(WorkflowId(ids::fresh_number()?));
    let registered = register(&app, &caller, compiled, target, (Some(name), Copies::Yes)).await?;
    Ok(created(registered))
}

fn created(registered: Registered) -> Created {
    let mut headers = tagged(registered.version);
    let place = format!("/api/v1/workflows/{}", registered.id);
    headers.insert(header::LOCATION, HeaderValue::from_str(&place).expect("an id is a valid header value"));
    (StatusCode::CREATED, headers, Json(registered))
}

/// Writes the definition as the target's next version, after it was checked for errors.
pub(super) async fn register(
    app: &Arc<App>,
    caller: &Caller,
    compiled: Compiled,
    target: Target,
    (name, copies): (Option<String>, Copies),
) -> Result<Registered, Problem> {
    let mut compiled = compiled;
    let (Some(net), Some(dialect)) = (compiled.net.take(), compiled.dialect) else {
        return Err(Problem::definition(compiled.errors()));
    };
    let target = match dialect.identity() {
        Identity::ByName => target,
        Identity::ByContent { prefix } => {
            let id = compiled.name.as_deref().and_then(|name| ids::content(prefix, name));
            content_target(target, dialect, id)?
        }
    };
    app.storage.check(&caller.tenant)?;
    app.rights.check(&caller.tenant, &compiled.manifest.programs)?;
    let mut warnings = warnings(app, caller, &compiled).await?;
    let name = name.or(compiled.name.take()).unwrap_or_else(|| UNNAMED.to_owned());
    let name = check_name("name", &name)?;
    let mut schedules = schedules_of(&compiled.manifest, &name, caller, now())?;
    if !schedules.is_empty() {
        check_room(app, caller).await?;
    }
    let mut claims = hooks::claims_of(&compiled.manifest);
    hooks::check(&claims)?;
    match copies {
        Copies::No => are_free(app, &caller.tenant, &claims, (target, &name)).await?,
        Copies::Yes => {
            // The schedules of the original stay; those of the copy begin with its next version.
            schedules.clear();
            let held = holders(app, &caller.tenant, &claims).await?;
            claims.retain(|claim| !held.iter().any(|(taken, _)| taken == claim));
            warnings.extend(held.iter().map(|(claim, other)| hooks::describe_taken_path(claim, &other.name)));
        }
    }
    keep_literals(app, caller, &mut compiled).await?;
    let net = Arc::new(net);
    let net_digest = hex(net.digest());
    let (dialect, tenant) = (dialect.name(), caller.tenant.clone());
    let status = compiled.status.and_then(WorkflowStatus::of);
    let (source, workload) = (compiled.source, compiled.workload);
    let definition = Definition {
        tenant,
        target,
        name: name.clone(),
        dialect: dialect.to_owned(),
        source,
        workload,
        manifest: stored_manifest(&compiled.manifest),
        net,
        hooks: claims,
        schedules,
        status,
        at: now(),
        author: Some(caller.author()),
    };
    let (version, workflow) = match app.ask(Request::Define(Box::new(definition))).await? {
        Answer::Defined { version, workflow, .. } => (version, workflow),
        Answer::Refused(Refusal::NoDefinition) => return Err(changed_meanwhile()),
        Answer::Refused(taken @ Refusal::HookTaken(_)) => return Err(taken.into()),
        other => return Err(unexpected_answer(&other)),
    };
    app.definitions.forget(&caller.tenant, workflow);
    app.schedule_bell.notify_one();
    let id = workflow_id(workflow.0);
    Ok(Registered { id, name, version, dialect: dialect.to_owned(), net_digest, warnings })
}

/// Returns the target of a definition whose id follows from its content. It cannot become a version of a workflow.
fn content_target(target: Target, dialect: Dialect, id: Option<WorkflowId>) -> Result<Target, Problem> {
    match target {
        Target::Identified(_) => Ok(target),
        Target::Named(_) | Target::New(_) => id
            .map(Target::Identified)
            .ok_or_else(|| Problem::internal("a definition has no id of its content")),
        Target::After(..) => {
            let name = dialect.name();
            Err(Problem::conflict(format!("a {name} is not a version of a workflow; create it as a {name}")))
        }
    }
}

/// Returns 412: the version that the caller has seen is no longer the newest.
pub(super) fn changed_meanwhile() -> Problem {
    let message =
        "the workflow was changed or deleted meanwhile; get it, and send the change again with its ETag";
    Problem::new(ProblemCode::PreconditionFailed, message)
}

/// Returns warnings: those of the definition, and those about secrets and definitions that it uses and the tenant does
/// not have yet.
async fn warnings(app: &App, caller: &Caller, compiled: &Compiled) -> Result<Vec<Detail>, Problem> {
    let mut warnings: Vec<Detail> = compiled.warnings_and_advice().map(Detail::from).collect();
    warnings.extend(missing_secrets(app, &caller.tenant, &compiled.manifest.secrets).await?);
    let own = compiled.name.clone();
    let children =
        compiled.manifest.children.iter().filter(|child| own.as_deref() != Some(child.path.as_str()));
    let children: Vec<Child> = children.cloned().collect();
    warnings.extend(missing_children(app, caller, &children).await?);
    Ok(warnings)
}

/// Returns the definitions that are started by name and that the tenant does not have.
pub(crate) async fn missing_children(
    app: &App,
    caller: &Caller,
    children: &[Child],
) -> Result<Vec<Detail>, Problem> {
    if children.is_empty() {
        return Ok(Vec::new());
    }
    let (tenant, children) = (caller.tenant.clone(), children.to_vec());
    let readers = app.readers.of(&tenant);
    let missing = readers.look(move |reader| {
        let mut missing = Vec::new();
        for Child { path, version, nowhere } in children {
            if missing.len() == DIAGNOSTICS_MAX {
                break;
            }
            if reader.find_definition(&tenant, &Which::Name(path), version)?.is_none() {
                missing.push(Detail::from(&nowhere));
            }
        }
        Ok(missing)
    });
    missing.await
}

/// Returns 409 when another workflow of the tenant has a path of the definition.
async fn are_free(
    app: &Arc<App>,
    tenant: &Tenant,
    claims: &[HookClaim],
    (target, name): (Target, &str),
) -> Result<(), Problem> {
    let holders = holders(app, tenant, claims).await?;
    let is_another = |other: &StoredWorkflow| match target {
        Target::Named(_) => name != other.name,
        Target::New(id) | Target::Identified(id) | Target::After(id, _) => id != other.id,
    };
    let taken: Vec<Detail> = holders
        .iter()
        .filter(|(_, other)| is_another(other))
        .map(|(claim, other)| hooks::describe_taken_path(claim, &other.name))
        .collect();
    match taken.first() {
        Some(first) => Err(Problem { details: taken.clone(), ..Problem::conflict(first.message.clone()) }),
        None => Ok(()),
    }
}

/// Returns the workflows of the tenant that have these paths, each with its paths.
async fn holders(
    app: &Arc<App>,
    tenant: &Tenant,
    claims: &[HookClaim],
) -> Result<Vec<(HookClaim, StoredWorkflow)>, Problem> {
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let (tenant, claims) = (tenant.clone(), claims.to_vec());
    app.readers
        .of(&tenant)
        .look(move |reader| {
            let mut holders = Vec::new();
            for claim in claims {
                let held = reader.hooks(&tenant, &claim.path)?;
                for held in held.into_iter().filter(|held| held.claim.method == claim.method) {
                    let other = reader.workflow(&tenant, held.workflow)?;
                    holders.extend(other.map(|other| (claim.clone(), other)));
                }
            }
            Ok(holders)
        })
        .await
}

/// Secrets in the definition are stored in the vault before the definition is stored.
async fn keep_literals(app: &Arc<App>, caller: &Caller, compiled: &mut Compiled) -> Result<(), Problem> {
    let literals = std::mem::take(&mut compiled.literals);
    if literals.is_empty() {
        return Ok(());
    }
    let (vault, caller) = (app.secrets.clone(), caller.clone());
    let keep = move || {
        vault.with(|vault| {
            literals.iter().try_for_each(|literal| {
                let audit =
                    caller.audit_entry("secret.set", &literal.secret, json!({ "source": "definition" }));
                vault.set_if_changed(&caller.tenant, &literal.secret, &literal.value, Some(audit))
            })
        })
    };
    app.run_blocking(keep).await?
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Validation {
    valid: bool,
    /// Null if the text is not a definition
    #[schema(value_type = Option<DialectName>)]
    dialect: Option<String>,
    name: Option<String>,
    errors: Vec<Detail>,
    warnings: Vec<Detail>,
}

/// Check a definition
///
/// Nothing is stored.
#[utoipa::path(post, path = "/api/v1/validate", tag = "workflows", security(("bearer" = [])),
    request_body(content((Value = "application/json"), (Value = "application/yaml"), (Value = "text/yaml"), (String = "text/plain"))),
    responses((status = 200, body = Validation), Refusals, BodyRefusals))]
pub(crate) async fn validate(
    State(app): State<Arc<App>>,
    caller: Caller,
    Text(text): Text,
) -> Result<Json<Validation>, Problem> {
    caller.may(Permission::View)?;
    let compiled = compiled(&app, &caller.tenant, text).await?;
    let dialect = compiled.dialect.map(|dialect| dialect.name().to_owned());
    Ok(Json(Validation {
        valid: compiled.is_valid(),
        dialect,
        name: compiled.name.clone(),
        errors: compiled.errors().map(Detail::from).collect(),
        warnings: warnings(&app, &caller, &compiled).await?,
    }))
}

/// Registers a plan with copies of its actions.
pub(crate) async fn register_plan(
    app: &Arc<App>,
    caller: &Caller,
    text: String,
    id: WorkflowId,
) -> Result<(), Problem> {
    let compiled = storable(app, &caller.tenant, text).await?;
    register(app, caller, compiled, Target::Identified(id), (None, Copies::No)).await.map(drop)
}

/// Registers the definition of a schedule's target as a new workflow.
pub(crate) async fn register_target(
    app: &Arc<App>,
    caller: &Caller,
    text: String,
) -> Result<WorkflowId, Problem> {
    let compiled = storable(app, &caller.tenant, text).await?;
    let workflow = WorkflowId(ids::fresh_number()?);
    register(app, caller, compiled, Target::New(workflow), (None, Copies::No)).await?;
    Ok(workflow)
}
