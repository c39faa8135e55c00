//! The protocol between processes: what `windlass worker` and a server send each other over HTTP. Each message carries
//! calls, replies or orders of the protocol, which mean the same within one process.
//!
//! | route, under `/api/v1/workers` | request | answer |
//! |---|---|---|
//! | `POST /register` | [`NewSession`] | [`OpenedSession`] |
//! | `POST /orders` | [`OrdersRequest`]; waits for the next orders | [`OrderList`] |
//! | `POST /calls` | [`CallBatch`], with [`SESSION_HEADER`] | [`ReplyBatch`] |
//! | `PUT /artifacts/{key}` | bytes, with [`SESSION_HEADER`] and [`UNIT_HEADER`] | [`ResourceReply`](crate::ResourceReply) |
//! | `GET /artifacts/{key}` | the same headers | bytes as [`BYTES_TYPE`], or a [`ResourceReply`](crate::ResourceReply) |
//!
//! Every request has the header [`PROTOCOL_HEADER`], because a worker may outlive an upgrade of its server. Large
//! bodies are received only for a session in [`SESSION_HEADER`] that exists.
//!
//! Artifacts are streams, so neither side holds one in memory.

use crate::call::{Call, Order, Registered, Reply};
use serde::{Deserialize, Serialize};

/// Maximum number of calls in one request: as many as a disk writes in one batch without delaying others.
pub const CALLS_PER_BATCH_MAX: usize = 256;

/// Maximum size of a request with calls. Results of steps are at most 64 KiB or references, and log lines are
/// truncated.
pub const CALLS_BYTES_MAX: usize = 96 << 20;

/// Header with the version of the protocol that the worker speaks: [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION).
pub const PROTOCOL_HEADER: &str = "windlass-protocol";

/// Header with the session of the worker. It is known before a body arrives.
pub const SESSION_HEADER: &str = "windlass-session";

/// Header with the JSON of the [`Unit`](crate::Unit) that the artifact is for.
pub const UNIT_HEADER: &str = "windlass-unit";

/// Media type of the bytes of an artifact. An answer of another type is a reply.
pub const BYTES_TYPE: &str = "application/octet-stream";

/// Registration of a worker of another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub protocol: u32,
    /// Version of the program, for messages.
    pub release: String,
    /// Name of the worker's machine.
    pub worker: String,
    pub group: String,
    #[serde(default)]
    pub cluster: Option<String>,
    pub slots: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedSession {
    /// Identifies the worker in its next requests; only the worker knows it.
    pub session: String,
    pub registered: Registered,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrdersRequest {
    pub session: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderList {
    pub orders: Vec<Order>,
}

/// Calls in the order they were made. Those that carry bytes have routes of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallBatch {
    pub session: String,
    pub calls: Vec<Call>,
}

/// Replies in the order of the calls. None: there is no reply yet, and the worker has to make the call again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyBatch {
    pub replies: Vec<Option<Reply>>,
}
