//! Artifacts: large values that are stored outside the journal. An artifact is the JSON of a value under its SHA-256,
//! and a small reference replaces the value. Creating one needs no IO, so a decision can create it and leave the
//! writing to the commit.
//!
//! References are resolved only in fields that can hold one: an output, arguments, a key of the context, inputs, the
//! items of a loop. A value from outside that only looks like a reference is replaced too, so that no response of a
//! server can name an artifact or a secret and have it read.

mod size;

pub use size::json_bytes;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Maximum length of a value that is stored inline, unless the definition sets another. Journals, rows and messages
/// stay small, and a result of a few screens of text is still readable in place.
pub const INLINE_BYTES: usize = 64 * 1024;

/// Key of a reference to an artifact.
pub const ARTIFACT: &str = "$artifact";
/// Key of a handle for a secret.
pub const SECRET: &str = "$secret";

const SCHEME: &str = "sha256:";
const DIGEST_LENGTH: usize = 64;

/// A value that must be stored under its key before anything refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub key: String,
    /// The value as JSON.
    pub bytes: Vec<u8>,
}

/// Origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The engine made it, so a reference in it is genuine.
    Own,
    /// It may look like a reference by accident or on purpose.
    Outside,
}

/// Returns the reference that replaces the value, and its artifact; `None` if the value can be stored inline.
#[must_use]
pub fn set_aside(value: &Value, source: Source, inline_bytes: usize) -> Option<(Value, Artifact)> {
    let must = match source {
        Source::Own if key(value).is_some() => return None,
        Source::Own => false,
        Source::Outside => is_reference(value),
    };
    (must || size::exceeds(value, inline_bytes)).then(|| make_artifact(value))
}

fn make_artifact(value: &Value) -> (Value, Artifact) {
    let bytes = value.to_string().into_bytes();
    let key = key_of(&bytes);
    (json!({ ARTIFACT: key, "bytes": bytes.len() }), Artifact { key, bytes })
}

/// Returns the key for these bytes.
#[must_use]
pub fn key_of(bytes: &[u8]) -> String {
    let mut hasher = KeyHasher::default();
    hasher.update(bytes);
    hasher.finish()
}

/// Computes the key for bytes that are not in memory at once.
#[derive(Debug, Clone, Default)]
pub struct KeyHasher(Sha256);

impl KeyHasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the key for all bytes so far.
    #[must_use]
    pub fn finish(self) -> String {
        format_key(self.0.finalize().into())
    }
}

fn format_key(digest: [u8; 32]) -> String {
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{SCHEME}{hex}")
}

/// Returns the digits of a key, which name a file; `None` if it is not a key.
#[must_use]
pub fn digest(key: &str) -> Option<&str> {
    let digits = key.strip_prefix(SCHEME)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digits.len() == DIGEST_LENGTH && digits.bytes().all(is_digit)).then_some(digits)
}

/// Returns the key that a reference names.
#[must_use]
pub fn key(value: &Value) -> Option<&str> {
    let key = value.as_object()?.get(ARTIFACT)?.as_str()?;
    digest(key).map(|_| key)
}

/// Returns the name of the secret in a handle.
#[must_use]
pub fn secret(value: &Value) -> Option<&str> {
    match value.as_object() {
        Some(fields) if fields.len() == 1 => fields.get(SECRET)?.as_str(),
        _ => None,
    }
}

/// Returns whether the value, or its field `value`, would be read as a reference or a secret handle.
#[must_use]
pub fn is_reference(value: &Value) -> bool {
    let names = |value: &Value| value.get(ARTIFACT).is_some() || value.get(SECRET).is_some();
    names(value) || value.get("value").is_some_and(names)
}

/// Bytes of large outputs that complete the summary for a final step. The arguments of one program have to fit into
/// memory; beyond this, outputs stay references.
pub const SUMMARY_BYTES_MAX: u64 = 32 << 20;

/// Returns the references to large outputs in the summary for a final step, as far as the outputs fit. The engine made
/// the summary, so references at these places are genuine.
pub fn summary_references(summary: &mut Value) -> impl Iterator<Item = &mut Value> {
    let steps = summary.get_mut("results").and_then(Value::as_object_mut).into_iter().flatten();
    let firings = steps.filter_map(|(_, firings)| firings.as_array_mut()).flatten();
    let mut left = SUMMARY_BYTES_MAX;
    firings.filter_map(|firing| firing.get_mut("output")).filter(move |output| {
        let bytes = output.get("bytes").and_then(Value::as_u64).unwrap_or(SUMMARY_BYTES_MAX);
        let fits = key(output).is_some() && bytes <= left;
        left -= if fits { bytes } else { 0 };
        fits
    })
}

#[cfg(test)]
mod tests;
