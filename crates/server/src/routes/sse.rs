//! `GET /api/v1/executions/{executionId}/stream`: the same messages as over WebSocket, as server-sent events.

use crate::answers::HeldBytes;
use crate::app::App;
use crate::auth::Caller;
use crate::body::Params;
use crate::feed::Audience;
use crate::ids;
use crate::problem::Problem;
use crate::routes::shared::Refusals;
use crate::stream::{LastSequence, Live};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, KeepAliveStream, Sse};
use futures_util::Stream;
use serde::Deserialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_views::Message;

/// Maximum number of messages that wait for the client. A client that does not read them is disconnected; it can
/// reconnect with its last one.
const WAITING_MAX: usize = 16;
const SEND_MAX: Duration = Duration::from_secs(10);

/// An event, counted among the answers of its tenant until it is taken.
type Sent = (Event, Option<Arc<HeldBytes>>);

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct From {
    /// The last message that the client has; the header `Last-Event-ID` has the same meaning, and precedes it. With
    /// `now`, only messages of later changes are sent.
    #[param(value_type = String, pattern = "^(now|[0-9]{1,19})$")]
    last_sequence: Option<LastSequence>,
    /// Whether log lines are sent; true by default.
    logs: Option<bool>,
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(stream))
}

/// Follow an execution as server-sent events. The stream ends after `execution_completed`.
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/stream", tag = "executions", security(("bearer" = [])),
    params(("executionId" = String, Path), From,
        ("Last-Event-ID" = Option<u64>, Header, description = "The id of the last event that the client has")),
    responses((status = 200, content_type = "text/event-stream", body = String), Refusals))]
async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(from): Params<From>,
    headers: HeaderMap,
) -> Result<Sse<KeepAliveStream<Events>>, Problem> {
    let id = ids::execution(&id)?;
    let header = headers.get("last-event-id").map(|value| value.to_str().ok().and_then(|id| id.parse().ok()));
    let wrong = || Problem::invalid("Last-Event-ID", "is not the id of an event of this stream");
    let last = match header {
        Some(header) => LastSequence::Number(header.ok_or_else(wrong)?),
        None => from.last_sequence.unwrap_or_default(),
    };
    let audience = if from.logs == Some(false) { Audience::StreamWithoutLogs } else { Audience::Stream };
    let place = app.take_stream_slot(&caller.tenant)?;
    let live = Live::open(&app, &caller, id, last, audience).await?;
    let (events, taken) = mpsc::channel(WAITING_MAX);
    tokio::spawn(async move {
        send_messages(&app, live, events).await;
        drop(place);
    });
    Ok(Sse::new(Events(taken)).keep_alive(KeepAlive::default()))
}

/// Sends messages until the execution has ended, the client is gone or too slow, or the server stops.
async fn send_messages(app: &App, mut live: Live, events: mpsc::Sender<Sent>) {
    loop {
        let bell = live.bell();
        loop {
            let (page, held) = match live.read().await {
                Ok(read) => read,
                Err(problem) => return send_error(&events, &problem).await,
            };
            for message in &page.messages {
                let Some(event) = event(&live, message) else { return };
                if events.send_timeout((event, Some(held.clone())), SEND_MAX).await.is_err() {
                    tracing::info!(execution = %live.execution, "disconnected a reader of events that has left or is too slow");
                    return;
                }
            }
            match (page.over, page.more) {
                (true, _) => return,
                (false, true) => {}
                (false, false) => break,
            }
        }
        tokio::select! {
            () = bell => {}
            problem = live.wait_for_expiry() => return send_error(&events, &problem).await,
            () = events.closed() => return,
            () = app.stopped() => return,
        }
    }
}

/// Sends the reason for an end before that of the execution.
async fn send_error(events: &mpsc::Sender<Sent>, problem: &Problem) {
    let event = Event::default().event("error").data(problem.to_string());
    let _ = events.send_timeout((event, None), SEND_MAX).await;
}

fn event(live: &Live, message: &Message) -> Option<Event> {
    let data = message.on_stream(live.execution);
    let kind = data["type"].as_str().unwrap_or_default().to_owned();
    Event::default().id(message.sequence.to_string()).event(kind).json_data(data).ok()
}

#[derive(Debug)]
struct Events(mpsc::Receiver<Sent>);

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|sent| sent.map(|(event, _)| Ok(event)))
    }
}
