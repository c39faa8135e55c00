//! A document of actions as it was read, every name with its position.

use crate::read::Name;
use serde_json::{Map, Value};
use std::ops::Range;
use windlass_duties::SodConstraint;
use windlass_expr::Read;
use windlass_kernel::net::Retry;

#[derive(Debug, Default)]
pub(super) struct Workflow {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) status: Option<&'static str>,
    pub(super) tier: Tier,
    pub(super) timeout_ms: Option<u64>,
    /// JSON Schema of the inputs.
    pub(super) inputs: Option<Value>,
    pub(super) constraints: Vec<SodConstraint>,
    pub(super) actions: Vec<Action>,
}

impl Workflow {
    /// Returns whether dependencies determine the next actions, and not the order alone.
    pub(super) fn is_graph(&self) -> bool {
        self.actions.iter().any(|action| action.depends_on.is_some())
    }

    /// Lists the operations that actions and hooks call. One that could not be read is left out.
    pub(super) fn operations(&self) -> impl Iterator<Item = &Name> {
        let all = self.actions.iter().flat_map(|action| {
            std::iter::once(&action.operation).chain(action.compensation.iter().map(|hook| &hook.operation))
        });
        all.filter(|operation| !operation.text.is_empty())
    }
}

/// Part that people take in an action, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Tier {
    #[default]
    Auto,
    Assisted,
    HumanApprove,
    ManualOnly,
}

impl Tier {
    pub(super) fn word(self) -> &'static str {
        match self {
            Tier::Auto => "Auto",
            Tier::Assisted => "Assisted",
            Tier::HumanApprove => "HumanApprove",
            Tier::ManualOnly => "ManualOnly",
        }
    }

    /// Returns whether a person has to approve the action before it is dispatched.
    pub(super) fn is_gated(self) -> bool {
        match self {
            Tier::Auto | Tier::Assisted => false,
            Tier::HumanApprove | Tier::ManualOnly => true,
        }
    }
}

#[derive(Debug)]
pub(super) struct Action {
    pub(super) id: Name,
    pub(super) order: Option<(i64, Range<usize>)>,
    /// Empty if it could not be read; a problem was reported.
    pub(super) operation: Name,
    pub(super) tier: Tier,
    pub(super) input: Input,
    /// `None` if the document has no such key.
    pub(super) depends_on: Option<Vec<Name>>,
    pub(super) retry: Retry,
    pub(super) timeout_ms: u64,
    pub(super) completion: CompletionMode,
    pub(super) side_effecting: bool,
    pub(super) compensation: Option<Compensation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompletionMode {
    Auto,
    Manual { deadline_ms: Option<u64> },
}

#[derive(Debug)]
pub(super) struct Compensation {
    pub(super) operation: Name,
    pub(super) input: Input,
    pub(super) input_schema: Option<Value>,
    pub(super) retry: Retry,
    pub(super) timeout_ms: u64,
}

/// Arguments of an operation: templates, and the names that they read.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) fields: Map<String, Value>,
    pub(super) reads: Vec<Seen>,
}

/// A name that an expression reads, and the position of the expression.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) read: Read,
    pub(super) at: Range<usize>,
}
