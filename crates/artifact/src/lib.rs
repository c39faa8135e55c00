//! Large values as artifacts: the JSON is stored under its SHA-256, and a small reference replaces it. Making a reference
//! needs no IO, so the kernel can do it and leave the writing to the store.
//!
//! References are resolved only where one may occur: an output, arguments, one key of the context, inputs, a loop's list.
//! A value from outside that only looks like a reference is set aside too, so that no answer of a server can name an
//! artifact or a secret and have it read.

mod size;

pub use size::json_bytes;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Maximum length of a value that is kept inline, unless the definition says otherwise. Journals, rows and messages stay
/// small, and a result of a few screens of text can still be read in place.
pub const INLINE_BYTES: usize = 64 * 1024;

/// The key of a reference to an artifact.
pub const ARTIFACT: &str = "$artifact";
/// The key of a handle that refers to a secret.
pub const SECRET: &str = "$secret";

const SCHEME: &str = "sha256:";
const DIGEST_LENGTH: usize = 64;

/// A value that must be stored under its key before anything refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub key: String,
    /// JSON.
    pub bytes: Vec<u8>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A reference in it was made by us.
    Own,
    /// It may look like a reference by accident or on purpose.
    Outside,
}

/// The value as an artifact and the reference that takes its place; None when it may stay where it is.
#[must_use]
pub fn set_aside(value: &Value, source: Source, inline_bytes: usize) -> Option<(Value, Artifact)> {
    let must = match source {
        Source::Own if key(value).is_some() => return None,
        Source::Own => false,
        Source::Outside => is_reference(value),
    };
    (must || size::exceeds(value, inline_bytes)).then(|| made(value))
}

fn made(value: &Value) -> (Value, Artifact) {
    let bytes = value.to_string().into_bytes();
    let key = key_of(&bytes);
    (json!({ ARTIFACT: key, "bytes": bytes.len() }), Artifact { key, bytes })
}

/// The key of what these bytes are.
#[must_use]
pub fn key_of(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{SCHEME}{hex}")
}

/// The digits of a key, which name a file; None for what is no key.
#[must_use]
pub fn digest(key: &str) -> Option<&str> {
    let digits = key.strip_prefix(SCHEME)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digits.len() == DIGEST_LENGTH && digits.bytes().all(is_digit)).then_some(digits)
}

/// The key that a reference names.
#[must_use]
pub fn key(value: &Value) -> Option<&str> {
    let key = value.as_object()?.get(ARTIFACT)?.as_str()?;
    digest(key).map(|_| key)
}

/// Returns the name of the secret that a handle refers to.
#[must_use]
pub fn secret(value: &Value) -> Option<&str> {
    match value.as_object() {
        Some(fields) if fields.len() == 1 => fields.get(SECRET)?.as_str(),
        _ => None,
    }
}

/// Returns whether a value would be taken for a reference or a handle, in the value itself or in its field `value`.
#[must_use]
pub fn is_reference(value: &Value) -> bool {
    let names = |value: &Value| value.get(ARTIFACT).is_some() || value.get(SECRET).is_some();
    names(value) || value.get("value").is_some_and(names)
}

#[cfg(test)]
mod tests;
