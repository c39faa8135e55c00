//! Fields of events that are types of their own.

use crate::ids::{ExecutionId, Fence, Millis, RunId, StepId, TokenId};
use crate::input::Create;
use crate::net::NetDigest;
use crate::step_run::{Args, Patch};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_failure::Failure;

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Created {
    pub net: NetDigest,
    /// The creation request, with the effective timeout.
    pub create: Create,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartWhen {
    Now,
    At(Millis),
    /// Another component, such as a queue or a concurrency limit, sends `Begin`.
    Called,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Fork {
    pub parent: ExecutionId,
    pub id: ExecutionId,
    pub generation: u32,
    pub inputs: Option<Arc<Value>>,
    pub deadline: Option<Millis>,
    /// True if the records before are only the work that was taken over; older releases copied the whole beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_over: bool,
    /// The step-run that waits for the new execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_of: Option<Parent>,
}

/// The step-run that waits for this execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Parent {
    pub execution: ExecutionId,
    pub run: RunId,
    pub fence: Fence,
}

/// State of a pipeline that released its slot to wait for another execution.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Delegated {
    pub fence: Fence,
    pub cursor: Option<Arc<Value>>,
    pub patch: Patch,
}

/// A completed step that is taken over from an earlier execution, with the tokens it emitted (R12).
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Import {
    pub step: StepId,
    pub output: Arc<Value>,
    /// `None` if the step ended after routing had stopped; its arcs are evaluated now.
    pub emitted: Option<Vec<Emission>>,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Emission {
    pub arc: u32,
    pub token: TokenValue,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenValue {
    Live(Args),
    /// The arc was not taken.
    Dead,
    /// A step upstream failed.
    Poisoned,
}

/// State of a branch after routing. The branch has ended unless tokens were emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchEnd {
    GoesOn,
    Well,
    Failed,
    /// No arc matched, and the policy makes that an error.
    DeadEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    NotTaken,
    Upstream,
    Condition,
}

/// Reason for which a step-run was removed without a result of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gone {
    Skipped,
    Cancelled,
    Abandoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    Held,
    /// Only people can continue it: by gates, approvals or manual completions.
    Waiting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Quiet,
    Failure,
    Timeout,
    Cancel,
    /// A limit of R5 was reached.
    Limit,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Cleared {
    pub dropped: Vec<(RunId, Option<Fence>, Gone)>,
    /// Discarded tokens, including those at gates.
    pub tokens: Vec<TokenId>,
}

/// Times at which a worker claimed and started the work, taken from its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Times {
    pub claimed_at: Millis,
    pub started_at: Millis,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize, Default)]
pub struct ManualNote {
    pub outcome: ManualOutcome,
    pub actor: String,
    pub notes: Option<String>,
    pub evidence: Vec<String>,
    /// Time of the completion as the person states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Millis>,
    /// Roles of the person that a policy asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    #[serde(default, skip_serializing_if = "NoteEffect::is_end")]
    pub effect: NoteEffect,
}

/// Effect of a person's answer on the step-run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum NoteEffect {
    #[default]
    Ends,
    /// One of several answers that the step-run needs; it still waits.
    Counts,
    /// A constraint of the policy refused the answer; it is recorded as evidence.
    Refused { constraint: String, message: String },
}

impl NoteEffect {
    #[must_use]
    pub fn is_end(&self) -> bool {
        *self == NoteEffect::Ends
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum ManualOutcome {
    #[default]
    Succeeded,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentDecision {
    Execute { step: StepId, tool: RunId, args: Args },
    Skip { step: StepId, reason: String },
    Pause { reason: String },
    Fail { failure: Box<Failure> },
}
