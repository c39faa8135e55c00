//! Names a secret. The result is a handle, which is stored in place of the value; templates of later tasks and steps
//! that read `{{ label.value }}` get the value when a tool's configuration is rendered.
//!
//! | field | meaning |
//! |---|---|
//! | `name` | name of the secret, or of the variable |
//! | `provider` | `windlass`, the default: `windlass secrets set NAME`; `env`: a variable of the worker |

use super::ToolContext;
use super::fields::Fields;
use crate::failure::invalid;
use crate::keeper::variable_handle;
use serde_json::{Map, Value, json};
use windlass_artifact::SECRET;
use windlass_protocol::{Failure, Tool};

/// Opens the secret once, so that a missing one fails the task that names it.
pub(super) async fn run(config: &Map<String, Value>, cx: &ToolContext) -> Result<Value, Box<Failure>> {
    Fields::of(Tool::Secrets, config)?;
    let Some(name) = config.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
        return Err(invalid("`secrets` needs `name`, the name of a secret"));
    };
    let handle = match config.get("provider").filter(|provider| !provider.is_null()).map(Value::as_str) {
        None | Some(Some("windlass")) => name.to_owned(),
        Some(Some("env")) => variable_handle(name),
        Some(other) => return Err(unknown_provider(other.unwrap_or("that is no text"))),
    };
    cx.open(&handle).await?;
    Ok(json!({ "value": { SECRET: handle } }))
}

pub(crate) fn unknown_provider(provider: &str) -> Box<Failure> {
    invalid(format!(
        "there is no provider of secrets `{provider}`; known are windlass and env: store the value with `windlass secrets set NAME`"
    ))
}
