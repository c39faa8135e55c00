//! Log lines of requests: the URL, the status, the duration. Users and queries of URLs are not logged, because both may
//! be secret.

use super::config::{Request, place};
use crate::pipeline::{Call, CallResult};
use crate::tools::ToolContext;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_protocol::Level;

pub(super) async fn before(request: &Request, cx: &ToolContext) {
    let url = place(&request.url);
    let data = json!({ "method": request.method.as_str(), "url": url });
    cx.lines.say(Level::Debug, &format!("Sending request to {url}"), Some(data)).await;
}

pub(super) async fn after(
    request: &Request,
    call: &Call,
    cx: &ToolContext,
    called: &CallResult,
    took: Duration,
) {
    let status = called.facts.get("http").and_then(|http| http["status"].as_u64());
    let (level, text) = match (&called.outcome, status) {
        (Ok(_), Some(status)) => (Level::Info, format!("Request answered with status {status}")),
        (Ok(_), None) => (Level::Info, "Request answered".to_owned()),
        (Err(_), Some(status)) if !(200..300).contains(&status) => {
            (Level::Error, format!("Request failed with status {status}"))
        }
        (Err(failure), _) => (Level::Error, format!("Request failed: {}", failure.message)),
    };
    let mut data = json!({
        "method": request.method.as_str(),
        "url": place(&request.url),
        "durationMs": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        // Number of retries by the task's own rules and by the step.
        "retryAttempt": cx.attempt() + call.try_number.saturating_sub(1),
    });
    if let Some(status) = status {
        data["statusCode"] = Value::from(status);
    }
    cx.lines.say(level, &text, Some(data)).await;
}
