//! The workflow document's WorkflowExecutionResponse, for an execution of any dialect. The server adds `links`.

use crate::entry::{NodeLabel, entry, error, node_status, not_reached};
use crate::firing::{End, Firing};
use crate::history::History;
use crate::kept::ResultPlace;
use crate::large::{AnswerBudget, SHOWN_BYTES_MAX, Sources, ValueBudget};
use crate::place::{CodePlace, ErrorPlace};
use crate::shapes::{
    ExecutionError, ExecutionStatus, ExecutionView, Metadata, NodeProgress, NodeStatus, Progress,
    Quarantined, Waiting,
};
use crate::waiting::waiting_for;
use crate::wire::{execution_id, time, workflow_id};
use serde_json::Value;
use std::collections::BTreeMap;
use windlass_kernel::{ExecutionId, Millis, Net, Outcome, Outputs, Phase, RunId, StepId};

/// Firings that a worker has begun with.
pub type Leases = BTreeMap<RunId, LeaseInfo>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseInfo {
    pub since: Millis,
    pub progress: Option<NodeProgress>,
}

/// Data about an execution apart from its journal.
#[derive(Debug, Clone)]
pub struct Facts {
    pub execution: ExecutionId,
    /// None: its definition was removed.
    pub workflow: Option<Workflow>,
    /// Metadata of the start request. The journal has more.
    pub metadata: Metadata,
    /// Whether errors show where in the code they arose.
    pub debug: bool,
    pub leases: Leases,
    pub quarantined: Option<Quarantined>,
    /// Tasks that its sub-executions wait for, at any depth.
    pub children: Vec<Waiting>,
}

#[derive(Debug, Clone)]
pub struct Workflow {
    pub id: u128,
    pub name: String,
    pub version: u32,
    pub dialect: Option<&'static DialectView>,
    /// Positions of the code of its tasks.
    pub code: Vec<CodePlace>,
    /// JSON Schema of its inputs.
    pub inputs_schema: Option<Value>,
}

impl Facts {
    pub(crate) fn code(&self) -> &[CodePlace] {
        self.workflow.as_ref().map(|workflow| &*workflow.code).unwrap_or_default()
    }
}

/// The view of an execution in the words of its dialect.
#[derive(Debug, Clone, Copy)]
pub struct DialectView {
    pub name: &'static str,
    /// Whether `nodeExecutions` also lists the nodes that have not fired.
    pub lists_unreached: bool,
    /// Whether `view` shows values by the schema of the inputs.
    pub reads_inputs_schema: bool,
    /// Builds the field `view`.
    pub build: fn(&ViewInput<'_>, &mut AnswerBudget<'_>) -> Value,
}

impl DialectView {
    /// Returns the view of a dialect that has no terms of its own: null.
    #[must_use]
    pub const fn empty(name: &'static str) -> DialectView {
        DialectView { name, lists_unreached: false, reads_inputs_schema: false, build: |_, _| Value::Null }
    }
}

/// Input of [`DialectView::build`].
#[derive(Debug, Clone, Copy)]
pub struct ViewInput<'a> {
    pub net: &'a Net,
    pub history: &'a History,
    pub leases: &'a Leases,
    /// Number of the newest firings that `nodeExecutions` has.
    pub firings: usize,
    pub workflow: Option<&'a Workflow>,
}

/// Builds the view of an execution. Inputs and outputs are shown as far as `sources` have them and [`SHOWN_BYTES_MAX`]
/// allows; firings and their values as far as the history holds them.
#[must_use]
pub fn response(facts: &Facts, net: &Net, history: &History, sources: Sources<'_>) -> ExecutionView {
    let phase = history.state().phase();
    let workflow = facts.workflow.as_ref();
    let dialect = workflow.and_then(|workflow| workflow.dialect);
    let from = history.started_at.or(history.created_at);
    let mut budget = AnswerBudget::new(facts.execution, sources);
    budget.omit_firings(history.evicted());
    let mut node_executions: Vec<_> =
        history.whole().rev().filter_map(|firing| entry(net, history, facts, firing, &mut budget)).collect();
    node_executions.reverse();
    let firings = node_executions.len();
    if dialect.is_some_and(|dialect| dialect.lists_unreached) {
        node_executions.extend(not_reached(net, history));
    }
    ExecutionView {
        execution_id: execution_id(facts.execution),
        workflow_id: workflow.map(|workflow| workflow_id(workflow.id)),
        workflow_name: workflow.map(|workflow| workflow.name.clone()),
        workflow_version: workflow.map(|workflow| workflow.version),
        status: execution_status(phase),
        // The first record creates the execution.
        created_at: time(history.created_at.unwrap_or(history.state().head.at)),
        started_at: history.started_at.map(time),
        completed_at: history.ended_at.map(time),
        duration: history.ended_at.and_then(|to| Some(to.since(from?))),
        progress: progress(net, history, &facts.leases),
        inputs: budget.show_inputs(&mut ValueBudget::default(), &history.state().head.inputs),
        outputs: match phase.is_ended() {
            true => show_outputs(net, history.outputs(), &mut budget),
            false => Value::Null,
        },
        node_executions,
        waiting_for: waiting_for(net, history, &facts.children, &mut budget),
        quarantined: facts.quarantined.clone(),
        errors: errors(net, history, facts),
        metadata: metadata(facts, history),
        dialect: dialect.map(|dialect| dialect.name),
        view: dialect.map_or(Value::Null, |dialect| {
            let input = ViewInput { net, history, leases: &facts.leases, firings, workflow };
            (dialect.build)(&input, &mut budget)
        }),
        shortened: budget.shortened(),
    }
}

/// Shows the outputs of an execution, as far as the answer has space.
#[must_use]
pub fn show_outputs(net: &Net, outputs: &Outputs<ResultPlace>, budget: &mut AnswerBudget<'_>) -> Value {
    let mut values = ValueBudget::default();
    outputs.value_with(net, &mut |place| budget.show_result(&mut values, place))
}

/// Returns the status of the workflow document for a phase.
#[must_use]
pub fn execution_status(phase: Phase) -> ExecutionStatus {
    match phase {
        Phase::Blank | Phase::Queued => ExecutionStatus::Queued,
        Phase::Starting => ExecutionStatus::Initializing,
        Phase::Running | Phase::Draining | Phase::Compensating | Phase::Finalizing => {
            ExecutionStatus::Running
        }
        Phase::Paused => ExecutionStatus::Paused,
        Phase::Ended(Outcome::Completed) => ExecutionStatus::Completed,
        Phase::Ended(Outcome::Partial) => ExecutionStatus::PartialSuccess,
        Phase::Ended(Outcome::Failed) => ExecutionStatus::Failed,
        Phase::Ended(Outcome::Cancelled) => ExecutionStatus::Cancelled,
    }
}

/// Returns the status of the workflow document for a phase, as a word.
#[must_use]
pub fn status(phase: Phase) -> &'static str {
    execution_status(phase).word()
}

/// Counts the settled steps among all steps of the definition. The percentage never falls, and is 100 only at the end; an
/// execution that skips branches may jump there.
#[must_use]
pub fn progress(net: &Net, history: &History, leases: &Leases) -> Progress {
    let (completed, settled) = history.progress();
    let total = net.spec().steps.len();
    let percentage = match history.state().phase() {
        Phase::Ended(Outcome::Completed) => 100,
        _ => (settled * 100 / total.max(1)).min(99),
    };
    let current_node = current(history, leases).map(|step| net.step(step).name.clone());
    Progress { percentage, completed_nodes: completed, total_nodes: total, current_node }
}

/// Returns the step that runs, or else waits for its turn, or else waits for a person.
fn current(history: &History, leases: &Leases) -> Option<StepId> {
    let live = || history.live().filter(|firing| firing.is_whole());
    let runs = live().filter(|firing| node_status(history, leases, firing) == NodeStatus::Running).last();
    let gate = || history.gates().first().map(|gate| gate.step);
    runs.or_else(|| live().last()).map(|firing| firing.step).or_else(gate)
}

/// Lists the failures that were not handled, that of a loop with its first failed iteration, and the failure of the
/// execution if it is not one of them. Those beyond a bound are listed with their nodes only.
fn errors(net: &Net, history: &History, facts: &Facts) -> Vec<ExecutionError> {
    let unhandled = history.whole().filter(|firing| firing.end == Some(End::Failed { handled: false }));
    let mut left = SHOWN_BYTES_MAX as usize;
    let mut fits = |firing: &Firing| {
        let rest = left.checked_sub(firing.weight());
        rest.inspect(|rest| left = *rest).is_some()
    };
    let mut errors: Vec<ExecutionError> = unhandled
        .filter(|firing| fits(firing))
        .flat_map(|firing| {
            let first =
                history.iterations(firing.run).find(|part| matches!(part.end, Some(End::Failed { .. })));
            [Some(firing), first].into_iter().flatten()
        })
        .filter_map(|firing| firing_error(net, history, facts, firing))
        .collect();
    if let Some((failure, at)) = &history.failure {
        let same = |known: &ExecutionError| known.code == failure.code && known.message == failure.message;
        if !errors.iter().any(same) {
            let label = NodeLabel::of_failure(net, failure);
            errors.push(error(failure, label.as_ref().map(|label| label.site(1)), *at, facts.debug));
        }
    }
    errors
}

fn firing_error(net: &Net, history: &History, facts: &Facts, firing: &Firing) -> Option<ExecutionError> {
    let label = NodeLabel::of(net.step(firing.step));
    let site = label.site(firing.attempts.max(1));
    let error = error(firing.failure.as_ref()?, Some(site), firing.failed_at?, facts.debug);
    Some(ExecutionError { place: ErrorPlace::of(net, history, facts.code(), firing), ..error })
}

fn metadata(facts: &Facts, history: &History) -> Metadata {
    let starter = history.state().head.parent.as_ref().map(|parent| execution_id(parent.execution));
    let retry_of = history.retry_of.map(execution_id);
    let requested = facts.metadata.clone();
    Metadata {
        triggered_by: starter.clone().unwrap_or(requested.triggered_by),
        // The document uses this field for two executions: the one that started this one, and the one that it retries.
        parent_execution_id: starter.or_else(|| retry_of.clone()).or(requested.parent_execution_id),
        retry_of,
        restarts: Some(history.state().head.restarts).filter(|restarts| *restarts > 0),
        ..requested
    }
}
