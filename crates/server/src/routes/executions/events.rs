//! `GET /api/v1/executions/{executionId}/events`: the journal in public names.

use super::{TAG, stored_of};
use crate::answers::Answer;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::follow::Happened;
use crate::ids;
use crate::problem::Problem;
use crate::routes::paging::{Paged, Pagination};
use crate::routes::shared::Refusals;
use crate::told::TellError;
use crate::walk::Teller;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_artifact::json_bytes;
use windlass_kernel::ExecutionId;
use windlass_views::{execution_id, time};

const LIST: Paged = Paged { name: "events", usual: 100, most: 1_000 };
/// JSON of an event without its record, roughly.
const ENTRY_BYTES: usize = 300;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct Asked {
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Events {
    /// In the order in which they happened.
    events: Vec<PublicEvent>,
    pagination: Pagination,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublicEvent {
    execution_id: String,
    /// The place of its record in the journal; events of one record share it.
    sequence: u64,
    #[schema(format = DateTime)]
    timestamp: String,
    /// `step.done`, `execution.completed`, …
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    step: Option<String>,
    /// Iteration numbers, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    path: Vec<u32>,
    /// The record.
    data: Value,
}

/// What happened to an execution.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/events", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), Asked),
    responses((status = 200, body = Events), Refusals))]
pub async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<Asked>,
) -> Result<Answer, Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let (id, limit, stories) = (ids::execution(&id)?, LIST.limit(asked.limit)?, app.stories.clone());
    let from = LIST.place(asked.cursor.as_deref(), |text| text.parse().ok())?.unwrap_or_default();
    let (readers, answers) = (app.readers.of(&caller.tenant), app.answers.clone());
    let read = readers.read_in_slices(None, move |reader, walk, slice| {
        let (net, walk) = match walk {
            Some(walk) => walk,
            None => {
                let digest = stored_of(reader, &caller, id)?.state.head.net;
                let net = stories.net(reader, digest)?.ok_or(TellError::NoNet(id))?;
                walk.insert((net, stories.events.begin(id, EventTeller(id), from, limit)))
            }
        };
        let page = stories.events.go_on(reader, net, walk, slice)?;
        let tell =
            |(events, next)| answers.json(&caller.tenant, &Events { events, pagination: LIST.next(next) });
        page.map(tell).transpose()
    });
    read.await
}

/// Tells records by their public names.
#[derive(Debug, Clone, Copy)]
pub struct EventTeller(ExecutionId);

impl Teller for EventTeller {
    type Entry = PublicEvent;

    fn tell(&mut self, happened: &Happened) -> Vec<PublicEvent> {
        let named = happened.names.iter().map(|(event, subject)| PublicEvent {
            execution_id: execution_id(self.0),
            sequence: happened.version,
            timestamp: time(happened.record.at),
            event: (*event).to_owned(),
            step: subject.as_ref().map(|subject| subject.name.clone()),
            path: subject.as_ref().map(|subject| subject.path.0.clone()).unwrap_or_default(),
            data: json!(happened.record.event),
        });
        named.collect()
    }

    fn bytes(entry: &PublicEvent) -> usize {
        ENTRY_BYTES + json_bytes(&entry.data)
    }
}
