//! The words of the language: every node type with its fields and handles, and the keys of everything around them.
//!
//! The parser refuses a field that is not here, and the JSON Schemas are made of these tables, so that neither knows a
//! word that the other does not.

mod types;

pub(crate) use types::NODE_TYPES;

use crate::read::{Key, key};
use windlass_kernel::net::{Backoff, FailureMode};

/// A field of a node's `config`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) shape: Shape,
    pub(crate) needed: bool,
}

/// Shape of the value of a field. Strings may hold templates unless the shape says otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Any,
    Text,
    /// A program in another language: what looks like a template is part of it.
    Code,
    /// An expression, with or without braces around it.
    Expression,
    /// A list, or an expression that returns one.
    Values,
    Whole(u32, u32),
    Number(f64, f64),
    Flag,
    /// Seconds as a number, or a text with a unit.
    Duration,
    Choice(&'static [&'static str]),
    /// `[{key, value}]`, or a map.
    Pairs,
    Map,
    Texts,
    /// Names, or a map of name to value.
    Variables,
    /// A value that must not be stored: `{{ NAME }}` of a stored secret, or a literal that moves into the store.
    Secret,
    /// A JSON Schema, as an object or as a text.
    Schema,
    Object(&'static [Field]),
    Items(&'static [Field]),
}

/// A type of node.
#[derive(Debug)]
pub(crate) struct NodeKind {
    pub(crate) name: &'static str,
    /// Second names.
    pub(crate) also: &'static [&'static str],
    pub(crate) kind: Kind,
    pub(crate) category: &'static str,
    pub(crate) about: &'static str,
    pub(crate) fields: &'static [Field],
    pub(crate) handles: &'static [Handle],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Trigger,
    HttpApi,
    Code,
    Data,
    Conditional,
    Loop,
    Filter,
    Delay,
    Approval,
    Shell,
    Workflow,
    Llm,
    AiAgent,
    MemoryStore,
    MemorySearch,
}

/// Handle from which edges leave a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handle {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) exit: Exit,
}

/// Condition under which an edge is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The node has completed.
    Done,
    /// The node has failed; the edge handles the failure.
    Error,
    /// Once per iteration of a loop.
    Body,
    /// Makes a node available to an agent.
    Tools,
    Yes,
    No,
    /// No condition is true.
    Default,
}

impl NodeKind {
    pub(crate) fn of(name: &str) -> Option<&'static NodeKind> {
        NODE_TYPES.iter().find(|kind| kind.name == name || kind.also.contains(&name))
    }
}

pub(crate) const ROOT: &[Key] = &[
    key("id", "For the program that drew the workflow; versions are numbered automatically"),
    key("name", "Executions and other workflows find it by this"),
    key("description", "For people"),
    key("version", "For people; versions are numbered automatically"),
    key("nodes", "What is done"),
    key("edges", "What follows what"),
    key("settings", "What holds for the whole execution"),
    key("status", "Whether it may be executed"),
    key("viewport", "Of the drawing"),
    key("tags", "For people and tools"),
    key("metadata", "For people and tools"),
];

/// A node. Other keys that editors write are ignored.
pub(crate) const NODE: &[Key] = &[
    key("id", "Unique; expressions read its output as `nodes['ID'].output`"),
    key("type", "What kind of node it is, unless `nodeType` says so"),
    key("nodeType", "What kind of node it is"),
    key("name", "What people call it"),
    key("label", "Another name of `name`"),
    key("description", "What it does; an agent chooses by it"),
    key("config", "By type, see there"),
    key("data", "Where drawings keep all of this"),
    key("position", "Of the drawing"),
    key("retryPolicy", "When and how often it is tried again"),
    key("retry", "Another name of `retryPolicy`"),
    key("timeoutMs", "Milliseconds that one try may take"),
    key("parameters", "JSON Schema of the arguments that an agent passes; templates read them as `args`"),
];

/// Fields that editors of drawings store with nodes.
pub(crate) const DRAWN_NODE: &[&str] = &[
    "width",
    "height",
    "selected",
    "dragging",
    "positionAbsolute",
    "zIndex",
    "style",
    "className",
    "sourcePosition",
    "targetPosition",
    "parentNode",
    "parentId",
    "extent",
    "hidden",
    "draggable",
    "selectable",
    "connectable",
    "deletable",
    "measured",
    "dragHandle",
    "initialWidth",
    "initialHeight",
    "ariaLabel",
    "focusable",
    "icon",
    "color",
];

pub(crate) const EDGE: &[Key] = &[
    key("id", "For the program that drew it"),
    key("source", "The node it leaves"),
    key("target", "The node it leads to"),
    key("sourceHandle", "Which of the node's exits it leaves by"),
    key("targetHandle", "Where the drawing ends; `tools` makes the source available to an agent"),
];

/// Fields that editors of drawings store with edges.
pub(crate) const DRAWN_EDGE: &[&str] = &[
    "type",
    "animated",
    "label",
    "labelStyle",
    "labelShowBg",
    "labelBgStyle",
    "labelBgPadding",
    "labelBgBorderRadius",
    "style",
    "className",
    "markerEnd",
    "markerStart",
    "data",
    "selected",
    "zIndex",
    "hidden",
    "deletable",
    "selectable",
    "focusable",
    "reconnectable",
    "updatable",
    "interactionWidth",
    "pathOptions",
    "ariaLabel",
    "sourceNode",
    "targetNode",
];

pub(crate) const SETTINGS: &[Key] = &[
    key("failureMode", "What an error that nothing handles means"),
    key("timeout", "Milliseconds that an execution may run; 300000 by default"),
    key("maxParallel", "Nodes that run at a time"),
    key("retryPolicy", "For nodes without their own"),
];

pub(crate) const FAILURE_MODES: [(&str, FailureMode); 3] = [
    ("fail_fast", FailureMode::FailFast),
    ("continue_on_error", FailureMode::Continue),
    ("collect_errors", FailureMode::Collect),
];

pub(crate) const STATUSES: [(&str, &str); 4] =
    [("draft", "draft"), ("active", "active"), ("paused", "paused"), ("archived", "archived")];

pub(crate) const RETRY: &[Key] = &[
    key("maxRetries", "Tries after the first one; 3 by default"),
    key("backoffStrategy", "How the pause between tries grows"),
    key("initialDelayMs", "The first pause; 1000 by default"),
    key("maxDelayMs", "No pause is longer; 60000 by default"),
    key("backoffMultiplier", "By which an exponential pause grows; 2 by default"),
    key("jitterFactor", "The share of a pause that is left to chance; 0.1 by default"),
    key("retryableErrors", "Codes that are tried again, instead of the usual ones"),
];

pub(crate) const BACKOFFS: [(&str, Backoff); 3] =
    [("fixed", Backoff::Fixed), ("linear", Backoff::Linear), ("exponential", Backoff::Exponential)];

pub(crate) const OPERATORS: [&str; 13] = [
    "equals",
    "not_equals",
    "greater_than",
    "less_than",
    "gte",
    "lte",
    "contains",
    "not_contains",
    "starts_with",
    "ends_with",
    "is_empty",
    "is_not_empty",
    "regex_match",
];
