//! Policies. Dialects differ in this data and not in code.

use crate::ids::StepId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use windlass_failure::ErrorClass;

/// Rule by which the tokens at a step fire it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Fires once per live token, except at join steps; only matching arcs emit (playbooks).
    #[default]
    Each,
    /// Fires when every arc has a token and all are live (plans, actions).
    All,
    /// Fires when every arc has a token, none is poisoned and at least one is live (workflows).
    AnyLive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum FailureMode {
    /// An unhandled failure drains the execution.
    FailFast,
    /// A failed step poisons its dependents; all other steps continue.
    #[default]
    Continue,
    /// A failed step passes its error along arcs without a guard.
    Collect,
}

/// Outcome of an execution with unhandled failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum EndPolicy {
    #[default]
    FailOnAny,
    /// Partial if anything succeeded, failed otherwise.
    Partial,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum FinalFailure {
    #[default]
    Fail,
    Partial,
}

/// Work that follows the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    #[default]
    Nothing,
    Step(StepId),
    Uploads,
}

/// Consequence of a lost lease on started work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The step-run is offered again; no attempt is used.
    #[default]
    ResumeStep,
    /// The whole execution runs again in a new generation.
    RestartExecution,
    /// The attempt failed with class transport.
    FailAttempt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Affinity {
    #[default]
    AnyWorker,
    /// One worker leases the whole execution.
    OneWorker,
}

/// Limits that keep a definition from exhausting the machine (R5). Reaching one fails the execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Maximum number of firings in one decision. A journaled `Continued` follows, so that a commit stays small.
    pub firings_per_decide: u32,
    /// Stops routing that never ends.
    pub firings_per_execution: u64,
    /// Bounds memory, because every token that waits at a step is held there.
    pub standing_tokens: usize,
    pub restarts: u32,
    pub losses: u32,
    pub depth: u32,
    /// Length of a value's JSON above which the value is stored as an artifact, and the journal holds a reference.
    #[serde(skip_serializing_if = "is_default_inline")]
    pub inline_bytes: usize,
}

/// Omits the default when it is serialised, so that older nets keep their digest.
fn is_default_inline(inline_bytes: &usize) -> bool {
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
    /// Step of the first token. If unset, every step without incoming arcs is an entry.
    pub entry: Option<StepId>,
    pub finish: Finish,
    pub final_failure: FinalFailure,
    pub final_step_on_cancel: bool,
    /// The final step reads the results or failures of other steps, so they are read from the journal for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub final_reads_firings: bool,
    pub failure: FailureMode,
    pub end: EndPolicy,
    pub max_parallel: Option<u32>,
    pub timeout_ms: Option<u64>,
    pub recovery: Recovery,
    pub affinity: Affinity,
    pub compensate: bool,
    pub no_next_is_error: bool,
    /// Lets the execution complete while tokens still wait at gates.
    pub complete_with_pending_gates: bool,
    pub limits: Limits,
    /// Additional names for the roots of expressions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, Root>,
    /// Outputs of the execution, if the definition declares them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<DeclaredOutput>,
    /// Restricts starts to callers who may edit definitions. The engine and the server check this, because the kernel
    /// does not know callers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub editors_only: bool,
}

/// An output of an execution: a part of the output of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredOutput {
    pub name: String,
    pub step: StepId,
    /// Key of the step's output. Without it, the output is left out.
    pub key: String,
    /// Keys and indexes that lead into the value. If they lead nowhere, the execution fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drill: Vec<String>,
}

impl DeclaredOutput {
    /// Returns the value in the output of the step: `None` if the step has no such key, `Some(None)` if the drill leads
    /// nowhere. The drill of a value that is stored elsewhere is left to those who read it.
    #[must_use]
    pub fn find<'v>(&self, output: &'v Value) -> Option<Option<&'v Value>> {
        let value = output.get(&self.key)?;
        if windlass_artifact::key(value).is_some() {
            return Some(Some(value));
        }
        Some(self.drill.iter().try_fold(value, |value, segment| match value.as_array() {
            Some(items) => items.get(segment.parse::<usize>().ok()?),
            None => value.get(segment),
        }))
    }
}

/// Meaning of an additional root name in expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// The inputs of the execution, like `workload`.
    Inputs,
    /// The arguments of the token, like `args`.
    Arguments,
    /// The outputs, like `steps`, each wrapped in an object: `NAME.STEP.output`.
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

/// Treatment of errors without a known class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum UnknownErrors {
    /// Follows the error's own flag; an error without one is not retried.
    #[default]
    AsFlagged,
    Retry,
}

/// Selection of errors that are retried. Classes that are never retried are excluded in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    #[default]
    Default,
    /// Names of classes or codes that replace the default set.
    Only(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retry {
    /// Maximum number of attempts, including the first.
    pub attempts_max: u32,
    pub backoff: Backoff,
    pub initial_ms: u64,
    pub multiplier: f64,
    pub max_ms: u64,
    /// Fraction of the delay that is added or subtracted at random, after the cap.
    pub jitter: f64,
    pub on: RetryOn,
    pub unknown: UnknownErrors,
    /// Resumes another attempt at the checkpoint of the previous one, instead of at the start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resumes: bool,
}

impl Default for Retry {
    /// Returns a policy with a single attempt.
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
