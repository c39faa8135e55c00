//! `GET /api/v1/executions/{executionId}/values/{address}`: a value that an answer about an execution leaves out.

use super::{TAG, stored_of};
use crate::answers::Answer;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::histories::read_value;
use crate::ids;
use crate::problem::Problem;
use crate::routes::shared::Refusals;
use axum::extract::{Path, State};
use std::sync::Arc;
use windlass_views::{ValueAddress, reference};

/// A result or arguments of a node, as the journal has them
///
/// Answers say `{"$omitted": true, "bytes": N, "url": …}` for a value that would make them too large; this is that `url`.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/values/{address}", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path),
        ("address" = String, Path, description = "The number of a record and of a value in it: `57.0`")),
    responses((status = 200, body = Value), Refusals))]
pub async fn value(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, address)): Path<(String, String)>,
) -> Result<Answer, Problem> {
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
