//! Every key of plans and of action documents, for the parser and for the JSON Schema.

use crate::read::{Key, key};

pub(super) const ROOT: &[Key] =
    &[key("spec", "The plan; its keys may also be written at the top of the document")];

pub(super) const PLAN: &[Key] = &[
    key("prompt", "The text that the plan was made from; it has no effect"),
    key("selectionHint", "One line that says what the plan is for"),
    key("params", "Parameters that an execution binds"),
    key("steps", "Steps; their order follows from references"),
    key("output", "Outputs of the plan: a name and a reference each"),
    key("cluster", "How the cluster of an execution follows from its parameters"),
    key("runner", "The runner group that executes the plan"),
];

pub(super) const STEP: &[Key] = &[
    key("id", "Name of the step, unique in the plan"),
    key("action", "What it runs: the name or the id of an action, or an action written in place"),
    key("args", "Values and references for the inputs"),
    key("condition", "An expression over the inputs; the step is skipped if it is false"),
    key("extraInputs", "Inputs in addition to the parameters of the action"),
    key("extraOutputs", "Outputs in addition to those of the action"),
    key("routingContext", "The sandbox, route group or routing key that the step runs with"),
];

pub(super) const ARGS: &[Key] =
    &[key("values", "Inputs and their values"), key("refs", "Inputs and references to their values")];

pub(super) const FIELD: &[Key] = &[
    key("name", "Name of the field"),
    key("required", "Whether a value is needed"),
    key("default", "Value that is used if no other is given"),
    key("schema", "JSON Schema of the value; without one the value is a text"),
    key("metadata", "Texts for those who show the field: contentType, displayName, encoding"),
];

pub(super) const ACTION: &[Key] = &[
    key("actionID", "Id of a registered action"),
    key("name", "Name of the action"),
    key("revision", "Revision of a registered action; the newest by default"),
    key("description", "One line that says what the action does"),
    key("params", "Inputs of the action"),
    key("outputs", "Files that the action writes into outputs/"),
    key("script", "Script for sh"),
    key("image", "Image of a container that the script runs in, as text or as {input: NAME}"),
    key("timeout", "Maximum duration of the step: \"90s\", \"5m\", seconds as a number, or {input: NAME}"),
    key("env", "Variables of the script, each a text or {input: NAME}"),
];

pub(super) const ROUTING: &[Key] =
    &[key("literal", "The target itself"), key("ref", "A reference to the name of the target")];

pub(super) const ROUTING_LITERAL: &[Key] = &[
    key("sandbox", "Name of a sandbox"),
    key("routeGroup", "Name of a route group"),
    key("routingKey", "A routing key"),
];

pub(super) const ROUTING_REF: &[Key] = &[
    key("sandboxRef", "Reference to the name of a sandbox"),
    key("routeGroupRef", "Reference to the name of a route group"),
    key("routingKeyRef", "Reference to a routing key"),
    key("anyRef", "Reference to an object with `sandbox`, `routeGroup` or `routingKey`"),
];

pub(super) const CLUSTER: &[Key] = &[
    key("fromCluster", "Parameter that holds the name of the cluster"),
    key("fromSandbox", "Parameter that holds the name of a sandbox of the cluster"),
    key("fromRouteGroup", "Parameter that holds the name of a route group of the cluster"),
    key("fromAnyTarget", "Parameter that holds a routing target of the cluster"),
    key("pattern", "Pattern with `*` over the names of clusters; exactly one has to match"),
];
