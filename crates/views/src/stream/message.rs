//! One message, and its form on a stream.

use crate::entry::{NodeLabel, error};
use crate::place::ErrorPlace;
use crate::shapes::{ExecutionError, Progress};
use crate::wire::{execution_id, time};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_artifact::json_bytes;
use windlass_kernel::{ExecutionId, Failure, Millis};

/// Maximum number of messages of one row. A record has two at most, and four more when the status changes; the engine
/// bounds the records of a row, and records that a fork took over are not numbered.
const PER_ROW: u64 = 1 << 16;

/// Approximate JSON of a message without the data of a node.
const MESSAGE_BYTES: usize = 300;

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Position among all messages of all executions. It fits the numbers of JavaScript.
    pub sequence: u64,
    /// A subscriber that has seen this number or a lower one needs the message. A start that is reported late is newer
    /// than its sequence.
    pub newer_than: u64,
    pub at: Millis,
    pub body: MessageBody,
}

#[derive(Debug, Clone, PartialEq)]
pub enum MessageBody {
    /// `began` means that the execution has just started.
    Status {
        status: &'static str,
        progress: Progress,
        began: bool,
    },
    /// Start of an attempt, counted from 1.
    NodeStarted {
        node: NodeLabel,
        attempt: u32,
    },
    NodeCompleted {
        node: NodeLabel,
        duration_ms: Option<u64>,
        output: Option<Arc<Value>>,
    },
    /// An attempt; another one follows unless it is the last.
    NodeFailed {
        node: NodeLabel,
        failure: Failure,
        place: ErrorPlace,
        retry_count: u32,
        retries_max: u32,
        last: bool,
    },
    /// `outputs` is set by the reader of the journal.
    Ended {
        status: &'static str,
        duration_ms: u64,
        outputs: Value,
        /// The node whose failure ended the execution.
        node: Option<NodeLabel>,
        failure: Option<Failure>,
        place: ErrorPlace,
    },
    Log {
        level: &'static str,
        node: String,
        text: String,
    },
}

/// Returns the number of the n-th message of a row.
pub(super) fn sequence(position: i64, index: u64) -> u64 {
    position.cast_unsigned().saturating_mul(PER_ROW) + index.min(PER_ROW - 1)
}

/// Returns the highest position of which no message has a higher number than `sequence`.
#[must_use]
pub fn position_before(sequence: u64) -> i64 {
    (sequence / PER_ROW).saturating_sub(1).cast_signed()
}

impl Message {
    /// Bytes of its JSON, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let said = match &self.body {
            MessageBody::Status { .. } | MessageBody::NodeStarted { .. } => 0,
            MessageBody::NodeCompleted { output, .. } => output.as_deref().map_or(0, json_bytes),
            MessageBody::NodeFailed { failure, .. } => failure.message.len() + json_bytes(&failure.details),
            MessageBody::Ended { outputs, .. } => json_bytes(outputs),
            MessageBody::Log { text, .. } => text.len(),
        };
        MESSAGE_BYTES + said
    }

    /// Returns its place among messages that are sent together: the end is last, and a start that a later record or a lease
    /// reports follows the row that dispatched the work.
    #[must_use]
    pub fn order(&self) -> (bool, u64, bool) {
        let row = |sequence: u64| sequence / PER_ROW;
        let is_late = row(self.newer_than.saturating_add(1)) != row(self.sequence);
        (matches!(self.body, MessageBody::Ended { .. }), row(self.sequence), is_late)
    }

    /// Returns the JSON for a subscriber: the fields of the document, and `sequence`, from which the subscriber can
    /// continue.
    #[must_use]
    pub fn on_stream(&self, execution: ExecutionId) -> Value {
        let mut data = Map::new();
        if !matches!(self.body, MessageBody::Log { .. }) {
            data.insert("executionId".into(), json!(execution_id(execution)));
        }
        self.body.write_data(&mut data, self.at);
        json!({
            "type": self.body.name(),
            "timestamp": time(self.at),
            "sequence": self.sequence,
            "data": data,
        })
    }
}

impl MessageBody {
    fn name(&self) -> &'static str {
        match self {
            MessageBody::Status { .. } => "status_update",
            MessageBody::NodeStarted { .. } => "node_started",
            MessageBody::NodeCompleted { .. } => "node_completed",
            MessageBody::NodeFailed { .. } => "node_failed",
            MessageBody::Ended { .. } => "execution_completed",
            MessageBody::Log { .. } => "log",
        }
    }

    /// Returns the error of an attempt or of the execution, with its place. An attempt's also has what is known about
    /// trying again.
    #[must_use]
    pub fn error(&self, at: Millis) -> Option<Value> {
        match self {
            MessageBody::NodeFailed { node, failure, place, retry_count, retries_max, .. } => {
                let found = error(failure, Some(node.site(retry_count + 1)), at, false);
                let mut whole = json!(ExecutionError { place: place.clone(), ..found });
                (whole["retryCount"], whole["maxRetries"]) = (json!(retry_count), json!(retries_max));
                Some(whole)
            }
            MessageBody::Ended { node, failure: Some(failure), place, .. } => {
                let found = error(failure, node.as_ref().map(|node| node.site(1)), at, false);
                Some(json!(ExecutionError { place: place.clone(), ..found }))
            }
            MessageBody::Ended { failure: None, .. }
            | MessageBody::Status { .. }
            | MessageBody::NodeStarted { .. }
            | MessageBody::NodeCompleted { .. }
            | MessageBody::Log { .. } => None,
        }
    }

    fn write_data(&self, data: &mut Map<String, Value>, at: Millis) {
        let mut put = |key: &str, value: Value| drop(data.insert(key.to_owned(), value));
        match self {
            MessageBody::Status { status, progress, .. } => {
                put("status", json!(status));
                put("progress", json!(progress));
            }
            MessageBody::NodeStarted { node, .. } => {
                put("nodeId", json!(node.id));
                put("nodeName", json!(node.name));
                put("nodeType", json!(node.kind));
            }
            MessageBody::NodeCompleted { node, duration_ms, output } => {
                put("nodeId", json!(node.id));
                put("nodeName", json!(node.name));
                put("duration", json!(duration_ms));
                put("output", json!(output));
            }
            MessageBody::NodeFailed { node, .. } => {
                put("nodeId", json!(node.id));
                put("nodeName", json!(node.name));
                put("error", json!(self.error(at)));
            }
            MessageBody::Ended { status, duration_ms, outputs, .. } => {
                put("status", json!(status));
                put("duration", json!(duration_ms));
                put("outputs", outputs.clone());
            }
            MessageBody::Log { level, node, text } => {
                put("level", json!(level));
                put("nodeId", json!(node));
                put("message", json!(text));
            }
        }
    }
}
