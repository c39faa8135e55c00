//! `GET /api/v1/executions/{executionId}/events`: the journal in public names.

use super::{TAG, stored_of};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::follow::{Happened, Subject};
use crate::problem::Problem;
use crate::routes::shared::Pagination;
use crate::routes::shared::Refusals;
use crate::stories::Stories;
use crate::told::TellError;
use crate::wire;
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_dialects::view::{execution_id, time};
use windlass_kernel::{ExecutionId, Net, Record, evolve};
use windlass_store::{JournalRow, Reader};

const LIMIT: u32 = 100;
const LIMIT_MAX: u32 = 1_000;
/// Rows read at a time. Most rows tell something, so fewer are enough for a short page.
const ROWS_MAX: usize = 64;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct Asked {
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
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
) -> Result<Json<Events>, Problem> {
    caller.may(Permission::View)?;
    let id = wire::execution(&id)?;
    let limit = wire::limit(asked.limit, LIMIT, LIMIT_MAX)?;
    let from = asked.cursor.as_deref().map(|cursor| wire::place(cursor, Place::read)).transpose()?;
    let (from, stories) = (from.unwrap_or_default(), app.stories.clone());
    let read = app.readers.read(move |reader| {
        let digest = stored_of(reader, &caller, id)?.state.head.net;
        let net = stories.net(reader, digest)?.ok_or(TellError::NoNet(id))?;
        page(reader, &stories, (id, &net), from, limit)
    });
    Ok(Json(read.await?))
}

/// The next event to be told: a record, by how many there are before it, and the number of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    version: u64,
    name: usize,
}

impl Place {
    fn read(text: &str) -> Option<Place> {
        let (version, name) = text.split_once('.')?;
        Some(Place { version: version.parse().ok()?, name: name.parse().ok()? })
    }
}

/// What a record is called depends on how the execution stood before it, so reading goes on from the nearest version
/// at which that is known: where the page before ended, as a rule.
fn page(
    reader: &mut impl Reader,
    stories: &Stories,
    (id, net): (ExecutionId, &Net),
    from: Place,
    limit: usize,
) -> Result<Events, Problem> {
    let mut state = Arc::unwrap_or_clone(stories.at(id, from.version));
    let mut events = Vec::new();
    let at_once = ROWS_MAX.min(limit + 1);
    loop {
        let rows = reader.journal(id, state.head.version, at_once)?;
        let last = rows.len() < at_once;
        for record in after(rows, state.head.version) {
            let version = state.head.version;
            if version == from.version && version > 0 {
                stories.keep_place(id, state.clone());
            }
            if version >= from.version {
                let happened = Happened::after(net, &state, record.clone());
                let told = if version == from.version { from.name } else { 0 };
                for (name, (event, subject)) in happened.names.iter().enumerate().skip(told) {
                    if events.len() == limit {
                        stories.keep_place(id, state);
                        return Ok(Events::new(events, Some(Place { version, name })));
                    }
                    events.push(PublicEvent::new(id, &happened, event, subject.as_ref()));
                }
            }
            evolve(&mut state, net, &record).map_err(|illegal| TellError::Broken(id, illegal))?;
        }
        if last {
            return Ok(Events::new(events, None));
        }
    }
}

/// Records from a version on; the first row may begin before it.
fn after(rows: Vec<JournalRow>, version: u64) -> impl Iterator<Item = Record> {
    let seen = rows.first().map_or(0, |row| version.saturating_sub(row.version));
    rows.into_iter().flat_map(|row| row.records).skip(usize::try_from(seen).unwrap_or(usize::MAX))
}

impl Events {
    fn new(events: Vec<PublicEvent>, next: Option<Place>) -> Events {
        let cursor = next.map(|Place { version, name }| wire::cursor(&format!("{version}.{name}")));
        Events { events, pagination: Pagination { has_more: cursor.is_some(), cursor } }
    }
}

impl PublicEvent {
    fn new(id: ExecutionId, happened: &Happened, event: &str, subject: Option<&Subject>) -> PublicEvent {
        PublicEvent {
            execution_id: execution_id(id),
            sequence: happened.version,
            timestamp: time(happened.record.at),
            event: event.to_owned(),
            step: subject.map(|subject| subject.name.clone()),
            path: subject.map(|subject| subject.path.0.clone()).unwrap_or_default(),
            data: json!(happened.record.event),
        }
    }
}
