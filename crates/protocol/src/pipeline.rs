//! The work of a playbook step: tasks in order, with rules that say what follows each outcome.
//!
//! Nothing in it is rendered: the worker renders a task's templates when the task starts, and a rule's when the rule
//! matched. Templates see `workload`, `ctx`, `args`, `iter`, `keychain`, `execution_id`, results of earlier steps by
//! name and of earlier tasks by label, `_prev` and `_attempt`. Rules see `outcome` too, and the same value as
//! `output`, where `data` is another name of `result`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Pipeline {
    /// Arguments that are merged over those of the token before the first task.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// JSON Schema that the arguments must fit before the first task is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_schema: Option<Value>,
    pub tasks: Vec<Task>,
    /// Keys that are written to the context after the last task, before the step routes; templates see the step's own
    /// result by its name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set_ctx: Map<String, Value>,
    /// Length in bytes above which the result is stored as an artifact; None: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline_bytes: Option<usize>,
    /// Entries that are resolved before the first task, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keychain: Vec<Key>,
    /// Set for the first step: if its keychain cannot be resolved, no later step runs either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlocks: bool,
    /// Root of the results of earlier steps in templates, in the form ROOT.STEP.output. `inputs` is then the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs_root: Option<String>,
    /// Set for workflows: programs get a context, and their results follow the node contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Box<Node>>,
    /// Rest of the idempotency key after the id of the execution, where the definition determines the key; see
    /// [`crate::idempotency_key`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<String>,
}

impl Pipeline {
    /// Reads the limit of a stored pipeline, without the rest of it.
    #[must_use]
    pub fn inline_bytes_of(spec: &Value) -> Option<usize> {
        spec.get("inline_bytes")?.as_u64().and_then(|bytes| usize::try_from(bytes).ok())
    }

    /// Returns the kind and the configuration of each task of a stored pipeline, without the rest of it.
    pub fn tasks_of(spec: &Value) -> impl Iterator<Item = (&str, &Value)> {
        let tasks = spec.get("tasks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        tasks.iter().filter_map(|task| {
            Some((task.get("kind")?.as_str()?, task.get("config").unwrap_or(&Value::Null)))
        })
    }
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Label, which is unique in the pipeline.
    pub label: String,
    /// The tool: `shell`, `http`, …
    pub kind: String,
    /// The tool's own fields.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Rules, of which the first that matches the outcome decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    #[serde(default)]
    pub on_unmatched: OnUnmatched,
    /// Time limit of one try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Meaning of an outcome that no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum OnUnmatched {
    /// An error fails the pipeline, anything else continues.
    #[default]
    ByOutcome,
    Continue,
    Fail,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Condition of the rule; without it the rule always matches: `else`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    pub action: Action,
    /// Keys that are written to the context before the action, whatever the action is.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set_ctx: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set_iter: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Action {
    /// The next task; after the last one the pipeline is done.
    Continue,
    /// The same task again.
    Retry {
        /// Maximum number of tries, including the first; counted per label, from one again after a success.
        attempts: u32,
        backoff: Backoff,
        delay_ms: u64,
    },
    /// Continues with the task of this label, which exists.
    Jump { to: String },
    /// The pipeline is done.
    Break,
    /// The pipeline failed with the outcome's error.
    Fail,
}

/// Delay before the k-th retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// `delay`
    #[default]
    Constant,
    /// `delay * k`
    Linear,
    /// `delay * 2^(k-1)`
    Exponential,
}

/// One entry. Later ones may read it, and tasks do, as `keychain.NAME.FIELD`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Key {
    pub name: String,
    /// Playbook that owns it when it is kept for all executions.
    pub playbook: String,
    pub scope: KeyScope,
    pub source: KeySource,
}

/// Lifetime of a fetched token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    Execution,
    Playbook,
}

/// Source of the fields. Texts may be templates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum KeySource {
    /// Literal fields; a handle is replaced by the value of its secret.
    Fields { fields: Map<String, Value> },
    /// One secret: a JSON object has its fields, any other text is a token.
    Secret { provider: Provider, name: Value },
    /// One secret for each field, by name.
    Named { provider: Provider, fields: Map<String, Value> },
    /// One secret for each field whose template renders to a name; a field that renders to null is left out.
    Bound { provider: Provider, fields: Map<String, Value> },
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

/// Source of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// The encrypted store.
    Windlass,
    /// The environment of the worker.
    Env,
}

/// The node whose work a pipeline is; programs see it as their context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Node {
    pub id: String,
    pub name: String,
    /// The node's type: `http_api`, `code`, …
    pub kind: String,
    /// Configuration before templates are rendered.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Stored secrets by the names that the node uses. It never contains their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Ids of the nodes right before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(stored: Value) {
        let pipeline: Pipeline = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&pipeline).unwrap(), stored);
    }

    #[test]
    fn a_pipeline_is_stored_as_it_is_written() {
        check(json!({ "tasks": [] }));
        check(json!({
            "args": { "page": 1 },
            "tasks": [
                {
                    "label": "fetch",
                    "kind": "http",
                    "config": { "url": "{{ workload.url }}" },
                    "rules": [
                        {
                            "when": "{{ outcome.status == 'error' }}",
                            "action": { "do": "retry", "attempts": 3, "backoff": "exponential", "delay_ms": 500 },
                        },
                        { "action": { "do": "jump", "to": "fetch" }, "set_ctx": { "n": 1 }, "set_iter": { "page": 2 } },
                    ],
                    "on_unmatched": "by_outcome",
                    "timeout_ms": 30_000,
                },
                { "label": "end", "kind": "noop", "rules": [{ "action": { "do": "break" } }], "on_unmatched": "fail" },
            ],
            "set_ctx": { "last": "{{ pages.n }}" },
            "idempotency": "pay:compensate",
        }));
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let task: Task = serde_json::from_value(json!({ "label": "a", "kind": "noop" })).unwrap();
        assert_eq!((task.on_unmatched, task.timeout_ms), (OnUnmatched::ByOutcome, None));
        assert!(task.config.is_empty() && task.rules.is_empty());
    }
}
