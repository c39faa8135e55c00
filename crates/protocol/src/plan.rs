//! The work of a step of a plan: a program with inputs and outputs, which a worker runs in a work dir of its own.
//!
//! It travels as the only task of a [`crate::Pipeline`], of the kind [`PLAN_STEP_KIND`]. The configuration of the
//! task has three fields: [`PlanStep::FIELD`] is a [`PlanStep`] as JSON text, [`PlanStep::SOURCES`] maps each input that is
//! bound by a reference to a list of two, the value and whether there is one, and [`PlanStep::ROUTING`] is the
//! [`RoutingTarget`] of a step with a routing context. The last two are templates, which the worker renders. Each of the
//! two is a template of its own, because a list that a template makes is limited in size. Stored steps may have a list
//! with the value, or an empty list if there is none.

use crate::is_group_name;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Kind of a task that is a step of a plan.
pub const PLAN_STEP_KIND: &str = "plan_step";

/// A step of a plan as a worker gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanStep {
    pub program: StepProgram,
    /// Variables of the program. They never replace those that the worker sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, StepVariable>,
    /// Parameters of the action, then extra inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<StepInput>,
    /// Outputs of the action, then extra outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<StepOutput>,
    /// The condition and the routing context in the words of the plan, for display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captions: Vec<String>,
    /// Input whose value is the time limit of the step, if its action names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_input: Option<String>,
}

impl PlanStep {
    /// Time limit of a step without another one.
    pub const TIMEOUT_MS: u64 = 60 * 60 * 1_000;
    /// Field of the configuration that holds the step.
    pub const FIELD: &str = "step";
    /// Field of the configuration with the values of inputs that are bound by references.
    pub const SOURCES: &str = "sources";
    /// Field of the configuration with the target of the routing context.
    pub const ROUTING: &str = "routing";
    /// Key of the metadata of a report that holds the captured logs, a list of [`StepLog`].
    pub const LOGS: &str = "logs";
    /// Input of an execution with the names of the secrets that parameters are bound to. No parameter has such a name.
    pub const SECRET_NAMES: &str = "$secrets";
    /// Name of the keychain entry with the values of parameters that are bound to secrets.
    pub const SECRETS: &str = "secrets";

    /// Returns the value of an input that is bound by a reference, before its drill; None if there is none.
    #[must_use]
    pub fn source<'c>(config: &'c serde_json::Map<String, Value>, input: &str) -> Option<&'c Value> {
        match config.get(PlanStep::SOURCES)?.get(input)?.as_array()?.as_slice() {
            [value, found] => (*found == Value::Bool(true)).then_some(value),
            [value] => Some(value),
            _ => None,
        }
    }

    /// Reads the step from the configuration of its task.
    pub fn read(config: &serde_json::Map<String, Value>) -> Result<PlanStep, String> {
        let text = config.get(PlanStep::FIELD).and_then(Value::as_str).unwrap_or_default();
        serde_json::from_str(text)
            .map_err(|error| format!("the description of the step cannot be read: {error}"))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepProgram {
    /// A script of an action for `sh`.
    Script {
        text: String,
    },
    /// A script of an action in a container; without a script, the command of the image.
    Image {
        image: StepVariable,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<String>,
    },
    Builtin(BuiltinAction),
}

/// Actions that every worker has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltinAction {
    /// Runs the input `script`.
    Shell,
    /// Sends an HTTP request.
    RequestHttp,
    /// Evaluates the input `expression` over the other inputs.
    Check,
    /// Runs the input `command` in a container of the input `image`.
    RunImage,
}

impl BuiltinAction {
    pub const ALL: [BuiltinAction; 4] =
        [BuiltinAction::Shell, BuiltinAction::RequestHttp, BuiltinAction::Check, BuiltinAction::RunImage];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BuiltinAction::Shell => "shell",
            BuiltinAction::RequestHttp => "request-http",
            BuiltinAction::Check => "check",
            BuiltinAction::RunImage => "run-image",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<BuiltinAction> {
        BuiltinAction::ALL.into_iter().find(|action| action.name() == name)
    }
}

/// A text of an action: written in it, or the value of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StepVariable {
    Text(String),
    Input { input: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepInput {
    pub name: String,
    /// Schema of the value. An input with a schema is a JSON file that matches it; one without is a text file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    pub binding: Binding,
}

/// Source of the value of an input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "via", rename_all = "snake_case")]
pub enum Binding {
    Literal {
        value: Value,
    },
    /// `text` is the reference as its author wrote it; `drill` leads into the value that it names.
    Ref {
        text: String,
        from: RefSource,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        drill: Vec<String>,
        /// Value of the input if the reference has none.
        #[serde(default, deserialize_with = "read_some", skip_serializing_if = "Option::is_none")]
        default: Option<Value>,
    },
    Default {
        value: Value,
    },
    Unbound,
}

/// Reads a field that is present, also if it is null.
fn read_some<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(field).map(Some)
}

/// The value that a reference names, before its drill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefSource {
    Param(String),
    Output { step: String, output: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepOutput {
    pub name: String,
    /// Schema of the value. An output with a schema is JSON that matches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Whether a step that does not write the output has failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Value of the output if the step does not write it.
    #[serde(default, deserialize_with = "read_some", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Whether a condition reads the output, which therefore may not become an artifact.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_condition: bool,
}

/// Target of a routing context: exactly one field is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RoutingTarget {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_key: Option<String>,
}

impl RoutingTarget {
    /// Reads a target that names exactly one sandbox, route group or routing key, or returns what is wrong with it.
    pub fn read(value: &Value) -> Result<RoutingTarget, String> {
        const FORM: &str = "an object with one of `sandbox`, `routeGroup` and `routingKey`";
        let fields = value.as_object().map(|fields| fields.iter().collect::<Vec<_>>()).unwrap_or_default();
        let [(field, name)] = fields.as_slice() else {
            let found = match value {
                Value::Null => "no value".to_owned(),
                Value::Object(_) => format!("{} fields", fields.len()),
                _ => "another value".to_owned(),
            };
            return Err(format!("the target of the routing context is {FORM}, and it has {found}"));
        };
        let Some(name) = name.as_str() else {
            let found = if name.is_null() { "it has no value" } else { "it is not a text" };
            return Err(format!("`{field}` of the routing context is a name, and {found}"));
        };
        let (name, mut target) = (name.to_owned(), RoutingTarget::default());
        match field.as_str() {
            "routingKey" => target.routing_key = Some(name),
            "sandbox" | "routeGroup" if !is_group_name(&name) => {
                let message = "has 1 to 64 letters, digits, `.`, `_` and `-`";
                return Err(format!("`{field}` of the routing context {message}"));
            }
            "sandbox" => target.sandbox = Some(name),
            "routeGroup" => target.route_group = Some(name),
            _ => return Err(format!("the target of the routing context is {FORM}, not with another field")),
        }
        Ok(target)
    }
}

/// Captured stream of a step. A long one is a reference to an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepLog {
    /// `stdout` or `stderr`.
    pub stream: String,
    pub value: Value,
}

/// Maximum length of a value that a reference drills into.
pub const DRILLED_BYTES_MAX: u64 = 1 << 20;

/// Returns the part of a value that the drill leads to. A segment is a key of an object or an index of a list.
#[must_use]
pub fn drill_into<'v>(value: &'v Value, drill: &[String]) -> Option<&'v Value> {
    drill.iter().try_fold(value, |value, segment| match value {
        Value::Object(fields) => fields.get(segment),
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}
