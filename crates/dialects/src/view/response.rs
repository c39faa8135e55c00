//! The workflow document's WorkflowExecutionResponse, for an execution of any dialect. `links` are not in it: only a
//! server has something that they could lead to.

use super::entry::{NodeLabel, entry, error, node_status};
use super::firing::End;
use super::story::Story;
use super::wire::{execution_id, time, workflow_id};
use super::{playbook, workflow as of_workflow};
use crate::detect::Dialect;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use windlass_kernel::{ExecutionId, Millis, Net, Outcome, Outputs, Phase, RunId, StepId};

/// Offers that a worker has.
pub type Leases = BTreeMap<RunId, Taken>;

#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    pub since: Millis,
    /// How far it says that it has come: `{step, percentage}`.
    pub progress: Option<Value>,
}

/// What was said about an execution when it was started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Labels {
    /// Who started it.
    pub by: String,
    pub tags: Vec<String>,
    pub correlation: Option<String>,
    /// The execution that it follows, or does again.
    pub parent: Option<ExecutionId>,
    pub debug: bool,
}

/// What is known of an execution beside its journal.
#[derive(Debug, Clone)]
pub struct Facts {
    pub execution: ExecutionId,
    /// None: its definition was removed.
    pub workflow: Option<Workflow>,
    /// `manual`, `workflow`, …
    pub trigger: String,
    pub leases: Leases,
    pub labels: Labels,
}

#[derive(Debug, Clone)]
pub struct Workflow {
    pub id: u128,
    pub name: String,
    pub version: u32,
    pub dialect: Option<Dialect>,
}

/// The execution as one object: its story and its outputs are of the same records.
#[must_use]
pub fn response(facts: &Facts, net: &Net, story: &Story, outputs: &Outputs) -> Value {
    let phase = story.state.phase();
    let workflow = facts.workflow.as_ref();
    let mut told = json!({
        "executionId": execution_id(facts.execution),
        "workflowId": workflow.map(|workflow| workflow_id(workflow.id)),
        "workflowName": workflow.map(|workflow| &workflow.name),
        "workflowVersion": workflow.map(|workflow| workflow.version),
        "status": status(phase),
    });
    times(&mut told, story);
    told["progress"] = progress(net, story, &facts.leases);
    told["inputs"] = (*story.state.head.inputs).clone();
    told["outputs"] = if phase.is_ended() { outputs.value(net) } else { Value::Null };
    told["nodeExecutions"] = story.whole().map(|firing| entry(net, story, facts, firing)).collect();
    if let (Some(Dialect::Workflow), Value::Array(told)) =
        (workflow.and_then(|workflow| workflow.dialect), &mut told["nodeExecutions"])
    {
        told.extend(of_workflow::not_reached(net, story));
    }
    told["errors"] = errors(net, story, facts.labels.debug);
    told["metadata"] = metadata(facts, story);
    let dialect = workflow.and_then(|workflow| workflow.dialect);
    told["dialect"] = json!(dialect.map(Dialect::name));
    told["view"] = match dialect {
        Some(Dialect::Playbook) => playbook::view(net, story),
        Some(Dialect::Workflow) => of_workflow::view(net, story, &facts.leases),
        // No definition of these compiles yet.
        Some(Dialect::Plan | Dialect::Actions) | None => Value::Null,
    };
    told
}

/// Statuses of the workflow document.
#[must_use]
pub fn status(phase: Phase) -> &'static str {
    match phase {
        Phase::Blank | Phase::Queued => "queued",
        Phase::Starting => "initializing",
        Phase::Running | Phase::Draining | Phase::Compensating | Phase::Finalizing => "running",
        Phase::Paused => "paused",
        Phase::Ended(Outcome::Completed) => "completed",
        Phase::Ended(Outcome::Partial) => "partial_success",
        Phase::Ended(Outcome::Failed) => "failed",
        Phase::Ended(Outcome::Cancelled) => "cancelled",
    }
}

fn times(told: &mut Value, story: &Story) {
    for (key, at) in
        [("createdAt", story.created_at), ("startedAt", story.started_at), ("completedAt", story.ended_at)]
    {
        if let Some(at) = at {
            told[key] = json!(time(at));
        }
    }
    if let (Some(from), Some(to)) = (story.started_at.or(story.created_at), story.ended_at) {
        told["duration"] = json!(to.since(from));
    }
}

/// Settled steps among all steps of the definition: never falls, and is whole only at the end. A routed execution leaves
/// steps out, so it may jump there.
#[must_use]
pub fn progress(net: &Net, story: &Story, leases: &Leases) -> Value {
    let (completed, settled) = story.progress();
    let total = net.spec().steps.len();
    let percentage = match story.state.phase() {
        Phase::Ended(Outcome::Completed) => 100,
        _ => (settled * 100 / total.max(1)).min(99),
    };
    let mut told = json!({ "percentage": percentage, "completedNodes": completed, "totalNodes": total });
    if let Some(step) = current(story, leases) {
        told["currentNode"] = json!(net.step(step).name);
    }
    told
}

/// What runs; else what waits for its turn; else what waits for a person.
fn current(story: &Story, leases: &Leases) -> Option<StepId> {
    let live = || story.live().filter(|firing| firing.is_whole());
    let runs = live().filter(|firing| node_status(story, leases, firing) == "running").last();
    let gate = || story.gates().first().map(|gate| gate.step);
    runs.or_else(|| live().last()).map(|firing| firing.step).or_else(gate)
}

/// Failures that nothing handled, and what ended the execution if that is none of them.
fn errors(net: &Net, story: &Story, debug: bool) -> Value {
    let unhandled = story.whole().filter(|firing| firing.end == Some(End::Failed { handled: false }));
    let mut told: Vec<Value> = unhandled
        .filter_map(|firing| {
            let label = NodeLabel::of(net.step(firing.step));
            Some(error(firing.failure.as_ref()?, Some(&label), firing.failed_at?, debug))
        })
        .collect();
    if let Some((failure, at)) = &story.failure {
        let same = |told: &Value| told["code"] == failure.code && told["message"] == failure.message;
        if !told.iter().any(same) {
            told.push(error(failure, None, *at, debug));
        }
    }
    Value::Array(told)
}

fn metadata(facts: &Facts, story: &Story) -> Value {
    let starter = story.state.head.parent.as_ref().map(|parent| execution_id(parent.execution));
    let retry_of = story.retry_of.map(execution_id);
    let labels = &facts.labels;
    let by = starter.as_ref().unwrap_or(&labels.by);
    let mut told = Map::new();
    told.insert("triggeredBy".into(), json!(by));
    told.insert("triggerType".into(), json!(facts.trigger));
    told.insert("tags".into(), json!(labels.tags));
    if let Some(correlation) = &labels.correlation {
        told.insert("correlationId".into(), json!(correlation));
    }
    // The document calls both so: the execution that asked for this one, and the one that it does again.
    let parent = starter.or_else(|| retry_of.clone()).or_else(|| labels.parent.map(execution_id));
    if let Some(parent) = parent {
        told.insert("parentExecutionId".into(), json!(parent));
    }
    if let Some(retry_of) = retry_of {
        told.insert("retryOf".into(), json!(retry_of));
    }
    if story.state.head.restarts > 0 {
        told.insert("restarts".into(), json!(story.state.head.restarts));
    }
    Value::Object(told)
}
