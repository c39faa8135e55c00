//! What a worker asks for while it works on an agent. Every decision of the agent is one call.

use crate::work::Unit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_failure::Failure;

/// One decision. The same call asked again, by this worker or by one that took over, is not a second decision and gets
/// the same answer.
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
    /// Run a step that is available to agents, with these arguments.
    Execute { step: u32, args: Value },
    /// It will not be needed; nobody can execute it any more.
    Skip { step: u32, reason: String },
    /// Nothing new begins until somebody resumes the execution.
    Pause { reason: String },
    /// The whole execution has failed.
    Fail { failure: Failure },
}

/// What a call came to. It is given when the decision, and the end of what it began, are on disk.
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
    /// It is noted. After a pause: the execution goes on.
    Noted,
    /// It cannot be done, and nothing was decided.
    Refused {
        why: String,
    },
    /// The work was given to someone else, was stopped or has ended.
    Stale,
}
