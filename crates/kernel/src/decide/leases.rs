//! Lost leases: the worker has ended or is disconnected. The consequences follow the recovery policy of the Net.

use super::ending::{self, EndDetails};
use super::{Accepted, Draft, cancel, hold, reports, retry, start};
use crate::event::{Cause, Event};
use crate::ids::{Fence, RunId};
use crate::input::{LeaseLost, LeaseUnit, Loss, Rejected};
use crate::net::{Affinity, Finish, Recovery};
use crate::phase::{Outcome, Phase};
use crate::step_run::{Role, RunState};
use windlass_failure::{Failure, codes};

pub(super) fn handle_lost(d: &mut Draft<'_>, lost: &LeaseLost) -> Accepted {
    match lost.unit {
        LeaseUnit::Execution { generation } => lose_execution(d, generation, lost.loss),
        LeaseUnit::Run { run, fence } => lose_run(d, run, fence, lost),
    }
}

fn lose_run(d: &mut Draft<'_>, id: RunId, fence: Fence, lost: &LeaseLost) -> Accepted {
    let is_open = |state: &RunState| matches!(state, RunState::Offered { fence: open } if *open == fence);
    let open = d.state.run(id).filter(|run| is_open(&run.state)).map(|run| (run.role.clone(), run.losses));
    let Some((role, losses)) = open else { return Err(Rejected::StaleFence { given: fence }) };
    if !ending::control_continues(d, &role) {
        return reports::drop_run(d, id, fence, None);
    }
    if lost.loss == Loss::NotStarted {
        return offer_again(d, id, fence, lost);
    }
    match (d.net.policy().recovery, role) {
        (Recovery::FailAttempt, _) => {
            let details = EndDetails { cursor: lost.cursor.clone(), ..EndDetails::under(fence) };
            retry::fail_attempt(d, id, worker_lost_failure("its worker was lost"), details)
        }
        (Recovery::RestartExecution, Role::Routed | Role::Iteration { .. } | Role::Tool { .. })
            if d.is_open() =>
        {
            restart_execution(d, lost.loss)
        }
        _ if lost.loss == Loss::Started && losses + 1 >= d.net.policy().limits.losses => {
            let message = format!("its worker was lost {} times", losses + 1);
            ending::fail(d, id, worker_lost_failure(message), EndDetails::under(fence))
        }
        _ => offer_again(d, id, fence, lost),
    }
}

fn worker_lost_failure(message: impl Into<String>) -> Failure {
    Failure::new(codes::WORKER_LOST, message)
}

/// Makes the step-run ready to be offered again; no attempt is used.
fn offer_again(d: &mut Draft<'_>, id: RunId, fence: Fence, lost: &LeaseLost) -> Accepted {
    d.emit(Event::Lost { run: id, fence, started: lost.loss == Loss::Started, cursor: lost.cursor.clone() })
}

/// Handles the loss of the only worker of an execution (R11).
fn lose_execution(d: &mut Draft<'_>, generation: u32, loss: Loss) -> Accepted {
    if d.net.policy().affinity != Affinity::OneWorker {
        return Err(Rejected::Malformed("this execution is not leased as a whole"));
    }
    let current = d.head().generation;
    if generation != current {
        return Err(Rejected::WrongGeneration { given: generation, current });
    }
    let by_itself = d.head().decided.is_some_and(|decided| decided.cause == Cause::Quiet);
    match d.phase() {
        Phase::Starting | Phase::Running | Phase::Paused => restart_execution(d, loss),
        Phase::Finalizing if by_itself && !is_last_loss(d, loss) => restart_execution(d, loss),
        // The outcome stays; the worker's work in flight is lost.
        Phase::Draining | Phase::Compensating | Phase::Finalizing => fail_uploads(d),
        Phase::Blank | Phase::Queued | Phase::Ended(_) => Err(d.conflict("no worker holds the execution")),
    }
}

fn fail_uploads(d: &mut Draft<'_>) -> Accepted {
    cancel::clear(d, cancel::Clear::Lost)?;
    let failure = worker_lost_failure("the worker was lost before everything was uploaded");
    let uploads = d.phase() == Phase::Finalizing && d.net.policy().finish == Finish::Uploads;
    if uploads { super::finish::finish_uploads(d, Some(&failure)) } else { Ok(()) }
}

/// Returns whether the loss ends the execution. A worker that gives work back, or that never began, is not lost because of
/// the execution.
fn is_last_loss(d: &Draft<'_>, loss: Loss) -> bool {
    loss == Loss::Started && d.head().losses + 1 >= d.net.policy().limits.restarts
}

fn restart_execution(d: &mut Draft<'_>, loss: Loss) -> Accepted {
    if is_last_loss(d, loss) {
        let failure = worker_lost_failure(format!("runner lost {} times", d.head().losses + 1));
        let clear = cancel::Clear::Everything;
        return cancel::drain_with(d, Outcome::Failed, Cause::Failure, Some(failure), clear);
    }
    cancel::clear(d, cancel::Clear::Abandon)?;
    let generation = d.head().generation + 1;
    let remaining_ms = hold::remaining_ms(d);
    d.emit(Event::Restarted { generation, remaining_ms, started: loss == Loss::Started })?;
    if d.net.policy().affinity == Affinity::AnyWorker { start::start(d) } else { Ok(()) }
}
