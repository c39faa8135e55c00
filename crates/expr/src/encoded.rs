//! Filters that encode and decode values: base64 and JSON.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use minijinja::{Error, Value as Jinja};

use crate::Value;
use crate::convert::to_jinja;
use crate::limits::{DEPTH_MAX, failed};

/// Base64 that is written with padding and read with or without it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) fn b64encode(value: &Jinja) -> Result<String, Error> {
    text(value, "b64encode").map(|text| BASE64.encode(text))
}

pub(crate) fn b64decode(value: &Jinja) -> Result<String, Error> {
    let encoded: String = text(value, "b64decode")?.split_whitespace().collect();
    let bytes = BASE64.decode(encoded).map_err(|error| failed(format!("the text is not base64: {error}")))?;
    String::from_utf8(bytes).map_err(|_| failed("`b64decode` returns text, but these bytes are not UTF-8"))
}

pub(crate) fn fromjson(value: &Jinja) -> Result<Jinja, Error> {
    let text = text(value, "fromjson")?;
    let parsed: Value =
        serde_json::from_str(text).map_err(|error| failed(format!("the text is not JSON: {error}")))?;
    to_jinja(&parsed, 1, &mut 0)
        .ok_or_else(|| failed(format!("lists and objects can be nested at most {DEPTH_MAX} deep")))
}

fn text<'v>(value: &'v Jinja, filter: &str) -> Result<&'v str, Error> {
    value.as_str().ok_or_else(|| failed(format!("`{filter}` needs text, not a {}", value.kind())))
}
