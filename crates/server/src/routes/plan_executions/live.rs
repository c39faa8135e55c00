//! Log lines of an execution of a plan while it runs, as server-sent events.

use super::logs::StreamName;
use super::outputs::find_step;
use super::{TAG, load};
use crate::app::App;
use crate::auth::Caller;
use crate::body::Params;
use crate::database::DatabaseReader;
use crate::ids;
use crate::problem::Problem;
use crate::routes::shared::Refusals;
use crate::routes::stored_of;
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, KeepAliveStream, Sse};
use futures_util::Stream;
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_kernel::ExecutionId;
use windlass_protocol::Line;
use windlass_store::{Position, Reader as _};

/// Maximum number of events that wait for the client. A client that does not read them is disconnected; it can continue
/// at its cursor.
const WAITING_MAX: usize = 64;
const SEND_MAX: Duration = Duration::from_secs(10);
/// Chunks of the log that are read at a time.
const PAGE: usize = 16;

#[derive(Debug, Clone, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LiveParams {
    /// Only lines of this step
    step: Option<String>,
    /// Only lines of this stream
    #[param(inline)]
    stream: Option<StreamName>,
    /// Cursor of the last line that the client has
    cursor: Option<String>,
}

/// Position after a line: a chunk of the log, lines of the next one, and the generation of the execution, 0 before the
/// first one is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LogPlace {
    chunk: i64,
    lines: usize,
    generation: u32,
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.chunk, self.lines, self.generation)
    }
}

impl LogPlace {
    fn parse(text: &str) -> Option<LogPlace> {
        let mut parts = text.splitn(3, '-');
        let (chunk, lines, generation) = (parts.next()?, parts.next()?, parts.next()?);
        Some(LogPlace {
            chunk: chunk.parse().ok()?,
            lines: lines.parse().ok()?,
            generation: generation.parse().ok()?,
        })
    }

    /// Continues in a generation. The event is for clients that may have lines of an earlier one.
    fn enter(&mut self, generation: u32) -> Option<LiveEvent> {
        let was = self.generation;
        self.generation = was.max(generation);
        (was > 0 && was < generation).then_some(LiveEvent::Restart)
    }
}

enum LiveEvent {
    Line(Value),
    /// The execution restarted at another worker.
    Restart,
}

struct LivePage {
    events: Vec<LiveEvent>,
    place: LogPlace,
    has_more: bool,
    is_over: bool,
}

/// Follow the log of an execution of a plan
///
/// Events are `message` with `{message, cursor, step, stream}`, and `signal` with `EOF` at the end of the execution, or
/// `RESTART` when it restarted. The stream begins with the first line, or at `cursor`.
#[utoipa::path(get, path = "/api/v1/plan-executions/{id}/logs/live", tag = TAG, security(("bearer" = [])),
    params(("id" = String, Path, description = "Id of the execution"), LiveParams),
    responses((status = 200, content_type = "text/event-stream", body = String), Refusals))]
pub(super) async fn follow_plan_logs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<LiveParams>,
) -> Result<Sse<KeepAliveStream<Events>>, Problem> {
    let wrong = || Problem::invalid("cursor", "is not a cursor of this log");
    let place = params.cursor.as_deref().map(|text| LogPlace::parse(text).ok_or_else(wrong)).transpose()?;
    let found = load(&app, &caller, &id).await?;
    if let Some(step) = &params.step {
        find_step(&found.status, step)?;
    }
    let execution = ids::execution(&id)?;
    let slot = app.take_stream_slot(&caller.tenant)?;
    let (sender, taken) = mpsc::channel(WAITING_MAX);
    let reading = Reading { app, caller, execution, params };
    tokio::spawn(async move {
        reading.send_all(place.unwrap_or_default(), &sender).await;
        drop(slot);
    });
    Ok(Sse::new(Events(taken)).keep_alive(KeepAlive::default()))
}

struct Reading {
    app: Arc<App>,
    caller: Caller,
    execution: ExecutionId,
    params: LiveParams,
}

impl Reading {
    /// Sends events until the execution has ended, the client is gone or too slow, or the server stops.
    async fn send_all(&self, mut place: LogPlace, sender: &mpsc::Sender<Event>) {
        let follow = self.app.hub.follow(self.execution);
        loop {
            let changed = follow.next();
            let page = match self.read(place).await {
                Ok(page) => page,
                Err(problem) => {
                    let event = Event::default().event("error").data(problem.to_string());
                    let _ = sender.send_timeout(event, SEND_MAX).await;
                    return;
                }
            };
            place = page.place;
            for event in page.events {
                let event = match event {
                    LiveEvent::Line(line) => Event::default().event("message").data(line.to_string()),
                    LiveEvent::Restart => Event::default().event("signal").data("RESTART"),
                };
                if sender.send_timeout(event, SEND_MAX).await.is_err() {
                    return;
                }
            }
            if page.has_more {
                continue;
            }
            if page.is_over {
                let end = Event::default().event("signal").data("EOF");
                let _ = sender.send_timeout(end, SEND_MAX).await;
                return;
            }
            tokio::select! {
                () = changed => {}
                _ = self.caller.wait_for_expiry(&self.app) => return,
                () = sender.closed() => return,
                () = self.app.stopped() => return,
            }
        }
    }

    async fn read(&self, place: LogPlace) -> Result<LivePage, Problem> {
        self.caller.check_credential(&self.app)?;
        let (caller, execution, params) = (self.caller.clone(), self.execution, self.params.clone());
        let read = move |reader: &mut DatabaseReader| {
            // The state is read before the log, so that no line before the end of an execution is missed.
            let stored = stored_of(reader, &caller, execution)?;
            let (phase, generation) = (stored.state.phase(), stored.state.head.generation);
            let mut page = read_page(reader, execution, &params, place)?;
            if !page.has_more {
                page.events.extend(page.place.enter(generation));
            }
            page.is_over = phase.is_ended();
            Ok::<_, Problem>(page)
        };
        self.app.followers.of(&self.caller.tenant).read(read).await
    }
}

fn read_page(
    reader: &mut DatabaseReader,
    execution: ExecutionId,
    params: &LiveParams,
    mut place: LogPlace,
) -> Result<LivePage, Problem> {
    let chunks = reader.logs(execution, Position(place.chunk), PAGE)?;
    let (mut events, has_more) = (Vec::new(), chunks.len() == PAGE);
    for chunk in chunks {
        events.extend(place.enter(chunk.run.generation()));
        let lines: Vec<Line> = serde_json::from_slice(&chunk.lines).map_err(Problem::internal)?;
        let (seen, count) = (place.lines, lines.len());
        for (index, line) in lines.into_iter().enumerate().skip(seen) {
            place = match index + 1 == count {
                true => LogPlace { chunk: chunk.position.0, lines: 0, ..place },
                false => LogPlace { lines: index + 1, ..place },
            };
            let Some(stream) = StreamName::of(line.stream) else { continue };
            let is_wanted = params.step.as_ref().is_none_or(|step| *step == chunk.step)
                && params.stream.is_none_or(|wanted| wanted == stream);
            if is_wanted {
                events.push(LiveEvent::Line(json!({
                    "message": line.text,
                    "cursor": place.to_string(),
                    "step": chunk.step,
                    "stream": stream.name(),
                })));
            }
        }
        // Also stored for a chunk without lines.
        place = LogPlace { chunk: chunk.position.0, lines: 0, ..place };
    }
    Ok(LivePage { events, place, has_more, is_over: false })
}

/// Events that are sent to the client.
#[derive(Debug)]
pub(crate) struct Events(mpsc::Receiver<Event>);

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|event| event.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::LogPlace;

    #[test]
    fn a_place_is_read_back_from_its_text() {
        let place = LogPlace { chunk: 7, lines: 3, generation: 2 };
        assert_eq!(LogPlace::parse(&place.to_string()), Some(place));
        for wrong in ["", "1", "1-2", "a-b-c", "1-2-3-4", "-1--2-3"] {
            assert_eq!(LogPlace::parse(wrong), None, "{wrong}");
        }
    }
}
