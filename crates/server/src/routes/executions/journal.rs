//! `GET /api/v1/executions/{executionId}/journal`: the stored records, for clients that fold them themselves.
#![expect(unused_qualifications, reason = "the macro for parameters writes them")]

use super::{TAG, stored_of};
use crate::answers::JsonParts;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::ids;
use crate::problem::{Problem, Refused};
use crate::trail::Stretch;
use axum::extract::{Path, State};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use utoipa::IntoParams;
use windlass_store::Position;

/// Maximum time for which one request waits.
const WAIT_MAX_MS: u64 = 30_000;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct JournalQuery {
    /// Number of records that the client has
    #[param(minimum = 0)]
    from: Option<u64>,
    /// Position of the last chunk of the log that the client has
    #[param(minimum = 0)]
    logs_after: Option<i64>,
    /// Milliseconds to wait for new records or log lines
    #[param(minimum = 0, maximum = 30000)]
    wait_ms: Option<u64>,
}

/// Get records and log chunks after a position, as they are stored
///
/// The net comes with the first of them. The net and the records determine the state of the execution: the command line
/// derives its progress display from them. The response is sent when there is something new, or after `waitMs`.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/journal", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), JournalQuery),
    responses((status = 200, body = inline(Object)), (status = 400, body = Refused), (status = 401, body = Refused),
        (status = 403, body = Refused), (status = 404, body = Refused), (status = 429, body = Refused),
        (status = 503, body = Refused)))]
pub(crate) async fn journal(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<JournalQuery>,
) -> Result<JsonParts, Problem> {
    caller.may(Permission::View)?;
    app.answers.admit(&caller.tenant).await?;
    let id = ids::execution(&id)?;
    let wait_ms = asked.wait_ms.unwrap_or_default();
    if wait_ms > WAIT_MAX_MS {
        return Err(Problem::invalid("waitMs", format!("must be at most {WAIT_MAX_MS}")));
    }
    let (from, after) = (asked.from.unwrap_or_default(), Position(asked.logs_after.unwrap_or_default()));
    let until = Instant::now() + Duration::from_millis(wait_ms);
    let follow = app.hub.follow(id);
    let readers = app.readers.of(&caller.tenant);
    loop {
        let changed = follow.next();
        let reading = caller.clone();
        let answers = app.answers.clone();
        let read = readers.read(move |reader| {
            let is_over = stored_of(reader, &reading, id)?.state.phase().is_ended();
            let stretch = Stretch::read(reader, id, from, after)?;
            let has_news = is_over || !stretch.is_empty();
            Ok::<_, Problem>((answers.json(&reading.tenant, &stretch)?, has_news))
        });
        let (answer, has_news) = read.await?;
        if has_news || Instant::now() >= until {
            return Ok(answer);
        }
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep_until(until) => {}
            () = app.stopped() => return Ok(answer),
        }
    }
}
