//! Credentials that a pipeline resolves before its first task. Values are never in it: a handle stands for each.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One entry. Later ones may read it, and tasks do, as `keychain.NAME.FIELD`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Key {
    pub name: String,
    /// Whose it is when it is kept for all of its executions.
    pub playbook: String,
    pub scope: KeyScope,
    pub source: KeySource,
}

/// How long what was fetched is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    Execution,
    Playbook,
}

/// Where the fields come from. Texts may be templates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum KeySource {
    /// As they stand; a handle is the value of its secret.
    Fields { fields: Map<String, Value> },
    /// One secret: a JSON object has its fields, any other text is a token.
    Secret { provider: Provider, name: Value },
    /// One secret for each field, by name.
    Named { provider: Provider, fields: Map<String, Value> },
    /// The answer of a server that grants tokens.
    OAuth2 {
        endpoint: Value,
        method: String,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        headers: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        data: Map<String, Value>,
        auto_renew: bool,
    },
}

/// Who knows a secret by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// The encrypted store.
    Windlass,
    /// The environment of the worker.
    Env,
}
