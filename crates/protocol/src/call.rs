//! The conversation of a worker with its engine: every [`Call`] that a worker makes and every [`Reply`] to one.
//!
//! The in-process pool, the simulator and workers of other processes use the same values; a transport carries them and
//! adds no message.
//!
//! | call | replies |
//! |---|---|
//! | [`Call::Register`] | [`Reply::Registered`], then a [`Reply::Order`] for each order, until the session is over |
//! | [`Call::Beat`], [`Call::Leave`], [`Call::Report`], [`Call::Checkpoint`], [`Call::Progress`], [`Call::Log`] | [`Reply::Verdict`] |
//! | [`Call::Agent`] | [`Reply::Agent`] |
//! | [`Call::Resource`] | [`Reply::Resource`] |
//!
//! Calls of one kind arrive in the order they were made, and the log of a unit before its report. A reply is sent after
//! what it confirms is on disk. A call without a reply counts as lost: the worker makes it again. A transport that cannot
//! carry a call because of its size replies with [`Reply::Refused`].

use crate::resource::{ResourceCall, ResourceReply, WorkerRules};
use crate::work::{Checkpoint, Log, Progress, Report, SessionId, Unit, Work};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_failure::Failure;

/// Version of the protocol. It is raised when a message of an older worker can no longer be understood; a field that is
/// added later has a default.
pub const PROTOCOL_VERSION: u32 = 3;

/// Message of a worker to its engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    Register(Register),
    Beat(Beat),
    /// Ends the session. Unfinished work is offered again at once, and does not count as lost.
    Leave(SessionId),
    Report(Box<Report>),
    Checkpoint(Checkpoint),
    /// Decision of an agent. The reply follows when what it began has ended, which may take long.
    Agent(Box<AgentCall>),
    /// Newest progress of a unit. A lost message is not sent again.
    Progress(Progress),
    /// Lines of a log. The reply means that the next lines may be sent.
    Log(Log),
    /// Request for something that the engine holds for the unit.
    Resource(Box<ResourceCall>),
}

/// Message of the engine to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Registered(Registered),
    Order(Order),
    Verdict(Verdict),
    Agent(Box<AgentAnswer>),
    Resource(Box<ResourceReply>),
    /// Reason for which the call can never be accepted.
    Refused(Box<Failure>),
}

/// Callback for the replies to one call, in a transport within one process. It is called from any thread and must not
/// wait. If it is dropped without a call, the call counts as lost.
pub type ReplyTo = Box<dyn FnMut(Reply) + Send>;

/// Registration of a worker that takes `slots` units of work at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    pub protocol: u32,
    pub worker: String,
    pub slots: u32,
}

/// Session of a registered worker, and the rules for its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    pub session: SessionId,
    pub rules: Arc<WorkerRules>,
}

/// Renews the leases of everything that the worker still holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    pub session: SessionId,
    pub holds: Vec<Unit>,
    /// Whether the worker finishes its work and takes no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// Instruction to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Run(Box<Work>),
    /// Stops the unit: TERM, then KILL after `grace_ms`. The worker answers with a report, `Stopped` if it has no result.
    Stop {
        unit: Unit,
        grace_ms: u64,
    },
    /// The engine does not know the session: all its work is lost, and the worker registers again.
    Unknown,
}

/// Answer to a report, a checkpoint or a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Accepted,
    /// The unit was given to another worker, was stopped or has ended: the call changed nothing.
    Stale,
    /// The fence was answered before, with another report (R16).
    Conflict,
}

/// Decision of an agent. The same call made again, by this worker or by one that took over, is the same decision and
/// gets the same answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCall {
    pub unit: Unit,
    /// Unique among the calls of one step-run.
    pub call: String,
    pub ask: AgentAsk,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentAsk {
    /// Runs a step that is available to agents, with these arguments.
    Execute { step: u32, args: Value },
    /// The step will not be needed and can no longer be executed.
    Skip { step: u32, reason: String },
    /// Nothing new begins until a person resumes the execution.
    Pause { reason: String },
    /// Fails the whole execution.
    Fail { failure: Failure },
}

/// Answer to a decision, sent when the decision and the end of what it began are on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentAnswer {
    /// The step has ended; the output may be a reference to a large value.
    Done {
        output: Arc<Value>,
    },
    Failed(Failure),
    /// The step was dropped before its end.
    Cancelled,
    /// The decision is recorded. After a pause: the execution was resumed.
    Noted,
    /// The decision is not possible, and nothing was recorded.
    Refused {
        why: String,
    },
    /// The unit was given to another worker, was stopped or has ended.
    Stale,
}
