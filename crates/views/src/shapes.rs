//! Types of the answers about executions. The OpenAPI document is made from them.

use crate::place::ErrorPlace;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::{ExecutionId, Fence, RunId};

/// The document's WorkflowExecutionResponse, for executions of every dialect, without the fields that only a server
/// knows.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionView {
    pub execution_id: String,
    pub workflow_id: Option<String>,
    pub workflow_name: Option<String>,
    pub workflow_version: Option<u32>,
    pub status: ExecutionStatus,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub completed_at: Option<String>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub duration: Option<u64>,
    pub progress: Progress,
    #[schema(value_type = Object)]
    pub inputs: Value,
    #[schema(value_type = Option<Object>)]
    pub outputs: Value,
    pub node_executions: Vec<NodeExecution>,
    /// Tasks for people that the execution waits for, or its pause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub waiting_for: Vec<Waiting>,
    /// Set if the execution is in quarantine and does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub quarantined: Option<Quarantined>,
    pub errors: Vec<ExecutionError>,
    /// Parts that this answer omits because it would be too large
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub shortened: Option<Shortened>,
    pub metadata: Metadata,
    /// `playbook`, `workflow`, …
    pub dialect: Option<&'static str>,
    /// The execution in the terms of its dialect.
    #[schema(value_type = Option<Object>)]
    pub view: Value,
}

/// Parts that an answer omits. The newest results are kept; every other value is replaced by `{"$omitted": true,
/// "bytes": N, "url": …}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shortened {
    /// Number of omitted values
    pub values: u64,
    /// Bytes of the JSON of these values
    pub bytes: u64,
    /// Number of omitted entries and iterations, the oldest first
    pub node_executions: u64,
    /// URL of the events, which list every firing and the whole context, page by page
    pub events: String,
}

impl Shortened {
    pub(crate) fn new(events: String) -> Shortened {
        Shortened { values: 0, bytes: 0, node_executions: 0, events }
    }
}

/// Reason for which an execution does not run. An operator releases or cancels it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quarantined {
    pub reason: String,
    #[schema(format = DateTime)]
    pub since: String,
    /// Number of process deaths that led to it.
    pub deaths: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    Queued,
    Initializing,
    Running,
    Completed,
    Failed,
    PartialSuccess,
    Cancelled,
    Paused,
}

impl ExecutionStatus {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ExecutionStatus::Queued => "queued",
            ExecutionStatus::Initializing => "initializing",
            ExecutionStatus::Running => "running",
            ExecutionStatus::Completed => "completed",
            ExecutionStatus::Failed => "failed",
            ExecutionStatus::PartialSuccess => "partial_success",
            ExecutionStatus::Cancelled => "cancelled",
            ExecutionStatus::Paused => "paused",
        }
    }

    #[must_use]
    pub fn is_ended(self) -> bool {
        match self {
            ExecutionStatus::Completed
            | ExecutionStatus::Failed
            | ExecutionStatus::PartialSuccess
            | ExecutionStatus::Cancelled => true,
            ExecutionStatus::Queued
            | ExecutionStatus::Initializing
            | ExecutionStatus::Running
            | ExecutionStatus::Paused => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The value never decreases and is 100 only when the execution is completed.
    #[schema(minimum = 0, maximum = 100)]
    pub percentage: usize,
    pub completed_nodes: usize,
    pub total_nodes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub current_node: Option<String>,
}

/// One firing of a node, or a node that has not fired.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeExecution {
    pub node_id: String,
    pub node_name: String,
    pub node_type: String,
    /// Number among the firings of its node, from 1; 0 if the node has not fired.
    pub firing: u32,
    /// Iteration numbers of the loops around it, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub path: Vec<u32>,
    #[serde(flatten)]
    pub result: FiringResult,
    /// Iterations of the node's own loop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub iterations: Vec<Iteration>,
    /// The compensation that undid it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub compensation: Option<FiringResult>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Iteration {
    /// Number of the iteration, from 0.
    pub index: Option<u32>,
    #[serde(flatten)]
    pub result: FiringResult,
}

/// Result of a firing, an iteration or a compensation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FiringResult {
    pub status: NodeStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub completed_at: Option<String>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub duration: Option<u64>,
    pub retry_count: u32,
    /// The output: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub output: Option<Arc<Value>>,
    /// Counters of the worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NodeMetadata>, nullable = false)]
    pub metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<ExecutionError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub progress: Option<NodeProgress>,
    /// `not_taken`, `upstream` or `condition`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub skip_reason: Option<&'static str>,
    /// While it has not begun, or waits for a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub waits: Option<NodeWait>,
    /// The newest execution that it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub child_execution_id: Option<String>,
}

/// Reason and end of a wait of a firing that is not for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NodeWait {
    pub reason: NodeWaitReason,
    /// End of a delay, of a backoff, or of the wait for a target that is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub until: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeWaitReason {
    /// The release of the execution, which is paused.
    Hold,
    /// The end of other steps: the limit on parallel steps of the execution is reached.
    Parallel,
    /// A free slot of a worker.
    Slot,
    /// The readiness of its target.
    Target,
    /// The next attempt.
    Backoff,
    /// A time.
    Delay,
}

/// Progress as the node reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeProgress {
    pub step: String,
    #[schema(minimum = 0, maximum = 100)]
    pub percentage: u8,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionError {
    pub code: String,
    /// `timeout`, `rate_limit`, `transient_5xx`, `transport`, `validation`, `policy`, `auth`, `conflict` or `unknown`.
    pub class: &'static str,
    /// Same value as `class`.
    pub kind: &'static str,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node_name: Option<String>,
    #[serde(flatten)]
    pub place: ErrorPlace,
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// Status of the HTTP response that was the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub http_status: Option<u16>,
    /// Time that the server asked to wait before the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retry_after_ms: Option<u64>,
    /// Number of the attempt that failed, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attempt: Option<u32>,
    /// The error as the node returned it; only with `debugMode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<Value>,
    /// Details, with `category`: `transient`, `validation`, `configuration`, `resource` or `system`.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub triggered_by: String,
    #[schema(value_type = TriggerType)]
    pub trigger_type: String,
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub parent_execution_id: Option<String>,
    /// The execution that this one retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retry_of: Option<String>,
    /// Number of restarts because its worker was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub restarts: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    #[default]
    Pending,
    Running,
    Completed,
    Failed,
    Skipped,
    Retrying,
}

/// Metadata of the node contract.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetadata {
    /// Milliseconds.
    #[schema(nullable = false)]
    pub duration: Option<u64>,
    #[schema(nullable = false)]
    pub tokens_used: Option<u64>,
    #[schema(nullable = false)]
    pub api_calls: Option<u64>,
    /// Further counters of the node, by name.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub metrics: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerType {
    Manual,
    Schedule,
    Webhook,
    Api,
    Workflow,
}

/// A task that only people can complete.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub kind: WaitingKind,
    /// The sub-execution, at any depth, whose node waits; it is the one to be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub child_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub since: Option<String>,
    /// Time at which it fails if it was not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub deadline: Option<String>,
    /// Absent for a pause, which applies to the whole execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node_name: Option<String>,
    /// Iteration numbers, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub path: Vec<u32>,
    /// Question of an approval. A reference if it is very long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
    /// Users and roles that may answer an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Value>,
    /// Keys of the context that the rules of a gate read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub reads: Vec<String>,
    /// Expression that opens a gate, made of all of its rules: at most 4,096 characters, and a text that was cut ends with
    /// `…`. Absent if no rule opens it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub when: Option<String>,
    /// Reason of a pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// Originator of a pause: a user, or `agent:` and a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub by: Option<String>,
    /// Name of an approval or a manual step in the path of the signal, with the iteration in a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub action_id: Option<String>,
    /// Token of the signal for an approval or a manual step. Present only for callers who may complete it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub completion_token: Option<String>,
    /// Firing of an approval or a manual step.
    #[serde(skip)]
    pub task: Option<TaskRef>,
}

/// A task that waits, or waited, for a person. A later wait of the same step has another fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskRef {
    pub execution: ExecutionId,
    pub run: RunId,
    pub fence: Fence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitingKind {
    Approval,
    Manual,
    Gate,
    Pause,
}
