//! Inputs of an execution, and the reasons for which the kernel rejects them.

use crate::event::{Import, ManualNote, Parent, StartWhen, Times};
use crate::firings::Firings;
use crate::ids::{ExecutionId, Fence, Millis, Path, RunId, StepId, TokenId};
use crate::phase::{Outcome, Phase};
use crate::step_run::{Args, Patch};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_failure::Failure;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    Create(Box<Create>),
    /// A worker takes the whole execution (one_worker).
    Assign {
        worker: String,
    },
    Begin,
    StartFailed {
        failure: Failure,
    },
    Report(Box<Report>),
    LeaseLost(LeaseLost),
    TimerDue(Timer),
    RouteReady {
        run: RunId,
    },
    /// A person ends a manual step or an approval; their completion token is valid for `fence`.
    Complete {
        run: RunId,
        fence: Fence,
        note: Box<ManualNote>,
        /// Version of the state that a policy was checked against; the input is refused if records followed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<u64>,
    },
    Patch {
        patch: Patch,
        by: String,
    },
    Hold {
        by: String,
        reason: String,
    },
    Resume {
        by: String,
    },
    Cancel(Cancel),
    ChildEnded {
        run: RunId,
        fence: Fence,
        child: ExecutionId,
        result: ChildResult,
    },
    /// Only people can continue the child, or it continues.
    ChildPaused {
        run: RunId,
        fence: Fence,
        child: ExecutionId,
        paused: bool,
    },
    Agent {
        run: RunId,
        fence: Fence,
        call: String,
        ask: AgentAsk,
    },
    Uploaded {
        failure: Option<Failure>,
    },
    /// Continues the work after a `Continued`.
    Continue,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Create {
    pub id: ExecutionId,
    pub inputs: Arc<Value>,
    /// Overrides the timeout of the Net.
    pub timeout_ms: Option<u64>,
    pub start: StartWhen,
    pub parent: Option<Parent>,
    pub depth: u32,
    pub retry_of: Option<ExecutionId>,
    /// Steps that executions of older releases took over; newer ones take over records.
    pub imports: Vec<Import>,
}

impl Create {
    #[must_use]
    pub fn new(id: ExecutionId, inputs: Value) -> Create {
        Create {
            id,
            inputs: Arc::new(inputs),
            timeout_ms: None,
            start: StartWhen::Now,
            parent: None,
            depth: 0,
            retry_of: None,
            imports: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub run: RunId,
    pub fence: Fence,
    pub result: WorkResult,
    #[serde(default)]
    pub patch: Patch,
    #[serde(default)]
    pub times: Option<Times>,
    /// Counters of the work, such as tokens and requests. The kernel stores them and does not read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Arc<Value>>,
    /// Checkpoint that was stored with the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Arc<Value>>,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkResult {
    Done {
        output: Arc<Value>,
    },
    Failed(Failure),
    /// The work was asked to stop and has stopped.
    Stopped,
    /// A pipeline waits longer than it may hold a slot.
    Later {
        delay_ms: u64,
        cursor: Option<Arc<Value>>,
    },
    /// A pipeline waits for another execution and resumes with its result.
    Child {
        definition: Arc<Value>,
        inputs: Arc<Value>,
        cursor: Option<Arc<Value>>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeaseLost {
    pub unit: LeaseUnit,
    pub loss: Loss,
    /// Checkpoint that was stored with the lease.
    #[serde(default)]
    pub cursor: Option<Arc<Value>>,
}

/// Progress of the work when its lease ended, and the reason for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    NotStarted,
    Started,
    /// The worker shut down in an orderly way and returned unfinished work; the loss is not counted.
    GivenBack,
}

impl Loss {
    #[must_use]
    pub fn of(started: bool) -> Loss {
        if started { Loss::Started } else { Loss::NotStarted }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseUnit {
    Execution { generation: u32 },
    Run { run: RunId, fence: Fence },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    Start,
    Deadline,
    Backoff {
        run: RunId,
    },
    Delay {
        run: RunId,
    },
    Routing {
        run: RunId,
    },
    Gate {
        step: StepId,
        token: TokenId,
    },
    Manual {
        run: RunId,
    },
    /// Time limit of an attempt. It counts from the start of the lease, which the kernel does not know; the fence
    /// identifies the attempt.
    Attempt {
        run: RunId,
        fence: Fence,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Cancel {
    pub by: String,
    pub reason: String,
    pub force: bool,
    pub compensate: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildResult {
    pub outcome: Outcome,
    pub output: Arc<Value>,
    pub failure: Option<Failure>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentAsk {
    Execute { step: StepId, args: Args },
    Skip { step: StepId, reason: String },
    Pause { reason: String },
    Fail { failure: Failure },
}

/// Data that accompanies an input: the time, random bits, and values that were loaded for it.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    pub now: Millis,
    pub random: u64,
    pub values: &'a Values,
}

/// A value outside the live state that a decision has to read (R4).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    Output(RunId),
    Items(RunId),
    /// Ends of the iterations of a loop.
    Results(RunId),
    /// Ended firings of the whole execution.
    Firings,
    Artifact(String),
    /// The answer accepted under this fence, if any (R16).
    Answer(RunId, Fence),
}

/// Values loaded for a decision.
#[derive(Debug, Clone, Default)]
pub struct Values {
    pub outputs: BTreeMap<RunId, Arc<Value>>,
    pub items: BTreeMap<RunId, Arc<Value>>,
    pub results: BTreeMap<RunId, IterationEnds>,
    pub firings: Option<Box<Firings>>,
    /// `None` if the artifact is missing or its content has changed.
    pub artifacts: BTreeMap<String, Option<Arc<Value>>>,
    pub answers: BTreeMap<(RunId, Fence), Option<Answer>>,
    /// Checkpoint of an offer that timed out (R14). The caller always passes it in; the kernel never requests it.
    pub checkpoints: BTreeMap<(RunId, Fence), Arc<Value>>,
}

/// Ends of a loop's iterations, folded from all records since the loop began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IterationEnds {
    /// Firings inside of loops that have not ended.
    pub(crate) open: BTreeMap<RunId, OpenFiring>,
    /// Outputs of the iterations by their index.
    pub outputs: BTreeMap<u32, Arc<Value>>,
    /// Unhandled failures inside of this loop and of loops that run at the same time.
    pub failures: Vec<IterationFailure>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenFiring {
    pub(crate) step: StepId,
    pub(crate) path: Path,
    pub(crate) attempt: u32,
    /// True if it is an iteration of this loop.
    pub(crate) own: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct IterationFailure {
    pub step: StepId,
    pub path: Path,
    pub attempt: u32,
    pub failure: Failure,
}

/// The one answer that was accepted under a fence.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// `patch` is `None` if the journal does not hold it, because it had no effect.
    Report {
        result: WorkResult,
        patch: Option<Patch>,
    },
    Manual(ManualNote),
    Child,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejected {
    #[error("values have to be loaded first")]
    Needs(Vec<Need>),
    #[error("the execution has ended ({})", .0.name())]
    Ended(Outcome),
    #[error("the execution does not exist")]
    NotCreated,
    #[error("the execution exists already")]
    Exists,
    #[error("not possible while the execution is {}: {why}", .phase.name())]
    Conflict { phase: Phase, why: &'static str },
    #[error("the execution has no such step-run")]
    UnknownRun(RunId),
    #[error("the execution has no such step")]
    UnknownStep(StepId),
    #[error("no token waits at this gate")]
    UnknownToken(TokenId),
    #[error("the input is for generation {given}, but the execution is in generation {current}")]
    WrongGeneration { given: u32, current: u32 },
    #[error("the answer is too late: the work was assigned to another worker, or has ended")]
    StaleFence { given: Fence },
    #[error("a different answer has already been accepted")]
    OtherAnswer { given: Fence },
    #[error("the step-run does not wait for this: {why}")]
    NotWaiting { run: RunId, why: &'static str },
    #[error("the timer is not due yet")]
    NotDue { until: Millis },
    #[error("the input is malformed: {0}")]
    Malformed(&'static str),
    #[error("the context would have {bytes} bytes, more than {max}; set fewer or smaller values")]
    ContextTooLarge { bytes: usize, max: usize },
    #[error("the net is not the one the execution was created with")]
    WrongNet,
    #[error("invariant broken, nothing was changed: {0}")]
    Broken(#[from] Illegal),
}

/// An event that cannot follow the events before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {version} is illegal here: {what}")]
pub struct Illegal {
    pub version: u64,
    pub what: String,
}
