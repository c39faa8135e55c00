//! `GET /api/v1/executions/{executionId}/evidence`: what shows how everything came out.

use super::{TAG, stored_of};
use crate::anchor::Anchor;
use crate::answers::Answer;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::ids;
use crate::loaded::ReadError;
use crate::problem::Problem;
use crate::routes::paging::{Paged, Pagination};
use crate::routes::shared::Refusals;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_views::{Evidence, EvidenceProjection};

const LIST: Paged = Paged { name: "evidence", usual: 100, most: 1_000 };

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Entries {
    /// In the order in which they happened, each with the hash of the one before.
    evidence: Vec<Evidence>,
    pagination: Pagination,
    /// On the last page, where the server has a key
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    anchor: Option<Anchor>,
}

/// Attempts, ends and what people did, as a chain of hashes.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/evidence", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), Asked),
    responses((status = 200, body = Entries), Refusals))]
pub(crate) async fn evidence(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<Asked>,
) -> Result<Answer, Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let (id, limit, histories) = (ids::execution(&id)?, LIST.limit(asked.limit)?, app.histories.clone());
    let from = LIST.place(asked.cursor.as_deref(), |text| text.parse().ok())?.unwrap_or_default();
    let (readers, answers, seal) = (app.readers.of(&caller.tenant), app.answers.clone(), app.seal.clone());
    let read = readers.read_in_slices(None, move |reader, page, slice| {
        let (net, page) = match page {
            Some(page) => page,
            None => {
                let stored = stored_of(reader, &caller, id)?;
                let net = histories.net(reader, stored.state.head.net)?.ok_or(ReadError::NoNet(id))?;
                let first = EvidenceProjection::new(id, stored.origin.options.correlation.as_deref());
                page.insert((net, histories.evidence.begin(id, first, from, limit)))
            }
        };
        let Some((evidence, next)) = histories.evidence.read(reader, net, page, slice)? else {
            return Ok(None);
        };
        let seal = seal.as_ref().filter(|_| next.is_none());
        let anchor = seal.and_then(|seal| Anchor::of(seal, evidence.last()?));
        let page = Entries { evidence, pagination: LIST.next(next), anchor };
        answers.json(&caller.tenant, &page).map(Some)
    });
    read.await
}
