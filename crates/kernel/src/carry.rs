//! The begin of an execution that takes over records of an ended one (R12). The crate `retry` chooses the records.

use crate::changes::Changes;
use crate::decide::{Decision, Draft, end_taken_iteration, route_taken, settle, start_now};
use crate::event::{Event, Fork, Parent, Record};
use crate::execution::Execution;
use crate::ids::{ExecutionId, Path, RunId, StepId};
use crate::input::{Given, Rejected};
use crate::net::Net;
use crate::step_run::Args;
use serde_json::Value;
use std::sync::Arc;

/// The work of an ended execution that a new one has already done when it begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TakenOver {
    /// The first records of the new execution's journal.
    pub records: Vec<Record>,
    /// The state after these records.
    pub state: Execution<'static>,
    /// Completed firings whose tokens are not in the records: step, path, arguments, output and the firing's number.
    pub unrouted: Vec<(StepId, Path, Args, Arc<Value>, RunId)>,
    /// Succeeded iterations that their loop has not counted.
    pub unended: Vec<(RunId, u32)>,
    pub generation: u32,
}

/// Differences of the new execution from the ended one.
#[derive(Debug, Clone, Default)]
pub struct NewExecution {
    pub id: ExecutionId,
    /// `None`: those of the ended execution.
    pub inputs: Option<Arc<Value>>,
    /// The step-run that waits for the new execution.
    pub parent: Option<Parent>,
}

/// Decides the records that follow those that were taken over. The changes are the whole state of the new execution.
pub fn carry_over(
    taken_over: &TakenOver,
    net: &Net,
    new: &NewExecution,
    given: &Given<'_>,
) -> Result<Decision, Rejected> {
    let TakenOver { state, unrouted, unended, generation, .. } = taken_over;
    let mut draft = Draft::new(state, net, given);
    for (step, path, args, output, run) in unrouted {
        route_taken(&mut draft, (*step, path, args.clone()), *run, output)?;
    }
    draft.emit(Event::Forked(Box::new(Fork {
        parent: state.head.id,
        id: new.id,
        generation: *generation,
        inputs: new.inputs.clone(),
        deadline: None,
        taken_over: true,
        child_of: new.parent.clone(),
    })))?;
    start_now(&mut draft)?;
    for (of, index) in unended {
        end_taken_iteration(&mut draft, *of, *index)?;
    }
    settle(&mut draft)?;
    let Draft { records, artifacts, state: after, .. } = draft;
    let mut whole = state.clone();
    whole.apply(&after.into_changes(&state.head));
    Ok(Decision { records, changes: Changes::whole(&whole), artifacts })
}
