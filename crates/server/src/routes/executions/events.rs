//! `GET /api/v1/executions/{executionId}/events`: the journal in public names.

use super::{TAG, stored_of};
use crate::answers::JsonParts;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::ids;
use crate::journal_pages::{JournalCursor, PageRead};
use crate::loaded::ReadError;
use crate::problem::Problem;
use crate::routes::long_poll::{LongPoll, PolledAnswer};
use crate::routes::paging::{Paged, Pagination};
use crate::routes::shared::Refusals;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::Net;
use windlass_views::{EventProjection, PublicEvent};

const LIST: Paged = Paged { name: "events", usual: 100, most: 1_000 };

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    cursor: Option<String>,
    /// Milliseconds to wait for new events. With this parameter, pages have a cursor until the execution has ended.
    #[param(minimum = 0, maximum = 30000)]
    wait_ms: Option<u64>,
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
    let (id, limit) = (ids::execution(&id)?, LIST.limit(asked.limit)?);
    let from = LIST.place(asked.cursor.as_deref(), |text| text.parse().ok())?.unwrap_or_default();
    let (follows, poll) = (asked.wait_ms.is_some(), LongPoll::begin(asked.wait_ms)?);
    let readers = app.readers.of(&caller.tenant);
    let read = || {
        let (caller, answers, histories) = (caller.clone(), app.answers.clone(), app.histories.clone());
        readers.read_in_slices(None, move |reader, reading: &mut Option<Reading>, slice| {
            if reading.is_none() {
                let digest = stored_of(reader, &caller, id)?.state.head.net;
                let net = histories.net(reader, digest)?.ok_or(ReadError::NoNet(id))?;
                let page = histories.events.begin(id, EventProjection::new(id), from, limit);
                *reading = Some(Reading { net, page });
            }
            let Some(Reading { net, page }) = reading else { return Ok(None) };
            let Some((events, next)) = histories.events.read(reader, net, page, slice)? else {
                return Ok(None);
            };
            let state = page.state();
            let (version, is_ended) = (state.head.version, state.phase().is_ended());
            let mut pagination = LIST.next(next);
            if follows && next.is_none() && !is_ended {
                pagination.cursor = Some(LIST.cursor(JournalCursor::before(version)));
            }
            let has_news = !events.is_empty() || is_ended;
            let answer = answers.json(&caller.tenant, &Events { events, pagination })?;
            if let Some(Reading { page, .. }) = reading.take().filter(|_| follows && next.is_none()) {
                histories.events.store_end(page);
            }
            Ok::<_, Problem>(Some(PolledAnswer { answer, has_news }))
        })
    };
    poll.read_news(&app, id, read).await
}

/// A page that is being read.
struct Reading {
    net: Arc<Net>,
    page: PageRead<EventProjection>,
}
