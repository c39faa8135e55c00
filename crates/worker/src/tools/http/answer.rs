//! Conversion of an answer to a result, or to an error by its status.

use super::config::{RESPONSE_MAX_MOST, Request};
use super::exchange::{broken, in_time};
use crate::excerpt;
use crate::failure::failure;
use crate::footprint::{Share, Unusable};
use crate::pipeline::CallResult;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::fmt::rfc2822;
use jiff::{Timestamp, Zoned};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::{Map, Value, json};
use std::time::Instant;
use windlass_protocol::{Failure, codes};
use windlass_secrets::LOOKAHEAD;

/// Maximum bytes of the answer in an error: errors are stored and sent far more often than results.
const EXCERPT_MAX: usize = 4 * 1024;

/// Bytes of every answer that are read before memory is reserved for it.
const SMALL: usize = 256 * 1024;

/// Longest delay that a server can ask for.
const RETRY_AFTER_MAX_S: u64 = 365 * 24 * 60 * 60;

pub(super) struct HttpAnswer(pub(super) Response);

pub(super) async fn read_answer(
    answer: HttpAnswer,
    hop: &Request,
    began: Instant,
    share: &Share,
) -> CallResult {
    let HttpAnswer(response) = answer;
    let (status, headers) = (response.status(), response.headers().clone());
    let facts = json!({ "status": status.as_u16(), "headers": listed(&headers) });
    let outcome = if status.is_success() || hop.any_status {
        read(response, hop, share).await.map(|data| {
            json!({
                "status_code": status.as_u16(),
                "headers": listed(&headers),
                "url": hop.shown_url(),
                "elapsed": began.elapsed().as_secs_f64(),
                "data": data,
            })
        })
    } else {
        let body = read_excerpt(response, hop).await;
        Err(by_status(status, &headers, &body, hop))
    };
    CallResult { outcome, facts: Map::from_iter([("http".to_owned(), facts)]) }
}

async fn read(mut response: Response, hop: &Request, share: &Share) -> Result<Value, Box<Failure>> {
    let headers = response.headers().clone();
    let mut body = Vec::new();
    if !extend(&mut body, &mut response, hop, SMALL).await? {
        // Held until the text is parsed.
        let _room = share.text(response.content_length().unwrap_or(hop.response_max)).await;
        extend(&mut body, &mut response, hop, usize::MAX).await?;
        return data(&headers, body, hop, share).await;
    }
    data(&headers, body, hop, share).await
}

/// Reads pieces until the end, and returns true, or until more than `enough` bytes have arrived. The limit is checked
/// before a piece is kept; a compressed answer counts with its decompressed size.
async fn extend(
    body: &mut Vec<u8>,
    response: &mut Response,
    hop: &Request,
    enough: usize,
) -> Result<bool, Box<Failure>> {
    let max = hop.response_max;
    if response.content_length().is_some_and(|length| length > max) {
        return Err(too_large(hop));
    }
    while let Some(piece) =
        in_time(hop, hop.limits.read, response.chunk()).await?.map_err(|error| broken(hop, error))?
    {
        if (body.len() + piece.len()) as u64 > max {
            return Err(too_large(hop));
        }
        body.extend_from_slice(&piece);
        if body.len() > enough {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads as much as arrives; an error is reported even if its body is incomplete. Enough is read to find a secret
/// across the cut.
async fn read_excerpt(mut response: Response, hop: &Request) -> String {
    let mut body = Vec::new();
    while body.len() <= EXCERPT_MAX + LOOKAHEAD
        && let Ok(Ok(Some(piece))) = in_time(hop, hop.limits.read, response.chunk()).await
    {
        body.extend_from_slice(&piece);
    }
    beginning(&body)
}

fn beginning(body: &[u8]) -> String {
    excerpt::head(&String::from_utf8_lossy(&body[..body.len().min(EXCERPT_MAX + LOOKAHEAD)]), EXCERPT_MAX)
}

fn too_large(hop: &Request) -> Box<Failure> {
    let (asked, max) = (hop.describe(), hop.response_max);
    let message = match max {
        RESPONSE_MAX_MOST.. => {
            format!("the answer to {asked} is larger than {max} bytes, which is the maximum")
        }
        _ => format!("the answer to {asked} is larger than {max} bytes; `max_response_bytes` allows more"),
    };
    failure(codes::RESPONSE_TOO_LARGE, message)
}

async fn data(
    headers: &HeaderMap,
    body: Vec<u8>,
    hop: &Request,
    share: &Share,
) -> Result<Value, Box<Failure>> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    if is_json(&kind) {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        let excerpt = beginning(&body);
        // Errors of a proxy are often not what they are declared as.
        let text = hop.any_status.then(|| String::from_utf8_lossy(&body).into_owned());
        return match (share.parse(body).await, text) {
            (Err(Unusable::NoJson(_)), Some(text)) => Ok(Value::String(text)),
            (parsed, _) => parsed.map_err(|error| unusable(hop, &error, excerpt)),
        };
    }
    // Text stays text; other bytes become a string that is a third longer.
    share.value(body.len() as u64 * 2).await.map_err(|error| unusable(hop, &error, String::new()))?;
    Ok(match String::from_utf8(body) {
        Ok(text) => Value::String(text),
        Err(error) if kind.contains("iso-8859-1") => {
            Value::String(error.as_bytes().iter().map(|byte| char::from(*byte)).collect())
        }
        Err(error) => json!({ "$base64": BASE64_STANDARD.encode(error.as_bytes()) }),
    })
}

fn is_json(kind: &str) -> bool {
    let media = kind.split(';').next().unwrap_or_default().trim();
    media == "application/json" || media == "text/json" || media.ends_with("+json")
}

fn unusable(hop: &Request, error: &Unusable, excerpt: String) -> Box<Failure> {
    let asked = hop.describe();
    match error {
        Unusable::NoJson(error) => {
            let message = format!("the answer to {asked} is declared as JSON and cannot be parsed: {error}");
            let mut failed = failure(codes::RESPONSE_NOT_JSON, message);
            failed.details = json!({ "body": excerpt });
            failed
        }
        Unusable::Deep | Unusable::Large(_) => {
            let message = format!("the answer to {asked} cannot be kept: {error}");
            failure(codes::RESPONSE_TOO_LARGE, message)
        }
        Unusable::Defect(error) => failure(codes::WORKER_DEFECT, error.to_string()),
    }
}

/// Joins several lines of a name to one string.
fn listed(headers: &HeaderMap) -> Value {
    let mut listed: Map<String, Value> = Map::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let text = match listed.get(name.as_str()).and_then(Value::as_str) {
            Some(earlier) => format!("{earlier}, {value}"),
            None => value.into_owned(),
        };
        listed.insert(name.as_str().to_owned(), Value::String(text));
    }
    Value::Object(listed)
}

fn by_status(status: StatusCode, headers: &HeaderMap, body: &str, hop: &Request) -> Box<Failure> {
    let code = match status.as_u16() {
        401 => codes::AUTHENTICATION_FAILED,
        403 => codes::PERMISSION_DENIED,
        404 | 410 => codes::RESOURCE_NOT_FOUND,
        408 => codes::NETWORK_TIMEOUT,
        409 | 412 => codes::CONFLICT,
        429 => codes::RATE_LIMIT_EXCEEDED,
        500..=599 => codes::SERVICE_UNAVAILABLE,
        _ => codes::VALIDATION_ERROR,
    };
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let message = format!("{} was answered with {}{reason}", hop.describe(), status.as_u16());
    let mut failed = failure(code, message);
    failed.retry_after_ms = retry_after_ms(headers, Timestamp::now());
    failed.details = json!({ "status_code": status.as_u16(), "url": hop.shown_url(), "body": body });
    failed.facts.http_status = Some(status.as_u16());
    failed
}

/// Parses a number of seconds, or a date.
pub(in crate::tools) fn retry_after_ms(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(seconds.min(RETRY_AFTER_MAX_S) * 1000);
    }
    let at: Zoned = rfc2822::parse(text).ok()?;
    let wait_ms = at.timestamp().as_millisecond() - now.as_millisecond();
    Some(u64::try_from(wait_ms).unwrap_or_default().min(RETRY_AFTER_MAX_S * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        let now: Timestamp = "1994-11-06T08:49:07Z".parse().unwrap();
        let check = |text: &'static str, expected: Option<u64>| {
            let headers =
                HeaderMap::from_iter([(RETRY_AFTER, reqwest::header::HeaderValue::from_static(text))]);
            assert_eq!(retry_after_ms(&headers, now), expected, "{text}");
        };
        check("120", Some(120_000));
        check("0", Some(0));
        check("99999999999999", Some(RETRY_AFTER_MAX_S * 1000));
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(30_000));
        check("Sun, 06 Nov 1994 08:49:00 GMT", Some(0));
        check("soon", None);
        check("-3", None);
        assert_eq!(retry_after_ms(&HeaderMap::new(), now), None);
    }

    #[test]
    fn json_is_recognised_by_its_content_type() {
        for kind in ["application/json", "application/json; charset=utf-8", "application/problem+json"] {
            assert!(is_json(kind), "{kind}");
        }
        for kind in ["", "text/plain", "application/jsonl", "text/html; x=application/json"] {
            assert!(!is_json(kind), "{kind}");
        }
    }
}
