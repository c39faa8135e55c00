//! What happened, in the past tense. Events carry every choice that was made: chosen arcs, bound arguments,
//! instants, merged context keys, so that `evolve` evaluates nothing (R3).

use crate::ids::{ExecutionId, Fence, Millis, Path, RunId, StepId, TokenId};
use crate::input::{Create, WorkResult};
use crate::net::NetDigest;
use crate::phase::Outcome;
use crate::step_run::{Args, Patch, Role};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_failure::Failure;

/// An event and its time. Times never fall within an execution (K12).
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Record {
    pub at: Millis,
    pub event: Event,
}

/// A pattern of the named variants, whatever they carry: `any_of![Event: Held Released]`. A match that ends in one
/// instead of `_` does not compile until a new variant is named in it.
#[macro_export]
macro_rules! any_of {
    ($of:ident: $($name:ident)+) => { $($of::$name { .. })|+ };
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Created(Box<Created>),
    /// After a restart the deadline runs on from here.
    Assigned {
        worker: String,
        deadline: Option<Millis>,
    },
    /// The time it was scheduled for; with one worker it can be assigned from here on.
    TimeCame,
    /// The entries' tokens stand from here on.
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
    /// The outcome is decided here, and only here (R6).
    Draining {
        outcome: Outcome,
        cause: Cause,
        failure: Option<Failure>,
        compensate: bool,
    },
    /// Everything that was standing or waiting is gone.
    Cleared(Box<Cleared>),
    /// Work that must stop: a stop obligation until the worker acknowledges or the lease ends (R7).
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
    /// A decide reached its bound of firings; the next input goes on.
    Continued,

    /// Where the tokens of an ended step-run went.
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
    /// Gates that a changed context opened.
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
    /// The tokens or the condition said not to run it; every arc carries that on.
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
    /// What it waited for is there: the route, or the time of its next attempt.
    Woken {
        run: RunId,
    },
    Delayed {
        run: RunId,
        until: Millis,
    },
    /// A worker may have it. `reads` names the firings whose outputs its templates read.
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
    /// `reported`: a worker said so; else its time was up or its lease lost. `cursor`: where the next attempt goes on.
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
    /// A pipeline gave its slot back and goes on at `until`; no attempt is used up.
    Yielded {
        run: RunId,
        fence: Fence,
        until: Millis,
        cursor: Option<Arc<Value>>,
        patch: Patch,
    },
    AwaitingManual {
        run: RunId,
        /// What the person's token stands for.
        fence: Fence,
        /// The offer that the work was reported under.
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
    /// `output` is there when the work succeeded and something after it failed.
    Failed {
        run: RunId,
        fence: Option<Fence>,
        failure: Failure,
        handled: bool,
        reported: bool,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
        output: Option<Arc<Value>>,
        patch: Patch,
        times: Option<Times>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Arc<Value>>,
    },
    /// Work in flight that ended when nothing was routed any more; `reported` is what its worker said.
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
    /// An iteration of a body of several steps begins.
    IterationStarted {
        run: RunId,
        index: u32,
    },
    /// `output` is what a body of several steps gave, where the loop's own output shall have it.
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
        /// The offer that asked for it: its pipeline goes on afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delegated: Option<Box<Delegated>>,
    },
    /// The other execution has ended, and the pipeline that waited for it goes on; no attempt is used up.
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
    /// A new execution took this history over up to here (R12); open work is offered anew.
    Forked(Box<Fork>),
}

/// A result of null is a result: where the field is written, there is one.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Value>>, D::Error> {
    Arc::deserialize(deserializer).map(Some)
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Created {
    pub net: NetDigest,
    /// What was asked for, with the timeout that holds.
    pub create: Create,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartWhen {
    Now,
    At(Millis),
    /// Something outside (a queue, a concurrency limit) says when.
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

/// A pipeline gave its slot back to wait for another execution.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Delegated {
    pub fence: Fence,
    pub cursor: Option<Arc<Value>>,
    pub patch: Patch,
}

/// A completed step taken over from an earlier execution, arc tokens as they were (R12).
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Import {
    pub step: StepId,
    pub output: Arc<Value>,
    /// None: it ended while nothing was routed any more, so its arcs are asked now.
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
    /// Not taken.
    Dead,
    /// Failed upstream.
    Poisoned,
}

/// How a branch stands after routing; it has ended unless tokens went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchEnd {
    GoesOn,
    Well,
    Failed,
    /// No arc matched, which the policy calls an error.
    DeadEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    NotTaken,
    Upstream,
    Condition,
}

/// How a step-run went without an end of its own.
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
    /// Only people can move it: gates, approvals, manual completions.
    Waiting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Quiet,
    Failure,
    Timeout,
    Cancel,
    /// A bound of R5 was reached.
    Limit,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Cleared {
    pub dropped: Vec<(RunId, Option<Fence>, Gone)>,
    /// Tokens discarded, at gates or not.
    pub tokens: Vec<TokenId>,
}

/// When a worker claimed and began, as its lease says.
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
