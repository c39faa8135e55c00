//! The protocol between processes: what `windlass worker` and a server send each other over HTTP. Each message carries
//! calls, replies or orders of the protocol, which mean the same within one process.
//!
//! | route, under `/api/v1/workers` | request | answer |
//! |---|---|---|
//! | `/register` | [`NewSession`] | [`OpenedSession`] |
//! | `/orders` | [`OrdersRequest`]; waits for the next orders | [`OrderList`] |
//! | `/calls` | [`CallBatch`] | [`ReplyBatch`] |

use crate::call::{Call, Order, Registered, Reply};
use crate::resource::{ResourceAsk, ResourceReply};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Calls in one request: what a disk takes in one batch without delaying others.
pub const CALLS_PER_BATCH_MAX: usize = 256;

/// Maximum size of a request with calls. A large value is one of them, with a third more for its encoding.
pub const CALLS_BYTES_MAX: usize = 96 << 20;

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

/// Calls in the order they were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallBatch {
    pub session: String,
    pub calls: Vec<SentCall>,
}

/// A call, with the bytes of the large value that it stores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentCall {
    pub call: Call,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Bytes>,
}

/// Replies in the order of the calls. None: there is no reply yet, and the call has to be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyBatch {
    pub replies: Vec<Option<SentReply>>,
}

/// A reply, with the bytes of the large value that it returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentReply {
    pub reply: Reply,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Bytes>,
}

/// Bytes, as base64 in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes).map_err(serde::de::Error::custom)
    }
}

impl From<Call> for SentCall {
    fn from(mut call: Call) -> SentCall {
        let body = match &mut call {
            Call::Resource(resource) => match &mut resource.ask {
                ResourceAsk::PutArtifact { body, .. } => Some(Bytes(body.take_bytes())),
                _ => None,
            },
            _ => None,
        };
        SentCall { call, body }
    }
}

impl From<SentCall> for Call {
    fn from(sent: SentCall) -> Call {
        let SentCall { mut call, body } = sent;
        if let (Call::Resource(resource), Some(Bytes(bytes))) = (&mut call, body)
            && let ResourceAsk::PutArtifact { body, .. } = &mut resource.ask
        {
            *body = bytes.into();
        }
        call
    }
}

impl From<Reply> for SentReply {
    fn from(mut reply: Reply) -> SentReply {
        let body = match &mut reply {
            Reply::Resource(resource) => match &mut **resource {
                ResourceReply::Artifact(Some(body)) => Some(Bytes(body.take_bytes())),
                _ => None,
            },
            _ => None,
        };
        SentReply { reply, body }
    }
}

impl From<SentReply> for Reply {
    fn from(sent: SentReply) -> Reply {
        let SentReply { mut reply, body } = sent;
        if let (Reply::Resource(resource), Some(Bytes(bytes))) = (&mut reply, body)
            && let ResourceReply::Artifact(Some(body)) = &mut **resource
        {
            *body = bytes.into();
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::ResourceCall;
    use crate::work::Unit;

    #[test]
    fn large_values_keep_their_bytes_on_the_way() {
        let unit = Unit { execution: 1, run: 2, fence: 3 };
        let ask = ResourceAsk::PutArtifact { key: "sha256:1".into(), body: vec![0, 255, 10].into() };
        let call = Call::Resource(Box::new(ResourceCall { unit, ask }));
        let text = serde_json::to_string(&SentCall::from(call.clone())).unwrap();
        let read: SentCall = serde_json::from_str(&text).unwrap();
        assert_eq!(Call::from(read), call);
        let reply = Reply::Resource(Box::new(ResourceReply::Artifact(Some(vec![7; 100].into()))));
        let text = serde_json::to_string(&SentReply::from(reply.clone())).unwrap();
        let read: SentReply = serde_json::from_str(&text).unwrap();
        assert_eq!(Reply::from(read), reply);
        assert!(serde_json::from_str::<Bytes>("\"no base64!\"").is_err());
    }
}
