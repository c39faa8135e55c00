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
    key("id", "Id in the program that drew the workflow; versions are numbered automatically"),
    key("name", "Name of the workflow, by which executions and other workflows refer to it"),
    key("description", "Text for people"),
    key("version", "Text for people; versions are numbered automatically"),
    key("nodes", "Nodes of the workflow"),
    key("edges", "Edges between the nodes"),
    key("settings", "Settings of the whole execution"),
    key("status", "State of the workflow; only an active one can be started"),
    key("viewport", "Visible part of the drawing"),
    key("tags", "Tags for people and tools"),
    key("metadata", "Data for people and tools"),
];

/// A node. Other keys that editors write are ignored.
pub(crate) const NODE: &[Key] = &[
    key("id", "Unique id; expressions read the output of the node as `nodes['ID'].output`"),
    key("type", "Type of the node, unless `nodeType` is set"),
    key("nodeType", "Type of the node"),
    key("name", "Name of the node for people"),
    key("label", "Another name of `name`"),
    key("description", "Description of the node, by which an agent selects tools"),
    key("config", "Fields of the type of the node"),
    key("data", "All of these keys, as drawings store them"),
    key("position", "Position in the drawing"),
    key("retryPolicy", "Policy for retries of the node"),
    key("retry", "Another name of `retryPolicy`"),
    key("timeoutMs", "Maximum time of one attempt, in milliseconds"),
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
    key("id", "Id in the program that drew the workflow"),
    key("source", "Id of the node at the start of the edge"),
    key("target", "Id of the node at the end of the edge"),
    key("sourceHandle", "Exit of the source node"),
    key(
        "targetHandle",
        "Entry of the target node in the drawing; `tools` makes the source a tool of an agent",
    ),
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
    key("failureMode", "Effect of an unhandled error"),
    key("timeout", "Maximum time of an execution, in milliseconds; 300000 by default"),
    key("maxParallel", "Maximum number of nodes that run at a time"),
    key("retryPolicy", "Policy for retries of nodes without their own"),
];

pub(crate) const FAILURE_MODES: [(&str, FailureMode); 3] = [
    ("fail_fast", FailureMode::FailFast),
    ("continue_on_error", FailureMode::Continue),
    ("collect_errors", FailureMode::Collect),
];

pub(crate) const STATUSES: [(&str, &str); 4] =
    [("draft", "draft"), ("active", "active"), ("paused", "paused"), ("archived", "archived")];

pub(crate) const RETRY: &[Key] = &[
    key("maxRetries", "Number of retries; 3 by default"),
    key("backoffStrategy", "Growth of the delay between attempts"),
    key("initialDelayMs", "Delay before the first retry; 1000 by default"),
    key("maxDelayMs", "Maximum delay; 60000 by default"),
    key("backoffMultiplier", "Factor of an exponential delay; 2 by default"),
    key("jitterFactor", "Random share of a delay; 0.1 by default"),
    key("retryableErrors", "Codes that are retried, in place of the usual ones"),
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
