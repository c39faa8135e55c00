//! What several routes answer with.

use crate::problem::{Problem, Refused};
use jiff::Timestamp;
use utoipa::IntoResponses;
use windlass_kernel::Millis;

/// What every route with a token may answer instead.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "they describe answers that `Problem` gives")]
pub enum Refusals {
    /// What was sent is not as it must be
    #[response(status = 400)]
    Invalid(Refused),
    /// The token is missing, unknown or stale
    #[response(status = 401)]
    Unauthenticated(Refused),
    /// The caller's role may not do this
    #[response(status = 403)]
    Forbidden(Refused),
    /// There is no such thing in this tenant
    #[response(status = 404)]
    NotFound(Refused),
    /// The tenant has used up its limit; see Retry-After
    #[response(status = 429)]
    TooMany(Refused),
    /// Something is wrong with the server
    #[response(status = 500)]
    Internal(Refused),
    /// It was not done, and may be asked again; see Retry-After
    #[response(status = 503)]
    Unavailable(Refused),
}

/// What every route with a body may answer instead.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "they describe answers that `Problem` gives")]
pub enum BodyRefusals {
    /// The body did not come in time
    #[response(status = 408)]
    Slow(Refused),
    /// The body is too large
    #[response(status = 413)]
    TooLarge(Refused),
    /// The body has another media type
    #[response(status = 415)]
    Unsupported(Refused),
}

/// A time as it was sent.
pub fn parse_time(path: &str, text: &str) -> Result<Millis, Problem> {
    let parsed: Result<Timestamp, _> = text.parse();
    let bad = |_| Problem::invalid(path, "it must be a time as in 2026-01-26T12:00:00.000Z");
    parsed.map(|at| Millis(at.as_millisecond())).map_err(bad)
}

/// A name that people give: of a bounded length, in one line.
pub fn check_name(path: &str, name: &str) -> Result<String, Problem> {
    let name = name.trim();
    let length = name.chars().count();
    if length == 0 || length > NAME_MAX {
        return Err(Problem::invalid(path, format!("it must have 1 to {NAME_MAX} characters")));
    }
    match name.chars().any(char::is_control) {
        true => Err(Problem::invalid(path, "it must not have control characters")),
        false => Ok(name.to_owned()),
    }
}

/// As long as the column of a name.
pub const NAME_MAX: usize = 255;
