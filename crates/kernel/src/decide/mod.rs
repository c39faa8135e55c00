//! `decide`: the consequences of an input for an execution in its current state. Each primitive has a file; this one
//! dispatches the inputs.

mod agents;
mod cancel;
mod children;
mod context;
mod draft;
mod ending;
mod finish;
mod firing;
mod hold;
mod joining;
mod leases;
mod loops;
mod manual;
mod reports;
mod retry;
mod routing;
mod scope;
mod settle;
mod start;
mod timers;
mod working;

pub(crate) use draft::Draft;
pub(crate) use loops::end_taken_iteration;
pub(crate) use routing::route_taken;
pub(crate) use settle::settle;
pub(crate) use start::start_now;

use crate::any_of;
use crate::changes::Changes;
use crate::event::Record;
use crate::execution::Execution;
use crate::input::{Given, Input, Rejected};
use crate::net::Net;
use crate::phase::Phase;
use windlass_artifact::Artifact;

/// Result of one part of a decision: the input is accepted so far, or rejected as a whole.
type Accepted = Result<(), Rejected>;

/// Result of an input. Without records, the input was accepted and changes nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub records: Vec<Record>,
    /// Changes of the state by the records, so that the caller does not have to fold the records again.
    pub changes: Changes,
    /// Values that the records refer to. They must be on disk before the records or with them.
    pub artifacts: Vec<Artifact>,
}

/// Decides on an input without changing the state: the caller commits the records and then applies the changes.
pub fn decide(
    execution: &Execution<'_>,
    net: &Net,
    input: &Input,
    given: &Given<'_>,
) -> Result<Decision, Rejected> {
    check_target(execution, net, input)?;
    let mut draft = Draft::new(execution, net, given);
    let d = &mut draft;
    match input {
        Input::Create(create) => start::create(d, create)?,
        Input::Assign { worker } => start::assign(d, worker)?,
        Input::Begin => start::begin(d)?,
        Input::StartFailed { failure } => start::fail_start(d, failure)?,
        Input::Report(report) => reports::handle_report(d, report)?,
        Input::LeaseLost(lost) => leases::handle_lost(d, lost)?,
        Input::TimerDue(timer) => timers::handle_due(d, *timer)?,
        Input::RouteReady { run } => working::wake_waiting(d, *run)?,
        Input::Complete { run, fence, note, seen } => manual::complete(d, *run, *fence, note, *seen)?,
        Input::Patch { patch, by } => context::apply_patch(d, patch, by)?,
        Input::Hold { by, reason } => hold::hold(d, by, reason)?,
        Input::Resume { by } => hold::resume(d, by)?,
        Input::Cancel(cancel) => cancel::cancel(d, cancel)?,
        Input::ChildEnded { run, fence, child, result } => {
            children::end_child(d, *run, *fence, *child, result)?
        }
        Input::ChildPaused { run, fence, child, paused } => {
            children::note_pause(d, *run, (*fence, *child), *paused)?
        }
        Input::Agent { run, fence, call, ask } => agents::answer_call(d, *run, *fence, call, ask)?,
        Input::Uploaded { failure } => finish::finish_uploads(d, failure.as_ref())?,
        Input::Continue => start::continue_work(d)?,
    }
    settle(d)?;
    let Draft { records, artifacts, state, .. } = draft;
    Ok(Decision { records, artifacts, changes: state.into_changes(&execution.head) })
}

/// Rejects an input that cannot be for this execution.
fn check_target(execution: &Execution<'_>, net: &Net, input: &Input) -> Accepted {
    let (is_blank, is_known) = (execution.phase() == Phase::Blank, net.digest() == execution.head.net);
    match input {
        Input::Create(_) if is_blank => Ok(()),
        Input::Create(_) => Err(Rejected::Exists),
        _ if is_blank => Err(Rejected::NotCreated),
        _ if !is_known => Err(Rejected::WrongNet),
        // A repeated answer is accepted again (R16).
        any_of![Input: Report Complete] => Ok(()),
        any_of![Input: Assign Begin StartFailed LeaseLost TimerDue RouteReady Patch Hold Resume Cancel ChildEnded
            ChildPaused Agent Uploaded Continue] => match execution.phase() {
            Phase::Ended(outcome) => Err(Rejected::Ended(outcome)),
            any_of![Phase: Blank Queued Starting Running Paused Draining Compensating Finalizing] => Ok(()),
        },
    }
}
