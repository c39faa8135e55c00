//! A workflow as it was read: every second name and form resolved, every expression compiled, every name with its place.

use super::language::{Exit, NodeKind};
use crate::read::Name;
use crate::source::Written;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use windlass_expr::{Expr, Read};
use windlass_kernel::net::{FailureMode, LoopKind, Retry};
use windlass_protocol::{Key, Rule};

#[derive(Debug, Default)]
pub(super) struct Workflow {
    pub(super) name: Option<String>,
    pub(super) status: Option<&'static str>,
    pub(super) nodes: Vec<NodeDef>,
    pub(super) edges: Vec<EdgeDef>,
    pub(super) settings: Settings,
    /// Secrets that were written into the definition.
    pub(super) written: Vec<Written>,
    /// JSON Schema of the inputs.
    pub(super) inputs: Option<Value>,
}

#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) failure: Option<FailureMode>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_parallel: Option<u32>,
    pub(super) retry: Option<Retry>,
}

#[derive(Debug)]
pub(super) struct NodeDef {
    pub(super) id: Name,
    /// Name for people.
    pub(super) title: String,
    pub(super) description: String,
    pub(super) kind: &'static NodeKind,
    /// Source without secrets.
    pub(super) config: Map<String, Value>,
    pub(super) form: Form,
    pub(super) seen: Vec<Seen>,
    /// Name in the node to stored secret.
    pub(super) credentials: BTreeMap<String, String>,
    pub(super) env: Map<String, Value>,
    /// JSON Schema of the arguments that an agent passes to it.
    pub(super) parameters: Option<Value>,
    pub(super) retry: Option<Retry>,
    pub(super) timeout_ms: Option<u64>,
}

/// A name that an expression reads, and the position of the expression.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) read: Read,
    pub(super) at: Range<usize>,
}

/// Work of a node, ready to be lowered.
#[derive(Debug)]
pub(super) enum Form {
    Trigger,
    Conditional(Conditional),
    Loop(Box<LoopForm>),
    Delay {
        ms: Value,
    },
    Approval {
        deadline_ms: Option<u64>,
        /// `{message, approvers}`.
        asks: Option<Value>,
    },
    Child {
        definition: Value,
        inputs: Value,
        timeout_ms: Option<u64>,
    },
    Task(TaskForm),
    /// It could not be parsed; a problem was reported.
    Broken,
}

#[derive(Debug)]
pub(super) struct Conditional {
    /// Names of the conditions, in order.
    pub(super) branches: Vec<String>,
    pub(super) default_branch: Option<String>,
    pub(super) output: Value,
}

#[derive(Debug)]
pub(super) struct LoopForm {
    pub(super) kind: LoopKind,
    pub(super) iterator: String,
    pub(super) cap: u32,
    pub(super) break_when: Option<Expr>,
    /// The body does not run in an iteration for which it holds.
    pub(super) skip_when: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct TaskForm {
    pub(super) tool: &'static str,
    pub(super) config: Map<String, Value>,
    pub(super) rules: Vec<Rule>,
    pub(super) keychain: Vec<Key>,
    pub(super) timeout_ms: Option<u64>,
    /// Number of tries, if the node's type has it.
    pub(super) attempts_max: Option<u32>,
    /// Position of its code.
    pub(super) code_at: Option<Range<usize>>,
}

#[derive(Debug)]
pub(super) struct EdgeDef {
    pub(super) source: Name,
    pub(super) target: Name,
    pub(super) handle: Option<Name>,
    pub(super) target_handle: Option<String>,
    pub(super) at: Range<usize>,
}

/// An edge between nodes that exist, by a handle that exists.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) exit: Exit,
    /// The branch of a conditional.
    pub(super) branch: Option<String>,
    pub(super) at: Range<usize>,
}
