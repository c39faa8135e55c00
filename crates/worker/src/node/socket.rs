//! Requests of a node's programs while they run: one JSON object per line, one answer per line.
//!
//! | `op` | fields | answer |
//! |---|---|---|
//! | `get_state` | `key` | `{"ok": VALUE}`, null when it was never set |
//! | `set_state` | `key`, `value` | `{"ok": null}` once it is on disk |
//! | `log` | `level` (debug, info, warn, error), `message`, `data` | `{"ok": null}` |
//! | `metric` | `name`, `value` | `{"ok": null}` |
//! | `progress` | `step`, `percentage` | `{"ok": null}` |
//!
//! A request that fails is answered with `{"error": TEXT}`.

use super::NodeContext;
use crate::tools::ToolContext;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::{Number, Value, json};
use std::convert::Infallible;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use windlass_protocol::Level;

/// Maximum size of a request: a state value and its frame.
const LINE_MAX: u64 = 1024 * 1024;
/// Maximum number of programs that send requests at the same time; more wait.
const CLIENTS_MAX: usize = 32;

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    GetState {
        key: String,
    },
    SetState {
        key: String,
        value: Value,
    },
    Log {
        level: Level,
        message: String,
        #[serde(default)]
        data: Option<Value>,
    },
    Metric {
        name: String,
        value: Number,
    },
    Progress {
        #[serde(default)]
        step: String,
        percentage: f64,
    },
}

pub(super) async fn serve(listener: &UnixListener, cx: &ToolContext, node: &NodeContext) -> Infallible {
    let mut clients = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if clients.len() < CLIENTS_MAX => {
                // A client that has disconnected sends no request.
                if let Ok((stream, _)) = accepted {
                    clients.push(client(stream, cx, node));
                }
            }
            Some(_) = clients.next() => {}
        }
    }
}

/// Serves one client until it disconnects, or sends a line that is too long.
async fn client(stream: UnixStream, cx: &ToolContext, node: &NodeContext) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        (&mut read).take(LINE_MAX + 1).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(());
        }
        let answer = if line.len() as u64 > LINE_MAX {
            Err(format!("a request has at most {LINE_MAX} bytes"))
        } else {
            answer(&line, cx, node).await
        };
        let over = line.len() as u64 > LINE_MAX;
        let answer = answer.map_or_else(|error| json!({ "error": error }), |value| json!({ "ok": value }));
        write.write_all(format!("{answer}\n").as_bytes()).await?;
        if over {
            return Ok(());
        }
    }
}

async fn answer(line: &[u8], cx: &ToolContext, node: &NodeContext) -> Result<Value, String> {
    let request =
        serde_json::from_slice(line).map_err(|error| format!("the request is not valid: {error}"))?;
    match request {
        Request::GetState { key } => node.get_state(&cx.kit, &key).await.map_err(|failure| failure.message),
        Request::SetState { key, value } => {
            node.set_state(&key, value).await.map_err(|failure| failure.message)?;
            Ok(Value::Null)
        }
        Request::Log { level, message, data } => {
            cx.lines.say(level, &message, data).await;
            Ok(Value::Null)
        }
        Request::Metric { name, value } => node.meter.metric(&name, &value).map(|()| Value::Null),
        Request::Progress { step, percentage } => {
            if !(0.0..=100.0).contains(&percentage) {
                return Err(format!("`percentage` is a number from 0 to 100, not {percentage}"));
            }
            node.progress(step, percentage as u8).await;
            Ok(Value::Null)
        }
    }
}
