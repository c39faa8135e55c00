//! Policies: what differs between dialects is data, not code.

use crate::ids::StepId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use windlass_failure::ErrorClass;

/// What an arrow means: when the tokens before a step fire it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Once per live token; only matched arcs emit (playbooks).
    #[default]
    Each,
    /// Every arc has its token and all are live (plans, actions).
    All,
    /// Every arc has its token, none is poisoned and at least one is live (workflows).
    AnyLive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum FailureMode {
    /// An unhandled failure drains the execution.
    FailFast,
    /// A failed step poisons what depends on it; the rest goes on.
    #[default]
    Continue,
    /// A failed step hands its error on along unguarded arcs.
    Collect,
}

/// What an execution with unhandled failures is in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum EndPolicy {
    #[default]
    FailOnAny,
    /// Partial when something ended well, failed when nothing did.
    Partial,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum FinalFailure {
    #[default]
    Fail,
    Partial,
}

/// What is still owed after the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    #[default]
    Nothing,
    Step(StepId),
    Uploads,
}

/// What a lost lease of started work means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The step-run is offered again; no attempt is used up.
    #[default]
    ResumeStep,
    /// Everything runs again in a new generation.
    RestartExecution,
    /// The attempt failed, class transport.
    FailAttempt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Affinity {
    #[default]
    AnyWorker,
    /// One worker has the lease on the whole execution.
    OneWorker,
}

/// Bounds that keep any document from eating the machine (R5). Reaching one fails the execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Firings in one decide; more follow after a journaled Continue, so that one commit stays small.
    pub firings_per_decide: u32,
    /// Stops a loop of routing that never ends.
    pub firings_per_execution: u64,
    /// Bounds memory: each standing token is held in it.
    pub standing_tokens: usize,
    pub restarts: u32,
    pub losses: u32,
    pub depth: u32,
    /// A value whose JSON is longer is set aside, and the journal holds a reference.
    #[serde(skip_serializing_if = "is_usual")]
    pub inline_bytes: usize,
}

/// A net that does not speak of it keeps the digest it always had.
fn is_usual(inline_bytes: &usize) -> bool {
    *inline_bytes == windlass_artifact::INLINE_BYTES
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            firings_per_decide: 1_000,
            firings_per_execution: 1_000_000,
            standing_tokens: 100_000,
            restarts: 5,
            losses: 3,
            depth: 16,
            inline_bytes: windlass_artifact::INLINE_BYTES,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Policy {
    pub join: Join,
    /// Where the first token stands; without it every step without incoming arcs is an entry.
    pub entry: Option<StepId>,
    pub finish: Finish,
    pub final_failure: FinalFailure,
    pub final_step_on_cancel: bool,
    pub failure: FailureMode,
    pub end: EndPolicy,
    pub max_parallel: Option<u32>,
    pub timeout_ms: Option<u64>,
    pub recovery: Recovery,
    pub affinity: Affinity,
    pub compensate: bool,
    pub no_next_is_error: bool,
    /// A gate that nothing opens does not keep the execution alive.
    pub complete_with_pending_gates: bool,
    pub limits: Limits,
    /// Roots of expressions that a definition calls otherwise.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, Root>,
    /// Only callers who may edit definitions may start it. The kernel does not know callers; the engine and the server ask.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub editors_only: bool,
}

/// What a further name of expressions stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// The inputs of the execution, as `workload`.
    Inputs,
    /// The arguments of the token, as `args`.
    Arguments,
    /// As `steps`, with each output inside of an object: `NAME.STEP.output`.
    Outputs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    Fixed,
    Linear,
    #[default]
    Exponential,
}

/// What an error of no known class means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum UnknownErrors {
    /// Follow the error's own flag; without one do not try again.
    #[default]
    AsFlagged,
    Retry,
}

/// Which errors are tried again. The classes that never are stay so whatever stands here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    #[default]
    Default,
    /// Replaces the default set: names of classes or codes.
    Only(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retry {
    /// All tries, the first included.
    pub attempts_max: u32,
    pub backoff: Backoff,
    pub initial_ms: u64,
    pub multiplier: f64,
    pub max_ms: u64,
    /// Share of the delay that random bits may add or take, after the cap.
    pub jitter: f64,
    pub on: RetryOn,
    pub unknown: UnknownErrors,
    /// Another attempt goes on at the checkpoint of the one before it, instead of at the start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resumes: bool,
}

impl Default for Retry {
    /// One attempt.
    fn default() -> Self {
        Retry {
            attempts_max: 1,
            backoff: Backoff::Exponential,
            initial_ms: 1_000,
            multiplier: 2.0,
            max_ms: 60_000,
            jitter: 0.0,
            on: RetryOn::Default,
            unknown: UnknownErrors::AsFlagged,
            resumes: false,
        }
    }
}

impl RetryOn {
    #[must_use]
    pub fn lists(&self, class: ErrorClass, code: &str) -> Option<bool> {
        match self {
            RetryOn::Default => None,
            RetryOn::Only(names) => Some(names.iter().any(|name| name == class.name() || name == code)),
        }
    }
}
