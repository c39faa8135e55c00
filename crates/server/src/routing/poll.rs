//! One request to the URL of a sandbox or a route group.

use super::targets::is_routing_key;
use crate::host::now;
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use std::time::Duration;
use windlass_store::{RoutingTarget, TargetPoll};
use windlass_worker::egress::Egress;

/// Maximum time for the response: it says only whether something is ready.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Maximum size of the response.
const BODY_MAX: usize = 64 << 10;
/// Maximum length of a stored reason, in characters.
const REASON_MAX: usize = 300;

/// The JSON of a response. Other bodies are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Answered {
    ready: Option<bool>,
    routing_key: Option<String>,
}

/// Requests the URL of a target once. Redirects are not followed.
pub(super) async fn poll(client: &Client, egress: &Egress, target: &RoutingTarget, url: &str) -> TargetPoll {
    let answered = match tokio::time::timeout(ANSWER_MAX, read(client, egress, url)).await {
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

async fn read(client: &Client, egress: &Egress, url: &str) -> Result<Answered, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    egress.check_host(url.host_str().unwrap_or_default()).map_err(|refused| refused.to_string())?;
    let response = client.get(url).send().await.map_err(|error| explain(&error))?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("it responds with status {}", status.as_u16()));
    }
    let body = read_body(response).await?;
    Ok(serde_json::from_slice(&body).unwrap_or_default())
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
