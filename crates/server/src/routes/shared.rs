//! Responses and checks that several routes share.

use crate::problem::{Problem, Refused};
use axum::http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use std::str::FromStr;
use std::time::Duration;
use tokio::time::Instant;
use utoipa::IntoResponses;
use windlass_kernel::Millis;

/// Error responses of every route that needs a token.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "they describe the responses of `Problem`")]
pub(crate) enum Refusals {
    /// The request is not valid
    #[response(status = 400)]
    Invalid(Refused),
    /// The token is missing, unknown, expired or revoked
    #[response(status = 401)]
    Unauthenticated(Refused),
    /// The caller's role does not permit this
    #[response(status = 403)]
    Forbidden(Refused),
    /// The resource does not exist in this tenant
    #[response(status = 404)]
    NotFound(Refused),
    /// A limit of the tenant is reached; retry after the time in Retry-After
    #[response(status = 429)]
    TooMany(Refused),
    /// An internal error occurred
    #[response(status = 500)]
    Internal(Refused),
    /// The request was not processed; retry after the time in Retry-After
    #[response(status = 503)]
    Unavailable(Refused),
}

/// Error responses of every route that takes a body.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "they describe the responses of `Problem`")]
pub(crate) enum BodyRefusals {
    /// The body did not arrive in time
    #[response(status = 408)]
    Slow(Refused),
    /// The body is larger than the limit
    #[response(status = 413)]
    TooLarge(Refused),
    /// The media type of the body is not supported
    #[response(status = 415)]
    Unsupported(Refused),
}

/// Parses a time (RFC 3339) of a request.
pub(crate) fn parse_time(path: &str, text: &str) -> Result<Millis, Problem> {
    let parsed: Result<Timestamp, _> = text.parse();
    let bad = |_| Problem::invalid(path, "must be a time as in 2026-01-26T12:00:00.000Z");
    parsed.map(|at| Millis(at.as_millisecond())).map_err(bad)
}

/// Maximum time for which one request waits.
const WAIT_MAX_MS: u64 = 30_000;

/// Returns the end of the wait that a request asks for by `waitMs`.
pub(crate) fn wait_until(wait_ms: Option<u64>) -> Result<Instant, Problem> {
    parse_wait("waitMs", wait_ms)
}

/// Returns the end of the wait that a request asks for by a parameter.
pub(crate) fn parse_wait(name: &str, wait_ms: Option<u64>) -> Result<Instant, Problem> {
    let wait_ms = wait_ms.unwrap_or_default();
    match wait_ms > WAIT_MAX_MS {
        true => Err(Problem::invalid(name, format!("must be at most {WAIT_MAX_MS}"))),
        false => Ok(Instant::now() + Duration::from_millis(wait_ms)),
    }
}

/// Returns a number as an entity tag, with which `If-Match` is compared.
pub(crate) fn tagged(number: u64) -> HeaderMap {
    let tag = HeaderValue::from_str(&format!("\"{number}\"")).expect("digits are a valid header value");
    HeaderMap::from_iter([(header::ETAG, tag)])
}

/// Returns the number in `If-Match`; without the header, or with `*`, any number fits. `what` names it for the message.
pub(crate) fn parse_if_match<N: FromStr>(headers: &HeaderMap, what: &str) -> Result<Option<N>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let bad = || Problem::invalid("If-Match", format!("must be the ETag of a {what}, as in \"3\", or *"));
    let text = value.to_str().map_err(|_| bad())?.trim();
    if text == "*" {
        return Ok(None);
    }
    let digits = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).ok_or_else(bad)?;
    digits.parse().map(Some).map_err(|_| bad())
}

/// Checks a name chosen by a user: bounded in length, without control characters. Returns it without surrounding spaces.
pub(crate) fn check_name(path: &str, name: &str) -> Result<String, Problem> {
    let name = name.trim();
    let length = name.chars().count();
    if length == 0 || length > NAME_MAX {
        return Err(Problem::invalid(path, format!("must have 1 to {NAME_MAX} characters")));
    }
    match name.chars().any(char::is_control) {
        true => Err(Problem::invalid(path, "must not contain control characters")),
        false => Ok(name.to_owned()),
    }
}

/// Checks the name of a group of workers, or of a cluster.
pub(crate) fn check_group(path: &str, name: &str) -> Result<String, Problem> {
    match windlass_protocol::is_group_name(name) {
        true => Ok(name.to_owned()),
        false => Err(Problem::invalid(path, "must have 1 to 64 letters, digits, `.`, `_` and `-`")),
    }
}

/// Maximum length of a name, in characters.
pub(crate) const NAME_MAX: usize = 255;
