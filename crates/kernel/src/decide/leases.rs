//! Lost leases: the worker is gone or disconnected. The consequences follow the recovery policy of the Net.

use super::ending::{self, Told};
use super::{Draft, cancel, hold, reports, retry, start};
use crate::event::{Cause, Event};
use crate::ids::{Fence, RunId};
use crate::input::{LeaseLost, LeaseUnit, Loss, Rejected};
use crate::net::{Affinity, Finish, Recovery};
use crate::phase::{Outcome, Phase};
use crate::step_run::{Role, RunState};
use windlass_failure::{Failure, codes};

pub(super) fn lost(d: &mut Draft<'_>, lost: &LeaseLost) -> Result<(), Rejected> {
    match lost.unit {
        LeaseUnit::Execution { generation } => execution_lost(d, generation),
        LeaseUnit::Run { run, fence } => run_lost(d, run, fence, lost),
    }
}

fn run_lost(d: &mut Draft<'_>, id: RunId, fence: Fence, lost: &LeaseLost) -> Result<(), Rejected> {
    let open = d.state.run(id).map(|run| (run.state.clone(), run.role.clone(), run.losses));
    let Some((RunState::Offered { fence: current }, role, losses)) = open else {
        return Err(Rejected::StaleFence { given: fence });
    };
    if current != fence {
        return Err(Rejected::StaleFence { given: fence });
    }
    if !ending::leads_on(d, &role) {
        return reports::drop_it(d, id, fence, None);
    }
    if lost.loss == Loss::NotStarted {
        return again(d, id, fence, lost);
    }
    match (d.net.policy().recovery, role) {
        (Recovery::FailAttempt, _) => {
            let told = Told { cursor: lost.cursor.clone(), ..Told::under(fence) };
            retry::attempt_failed(d, id, worker_lost("its worker was lost"), told)
        }
        (Recovery::RestartExecution, Role::Routed | Role::Iteration { .. } | Role::Tool { .. })
            if d.is_open() =>
        {
            restart(d)
        }
        _ if lost.loss == Loss::Started && losses + 1 >= d.net.policy().limits.losses => {
            let message = format!("its worker was lost {} times", losses + 1);
            ending::fail(d, id, worker_lost(message), Told::under(fence))
        }
        _ => again(d, id, fence, lost),
    }
}

fn worker_lost(message: impl Into<String>) -> Failure {
    Failure::of_code(codes::WORKER_LOST, message)
}

/// Makes the step-run ready to be offered again; no attempt is used.
fn again(d: &mut Draft<'_>, id: RunId, fence: Fence, lost: &LeaseLost) -> Result<(), Rejected> {
    d.emit(Event::Lost { run: id, fence, started: lost.loss == Loss::Started, cursor: lost.cursor.clone() })
}

/// Handles the loss of the only worker of an execution (R11).
fn execution_lost(d: &mut Draft<'_>, generation: u32) -> Result<(), Rejected> {
    if d.net.policy().affinity != Affinity::OneWorker {
        return Err(Rejected::Malformed("this execution is not leased as a whole"));
    }
    let current = d.head().generation;
    if generation != current {
        return Err(Rejected::WrongGeneration { given: generation, current });
    }
    let by_itself = d.head().decided.is_some_and(|decided| decided.cause == Cause::Quiet);
    match d.phase() {
        Phase::Starting | Phase::Running | Phase::Paused => restart(d),
        Phase::Finalizing if by_itself && !is_last_loss(d) => restart(d),
        // The outcome stays; the worker's work in flight is lost.
        Phase::Draining | Phase::Compensating | Phase::Finalizing => give_up(d),
        Phase::Blank | Phase::Queued | Phase::Ended(_) => Err(d.conflict("no worker has it")),
    }
}

fn give_up(d: &mut Draft<'_>) -> Result<(), Rejected> {
    cancel::clear(d, cancel::Clear::Lost)?;
    let failure = worker_lost("the worker was lost before everything was uploaded");
    let uploads = d.phase() == Phase::Finalizing && d.net.policy().finish == Finish::Uploads;
    if uploads { super::finish::uploaded(d, Some(&failure)) } else { Ok(()) }
}

fn is_last_loss(d: &Draft<'_>) -> bool {
    d.head().restarts + 1 >= d.net.policy().limits.restarts
}

fn restart(d: &mut Draft<'_>) -> Result<(), Rejected> {
    if is_last_loss(d) {
        let losses = d.head().restarts + 1;
        let failure = worker_lost(format!("runner lost {losses} times"));
        return cancel::drain_with(
            d,
            Outcome::Failed,
            Cause::Failure,
            Some(failure),
            cancel::Clear::Everything,
        );
    }
    cancel::clear(d, cancel::Clear::Abandon)?;
    let generation = d.head().generation + 1;
    let remaining_ms = hold::remaining_ms(d);
    d.emit(Event::Restarted { generation, remaining_ms })?;
    if d.net.policy().affinity == Affinity::AnyWorker { start::start(d) } else { Ok(()) }
}
