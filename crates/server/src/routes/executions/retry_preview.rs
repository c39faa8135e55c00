//! The plan of a retry for callers: what is taken over, what runs again, and what prevents it.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use windlass_dialects::has_side_effects;
use windlass_engine::describe_lost;
use windlass_engine::retries::Past;
use windlass_retry::{PlannedFiring, RefusedStep, RepeatReason, RetryPlan};
use windlass_views::execution_id;

/// Maximum number of entries of one list in a preview. Longer lists are cut, and the counts are whole.
const ENTRIES_MAX: usize = 10_000;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryPreview {
    /// Completed nodes whose results are taken over; at most 10,000.
    imports: Vec<ImportedFiring>,
    /// Number of all imports.
    import_count: usize,
    /// Nodes that run again; at most 10,000. Nodes that have not run yet are not listed.
    runs: Vec<RepeatedFiring>,
    /// Number of all nodes that run again.
    run_count: usize,
    /// Completed nodes that cannot be taken over. Nothing starts while there are any.
    refused: Vec<RefusedNode>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportedFiring {
    node_id: String,
    /// Number of the firing of the node, from 1.
    #[schema(minimum = 1)]
    firing: u32,
    /// Iteration numbers of the loops around it, from 0.
    path: Vec<u32>,
    /// Whether the definition of the node changed since; its result is taken over as it is.
    changed: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RepeatedFiring {
    node_id: String,
    /// Number of the firing of the node, from 1.
    #[schema(minimum = 1)]
    firing: u32,
    /// Iteration numbers of the loops around it, from 0.
    path: Vec<u32>,
    /// `failed`, `not_finished`, `requested`, `undone`, `follows` or `changed`.
    reason: String,
    /// The node before it that runs again, for the reason `follows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<String>,
    /// Whether running it again can have side effects.
    side_effects: bool,
    /// The failed execution that continues where it failed, in a node that runs another workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    child_execution_id: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RefusedNode {
    node_id: String,
    /// `removed`, `moved` or `rerouted`.
    reason: String,
    message: String,
}

impl RetryPreview {
    pub(crate) fn new(past: &Past, plan: &RetryPlan) -> RetryPreview {
        RetryPreview {
            imports: plan.imports.iter().take(ENTRIES_MAX).map(|firing| imported(past, firing)).collect(),
            import_count: plan.imports.len(),
            runs: plan.runs.iter().take(ENTRIES_MAX).map(|run| repeated(past, run)).collect(),
            run_count: plan.runs.len(),
            refused: plan
                .refused
                .iter()
                .map(|(step, why)| refused(&past.old.step(*step).name, *why))
                .collect(),
        }
    }
}

fn imported(past: &Past, firing: &PlannedFiring) -> ImportedFiring {
    let old = past.old.step(firing.step);
    let new = past.net.find(&old.name).map(|step| past.net.step(step));
    // Steps are compared without the numbers of other steps, which differ between definitions.
    let changed = new.is_some_and(|new| {
        (&old.work, &old.repeat, &old.condition, &old.retry, old.timeout_ms)
            != (&new.work, &new.repeat, &new.condition, &new.retry, new.timeout_ms)
    });
    let (node_id, path) = (old.name.clone(), firing.path.0.clone());
    ImportedFiring { node_id, firing: firing.firing, path, changed }
}

fn repeated(
    past: &Past,
    (firing, reason, child): &(PlannedFiring, RepeatReason, Option<windlass_kernel::ExecutionId>),
) -> RepeatedFiring {
    let node_id = past.old.step(firing.step).name.clone();
    let follows = match reason {
        RepeatReason::Follows(step) => Some(past.old.step(*step).name.clone()),
        _ => None,
    };
    RepeatedFiring {
        firing: firing.firing,
        path: firing.path.0.clone(),
        reason: reason_name(*reason).to_owned(),
        follows,
        side_effects: past.net.find(&node_id).is_some_and(|step| has_side_effects(&past.net, step)),
        child_execution_id: child.map(execution_id),
        node_id,
    }
}

fn reason_name(reason: RepeatReason) -> &'static str {
    match reason {
        RepeatReason::Failed => "failed",
        RepeatReason::NotFinished => "not_finished",
        RepeatReason::Requested => "requested",
        RepeatReason::Undone => "undone",
        RepeatReason::Follows(_) => "follows",
        RepeatReason::Changed => "changed",
    }
}

fn refused(step: &str, why: RefusedStep) -> RefusedNode {
    let reason = match why {
        RefusedStep::Removed => "removed",
        RefusedStep::Moved => "moved",
        RefusedStep::Rerouted => "rerouted",
    };
    let message = format!("step `{step}` {}", describe_lost(why));
    RefusedNode { node_id: step.to_owned(), reason: reason.to_owned(), message }
}

/// Parses the version that a retry runs under: a number, or `latest`.
pub(crate) fn parse_version(version: &Value) -> Result<Option<u32>, String> {
    match version {
        Value::String(text) if text == "latest" => Ok(None),
        other => other
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| *number > 0)
            .map(Some)
            .ok_or_else(|| format!("must be a version number from 1 or \"latest\", not {other}")),
    }
}
