//! Responses to a start.

use super::links::Links;
use crate::app::App;
use crate::cache::{Cache, CacheBounds};
use crate::loaded::LoadedExecution;
use crate::problem::Problem;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use utoipa::ToSchema;
use windlass_kernel::{ExecutionId, Millis};
use windlass_store::{Catalog, Tenant, WorkflowId};
use windlass_views::{
    ExecutionError, ExecutionStatus, FiringResult, NodeExecution, NodeStatus, execution_id, time, workflow_id,
};

/// Maximum number of executions that an estimate is computed from.
const SAMPLES_MAX: usize = 100;
/// Time for which an estimate is cached, because a start must not wait for history.
const FRESH: Duration = Duration::from_secs(10);
/// Maximum number of workflows whose estimates are cached.
const ESTIMATES: CacheBounds = CacheBounds { entries_max: 10_000, weight_max: u64::MAX };

/// 202: the execution is queued.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accepted {
    execution_id: String,
    workflow_id: String,
    /// Always `queued`.
    #[schema(value_type = ExecutionStatus)]
    status: String,
    #[schema(format = DateTime)]
    created_at: String,
    /// Median duration of earlier executions of the workflow, in milliseconds; null if there are none.
    estimated_duration: Option<u64>,
    links: Links,
}

impl Accepted {
    pub(crate) fn new(
        id: ExecutionId,
        workflow: WorkflowId,
        estimate: Option<u64>,
        links: Links,
    ) -> Accepted {
        Accepted {
            execution_id: execution_id(id),
            workflow_id: workflow_id(workflow.0),
            status: "queued".to_owned(),
            created_at: time(created_at(id)),
            estimated_duration: estimate,
            links,
        }
    }
}

/// Returns the time of creation. Ids of executions begin with its millisecond (UUIDv7).
fn created_at(id: ExecutionId) -> Millis {
    Millis(i64::try_from(id.0 >> 80).unwrap_or(i64::MAX))
}

/// 200: the execution has ended, or waits for a person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finished {
    execution_id: String,
    workflow_id: Option<String>,
    status: ExecutionStatus,
    #[schema(format = DateTime)]
    created_at: String,
    /// Null while it waits for a person.
    #[schema(format = DateTime)]
    completed_at: Option<String>,
    duration: Option<u64>,
    #[schema(value_type = Option<Object>)]
    outputs: Value,
    /// Newest results by node.
    node_results: BTreeMap<String, NodeResult>,
}

impl Finished {
    pub(crate) fn of(loaded: &LoadedExecution<'_>) -> Finished {
        let whole = loaded.response();
        let result = |node: NodeExecution| {
            let FiringResult { status, output, error, .. } = node.result;
            (node.node_id, NodeResult { status, output, error })
        };
        Finished {
            execution_id: whole.execution_id,
            workflow_id: whole.workflow_id,
            status: whole.status,
            created_at: whole.created_at,
            completed_at: whole.completed_at,
            duration: whole.duration,
            outputs: whole.outputs,
            node_results: whole.node_executions.into_iter().map(result).collect(),
        }
    }
}

/// The newest firing of a node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeResult {
    status: NodeStatus,
    /// The output: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    output: Option<Arc<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<ExecutionError>,
}

/// 200: the result of a dry run. Nothing was started.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Checked {
    pub valid: bool,
    pub errors: Vec<crate::problem::Detail>,
    pub warnings: Vec<crate::problem::Detail>,
}

/// Response to a start that is sent at once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum StartResponse {
    /// Result of a start with `async: false`.
    Finished(Box<Finished>),
    /// Result of a start with `dryRun`.
    Checked(Checked),
}

/// Usual durations of workflows, cached for a short time.
#[derive(Debug)]
pub struct Estimates {
    cached: Cache<WorkflowId, (Instant, Option<u64>)>,
}

impl Default for Estimates {
    fn default() -> Estimates {
        Estimates { cached: Cache::new(ESTIMATES) }
    }
}

impl Estimates {
    /// Returns a cached estimate: milliseconds, or None without a completed execution.
    pub fn known(&self, workflow: WorkflowId) -> Option<Option<u64>> {
        let known = self.cached.get(&workflow);
        known.filter(|(at, _)| at.elapsed() < FRESH).map(|(_, estimate)| estimate)
    }

    /// Returns an estimate in milliseconds; None without a completed execution.
    pub async fn of(&self, app: &App, tenant: &Tenant, workflow: WorkflowId) -> Result<Option<u64>, Problem> {
        if let Some(estimate) = self.known(workflow) {
            return Ok(estimate);
        }
        let of = tenant.clone();
        let readers = app.readers.of(tenant);
        let durations = readers.look(move |reader| reader.durations(&of, workflow, SAMPLES_MAX)).await?;
        let estimate = median(durations);
        self.cached.insert(workflow, (Instant::now(), estimate), 1);
        Ok(estimate)
    }
}

fn median(mut durations: Vec<u64>) -> Option<u64> {
    durations.sort_unstable();
    let middle = durations.len() / 2;
    match durations.len() {
        0 => None,
        count if count % 2 == 1 => Some(durations[middle]),
        _ => Some(durations[middle - 1].midpoint(durations[middle])),
    }
}

/// Returns the error 400 for invalid inputs.
pub(crate) fn bad_inputs(details: Vec<crate::problem::Detail>) -> Problem {
    let first = details.first().map(|detail| format!("{}: {}", detail.path, detail.message));
    let message = format!("the inputs are not valid: {}", first.unwrap_or_default());
    Problem { details, ..Problem::bad_request(message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_the_median_of_what_was_or_nothing() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![7]), Some(7));
        assert_eq!(median(vec![900, 10, 20]), Some(20));
        assert_eq!(median(vec![40, 10, 20, 900]), Some(30));
    }

    #[test]
    fn an_id_contains_its_creation_time() {
        let id = windlass_engine::new_execution_id(Millis(1_769_428_800_123), 5);
        assert_eq!(created_at(id), Millis(1_769_428_800_123));
    }
}
