//! The plan as data: its parts in one order, every action written out. The id of a plan is made of it, so documents that
//! differ in their form alone are the same plan.

use super::model::{
    Action, ActionBody, ActionTimeout, Field, Plan, Reference, Routing, RoutingKind, RoutingName, Step,
};
use serde_json::{Map, Value, json};
use windlass_views::canonical;

/// Prefix of the id of a plan.
pub(super) const ID_PREFIX: &str = "pl_";
/// Digits of an id: those of 128 bits, like every other id.
const DIGITS: usize = 32;

/// Returns the id of the plan with this spec.
pub(super) fn plan_id(spec: &Value) -> String {
    let key = windlass_artifact::key_of(canonical(spec).as_bytes());
    let digest = windlass_artifact::digest(&key).unwrap_or_default();
    format!("{ID_PREFIX}{}", &digest[..DIGITS])
}

pub(super) fn plan_json(plan: &Plan) -> Value {
    let mut fields = Object::default();
    fields.text("prompt", plan.prompt.as_deref());
    fields.text("selectionHint", plan.selection_hint.as_deref());
    fields.list("params", plan.params.iter().map(field_json));
    fields.list("steps", plan.steps.iter().map(step_json));
    fields
        .map("output", plan.outputs.iter().map(|(name, reference)| (name.text.clone(), ref_json(reference))));
    let cluster = plan.cluster.as_ref();
    fields.map("cluster", cluster.map(|cluster| (cluster.key.to_owned(), json!(cluster.value))));
    fields.text("runner", plan.runner.as_deref());
    fields.into()
}

fn field_json(field: &Field) -> Value {
    let mut fields = Object::default();
    fields.text("name", Some(&field.name.text));
    if field.required {
        fields.set("required", json!(true));
    }
    if let Some(default) = &field.default {
        fields.set("default", default.clone());
    }
    if let Some(schema) = &field.schema {
        fields.set("schema", schema.clone());
    }
    fields.map("metadata", field.metadata.iter().map(|(key, text)| (key.clone(), json!(text))));
    fields.into()
}

fn step_json(step: &Step) -> Value {
    let mut args = Object::default();
    args.map("values", step.values.iter().map(|(name, value)| (name.text.clone(), value.clone())));
    args.map("refs", step.refs.iter().map(|(name, reference)| (name.text.clone(), ref_json(reference))));
    let mut fields = Object::default();
    fields.text("id", Some(&step.id.text));
    fields.set("action", action_json(&step.action));
    if !args.0.is_empty() {
        fields.set("args", args.into());
    }
    fields.text("condition", step.condition.as_ref().map(|condition| condition.text.as_str()));
    fields.list("extraInputs", step.extra_inputs.iter().map(field_json));
    fields.list("extraOutputs", step.extra_outputs.iter().map(field_json));
    if let Some(routing) = &step.routing {
        fields.set("routingContext", routing_json(routing));
    }
    fields.into()
}

pub(super) fn action_json(action: &Action) -> Value {
    let mut fields = Object::default();
    fields.text("actionID", action.id.as_deref());
    fields.text("name", action.name.as_deref());
    if let Some(revision) = action.revision {
        fields.set("revision", json!(revision));
    }
    // The fields of built-in actions are those of the program that runs them.
    if !matches!(action.body, ActionBody::Builtin(_)) {
        fields.list("params", action.params.iter().map(field_json));
        fields.list("outputs", action.outputs.iter().map(field_json));
    }
    match &action.body {
        ActionBody::Unknown | ActionBody::Builtin(_) => {}
        ActionBody::Script(script) => fields.text("script", Some(script)),
        ActionBody::Image { image, script } => {
            fields.set("image", json!(image));
            fields.text("script", script.as_deref());
        }
    }
    match &action.timeout {
        Some(ActionTimeout::Millis(timeout_ms)) => fields.set("timeout", json!(format!("{timeout_ms}ms"))),
        Some(ActionTimeout::Input(input)) => fields.set("timeout", json!({ "input": input })),
        None => {}
    }
    fields.map("env", action.env.iter().map(|(name, variable)| (name.clone(), json!(variable))));
    fields.into()
}

fn ref_json(reference: &Reference) -> Value {
    json!(reference.text)
}

fn routing_json(routing: &Routing) -> Value {
    match &routing.name {
        RoutingName::Literal(name) => json!({ "literal": { routing.kind.key(): name } }),
        RoutingName::Ref(reference) => {
            let key = match routing.kind {
                RoutingKind::Sandbox => "sandboxRef",
                RoutingKind::RouteGroup => "routeGroupRef",
                RoutingKind::RoutingKey => "routingKeyRef",
                RoutingKind::Any => "anyRef",
            };
            json!({ "ref": { key: reference.text } })
        }
    }
}

/// An object without its empty parts.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn set(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), value);
    }

    fn text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.set(key, json!(text));
        }
    }

    fn list(&mut self, key: &str, items: impl Iterator<Item = Value>) {
        let items: Vec<Value> = items.collect();
        if !items.is_empty() {
            self.set(key, Value::Array(items));
        }
    }

    fn map(&mut self, key: &str, fields: impl IntoIterator<Item = (String, Value)>) {
        let fields: Map<String, Value> = fields.into_iter().collect();
        if !fields.is_empty() {
            self.set(key, Value::Object(fields));
        }
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Value {
        Value::Object(object.0)
    }
}
