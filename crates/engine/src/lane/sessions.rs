//! Sessions of workers: their units and their leases. Slots are freed by the reports of a worker, never by decisions
//! about its work: a process that must stop runs until it is known to have ended (R7).

mod outside;
mod table;

pub(super) use outside::Outside;
pub(super) use table::{Sessions, SlotUse};

use super::Lane;
use super::batch::WriteFollowUp;
use super::deciding::{Pending, PendingKind};
use super::dispatch::{Cursor, parts, unit};
use super::queue::{Queued, QueuedWork};
use super::reading::LookupReason;
use crate::wake::{Effect, EngineAnswer, Lookup};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use table::{HeldUnit, Session};
use windlass_kernel::{
    ExecutionId, Fence, Input, LeaseLost, LeaseUnit, Loss, Rejected, Report, RunId, RunState, Times,
    WorkResult,
};
use windlass_protocol as protocol;
use windlass_store::{LogChunk, Offer, Progress, Session as StoredSession, Stop, WHOLE, Write};

/// Returns the grace for work that this input stops. A forced cancel leaves none.
pub(super) fn grace_ms(what: &PendingKind) -> u64 {
    match what {
        PendingKind::Input(input) if matches!(&**input, Input::Cancel(cancel) if cancel.force) => 0,
        _ => protocol::STOP_GRACE_MS,
    }
}

impl<R> Lane<R> {
    pub(super) fn register(&mut self, register: &protocol::Register, reply: R) {
        if register.protocol != protocol::PROTOCOL_VERSION {
            let refused = Box::new(other_version(register));
            return self.answer(reply, EngineAnswer::Reply(protocol::Reply::Refused(refused)));
        }
        let id = protocol::SessionId(self.random_bits());
        let expires = self.now.steady + self.config.lease_ttl_ms;
        let (worker, slots, holds) = (register.worker.clone(), register.slots, BTreeMap::new());
        self.sessions
            .insert(id, Session { worker, slots, holds, slotless: 0, reserved: 0, expires, outside: None });
        self.sessions.turns.push_back(id);
        self.sessions.free += register.slots as usize;
        let registered = protocol::Registered { session: id, rules: self.config.rules.clone() };
        self.effects.push(Effect::SessionOpen(registered, reply));
    }

    /// Renews a session; orders to stop and orders that may be lost are repeated.
    pub(super) fn beat(&mut self, beat: &protocol::Beat, reply: R) {
        let expires = self.now.steady + self.config.lease_ttl_ms;
        let Some(session) = self.sessions.sessions.get_mut(&beat.session) else {
            self.effects.push(Effect::Order(beat.session, protocol::Order::Unknown));
            return self.answer_verdict(reply, protocol::Verdict::Stale);
        };
        session.expires = expires;
        if beat.draining {
            self.sessions.drain(beat.session);
        }
        let Some(session) = self.sessions.sessions.get(&beat.session) else { return };
        let overdue = self.now.steady.saturating_sub(self.config.lease_ttl_ms / 4);
        let mut missing = Vec::new();
        for (unit, held) in &session.holds {
            let listed = beat.holds.contains(unit);
            let missed = !listed && held.sent.is_some_and(|sent| sent <= overdue);
            match held.stop {
                // A worker also confirms stops of units that it does not have: these have stopped.
                Some(grace_ms) if held.stop_sent && (listed || missed) => {
                    let stop = protocol::Order::Stop { unit: *unit, grace_ms };
                    self.effects.push(Effect::Order(beat.session, stop));
                }
                // The order never arrived, or everything about it was lost since.
                None if missed => missing.push(*unit),
                Some(_) | None => {}
            }
        }
        self.answer_verdict(reply, protocol::Verdict::Accepted);
        for unit in missing {
            self.send_again(unit);
        }
    }

    /// Repeats an order. A worker that has the work ignores it; a worker that had it reports so.
    pub(super) fn send_again(&mut self, unit: protocol::Unit) {
        let (execution, run, fence) = parts(unit);
        let Some(session) = self.sessions.held.get(&unit).copied() else { return };
        // It was asked to stop while the values of the order were read.
        if self.sessions.held_mut(unit).is_some_and(|held| held.stop.is_some()) {
            return;
        }
        let again =
            || Pending { what: PendingKind::Again { run, fence }, reply: None, mail: None, audit: None };
        if self.executions.get(execution).is_none() && !self.quarantined.holds(execution) {
            return self.enqueue_input(execution, again());
        }
        match self.work(execution, run, fence) {
            Some(Ok(work)) => {
                self.sessions.sent(unit, self.now.steady);
                self.effects.push(Effect::Order(session, protocol::Order::Run(Box::new(work))));
            }
            Some(Err(needs)) => self.need(execution, again(), needs),
            None => self.lost(unit, Loss::NotStarted),
        }
    }

    pub(super) fn expire_sessions(&mut self) {
        for id in self.sessions.expired(self.now.steady) {
            let Some(session) = self.sessions.remove(id) else { continue };
            if session.outside.is_some() {
                self.close_outside(id);
            }
            // The answer to the next heartbeat of the worker is that its session is unknown.
            self.effects.push(Effect::SessionOver(id));
            for (unit, held) in wholes_first(session.holds) {
                self.lease_ended(id, unit, &held, Loss::Started);
            }
        }
    }

    /// Ends the session of a worker that shuts down: its unfinished work is offered again.
    pub(super) fn leave(&mut self, id: protocol::SessionId, reply: R) {
        if self.sessions.outside(id).is_some() {
            self.close_outside(id);
        }
        let holds = self.sessions.remove(id).map(|session| session.holds).unwrap_or_default();
        for (unit, held) in wholes_first(holds) {
            self.lease_ended(id, unit, &held, Loss::GivenBack);
        }
        self.effects.push(Effect::SessionOver(id));
        self.answer_verdict(reply, protocol::Verdict::Accepted);
    }

    /// Closes the session of a worker outside of this process that has no work.
    pub(super) fn close_idle(&mut self, id: protocol::SessionId) {
        self.close_outside(id);
        self.sessions.remove(id);
        self.effects.push(Effect::SessionOver(id));
    }

    /// Handles one unit that is lost.
    pub(super) fn lost(&mut self, unit: protocol::Unit, loss: Loss) {
        let Some(held) = self.sessions.held_mut(unit).cloned() else { return };
        let Some((session, ..)) = self.sessions.release(unit) else { return };
        self.lease_ended(session, unit, &held, loss);
    }

    fn lease_ended(
        &mut self,
        session: protocol::SessionId,
        unit: protocol::Unit,
        held: &HeldUnit,
        loss: Loss,
    ) {
        let loss = if self.retract(unit) {
            self.groups.unassign(session);
            Loss::NotStarted
        } else {
            loss
        };
        let (execution, run, fence) = parts(unit);
        if held.stop.is_some() {
            self.stopped(Stop { execution, run, fence, session: StoredSession(session.0) });
        }
        // An execution that drains still waits for work that it asked to stop.
        self.sessions.lost += 1;
        self.enqueue_input(execution, Pending::lost_lease((run, fence), loss, held.cursor.clone()));
    }

    /// Handles a unit that the worker never received: there is nothing to stop.
    pub(super) fn return_undelivered(&mut self, unit: protocol::Unit) {
        let (execution, run, fence) = parts(unit);
        if let Some(session) = self.sessions.holder(unit) {
            self.groups.unassign(session);
        }
        if let Some((session, _, true)) = self.sessions.release(unit) {
            self.stopped(Stop { execution, run, fence, session: StoredSession(session.0) });
        }
    }

    pub(super) fn stopped(&mut self, stop: Stop) {
        self.open.write(Write::Stopped(stop), WriteFollowUp::Nothing);
    }

    /// Stops work that is no longer wanted: its worker holds the slot until it reports that the work has stopped.
    pub(super) fn ask_to_stop(&mut self, id: ExecutionId, (run, fence): (RunId, Fence), grace_ms: u64) {
        let unit = unit(id, run, fence);
        if self.retract(unit)
            && let Some((session, ..)) = self.sessions.release(unit)
        {
            self.groups.unassign(session);
        }
        let Some(held) = self.sessions.held_mut(unit) else { return self.withdraw(id, run, fence) };
        if held.stop.is_some() {
            return;
        }
        held.stop = Some(grace_ms);
        let Some(session) = self.sessions.held.get(&unit).copied() else { return };
        let Some(building) = self.open.commit(id) else { return };
        building.stops.push(Stop { execution: id, run, fence, session: StoredSession(session.0) });
        building.orders.push((session, protocol::Order::Stop { unit, grace_ms }));
    }

    /// Removes a lease that is still in the open batch: no worker has received it.
    fn retract(&mut self, unit: protocol::Unit) -> bool {
        let (execution, run, fence) = parts(unit);
        if self.open.unlease(unit) {
            return true;
        }
        let Some(building) = self.open.commit(execution) else { return false };
        let before = building.leases.len();
        building.leases.retain(|lease| (lease.run, lease.fence) != (run, fence));
        building
            .orders
            .retain(|(_, order)| !matches!(order, protocol::Order::Run(work) if work.unit == unit));
        building.leases.len() < before
    }

    /// Withdraws an offer without a worker; an execution that drains must not wait for one to take it.
    fn withdraw(&mut self, id: ExecutionId, run: RunId, fence: Fence) {
        let state = self.executions.get(id).and_then(|live| live.state.run(run)).map(|run| &run.state);
        let is_open = matches!(state, Some(RunState::Offered { fence: open }) if *open == fence);
        let Some(building) = self.open.commit(id) else { return };
        building.closed.push((run, fence));
        if is_open {
            building.withdrawn.push((run, fence));
        }
    }

    /// Removes an offer from the queues after its end is on disk. It does not wait for its turn to be dropped, because
    /// no worker outside of this process may ever claim it.
    pub(super) fn unqueue(&mut self, id: ExecutionId, run: RunId, fence: Fence) {
        let work = if run == WHOLE { QueuedWork::Whole } else { QueuedWork::Offer(run, fence) };
        let queued = Queued { execution: id, work };
        self.groups.withdraw(&queued);
        if self.runners.withdraw(&queued) && run == WHOLE {
            self.starts.leave(id);
        }
    }

    pub(super) fn report(&mut self, report: protocol::Report, reply: R) {
        if report.unit.is_whole() {
            return self.whole_reported(report, reply);
        }
        let goes_on = matches!(report.outcome, protocol::Outcome::Failed(_) | protocol::Outcome::Stopped);
        if goes_on && !self.sessions.is_held(report.unit) {
            // The last process gave it out, or it was answered before: only the disk has its checkpoint.
            let (execution, run, _) = parts(report.unit);
            return self.read(Lookup::Offer(execution, run), LookupReason::Report(Box::new(report), reply));
        }
        let cursor = self.sessions.cursor(report.unit);
        self.take_report(report, cursor, reply);
    }

    /// Continues with a report on work that this process did not give out.
    pub(super) fn offer_found(&mut self, report: protocol::Report, offers: &[Offer], reply: R) {
        let (_, run, fence) = parts(report.unit);
        let offer = offers.iter().find(|offer| (offer.run, offer.fence) == (run, fence));
        self.take_report(report, offer.and_then(|offer| offer.cursor.clone()), reply);
    }

    fn take_report(&mut self, report: protocol::Report, cursor: Cursor, reply: R) {
        let (execution, run, fence) = parts(report.unit);
        let released = self.sessions.release(report.unit);
        if report.outcome == protocol::Outcome::Stopped && released.is_some_and(|(_, _, asked)| !asked) {
            // The engine did not order the stop: the worker gave the unit up when its lease seemed to end.
            let unit = LeaseUnit::Run { run, fence };
            let lost = Input::LeaseLost(LeaseLost { unit, loss: Loss::Started, cursor });
            let what = PendingKind::Report(Box::new(lost));
            return self
                .enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit: None });
        }
        if let Some((session, _, true)) = released {
            self.stopped(Stop { execution, run, fence, session: StoredSession(session.0) });
        }
        let times = released.map(|(_, at, _)| Times { claimed_at: at, started_at: at });
        let what = PendingKind::Report(Box::new(report_input(report, cursor, times)));
        self.enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit: None });
    }

    pub(super) fn checkpoint(&mut self, checkpoint: protocol::Checkpoint, reply: R) {
        let (execution, run, fence) = parts(checkpoint.unit);
        let cursor = checkpoint.cursor;
        // Work of the last process is lost, even if its lease on disk is valid: the loss follows with an older cursor.
        let Some(held) = self.sessions.held_mut(checkpoint.unit) else {
            return self.answer_verdict(reply, protocol::Verdict::Stale);
        };
        if checkpoint.unit.is_whole() {
            let what = PendingKind::WholeReady { fence };
            return self
                .enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit: None });
        }
        // A late copy of an earlier checkpoint must not replace the newest one, so the newest is written again.
        let cursor = held.cursor.clone().filter(|_| checkpoint.number < held.checkpoint).unwrap_or(cursor);
        held.checkpoint = held.checkpoint.max(checkpoint.number);
        held.cursor = Some(cursor.clone());
        self.open.write(Write::Checkpoint { execution, run, fence, cursor }, WriteFollowUp::Verdict(reply));
    }

    pub(super) fn progress(&mut self, progress: protocol::Progress, reply: R) {
        let (execution, run, fence) = parts(progress.unit);
        if self.sessions.held_mut(progress.unit).is_none() {
            return self.answer_verdict(reply, protocol::Verdict::Stale);
        }
        let progress = Progress { step: progress.step, percentage: progress.percentage.min(100) };
        let write = Write::Progress { execution, run, fence, progress };
        self.open.write(write, WriteFollowUp::Verdict(reply));
    }

    pub(super) fn log(&mut self, mut log: protocol::Log, reply: R) {
        let (execution, run, _) = parts(log.unit);
        let Some(held) = self.sessions.held_mut(log.unit) else {
            return self.answer_verdict(reply, protocol::Verdict::Stale);
        };
        if let Some(no_room) = self.config.resources.no_room(&held.tenant) {
            if std::mem::replace(&mut held.log_ends, true) {
                let refused = protocol::Reply::Refused(Box::new(no_room.failure()));
                return self.answer(reply, EngineAnswer::Reply(refused));
            }
            log.lines = vec![protocol::Line::end_of_log(self.now.wall.0, no_room.message())];
        }
        // Serialising plain data cannot fail.
        let lines = serde_json::to_vec(&log.lines).unwrap_or_default();
        let chunk =
            LogChunk { execution, run, step: log.step, attempt: log.attempt, lines, at: self.now.wall };
        self.open.write(Write::Log(chunk), WriteFollowUp::Verdict(reply));
    }
}

/// Sorts the units of a worker so that whole executions come before their steps: with the first loss they restart, and
/// the later ones are of an earlier generation.
fn wholes_first(
    holds: BTreeMap<protocol::Unit, HeldUnit>,
) -> impl Iterator<Item = (protocol::Unit, HeldUnit)> {
    // The number of a whole execution is the highest of its units.
    holds.into_iter().rev()
}

/// Handles a worker that gave up a unit of the last process without an order: that is a loss, as recovery reports it
/// for its offer.
pub(super) fn given_back(what: &PendingKind, rejected: &Rejected) -> Option<PendingKind> {
    let (PendingKind::Report(input), Rejected::NotWaiting { .. }) = (what, rejected) else { return None };
    let Input::Report(report) = &**input else { return None };
    let unit = LeaseUnit::Run { run: report.run, fence: report.fence };
    let lost = LeaseLost { unit, loss: Loss::GivenBack, cursor: report.cursor.clone() };
    (report.result == WorkResult::Stopped).then(|| PendingKind::Report(Box::new(Input::LeaseLost(lost))))
}

fn other_version(register: &protocol::Register) -> protocol::Failure {
    let message = format!(
        "worker `{}` speaks version {} of the protocol and this engine version {}; run the same release of both",
        register.worker,
        register.protocol,
        protocol::PROTOCOL_VERSION
    );
    protocol::Failure::new(protocol::codes::PROTOCOL_MISMATCH, message)
}

/// Converts a worker's report to the form of the kernel.
pub(super) fn report_input(report: protocol::Report, cursor: Cursor, times: Option<Times>) -> Input {
    let (_, run, fence) = parts(report.unit);
    let patch = report.patch.into_iter().map(|(key, value)| (key, value.into())).collect();
    let metadata = (!report.metadata.is_empty()).then(|| Arc::new(Value::Object(report.metadata)));
    let result = result(report.outcome);
    Input::Report(Box::new(Report { run, fence, result, patch, times, metadata, cursor }))
}

fn result(outcome: protocol::Outcome) -> WorkResult {
    match outcome {
        protocol::Outcome::Done { output } => WorkResult::Done { output: output.into() },
        protocol::Outcome::Failed(failure) => WorkResult::Failed(failure),
        protocol::Outcome::Stopped => WorkResult::Stopped,
        protocol::Outcome::Later { delay_ms, cursor } => {
            WorkResult::Later { delay_ms, cursor: Some(cursor.into()) }
        }
        protocol::Outcome::Child { definition, inputs, cursor } => WorkResult::Child {
            definition: definition.into(),
            inputs: inputs.into(),
            cursor: Some(cursor.into()),
        },
    }
}
