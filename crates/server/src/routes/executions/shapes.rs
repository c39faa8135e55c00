//! Shapes of the workflow document, for the OpenAPI document: the objects themselves are made by `dialects::view`.
#![expect(dead_code, reason = "only the schemas are used")]

use super::links::Links;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The document's WorkflowExecutionResponse, for executions of every dialect.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionResponse {
    execution_id: String,
    workflow_id: Option<String>,
    workflow_name: Option<String>,
    workflow_version: Option<u32>,
    status: ExecutionStatus,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime, required = false, nullable = false)]
    started_at: Option<String>,
    #[schema(format = DateTime, required = false, nullable = false)]
    completed_at: Option<String>,
    /// Milliseconds.
    #[schema(required = false, nullable = false)]
    duration: Option<u64>,
    #[schema(format = DateTime, required = false, nullable = false)]
    estimated_completion: Option<String>,
    progress: Progress,
    #[schema(value_type = Object)]
    inputs: Value,
    #[schema(value_type = Option<Object>)]
    outputs: Value,
    node_executions: Vec<NodeExecution>,
    errors: Vec<ExecutionError>,
    metadata: Metadata,
    /// `playbook`, `workflow`, …
    dialect: Option<String>,
    /// The execution in the words of its dialect.
    #[schema(value_type = Option<Object>)]
    view: Value,
    links: Links,
}

#[derive(Serialize, ToSchema)]
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

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Never falls; 100 only when it is completed.
    #[schema(minimum = 0, maximum = 100)]
    percentage: u8,
    completed_nodes: u32,
    total_nodes: u32,
    #[schema(required = false, nullable = false)]
    current_node: Option<String>,
}

/// One firing of a node.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeExecution {
    node_id: String,
    node_name: String,
    node_type: String,
    /// Among the firings of its node, from 1.
    firing: u32,
    /// `pending`, `running`, `completed`, `failed`, `skipped` or `retrying`.
    status: String,
    #[schema(format = DateTime, required = false, nullable = false)]
    started_at: Option<String>,
    #[schema(format = DateTime, required = false, nullable = false)]
    completed_at: Option<String>,
    #[schema(required = false, nullable = false)]
    duration: Option<u64>,
    #[schema(required = false, nullable = false)]
    retry_count: Option<u32>,
    /// What it gave: any JSON.
    #[schema(required = false)]
    output: Option<Value>,
    #[schema(required = false, nullable = false)]
    error: Option<ExecutionError>,
    #[schema(required = false, nullable = false)]
    progress: Option<NodeProgress>,
}

#[derive(Serialize, ToSchema)]
pub struct NodeProgress {
    step: String,
    #[schema(minimum = 0, maximum = 100)]
    percentage: u8,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionError {
    code: String,
    message: String,
    #[schema(required = false, nullable = false)]
    node_id: Option<String>,
    #[schema(required = false, nullable = false)]
    node_name: Option<String>,
    #[schema(format = DateTime)]
    timestamp: String,
    retryable: bool,
    /// With `debugMode` only.
    #[schema(required = false, nullable = false)]
    stack: Option<String>,
    #[schema(value_type = Option<Object>, required = false, nullable = false)]
    details: Option<Value>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    triggered_by: String,
    /// `manual`, `schedule`, `webhook`, `api` or `workflow`.
    trigger_type: String,
    tags: Vec<String>,
    #[schema(required = false, nullable = false)]
    correlation_id: Option<String>,
    #[schema(required = false, nullable = false)]
    parent_execution_id: Option<String>,
}
