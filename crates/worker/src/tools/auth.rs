//! `auth` of a task: an object, or the name of a secret that holds one.

use super::ToolContext;
use crate::failure::{invalid, shown};
use serde_json::{Map, Value};
use windlass_protocol::Failure;

/// Credentials of a task. Its fields are secret: messages do not contain their values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Auth {
    /// A secret that is only a string.
    Text(String),
    Fields(Map<String, Value>),
}

/// Keys that name a secret inside of an object; the other keys override the secret's own fields.
const NAMES: [&str; 2] = ["credential", "secret"];

impl Auth {
    pub(super) async fn read(value: &Value, cx: &ToolContext) -> Result<Auth, Box<Failure>> {
        match value {
            Value::String(name) => Auth::named(name, cx).await,
            Value::Object(fields) => Auth::given(fields, cx).await,
            _ => Err(invalid("`auth` is the name of a secret or a map of its fields")),
        }
    }

    async fn named(name: &str, cx: &ToolContext) -> Result<Auth, Box<Failure>> {
        match cx.credential(name).await? {
            Value::String(text) => Ok(Auth::Text(text)),
            Value::Object(fields) => Ok(Auth::Fields(flat(fields))),
            _ => Err(invalid(format!("the secret `{}` is neither a text nor a map", shown(name)))),
        }
    }

    async fn given(fields: &Map<String, Value>, cx: &ToolContext) -> Result<Auth, Box<Failure>> {
        let name = NAMES.iter().find_map(|key| fields.get(*key)?.as_str());
        let own = fields.iter().filter(|(key, _)| !NAMES.contains(&key.as_str()));
        let own: Map<String, Value> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut found = match name {
            None => Map::new(),
            Some(name) => match Auth::named(name, cx).await? {
                Auth::Fields(fields) => fields,
                Auth::Text(text) => Map::from_iter([("value".to_owned(), Value::String(text))]),
            },
        };
        found.extend(flat(own));
        Ok(Auth::Fields(found))
    }

    /// Returns the first of several spellings; numbers are converted to strings.
    pub(super) fn field(&self, keys: &[&str]) -> Option<String> {
        let Auth::Fields(fields) = self else { return None };
        keys.iter().find_map(|key| match fields.get(*key)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        })
    }
}

/// Merges the fields of `data` into the credential: stored credentials are often `{type, data: {…}}`.
fn flat(mut fields: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(data)) = fields.get("data").cloned() {
        fields.remove("data");
        data.into_iter().for_each(|(key, value)| {
            fields.entry(key).or_insert(value);
        });
    }
    fields
}
