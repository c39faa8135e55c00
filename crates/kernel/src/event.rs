//! Events in the past tense. An event carries every choice that was made (chosen arcs, bound arguments, instants,
//! merged context keys), so that `evolve` evaluates nothing (R3).

use crate::ids::{ExecutionId, Fence, Millis, Path, RunId, StepId, TokenId};
use crate::input::{Create, WorkResult};
use crate::net::NetDigest;
use crate::phase::Outcome;
use crate::step_run::{Args, Patch, Role};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_failure::Failure;

/// An event and its time. Times never decrease within an execution (K12).
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Record {
    pub at: Millis,
    pub event: Event,
}

/// Pattern that matches the named variants with any fields: `any_of![Event: Held Released]`. A match that ends in this
/// pattern instead of `_` does not compile until a new variant is named in it.
#[macro_export]
macro_rules! any_of {
    ($of:ident: $($name:ident)+) => { $($of::$name { .. })|+ };
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Created(Box<Created>),
    /// A worker took the execution. After a restart the deadline runs again from here.
    Assigned {
        worker: String,
        deadline: Option<Millis>,
    },
    /// The scheduled start time has come; with one worker per execution, a worker can be assigned now.
    TimeCame,
    /// The entries have their tokens.
    Started {
        deadline: Option<Millis>,
    },
    Held {
        by: String,
        reason: String,
    },
    Released {
        by: String,
    },
    Paused {
        reason: PauseReason,
        remaining_ms: Option<u64>,
    },
    Resumed {
        deadline: Option<Millis>,
    },
    /// The outcome is decided by this event, and only by it (R6).
    Draining {
        outcome: Outcome,
        cause: Cause,
        failure: Option<Failure>,
        compensate: bool,
    },
    /// All tokens and all waiting step-runs were removed.
    Cleared(Box<Cleared>),
    /// Work has to stop. The obligation remains until the worker acknowledges it or the lease ends (R7).
    StopAsked {
        leases: Vec<(RunId, Fence)>,
        children: Vec<ExecutionId>,
    },
    Compensating,
    Finalizing,
    Ended {
        outcome: Outcome,
        failure: Option<Failure>,
    },
    Restarted {
        generation: u32,
        remaining_ms: Option<u64>,
    },
    /// A decision reached its limit of firings; the next input continues the work.
    Continued,

    /// Tokens that an ended step-run sent along its arcs.
    Routed {
        run: RunId,
        step: StepId,
        path: Path,
        emitted: Vec<Emission>,
        end: BranchEnd,
    },
    Denied {
        token: TokenId,
        deadline: Option<Millis>,
    },
    /// A changed context opened these gates.
    Admitted {
        tokens: Vec<(StepId, TokenId)>,
    },
    Discarded {
        token: TokenId,
    },

    Fired {
        run: RunId,
        step: StepId,
        path: Path,
        token: Option<TokenId>,
        role: Role,
        args: Args,
    },
    /// The tokens or the condition excluded the step; every arc passes that on.
    Skipped {
        run: RunId,
        token: TokenId,
        step: StepId,
        path: Path,
        reason: SkipReason,
    },
    Waiting {
        run: RunId,
        target: Arc<Value>,
        until: Millis,
    },
    /// The step-run no longer waits: its route is ready, or the time of its next attempt has come.
    Woken {
        run: RunId,
    },
    Delayed {
        run: RunId,
        until: Millis,
    },
    /// A worker may take the step-run. `reads` names the firings whose outputs its templates read.
    Offered {
        run: RunId,
        fence: Fence,
        attempt: u32,
        reads: Vec<(StepId, RunId)>,
    },
    Lost {
        run: RunId,
        fence: Fence,
        started: bool,
        cursor: Option<Arc<Value>>,
    },
    /// An attempt failed and another one follows. `reported` is false if the attempt timed out or lost its lease; the
    /// next attempt resumes at `cursor`.
    RetryScheduled {
        run: RunId,
        fence: Option<Fence>,
        until: Millis,
        failure: Failure,
        reported: bool,
        patch: Patch,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Arc<Value>>,
    },
    /// A pipeline released its slot and resumes at `until`; no attempt is used.
    Yielded {
        run: RunId,
        fence: Fence,
        until: Millis,
        cursor: Option<Arc<Value>>,
        patch: Patch,
    },
    AwaitingManual {
        run: RunId,
        /// Fence that the person's completion token is valid for.
        fence: Fence,
        /// Fence of the offer under which the work was reported.
        answered: Option<Fence>,
        output: Arc<Value>,
        patch: Patch,
        deadline: Option<Millis>,
        times: Option<Times>,
    },
    CompletedManually {
        run: RunId,
        fence: Fence,
        by: Box<ManualNote>,
    },
    Done {
        run: RunId,
        fence: Option<Fence>,
        output: Arc<Value>,
        patch: Patch,
        times: Option<Times>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Arc<Value>>,
    },
    /// `output` is present if the work succeeded and a later part of the step failed.
    Failed {
        run: RunId,
        fence: Option<Fence>,
        failure: Failure,
        handled: bool,
        reported: bool,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "deserialize_present")]
        output: Option<Arc<Value>>,
        patch: Patch,
        times: Option<Times>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Arc<Value>>,
    },
    /// Work in flight ended after routing had stopped; `reported` is the worker's result.
    Dropped {
        run: RunId,
        fence: Option<Fence>,
        how: Gone,
        reported: Option<Box<WorkResult>>,
    },

    LoopStarted {
        run: RunId,
        total: Option<u32>,
        items: Option<Arc<Value>>,
    },
    /// An iteration of a body with several steps has begun.
    IterationStarted {
        run: RunId,
        index: u32,
    },
    /// `output` is the result of a body with several steps, present if the loop collects results.
    IterationEnded {
        run: RunId,
        index: u32,
        failed: bool,
        stop: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Arc<Value>>,
    },

    Patched {
        patch: Patch,
        by: String,
    },
    ChildStarted {
        run: RunId,
        fence: Fence,
        attempt: u32,
        child: ExecutionId,
        definition: Arc<Value>,
        inputs: Arc<Value>,
        until: Option<Millis>,
        /// The offer that started the child; its pipeline resumes when the child has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delegated: Option<Box<Delegated>>,
    },
    /// The child of a pipeline has ended, and the pipeline resumes; no attempt is used.
    Returned {
        run: RunId,
        fence: Fence,
        cursor: Arc<Value>,
    },
    NotCompensated {
        runs: Vec<RunId>,
    },
    AgentDecided {
        run: RunId,
        call: String,
        decision: AgentDecision,
    },
    /// A new execution took over the history up to here (R12); open work is offered again.
    Forked(Box<Fork>),
}

/// Reads a field that is present, so that a result of null stays distinct from no result.
fn deserialize_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Value>>, D::Error> {
    Arc::deserialize(deserializer).map(Some)
}

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

/// How a step-run was removed without a result of its own.
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

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct ManualNote {
    pub outcome: ManualOutcome,
    pub actor: String,
    pub notes: Option<String>,
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManualOutcome {
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
    Fail { failure: Failure },
}
