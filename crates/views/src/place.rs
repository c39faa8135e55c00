//! The place of a failure: the iteration, the task, the line of code, and the execution that failed inside of it.

use crate::firing::{End, Firing};
use crate::history::History;
use crate::timeline::FiringRef;
use crate::wire::execution_id;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_kernel::net::{Step, Work};
use windlass_kernel::{ExecutionId, Failure, Net, Path, StepId};
use windlass_protocol::CHILD_KIND;

/// Failed iterations of a loop that an error lists. Their number is in its details.
pub const FAILED_ITERATIONS_MAX: usize = 10;

/// Position of the code of a task in its definition. It is stored with the version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    pub step: String,
    pub task: String,
    /// Line of the definition with the first line of the code, from 1.
    pub line: u32,
    /// Column of the code in that line, from 1.
    pub column: u32,
    /// Whether every line of the code is a line of the definition; else all of it is in one line.
    pub is_block: bool,
}

/// The place of an error, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorPlace {
    /// Iteration numbers from 0, outermost first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub path: Vec<u32>,
    /// The task that failed, in a step with several tasks
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub location: Option<CodeLocation>,
    /// The execution that the step started, and that failed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub child_execution_id: Option<String>,
    /// The first ten failed iterations of a loop, from 0
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub failed_iterations: Vec<u32>,
}

/// The line of code that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeLocation {
    /// A script on the worker; absent for code of the definition
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub file: Option<String>,
    /// Line of the script, or of the definition; absent if the definition was removed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub column: Option<u32>,
    /// Line of the code itself, from 1
    pub code_line: u32,
}

/// A failure, with the known facts about its firing.
#[derive(Debug, Clone, Copy)]
struct FailedFiring<'f> {
    step: StepId,
    path: &'f Path,
    failure: Option<&'f Failure>,
    child: Option<ExecutionId>,
}

impl ErrorPlace {
    /// Finds the place of a firing's newest failure.
    pub(crate) fn of(net: &Net, history: &History, code: &[CodePlace], firing: &Firing) -> ErrorPlace {
        let Firing { step, path, failure, child, .. } = firing;
        let failed = FailedFiring { step: *step, path, failure: failure.as_ref(), child: *child };
        let is_failed = |part: &&Firing| matches!(part.end, Some(End::Failed { .. }));
        let iterations = history.iterations(firing.run).filter(is_failed);
        ErrorPlace {
            failed_iterations: iterations
                .filter_map(|part| part.path.index())
                .take(FAILED_ITERATIONS_MAX)
                .collect(),
            ..ErrorPlace::find(net, code, failed)
        }
    }

    /// Finds the place of a failure while the journal is read.
    pub(crate) fn of_record(
        net: &Net,
        code: &[CodePlace],
        firing: &FiringRef,
        failure: &Failure,
    ) -> ErrorPlace {
        let FiringRef { step, path, child, failed_iterations, .. } = firing;
        let failed = FailedFiring { step: *step, path, failure: Some(failure), child: *child };
        ErrorPlace { failed_iterations: failed_iterations.clone(), ..ErrorPlace::find(net, code, failed) }
    }

    fn find(net: &Net, code: &[CodePlace], failed: FailedFiring<'_>) -> ErrorPlace {
        let step = net.step(failed.step);
        let label = failed.failure.and_then(|failure| failure.details["task"].as_str());
        let tasks = tasks(step);
        let own = tasks.iter().find(|(task, _)| Some(*task) == label);
        let is_child =
            matches!(step.work, Work::Child { .. }) || own.is_some_and(|(_, kind)| *kind == CHILD_KIND);
        ErrorPlace {
            path: failed.path.0.clone(),
            task: own.filter(|_| tasks.len() > 1).map(|(task, _)| (*task).to_owned()),
            // The code of another execution is in another definition.
            location: failed.failure.filter(|_| !is_child).and_then(|failure| {
                let place = code.iter().find(|place| place.step == step.name && Some(&*place.task) == label);
                CodeLocation::of(failure, place)
            }),
            child_execution_id: failed.child.filter(|_| is_child).map(execution_id),
            failed_iterations: Vec::new(),
        }
    }
}

/// Lists the tasks of a pipeline: labels and kinds. Nothing is copied, because a loop has many failures of one step.
fn tasks(step: &Step) -> Vec<(&str, &str)> {
    let Work::Task { spec } = &step.work else { return Vec::new() };
    let tasks = spec["tasks"].as_array().into_iter().flatten();
    tasks.filter_map(|task| Some((task["label"].as_str()?, task["kind"].as_str()?))).collect()
}

impl CodeLocation {
    /// Converts the position of a failure, which the worker reports as a line of the code or of its script.
    fn of(failure: &Failure, place: Option<&CodePlace>) -> Option<CodeLocation> {
        let number = |key: &str| failure.details[key].as_u64().and_then(|number| u32::try_from(number).ok());
        let (code_line, column) = (number("line")?, number("column"));
        if let Some(file) = failure.details["file"].as_str() {
            return Some(CodeLocation {
                file: Some(file.to_owned()),
                line: Some(code_line),
                column,
                code_line,
            });
        }
        let (line, column) = match place {
            Some(place) if place.is_block => (
                Some(place.line.saturating_add(code_line.saturating_sub(1))),
                column.map(|column| column.saturating_add(place.column.saturating_sub(1))),
            ),
            Some(place) => (Some(place.line), None),
            None => (None, column),
        };
        Some(CodeLocation { file: None, line, column, code_line })
    }
}
