//! An entry of `nodeExecutions`.
//!
//! One entry is one firing: one token that a step consumed. The iterations of a step's own loop consume none, so they
//! are listed inside their loop's entry (`iterations`), and counting entries counts firings. Steps of a body of several
//! steps have entries of their own, with `path`: the iteration numbers from the outermost loop inwards, from 0.

use crate::firing::{End, Firing};
use crate::history::History;
use crate::large::AnswerBudget;
use crate::place::ErrorPlace;
use crate::response::{Facts, Leases};
use crate::shapes::{
    ExecutionError, FiringResult, Iteration, NodeExecution, NodeStatus, NodeWait, NodeWaitReason,
};
use crate::wire::{execution_id, time};
use serde_json::{Map, Value, json};
use windlass_kernel::codes;
use windlass_kernel::net::{Step, Work};
use windlass_kernel::{ErrorClass, Failure, FailureSite, Kind, Millis, Net, RunState, SkipReason};
use windlass_protocol::{CHILD_KIND, Pipeline, TaskTry};

/// The names of a step in the workflow document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLabel {
    pub id: String,
    pub name: String,
    pub kind: String,
}

impl NodeLabel {
    /// Returns the label of the step that made the execution fail, if it is known.
    #[must_use]
    pub fn of_failure(net: &Net, failure: &Failure) -> Option<NodeLabel> {
        let step = net.find(failure.facts.step.as_deref()?)?;
        Some(NodeLabel::of(net.step(step)))
    }

    /// Returns the site of a failure of this node.
    #[must_use]
    pub fn site(&self, attempt: u32) -> FailureSite<'_> {
        FailureSite { node_id: &self.id, node_name: &self.name, attempt }
    }

    #[must_use]
    pub fn of(step: &Step) -> NodeLabel {
        let id = step.name.clone();
        let kind = step.shown.as_ref().map_or_else(|| node_type(step), |shown| shown.kind.clone());
        NodeLabel { id, name: step.title().to_owned(), kind }
    }
}

/// Builds the entry of a firing, if the answer has space for it. Call it for the newest first.
pub(crate) fn entry(
    net: &Net,
    history: &History,
    facts: &Facts,
    firing: &Firing,
    budget: &mut AnswerBudget<'_>,
) -> Option<NodeExecution> {
    let step = net.step(firing.step);
    let NodeLabel { id, name, kind } = NodeLabel::of(step);
    if !budget.take_firing(firing, id.len() + name.len() + kind.len()) {
        return None;
    }
    let parts = history.iterations(firing.run).rev().filter(|_| step.repeat.is_some());
    let mut iterations: Vec<Iteration> = parts
        .filter_map(|part| {
            let index = part.path.index();
            budget
                .take_firing(part, 0)
                .then(|| Iteration { index, result: firing_result(net, history, facts, part, budget) })
        })
        .collect();
    iterations.reverse();
    Some(NodeExecution {
        node_id: id,
        node_name: name,
        node_type: kind,
        firing: firing.number,
        path: firing.path.0.clone(),
        result: firing_result(net, history, facts, firing, budget),
        iterations,
        compensation: history.hook(firing.run).map(|hook| firing_result(net, history, facts, hook, budget)),
    })
}

fn firing_result(
    net: &Net,
    history: &History,
    facts: &Facts,
    firing: &Firing,
    budget: &mut AnswerBudget<'_>,
) -> FiringResult {
    let taken = facts.leases.get(&firing.run).filter(|_| firing.end.is_none());
    let leased = taken.map(|taken| taken.since);
    FiringResult {
        status: node_status(history, &facts.leases, firing),
        started_at: leased.or(firing.started_at()).map(time),
        completed_at: firing.ended_at.map(time),
        duration: firing.duration_ms(),
        retry_count: retry_count(firing),
        output: firing.output.as_ref().map(|output| budget.show(output)),
        metadata: metadata(firing),
        error: node_error(net, history, firing, facts.debug).map(|error| ExecutionError {
            place: ErrorPlace::of(net, history, facts.code(), firing),
            ..error
        }),
        progress: taken.and_then(|taken| taken.progress.clone()),
        skip_reason: if let Some(End::Skipped(reason)) = firing.end { reason.map(skip_reason) } else { None },
        waits: firing.end.is_none().then(|| node_wait(history, &facts.leases, firing)).flatten(),
        child_execution_id: firing.child.map(execution_id),
    }
}

/// Returns what a firing that has not ended waits for, unless something works on it.
fn node_wait(history: &History, leases: &Leases, firing: &Firing) -> Option<NodeWait> {
    let until = |at: &Millis| Some(time(*at));
    let (is_held, is_leased) = (history.state().head.held, leases.contains_key(&firing.run));
    let (reason, until) = match &history.state().run(firing.run)?.state {
        RunState::Ready { .. } if is_held => (NodeWaitReason::Hold, None),
        RunState::Ready { .. } => (NodeWaitReason::Parallel, None),
        RunState::Offered { .. } if is_leased => return None,
        RunState::Offered { .. } if is_held => (NodeWaitReason::Hold, None),
        RunState::Offered { .. } => (NodeWaitReason::Slot, None),
        RunState::Waiting { until: at, .. } => (NodeWaitReason::Target, until(at)),
        RunState::Backoff { until: at } => (NodeWaitReason::Backoff, until(at)),
        RunState::Delayed { until: at } => (NodeWaitReason::Delay, until(at)),
        RunState::Manual { .. } | RunState::Child { .. } | RunState::Looping(_) => return None,
    };
    Some(NodeWait { reason, until })
}

/// Returns the status of a node in the workflow document.
#[must_use]
pub fn node_status(history: &History, leases: &Leases, firing: &Firing) -> NodeStatus {
    match firing.end {
        Some(End::Completed) => NodeStatus::Completed,
        Some(End::Failed { .. }) => NodeStatus::Failed,
        Some(End::Cancelled) if firing.began_at.is_some() => NodeStatus::Failed,
        Some(End::Skipped(_) | End::Cancelled) => NodeStatus::Skipped,
        None => match history.state().run(firing.run).map(|run| run.state.kind()) {
            Some(Kind::Offered) if leases.contains_key(&firing.run) => NodeStatus::Running,
            Some(Kind::Delayed | Kind::Manual | Kind::Child | Kind::PausedChild | Kind::Looping) => {
                NodeStatus::Running
            }
            Some(Kind::Backoff) => NodeStatus::Retrying,
            Some(Kind::Ready | Kind::Waiting | Kind::Offered) | None => NodeStatus::Pending,
        },
    }
}

fn node_error(net: &Net, history: &History, firing: &Firing, debug: bool) -> Option<ExecutionError> {
    let label = NodeLabel::of(net.step(firing.step));
    let site = Some(label.site(firing.attempts.max(1)));
    match firing.end {
        Some(End::Cancelled) => {
            firing.began_at?;
            let why = history.failure.as_ref().map_or("cancelled", |(failure, _)| &failure.message);
            let failure = match failed_inside(net, history, firing) {
                true => Failure::new(codes::ITERATION_FAILED, format!("an iteration failed: {why}")),
                false => Failure::new(codes::CANCELLED, why),
            };
            Some(error(&failure, site, firing.ended_at?, debug))
        }
        None | Some(End::Failed { .. }) => {
            Some(error(firing.failure.as_ref()?, site, firing.failed_at?, debug))
        }
        Some(End::Completed | End::Skipped(_)) => None,
    }
}

/// Returns whether a cancelled loop counts as failed, because a step of its body failed.
fn failed_inside(net: &Net, history: &History, firing: &Firing) -> bool {
    let around = |step| std::iter::successors(net.step(step).region, |outer| net.step(*outer).region);
    let failed = |inner: &Firing| {
        inner.end == Some(End::Failed { handled: false })
            && inner.path.0.starts_with(&firing.path.0)
            && around(inner.step).any(|step| step == firing.step)
    };
    let stopped = history.failure.as_ref().is_some_and(|(failure, _)| failure.has_code(codes::CANCELLED));
    !stopped && net.step(firing.step).repeat.is_some() && history.whole().any(failed)
}

/// Builds the document's ExecutionError. The stack is shown with `debugMode` only.
#[must_use]
pub fn error(failure: &Failure, site: Option<FailureSite<'_>>, at: Millis, debug: bool) -> ExecutionError {
    let described = failure.describe(site);
    let mut details = described.details.as_object().cloned().unwrap_or_default();
    let stack = details.shift_remove("stack").filter(|_| debug);
    details.insert("category".to_owned(), json!(category(failure)));
    ExecutionError {
        code: described.code.to_owned(),
        class: described.class.name(),
        kind: described.kind.name(),
        message: described.message.to_owned(),
        node_id: described.node_id.map(str::to_owned),
        node_name: described.node_name.map(str::to_owned),
        place: ErrorPlace::default(),
        timestamp: time(at),
        retryable: described.retryable,
        http_status: described.http_status,
        retry_after_ms: described.retry_after_ms,
        attempt: described.attempt,
        stack,
        details,
    }
}

/// Returns the document's category of an error.
#[must_use]
pub fn category(failure: &Failure) -> &'static str {
    let is_of = |code| failure.has_code(code);
    match failure.class {
        _ if is_of(codes::RESOURCE_NOT_FOUND) => "resource",
        _ if is_of(codes::INVALID_CONFIGURATION) || is_of(codes::PERMISSION_DENIED) => "configuration",
        ErrorClass::Timeout | ErrorClass::RateLimit | ErrorClass::Transient5xx | ErrorClass::Transport => {
            "transient"
        }
        ErrorClass::Auth => "configuration",
        ErrorClass::Validation => "validation",
        ErrorClass::Conflict => "resource",
        ErrorClass::Policy | ErrorClass::Unknown => "system",
    }
}

/// Counts the tries after the first one: other attempts, and other tries of a task within an attempt.
pub(crate) fn retry_count(firing: &Firing) -> u32 {
    let reported = firing.metadata.as_deref().and_then(|metadata| metadata.get(TaskTry::COUNT)?.as_u64());
    let tries = reported.map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX));
    firing.attempts.saturating_sub(1).saturating_add(tries)
}

/// Returns the metadata of the node contract. The duration is that of the firing; the duration in the worker's report
/// is not used.
fn metadata(firing: &Firing) -> Option<Map<String, Value>> {
    let counted = firing.metadata.as_deref()?.as_object()?;
    let mut metadata = Map::new();
    metadata.extend(firing.duration_ms().map(|duration| ("duration".to_owned(), json!(duration))));
    let own = ["duration", TaskTry::KEY, TaskTry::COUNT];
    let others = counted.iter().filter(|(key, _)| !own.contains(&key.as_str()));
    others.clone().next()?;
    metadata.extend(others.map(|(key, value)| (key.clone(), value.clone())));
    Some(metadata)
}

pub(crate) fn skip_reason(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::NotTaken => "not_taken",
        SkipReason::Upstream => "upstream",
        SkipReason::Condition => "condition",
    }
}

/// Returns the kind of the tool; `pipeline` for several kinds.
fn node_type(step: &Step) -> String {
    let spec = match &step.work {
        Work::Pure { .. } => return "noop".to_owned(),
        Work::Child { .. } => return CHILD_KIND.to_owned(),
        Work::Approval { .. } => return "approval".to_owned(),
        Work::Delay { .. } => return "delay".to_owned(),
        Work::Task { spec } => spec,
    };
    let pipeline: Pipeline = serde_json::from_value((**spec).clone()).unwrap_or_default();
    let mut kinds: Vec<&str> = pipeline.tasks.iter().map(|task| task.kind.as_str()).collect();
    kinds.dedup();
    match kinds[..] {
        [kind] => kind.to_owned(),
        _ => "pipeline".to_owned(),
    }
}

/// Lists entries for nodes that have not fired. They are listed until the execution has ended.
pub(crate) fn not_reached<'n>(
    net: &'n Net,
    history: &'n History,
) -> impl Iterator<Item = NodeExecution> + 'n {
    net.steps().filter(|(id, _)| history.fired(*id) == 0).map(|(_, step)| {
        let NodeLabel { id, name, kind } = NodeLabel::of(step);
        NodeExecution {
            node_id: id,
            node_name: name,
            node_type: kind,
            firing: 0,
            path: Vec::new(),
            result: FiringResult { status: unreached_status(history), ..FiringResult::default() },
            iterations: Vec::new(),
            compensation: None,
        }
    })
}

/// Returns the status of a node that has not fired.
#[must_use]
pub fn unreached_status(history: &History) -> NodeStatus {
    if history.state().phase().is_ended() { NodeStatus::Skipped } else { NodeStatus::Pending }
}
