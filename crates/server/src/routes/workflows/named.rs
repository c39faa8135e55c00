//! Workflows by name: a command that runs a file knows only the name in the file.
#![expect(unused_qualifications, reason = "the macro for parameters writes them")]

use super::create::{Copies, register};
use super::source::{Text, storable};
use super::{Registered, tagged};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::ids;
use crate::problem::Problem;
use crate::routes::shared::{BodyRefusals, Refusals};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use windlass_store::{Target, WorkflowId};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Named {
    /// The name of the workflow
    #[param(min_length = 1, max_length = 255)]
    name: String,
}

/// Make a definition the newest version of the workflow of that name
///
/// The workflow is created if it does not exist. If its newest version has this text, nothing is written, so the
/// request can be repeated.
#[utoipa::path(put, path = "/api/v1/workflows", tag = "workflows", security(("bearer" = [])), params(Named),
    request_body(content((Value = "application/json"), (String = "application/yaml"), (String = "text/yaml"), (String = "text/plain"))),
    responses((status = 200, body = Registered, headers(("ETag" = String, description = "Its version"))),
        Refusals, BodyRefusals))]
pub(crate) async fn put_named(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(asked): Params<Named>,
    Text(text): Text,
) -> Result<(HeaderMap, Json<Registered>), Problem> {
    caller.may(Permission::Edit)?;
    let compiled = storable(&app, &caller.tenant, text).await?;
    let target = Target::Named(WorkflowId(ids::fresh_number()?));
    let registered = register(&app, &caller, compiled, target, (Some(asked.name), Copies::No)).await?;
    Ok((tagged(registered.version), Json(registered)))
}
