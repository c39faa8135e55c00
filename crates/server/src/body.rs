//! Strict extractors for JSON bodies and query strings. An unknown field, a wrong type and a number out of range are each
//! refused with the path of the field.

use crate::app::App;
use crate::problem::{Problem, ProblemCode};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::sync::Arc;

/// Maximum nesting depth of a body. Deeper bodies are attacks, not data.
pub(crate) const DEPTH_MAX: usize = 64;
/// Maximum number of values in one body. In memory each takes at least 32 bytes, so a body of `[],` would take ten times its
/// size.
pub(crate) const VALUES_MAX: usize = 250_000;
/// Size from which a body is parsed on a thread for blocking work: it takes milliseconds.
const LARGE: usize = 64 * 1024;

/// A JSON body of type `T`.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub T);

/// An optional JSON body; without one, the value is the default.
#[derive(Debug)]
pub(crate) struct OptionalJsonBody<T>(pub T);

/// A query string of type `T`.
#[derive(Debug)]
pub(crate) struct Params<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<App>> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        is_json(&parts.headers)?;
        parse_blocking(app, collect(body, app).await?).await.map(JsonBody)
    }
}

impl<T: DeserializeOwned + Default + Send + 'static> FromRequest<Arc<App>> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = collect(body, app).await?;
        if bytes.is_empty() {
            return Ok(OptionalJsonBody(T::default()));
        }
        is_json(&parts.headers)?;
        parse_blocking(app, bytes).await.map(OptionalJsonBody)
    }
}

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Problem> {
        let read = Query::<T>::try_from_uri(&parts.uri);
        read.map(|Query(params)| Params(params)).map_err(|rejection| {
            // The text is: "Failed to deserialize query string: limit: invalid digit found in string".
            let text = rejection.body_text();
            let reason = text.split_once(": ").map_or(text.as_str(), |(_, reason)| reason);
            let (path, message) = reason.split_once(": ").unwrap_or(("", reason));
            Problem::invalid(path, describe_parameter(message))
        })
    }
}

/// Reads the whole body within the server's limits of size and time.
pub(crate) async fn collect(body: Body, app: &App) -> Result<Bytes, Problem> {
    collect_up_to(body, app, app.settings.body_limit).await
}

/// Reads a body of at most `limit` bytes, within the server's limit of time.
pub(crate) async fn collect_up_to(body: Body, app: &App, limit: usize) -> Result<Bytes, Problem> {
    let reading = tokio::time::timeout(app.settings.request_timeout, Limited::new(body, limit).collect());
    match reading.await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(Problem::too_large(format!("the body is larger than the limit of {limit} bytes")))
        }
        Ok(Err(_)) => {
            Err(Problem::bad_request("the body of the request is incomplete or malformed; send it again"))
        }
        Err(_) => {
            let message = "the body did not arrive in time; send it again";
            Err(Problem::new(ProblemCode::RequestTimeout, message))
        }
    }
}

/// Checks that the media type is `application/json` or has the suffix `+json`.
pub(crate) fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let essence = media_type(headers);
    match essence.as_deref() {
        Some(kind)
            if kind == "application/json"
                || (kind.starts_with("application/") && kind.ends_with("+json")) =>
        {
            Ok(())
        }
        Some(kind) => Err(Problem::unsupported(format!(
            "the media type `{kind}` is not supported; send application/json"
        ))),
        None => Err(Problem::unsupported("the header Content-Type is missing; send application/json")),
    }
}

/// Returns the media type without its parameters, in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = value.split(';').next().unwrap_or_default().trim();
    (!essence.is_empty()).then(|| essence.to_ascii_lowercase())
}

/// Parses a body; a large one on a thread for blocking work.
pub(crate) async fn parse_blocking<T: DeserializeOwned + Send + 'static>(
    app: &App,
    bytes: Bytes,
) -> Result<T, Problem> {
    match bytes.len() > LARGE {
        true => app.run_blocking(move || parse(&bytes)).await?,
        false => parse(&bytes),
    }
}

/// Parses strictly; errors carry the path of the field.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.trim_ascii().is_empty() {
        return Err(Problem::invalid("", "the body is empty; send JSON"));
    }
    is_flat_enough(bytes)?;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        // The path ends in `?` for an unknown field, and is `.` for the whole document.
        let path = error.path().to_string();
        let path = path.trim_end_matches(['.', '?']);
        Problem::invalid(path, describe_json_error(error.inner()))
    })?;
    reader.end().map_err(|error| Problem::invalid("", describe_json_error(&error)))?;
    Ok(parsed)
}

/// Describes an error of the parser: a syntax error with its line and column; a wrong value without them, because its path
/// is known.
pub(crate) fn describe_json_error(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Eof => {
            format!("the JSON ends too early, in line {line}, column {column}; send a complete value")
        }
        Category::Syntax | Category::Io => {
            format!("the JSON is not valid in line {line}, column {column}: {message}")
        }
        Category::Data => describe_value(message),
    }
}

/// Rewords an error about a value, which names types of Rust, in terms of JSON.
fn describe_value(message: &str) -> String {
    let Some((found, wanted)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    if let Some(found) = found.strip_prefix("unknown variant ") {
        return format!("unknown value {found}, expected {wanted}");
    }
    let value = found.strip_prefix("invalid type: ").or_else(|| found.strip_prefix("invalid value: "));
    let value = match (value, found.strip_prefix("invalid length ")) {
        (Some(value), _) => describe_found(value),
        (None, Some(length)) => format!("an array of length {length}"),
        // The message of an unknown field is clear.
        (None, None) => return message.to_owned(),
    };
    format!("must be {}, not {value}", describe_wanted(wanted))
}

fn describe_found(found: &str) -> String {
    let scalar = ["boolean ", "integer ", "floating point "].iter().find_map(|kind| found.strip_prefix(kind));
    match (found, scalar) {
        ("map", _) => "an object".to_owned(),
        ("sequence", _) => "an array".to_owned(),
        (_, Some(scalar)) => scalar.to_owned(),
        (text, None) if text.starts_with("string ") => format!("the {text}"),
        (other, None) => other.to_owned(),
    }
}

fn describe_wanted(wanted: &str) -> &str {
    match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a non-negative integer",
        "i8" | "i16" | "i32" | "i64" => "an integer",
        "f32" | "f64" => "a number",
        "a sequence" => "an array",
        "a boolean" => "true or false",
        "a map" => "an object",
        object if object.starts_with("struct ") => "an object",
        other => other,
    }
}

/// Rewords an error about a parameter of a query, which comes from the parsers of Rust's standard library.
fn describe_parameter(message: &str) -> String {
    match message {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "must be a non-negative integer".to_owned()
        }
        "number too large to fit in target type" => "is too large a number".to_owned(),
        "provided string was not `true` or `false`" => "must be true or false".to_owned(),
        other => describe_value(other),
    }
}

/// Checks depth and number of values by counting brackets and commas outside of strings, before anything is allocated.
pub(crate) fn is_flat_enough(bytes: &[u8]) -> Result<(), Problem> {
    let (mut depth, mut values, mut in_string, mut escaped) = (0usize, 1usize, false, false);
    for byte in bytes {
        match (in_string, *byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => in_string = true,
            (false, b'[' | b'{') => {
                depth += 1;
                values += 1;
            }
            (false, b',') => values += 1,
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            (false, _) => {}
        }
        if depth > DEPTH_MAX {
            let message = format!("the JSON is nested more than {DEPTH_MAX} levels deep");
            return Err(Problem::invalid("", message));
        }
        if values > VALUES_MAX {
            let message = format!("the JSON has more than {VALUES_MAX} values; send fewer");
            return Err(Problem::invalid("", message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::Value;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Outer {
        #[expect(dead_code, reason = "only read")]
        options: Option<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Inner {
        #[expect(dead_code, reason = "only read")]
        max_retries: Option<u32>,
    }

    fn check(body: &[u8], path: &str, message: &str) {
        let problem = parse::<Outer>(body).expect_err("it is refused");
        let shown = String::from_utf8_lossy(body).into_owned();
        assert_eq!(problem.status(), axum::http::StatusCode::BAD_REQUEST, "{shown}");
        assert_eq!(problem.details[0].path, path, "{shown}: {problem:?}");
        assert!(problem.message.contains(message), "{shown}: {}", problem.message);
    }

    #[test]
    fn errors_in_a_body_name_the_path_of_the_field() {
        check(
            br#"{"options": {"maxRetries": "3"}}"#,
            "options.maxRetries",
            "must be a non-negative integer, not the string \"3\"",
        );
        let negative = "`options.maxRetries`: must be a non-negative integer, not `-1`";
        check(br#"{"options": {"maxRetries": -1}}"#, "options.maxRetries", negative);
        check(br#"{"options": {"maxRetrys": 1}}"#, "options.maxRetrys", "unknown field");
        check(br#"{"options": []}"#, "options", "must be an object, not an array of length 0");
        check(br#"{"options": [{}]}"#, "options[0]", "must be a non-negative integer, not an object");
        check(br#"{"options": {}, "options": {}}"#, "", "duplicate field `options`");
        check(br#"{"more": 1}"#, "more", "unknown field");
        check(b"{} {}", "", "the JSON is not valid in line 1, column 4: trailing characters");
        check(b" ", "", "the body is empty; send JSON");
        check(b"{", "", "the JSON ends too early, in line 1, column 1; send a complete value");
        check(b"{\"options\": \"\xff\"}", "options", "invalid unicode");
    }

    #[test]
    fn errors_in_a_query_are_in_terms_of_the_parameter() {
        let check = |message: &str, expected: &str| assert_eq!(describe_parameter(message), expected);
        let number = |text: &str| text.parse::<u32>().expect_err("it is refused").to_string();
        check(&number("ten"), "must be a non-negative integer");
        check(&number(""), "must be a non-negative integer");
        check(&number("5000000000"), "is too large a number");
        check(&"yes".parse::<bool>().expect_err("it is refused").to_string(), "must be true or false");
        check("unknown variant `x`, expected `a` or `b`", "unknown value `x`, expected `a` or `b`");
    }

    #[test]
    fn deep_json_is_refused_before_it_is_parsed() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse::<Value>(deep(DEPTH_MAX).as_bytes()).is_ok());
        let problem = parse::<Value>(deep(DEPTH_MAX + 1).as_bytes()).expect_err("it is refused");
        assert!(problem.message.contains("64 levels deep"), "{}", problem.message);
        assert!(parse::<Value>(format!("\"{}\\\"[\"", "[".repeat(1_000)).as_bytes()).is_ok());
    }

    #[test]
    fn too_many_values_are_refused_before_they_are_parsed() {
        let many = |count: usize| format!("[{}[]]", "[],".repeat(count));
        assert!(parse::<Value>(many(100_000).as_bytes()).is_ok());
        let problem = parse::<Value>(many(200_000).as_bytes()).expect_err("it is refused");
        assert!(problem.message.contains("250000 values"), "{}", problem.message);
        assert!(
            parse::<Value>(format!("\"{}\"", ",".repeat(1_000_000)).as_bytes()).is_ok(),
            "a string is one value"
        );
    }
}
