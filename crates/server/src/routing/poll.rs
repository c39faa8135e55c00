//! One request to the URL of a sandbox or a route group.

use super::targets::is_routing_key;
use crate::host::now;
use crate::outbound::OutboundClient;
use reqwest::{Method, Response};
use serde_json::{Map, Value};
use std::time::Duration;
use windlass_store::{RoutingTarget, TargetPoll};

/// Maximum time for the response: it says only whether something is ready.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Maximum size of the response.
const BODY_MAX: usize = 64 << 10;
/// Maximum length of a stored reason, in characters.
const REASON_MAX: usize = 300;

/// The JSON object of a response.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answered {
    ready: Option<bool>,
    routing_key: Option<String>,
}

impl Answered {
    /// Reads a response. One that is no JSON object says nothing; an object that cannot be read is no proof that the target is
    /// ready.
    fn read(body: &[u8]) -> Result<Answered, String> {
        if !body.trim_ascii_start().starts_with(b"{") {
            return Ok(Answered::default());
        }
        let object: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|error| format!("its response is not valid JSON: {error}"))?;
        let ready = match object.get("ready") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(ready)) => Some(*ready),
            Some(_) => return Err("`ready` of its response is neither true nor false".to_owned()),
        };
        let routing_key = match object.get("routingKey") {
            None | Some(Value::Null) => None,
            Some(Value::String(key)) => Some(key.clone()),
            Some(_) => return Err("`routingKey` of its response is not a text".to_owned()),
        };
        Ok(Answered { ready, routing_key })
    }
}

/// Requests the URL of a target once. Redirects are not followed.
pub(super) async fn poll(client: &OutboundClient, target: &RoutingTarget, url: &str) -> TargetPoll {
    let answered = match tokio::time::timeout(ANSWER_MAX, read(client, url)).await {
        Ok(answered) => answered,
        Err(_) => Err(format!("no response within {} s", ANSWER_MAX.as_secs())),
    };
    let (ready, routing_key, reason) = match answered {
        Ok(Answered { ready: Some(false), .. }) => {
            (false, None, Some("it reports `ready: false`".to_owned()))
        }
        Ok(Answered { routing_key, .. }) => (true, routing_key.filter(|key| is_routing_key(key)), None),
        Err(reason) => (false, None, Some(reason.chars().take(REASON_MAX).collect())),
    };
    let RoutingTarget { tenant, kind, name, .. } = target.clone();
    TargetPoll { tenant, kind, name, ready_url: url.to_owned(), ready, routing_key, reason, at: now() }
}

async fn read(client: &OutboundClient, url: &str) -> Result<Answered, String> {
    let request = client.request(Method::GET, url)?;
    let response = request.send().await.map_err(|error| explain(&error))?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("it responds with status {}", status.as_u16()));
    }
    let body = read_body(response).await?;
    Answered::read(&body)
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|error| explain(&error))? {
        body.extend_from_slice(&part);
        if body.len() > BODY_MAX {
            return Err(format!("its response is larger than {BODY_MAX} bytes"));
        }
    }
    Ok(body)
}

/// Returns the last cause of an error: those before it repeat the URL.
fn explain(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_with_a_wrong_field_is_not_ready() {
        let read = |body: &str| Answered::read(body.as_bytes());
        let answered = |ready, key: Option<&str>| Ok(Answered { ready, routing_key: key.map(str::to_owned) });
        assert_eq!(read(r#"{"ready": true, "routingKey": "k"}"#), answered(Some(true), Some("k")));
        assert_eq!(read(r#" {"ready": null, "routingKey": null, "more": 1}"#), answered(None, None));
        for other in ["", "ok", "[]", "true", "<p>{}</p>"] {
            assert_eq!(read(other), answered(None, None), "{other}");
        }
        for (wrong, why) in [
            (r#"{"ready": false, "routingKey": 5}"#, "`routingKey` of its response is not a text"),
            (r#"{"ready": "false"}"#, "`ready` of its response is neither true nor false"),
            (r#"{"ready": 0}"#, "`ready` of its response is neither true nor false"),
            (r#"{"ready": false"#, "its response is not valid JSON"),
        ] {
            assert!(read(wrong).is_err_and(|found| found.contains(why)), "{wrong}");
        }
    }
}
