//! Requests over HTTP.
//!
//! | field | meaning |
//! |---|---|
//! | `url` or `endpoint` | the URL; `http` or `https` |
//! | `method` | `GET` by default |
//! | `headers` | a map; null values are left out |
//! | `params` | added to the query: null values are left out, lists are repeated |
//! | `body` or `payload` | a string as it is, any other value as JSON |
//! | `json` | any value as JSON, strings included |
//! | `form` | a map, sent as a form |
//! | `data` | `{query, body}`: like `params` and `body`; any other value like `body` |
//! | `auth` | the name of a secret, or `{type: bearer, token}`, `{type: basic, username, password}`, `{type: api_key, header, value}` |
//! | `timeout` | seconds for the whole request, 30 by default; or `{connect, read}`, for the connection and between pieces of the response |
//! | `timeout_seconds` | like `spec.timeout`; if either is set, the default of `timeout` does not apply |
//! | `follow_redirects` | up to 10, which is the default; credentials are not sent to another origin |
//! | `max_response_bytes` | 32 MiB by default, 64 MiB at most |
//! | `any_status` | an answer with any status is a result; by default only one with a status of success |
//! | `response_mapping` | a JSONPath, or a map from names to JSONPaths: `data` of the result is what they select |
//! | `args`, `input` | for templates of the other fields |
//!
//! The result is `{status_code, headers, url, elapsed, data}`: `data` is JSON if the response says so, a string if it
//! is text, and `{"$base64": …}` otherwise. Every response has the fact `http: {status, headers}`. A status other than
//! 2xx is an error, whose class follows from the status. [`crate::egress`] describes which hosts requests may reach.
//!
//! Requests that may change something have the header `Idempotency-Key`, the same on every try of the same call. If
//! the definition determines the key, all requests have it.

mod answer;
mod auth;
mod clients;
mod config;
mod exchange;
mod lines;
mod mapping;
#[cfg(test)]
mod tests;

use super::ToolContext;
use super::fields::seconds;
use crate::failure;
use crate::halt::Halt;
use crate::node::meter::API_CALLS;
use crate::pipeline::{Call, CallResult};
pub(super) use answer::retry_after_ms;
pub(crate) use clients::Clients;
use config::Request;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use windlass_protocol::Failure;

/// Time without data after which a server is considered dead.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn run(call: &Call, cx: &ToolContext, mut halt: Halt) -> CallResult {
    let request = match Request::read(&call.config, cx, &key(call, cx)).await {
        Ok(request) => request,
        Err(failure) => return Err(failure).into(),
    };
    if let Some(mapping) = &request.mapping
        && let Err(failure) = mapping.check(cx, halt.clone()).await
    {
        return Err(failure).into();
    }
    cx.node.iter().for_each(|node| node.meter.add(API_CALLS, 1));
    let began = Instant::now();
    lines::before(&request, cx).await;
    let mut called = tokio::select! {
        biased;
        // The response is not needed any more; the connection is closed.
        _ = halt.requested() => Err(stopped()).into(),
        called = limited(&request, call, cx) => called,
    };
    lines::after(&request, call, cx, &called, began.elapsed()).await;
    if let (Ok(result), Some(mapping)) = (&mut called.outcome, &request.mapping) {
        match mapping.of(result["data"].take(), &request.describe(), cx, halt).await {
            Ok(mapped) => result["data"] = mapped,
            Err(failure) => called.outcome = Err(failure),
        }
    }
    called
}

async fn limited(request: &Request, call: &Call, cx: &ToolContext) -> CallResult {
    let has_own = call.timeout_ms.is_some()
        || call.config.get("timeout_seconds").is_some_and(|own| seconds(own).is_some());
    let default = Some(TIMEOUT).filter(|_| !has_own && request.limits.is_empty());
    let work = exchange::exchange(request, &cx.kit.clients, &cx.share);
    match request.limits.total.or(default) {
        None => work.await,
        Some(limit) => match timeout(limit, work).await {
            Ok(called) => called,
            Err(_) => Err(too_slow(request, limit)).into(),
        },
    }
}

/// Returns the idempotency key: that of the firing for its first call, and another one for each later call.
fn key(call: &Call, cx: &ToolContext) -> String {
    match call.number {
        0 => cx.key().to_owned(),
        number => format!("{}:{number}", cx.key()),
    }
}

fn too_slow(request: &Request, limit: Duration) -> Box<Failure> {
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    failure::timeout(&request.describe(), limit_ms)
}

fn stopped() -> Box<Failure> {
    failure::stopped("the request")
}
