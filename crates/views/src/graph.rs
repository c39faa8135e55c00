//! A definition as nodes and edges, for programs that lay it out themselves.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Graph {
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
    /// Ids of the steps that begin
    pub entries: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphNode {
    /// Name of the step in the definition
    pub id: String,
    /// Name for people, shortened
    pub name: String,
    /// Work of the step, its loop, its gate
    pub captions: Vec<String>,
    /// Kind of the step: `task`, `choice`, `loop`, `child`, `approval`, `gate`, `trigger` and others
    pub shape: String,
    /// Id of the loop whose body contains it
    #[serde(rename = "loop")]
    pub in_loop: Option<String>,
    #[serde(rename = "final")]
    pub is_final: bool,
    /// Condition under which the step runs, at most 4,096 characters; a text that was cut ends with `…`
    pub condition: Option<String>,
    /// State of the step in an execution; absent if it was not reached
    pub state: Option<GraphState>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphState {
    /// `completed`, `failed`, `running`, `waiting` or `skipped`, of the newest firing
    pub status: String,
    pub firings: u32,
    pub failures: u32,
    /// Attempts of the newest firing
    pub attempts: u32,
    /// Duration of the newest firing that has ended
    pub duration_ms: Option<u64>,
    /// Iterations of the newest firing, if the step itself is repeated
    pub iterations: Option<GraphIterations>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct GraphIterations {
    pub begun: u32,
    pub failed: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct GraphEdge {
    pub from: String,
    pub to: String,
    /// The guard or the handle, shortened
    pub label: Option<String>,
    /// The guard, at most 4,096 characters; a text that was cut ends with `…`. Absent for a handle
    pub guard: Option<String>,
    /// `first`: the first edge that matches is taken; `every`: all that match; `error`: after a failure; `tool`: an agent may
    /// call the step
    pub kind: String,
    /// Number of times an execution took it; absent for a definition
    pub taken: Option<u32>,
}
