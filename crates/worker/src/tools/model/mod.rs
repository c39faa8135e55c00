//! Language models with the chat completions protocol: one request, its answer, its errors.
//!
//! | field | meaning |
//! |---|---|
//! | `base_url` | the URL before `/chat/completions` |
//! | `model` | its name |
//! | `api_key` | sent as a bearer token |
//! | `temperature`, `max_tokens`, `top_p`, `frequency_penalty`, `presence_penalty` | as in the protocol |
//! | `system_prompt`, `user_prompt` | the first messages |
//! | `stream` | whether the answer is logged line by line while it arrives |

pub(super) mod agent;
mod answer;
mod client;
pub(super) mod llm;

use super::fields::Fields;
use crate::failure::{invalid, shown};
use answer::Usage;
use reqwest::Url;
use serde_json::{Map, Value, json};
use windlass_protocol::{Failure, Tool};

/// Fields that are copied into the request.
const SETTINGS: [&str; 5] = ["temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty"];

pub(super) struct Model {
    /// URL of the completions.
    url: Url,
    key: Option<String>,
    settings: Map<String, Value>,
    stream: bool,
    system: Option<String>,
    user: Option<String>,
}

impl Model {
    fn read(tool: Tool, config: &Map<String, Value>) -> Result<(Model, Fields<'_>), Box<Failure>> {
        let fields = Fields::of(tool, config)?;
        let tool = tool.kind();
        let missing = |field: &str| invalid(format!("{tool} needs `{field}`, a text"));
        let base = fields.text("base_url")?.ok_or_else(|| missing("base_url"))?;
        let url = Url::parse(&format!("{}/chat/completions", base.trim_end_matches('/')));
        let url = url.ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
        let Some(url) = url else {
            return Err(invalid(format!(
                "`base_url` of {tool} is an address of the web, not `{}`",
                shown(&base)
            )));
        };
        let mut settings = Map::new();
        settings.insert("model".to_owned(), json!(fields.text("model")?.ok_or_else(|| missing("model"))?));
        for name in SETTINGS {
            if let Some(value) = fields.given(name) {
                settings.insert(name.to_owned(), number(&fields, name, value)?);
            }
        }
        let model = Model {
            url,
            key: fields.text("api_key")?,
            settings,
            stream: fields.flag("stream")?.unwrap_or(false),
            system: fields.text("system_prompt")?,
            user: fields.text("user_prompt")?,
        };
        Ok((model, fields))
    }
}

/// Reads a number, also as the string that templates produce: `"0.2"`.
fn number(fields: &Fields<'_>, name: &str, value: &Value) -> Result<Value, Box<Failure>> {
    let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text.trim()).ok());
    let number = parsed.unwrap_or_else(|| value.clone());
    if number.is_number() { Ok(number) } else { Err(fields.is_not(name, "a number", value)) }
}

fn usage(usage: Usage) -> Value {
    json!({ "promptTokens": usage.prompt, "completionTokens": usage.completion, "totalTokens": usage.total })
}
