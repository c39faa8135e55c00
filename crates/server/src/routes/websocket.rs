//! `/ws/executions/{executionId}`: the messages of an execution. Nothing is sent before a valid token was received.

use crate::app::App;
use crate::auth::Caller;
use crate::body::describe_json_error;
use crate::feed::Audience;
use crate::host::now;
use crate::ids;
use crate::problem::{Problem, ProblemCode, Refused};
use crate::stream::{LastSequence, Live};
use crate::streams::StreamSlot;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::SinkExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_kernel::ExecutionId;
use windlass_views::time;

/// Time within which a client must subscribe; else it is disconnected.
const SUBSCRIBE_MAX: Duration = Duration::from_secs(10);
/// Time within which a client must read; else it is disconnected, and can reconnect with the last message it has.
const SEND_MAX: Duration = Duration::from_secs(10);
/// Time in which a slow client may read the remaining messages and the reason of the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);
/// The same for a client without a valid token.
const UNAUTHENTICATED_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of pings on an idle connection.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum bytes of a message from a client.
const CLIENT_MESSAGE_MAX: usize = 16 * 1024;
/// Bytes of the buffers of each connection; most connections are idle.
const BUFFER: usize = 2 * 1024;

/// Codes of close frames.
mod code {
    pub(crate) const ENDED: u16 = 1000;
    pub(crate) const STOPPING: u16 = 1001;
    pub(crate) const BROKEN: u16 = 1011;
    pub(crate) const BAD_MESSAGE: u16 = 4400;
    pub(crate) const NOT_AUTHENTICATED: u16 = 4401;
    pub(crate) const FORBIDDEN: u16 = 4403;
    pub(crate) const NOT_FOUND: u16 = 4404;
    pub(crate) const TOO_SLOW: u16 = 4408;
    pub(crate) const BUSY: u16 = 4429;
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ClientMessage {
    #[serde(rename_all = "camelCase")]
    Subscribe {
        token: String,
        #[serde(default)]
        last_sequence: Option<LastSequence>,
        #[serde(default)]
        logs: Option<bool>,
    },
    Ping,
}

/// Reason for which a connection ends.
#[derive(Debug)]
enum End {
    /// The client has disconnected.
    Gone,
    Close(u16, String),
    Slow,
}

impl From<Problem> for End {
    fn from(problem: Problem) -> End {
        let code = match problem.status().as_u16() {
            401 => code::NOT_AUTHENTICATED,
            403 => code::FORBIDDEN,
            404 => code::NOT_FOUND,
            429 | 503 => code::BUSY,
            _ => code::BROKEN,
        };
        End::Close(code, problem.message)
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(websocket))
}

/// Follow an execution over WebSocket: send `{"type": "subscribe", "token": "Bearer …", "lastSequence": 0}` first.
#[utoipa::path(get, path = "/ws/executions/{executionId}", tag = "executions",
    params(("executionId" = String, Path)),
    responses((status = 101, description = "The connection is a WebSocket from here on"),
        (status = 400, body = Refused), (status = 404, body = Refused), (status = 426, body = Refused)))]
async fn websocket(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let id = ids::execution(&id)?;
    let upgrade = upgrade.map_err(|rejection| {
        Problem::new(ProblemCode::UpgradeRequired, format!("this is a WebSocket: {}", rejection.body_text()))
    })?;
    let upgrade = upgrade
        .max_message_size(CLIENT_MESSAGE_MAX)
        .max_frame_size(CLIENT_MESSAGE_MAX)
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER);
    Ok(upgrade.on_upgrade(move |socket| async move {
        serve_socket(&app, socket, id, &headers).await;
    }))
}

async fn serve_socket(app: &Arc<App>, mut socket: WebSocket, id: ExecutionId, headers: &HeaderMap) {
    let (end, goodbye) = match subscribed(app, &mut socket, id, headers).await {
        Ok((live, place)) => {
            let end = send_messages(app, &mut socket, live).await;
            drop(place);
            (end, CLOSE_TIMEOUT)
        }
        Err(end) => (end, UNAUTHENTICATED_CLOSE_TIMEOUT),
    };
    let (code, reason) = match end {
        End::Gone => return,
        End::Close(code, reason) => (code, reason),
        End::Slow => {
            tracing::info!(execution = %id, "disconnected a subscriber that reads too slowly");
            (code::TOO_SLOW, "you read too slowly; reconnect with lastSequence".to_owned())
        }
    };
    close(&mut socket, code, &reason, goodbye).await;
}

/// Sends the reason after all messages, if the client reads it in time.
async fn close(socket: &mut WebSocket, code: u16, reason: &str, within: Duration) {
    // The reason in a close frame has at most 123 bytes.
    let reason: String = reason
        .chars()
        .scan(0, |bytes, symbol| {
            *bytes += symbol.len_utf8();
            (*bytes <= 120).then_some(symbol)
        })
        .collect();
    let frame = CloseFrame { code, reason: reason.into() };
    let _ = timeout(within, async {
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            // Waits for the client's close frame, so that the connection ends in order.
            while let Some(Ok(_)) = socket.recv().await {}
        }
    })
    .await;
}

/// Waits for the first message, which must have a valid token. A slot for a stream is taken after that.
async fn subscribed(
    app: &Arc<App>,
    socket: &mut WebSocket,
    id: ExecutionId,
    headers: &HeaderMap,
) -> Result<(Live, StreamSlot), End> {
    let late = || End::Close(code::NOT_AUTHENTICATED, "no subscribe message arrived in time".to_owned());
    let first = async {
        loop {
            match socket.recv().await {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(Message::Ping(_))) => flush(socket).await?,
                Some(Ok(Message::Pong(_))) => {}
                Some(Ok(Message::Binary(_))) => return Err(unreadable()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(End::Gone),
            }
        }
    };
    let text = tokio::select! {
        first = timeout(SUBSCRIBE_MAX, first) => first.map_err(|_| late())??,
        () = app.stopped() => return Err(stopping()),
    };
    match serde_json::from_str(&text) {
        Ok(ClientMessage::Subscribe { token, last_sequence, logs }) => {
            let caller = Caller::from_message(app, &token, headers).await?;
            let place = app.take_stream_slot(&caller.tenant)?;
            let audience = if logs == Some(false) { Audience::StreamWithoutLogs } else { Audience::Stream };
            let last = last_sequence.unwrap_or_default();
            Ok((Live::open(app, &caller, id, last, audience).await?, place))
        }
        Ok(ClientMessage::Ping) | Err(_) => Err(unreadable()),
    }
}

fn unreadable() -> End {
    let message = "the first message must be {\"type\":\"subscribe\",\"token\":\"Bearer …\"}";
    End::Close(code::BAD_MESSAGE, message.to_owned())
}

fn stopping() -> End {
    End::Close(code::STOPPING, "the server is being stopped; reconnect with lastSequence".to_owned())
}

/// Sends messages until the execution has ended.
async fn send_messages(app: &Arc<App>, socket: &mut WebSocket, mut live: Live) -> End {
    let mut heard_at = Instant::now();
    loop {
        let bell = live.bell();
        match catch_up(socket, &mut live).await {
            Ok(false) => {}
            Ok(true) => return End::Close(code::ENDED, "the execution has ended".to_owned()),
            Err(end) => return end,
        }
        let wait_for_expiry = live.wait_for_expiry();
        tokio::pin!(bell, wait_for_expiry);
        // Messages from the client do not end the wait for the next change.
        loop {
            tokio::select! {
                () = &mut bell => break,
                problem = &mut wait_for_expiry => return problem.into(),
                heard = socket.recv() => {
                    heard_at = Instant::now();
                    if let Err(end) = answer(socket, heard).await {
                        return end;
                    }
                }
                () = tokio::time::sleep(PING_INTERVAL) => {
                    if heard_at.elapsed() > PING_INTERVAL * 3 {
                        return End::Gone;
                    }
                    if let Err(end) = send(socket, Message::Ping(axum::body::Bytes::new())).await {
                        return end;
                    }
                }
                () = app.stopped() => return stopping(),
            }
        }
    }
}

/// Sends new messages. Returns true when the execution has ended and its last message is sent.
async fn catch_up(socket: &mut WebSocket, live: &mut Live) -> Result<bool, End> {
    loop {
        let (page, _held) = live.read().await?;
        for message in &page.messages {
            send_json(socket, &message.on_stream(live.execution)).await?;
        }
        if page.over || !page.more {
            return Ok(page.over);
        }
    }
}

async fn answer(socket: &mut WebSocket, heard: Option<Result<Message, axum::Error>>) -> Result<(), End> {
    let text = match heard {
        Some(Ok(Message::Text(text))) => text,
        Some(Ok(Message::Binary(_))) => return refuse(socket, "messages must be JSON text").await,
        Some(Ok(Message::Ping(_))) => return flush(socket).await,
        Some(Ok(Message::Pong(_))) => return Ok(()),
        Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(End::Gone),
    };
    match serde_json::from_str(&text) {
        Ok(ClientMessage::Ping) => {
            send_json(socket, &json!({ "type": "pong", "timestamp": time(now()) })).await
        }
        Ok(ClientMessage::Subscribe { .. }) => refuse(socket, "the connection is already subscribed").await,
        Err(error) => {
            refuse(socket, &format!("the message is not valid: {}", describe_json_error(&error))).await
        }
    }
}

async fn refuse(socket: &mut WebSocket, message: &str) -> Result<(), End> {
    let data = json!({ "code": ProblemCode::Validation.name(), "message": message });
    send_json(socket, &json!({ "type": "error", "timestamp": time(now()), "data": data })).await
}

async fn send_json(socket: &mut WebSocket, value: &Value) -> Result<(), End> {
    send(socket, Message::Text(value.to_string().into())).await
}

/// Waits until the client has read the response to its ping. The responses to a client that reads none would fill the
/// memory.
async fn flush(socket: &mut WebSocket) -> Result<(), End> {
    match timeout(SEND_MAX, socket.flush()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End::Gone),
        Err(_) => Err(End::Slow),
    }
}

async fn send(socket: &mut WebSocket, message: Message) -> Result<(), End> {
    match timeout(SEND_MAX, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End::Gone),
        Err(_) => Err(End::Slow),
    }
}
