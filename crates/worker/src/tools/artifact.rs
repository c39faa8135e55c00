//! A large value by its reference.
//!
//! | field | meaning |
//! |---|---|
//! | `ref` | `{{ step._ref }}`, or the key it holds: `sha256:…` |
//! | `action` | `get`, which is also the default |
//!
//! The result is the value; templates read its fields. A reference to a missing value is an error that may be retried,
//! so that a rule can jump back to the task that creates the value.

use super::ToolContext;
use super::fields::Fields;
use crate::failure::invalid;
use crate::pipeline::not_available;
use serde_json::{Map, Value, json};
use windlass_artifact::{ARTIFACT, digest, key};
use windlass_protocol::{Failure, Tool};

pub(super) async fn run(config: &Map<String, Value>, cx: &ToolContext) -> Result<Value, Box<Failure>> {
    Fields::of(Tool::Artifact, config)?;
    match config.get("action") {
        None | Some(Value::Null) => {}
        Some(action) if action == "get" => {}
        Some(action) => return Err(invalid(format!("`action` of an artifact is `get`, not {action}"))),
    }
    let reference = config.get("ref").unwrap_or(&Value::Null);
    let Some(key) = key(reference).or_else(|| reference.as_str().filter(|key| digest(key).is_some())) else {
        let message = "`ref` of an artifact is a reference such as `{{ step._ref }}`; small values have none, \
                       and are read directly";
        return Err(invalid(message));
    };
    let loaded = cx.kit.claim.load(vec![key.to_owned()]).await?;
    match loaded.into_iter().next() {
        Some((key, Some(bytes))) => Ok(json!({ ARTIFACT: key, "bytes": bytes.len() })),
        _ => Err(not_available(key)),
    }
}
