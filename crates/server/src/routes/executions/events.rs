//! `GET /api/v1/executions/{executionId}/events`: the journal in public names.

use super::{TAG, stored_of};
use crate::answers::JsonParts;
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
use windlass_views::{EventProjection, PublicEvent};

const LIST: Paged = Paged { name: "events", usual: 100, most: 1_000 };

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Events {
    /// Events in the order in which they happened.
    events: Vec<PublicEvent>,
    pagination: Pagination,
}

/// List the events of an execution
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/events", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), EventsQuery),
    responses((status = 200, body = Events), Refusals))]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<EventsQuery>,
) -> Result<JsonParts, Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let (id, limit, histories) = (ids::execution(&id)?, LIST.limit(asked.limit)?, app.histories.clone());
    let from = LIST.place(asked.cursor.as_deref(), |text| text.parse().ok())?.unwrap_or_default();
    let (readers, answers) = (app.readers.of(&caller.tenant), app.answers.clone());
    let read = readers.read_in_slices(None, move |reader, page, slice| {
        let (net, page) = match page {
            Some(page) => page,
            None => {
                let digest = stored_of(reader, &caller, id)?.state.head.net;
                let net = histories.net(reader, digest)?.ok_or(ReadError::NoNet(id))?;
                page.insert((net, histories.events.begin(id, EventProjection::new(id), from, limit)))
            }
        };
        let items = histories.events.read(reader, net, page, slice)?;
        let write =
            |(events, next)| answers.json(&caller.tenant, &Events { events, pagination: LIST.next(next) });
        items.map(write).transpose()
    });
    read.await
}
