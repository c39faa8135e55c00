//! Executions that one worker takes as a whole (R11): they stay queued until a worker has a slot for them. The worker holds a
//! lease on the execution from then on, and every step runs at that worker, in the slot of the execution.
//!
//! To sessions and leases the whole execution is a unit like a step-run, with the number [`WHOLE`] and the first fence of
//! its generation. Its worker's first checkpoint says that the steps can begin. It is asked to stop when the execution has
//! ended or restarts.

use super::Lane;
use super::batch::WriteFollowUp;
use super::deciding::{Pending, PendingKind};
use super::dispatch::{attempt_timer, has_asked_to_stop, lease, parts, unit};
use super::live::Live;
use super::queue::{Queued, QueuedWork};
use super::sessions::SlotUse;
use super::starts::is_later;
use serde_json::Value;
use std::sync::Arc;
use windlass_kernel::net::{Affinity, Finish};
use windlass_kernel::{
    ExecutionId, Failure, Fence, Input, LeaseLost, LeaseUnit, Loss, Net, Phase, RunId, RunState,
};
use windlass_protocol as protocol;
use windlass_protocol::Verdict;
use windlass_store::{Session as StoredSession, Stop, Tenant, WHOLE, Write};

const _: () =
    assert!(WHOLE.0 == protocol::Unit::WHOLE, "workers and stores use one number for whole executions");

/// Returns whether one worker takes executions of the Net as a whole.
pub(super) fn is_taken_whole(net: &Net) -> bool {
    net.policy().affinity == Affinity::OneWorker
}

/// Returns whether the execution has only its uploads left.
pub(super) fn awaits_uploads<R>(live: &Live<R>) -> bool {
    live.state.phase() == Phase::Finalizing && live.net.policy().finish == Finish::Uploads
}

fn whole(id: ExecutionId, generation: u32) -> protocol::Unit {
    unit(id, WHOLE, Fence::first(generation))
}

impl<R> Lane<R> {
    pub(super) fn takes_whole(&self, id: ExecutionId) -> bool {
        self.executions.get(id).is_some_and(|live| is_taken_whole(&live.net))
    }

    /// Ends an execution that has only its uploads left, unless artifacts are uploaded elsewhere: workers store large values
    /// before they report a step, so nothing is missing.
    pub(super) fn end_uploads(&mut self, id: ExecutionId) {
        if !self.config.uploads_artifacts && self.executions.get(id).is_some_and(awaits_uploads) {
            self.enqueue_input(id, Pending::input(Input::Uploaded { failure: None }));
        }
    }

    /// Releases the worker of an execution that has only its uploads left: they may take long, and need no worker.
    pub(super) fn release_uploading(&mut self, id: ExecutionId, grace_ms: u64) {
        let Some(live) = self.executions.get(id).filter(|live| awaits_uploads(live)) else { return };
        let generation = live.state.head.generation;
        if self.config.uploads_artifacts {
            self.end_whole(id, generation, grace_ms);
        }
    }

    /// Queues an execution that waits for its worker.
    pub(super) fn await_worker(&mut self, id: ExecutionId) {
        let Some(live) = self.executions.get(id).filter(|live| is_taken_whole(&live.net)) else { return };
        if live.state.phase() != Phase::Queued || is_later(&live.state.head, self.now.wall) {
            return;
        }
        let (tenant, priority) = (live.origin.tenant.clone(), live.origin.options.priority);
        if !self.starts.wait(id) {
            return;
        }
        let queued = Queued { execution: id, work: QueuedWork::Whole };
        match self.runner_of(id) {
            Some(key) => self.await_runner(key, priority, queued),
            None => self.queue.push(&tenant, priority, queued),
        }
    }

    /// Assigns a queued execution whose turn it is to a worker with a free slot.
    pub(super) fn assign(&mut self, id: ExecutionId, tenant: Tenant) {
        if self.open.is_closed_for(id) {
            self.open.deferred.push(id);
            if let Some(live) = self.executions.get_mut(id) {
                let what = PendingKind::Assign { tenant };
                live.waiting.push_front(Pending { what, reply: None, mail: None, audit: None });
            }
            return;
        }
        self.drop_queued_start(id, &tenant);
        let Some(live) = self.executions.get(id) else { return };
        let (priority, generation) = (live.origin.options.priority, live.state.head.generation);
        if live.state.phase() != Phase::Queued {
            return self.rest(id);
        }
        let Some(session) = self.sessions.take_slot() else {
            self.starts.wait(id);
            let start = Queued { execution: id, work: QueuedWork::Whole };
            return self.queue.put_back(&tenant, priority, start);
        };
        self.lease_whole(id, generation, session, tenant);
    }

    /// Gives the execution to a session, in the commit that assigns it.
    pub(super) fn lease_whole(
        &mut self,
        id: ExecutionId,
        generation: u32,
        session: protocol::SessionId,
        tenant: Tenant,
    ) {
        let worker = self.sessions.worker(session).unwrap_or_default().to_owned();
        self.decide(id, Pending::input(Input::Assign { worker }));
        let is_assigned = self.executions.get(id).is_some_and(|live| live.state.phase() == Phase::Starting);
        let (unit, now) = (whole(id, generation), self.now.wall);
        let work = self.work(id, WHOLE, Fence::first(generation));
        let (true, Some(Ok(work)), Some(building)) = (is_assigned, work, self.open.commit(id)) else {
            return;
        };
        building.leases.push(lease(id, WHOLE, Fence::first(generation), session, now));
        building.orders.push((session, protocol::Order::Run(Box::new(work))));
        self.sessions.hold(session, unit, tenant, now);
    }

    /// Returns the whole execution as its worker gets it; None if it is not open under this fence.
    pub(super) fn whole_work(&self, id: ExecutionId, fence: Fence) -> Option<protocol::Work> {
        let live = self.executions.get(id)?;
        let head = &live.state.head;
        let is_open = fence == Fence::first(head.generation)
            && !matches!(head.phase, Phase::Blank | Phase::Queued | Phase::Ended(_));
        is_open.then(|| protocol::Work {
            unit: unit(id, WHOLE, fence),
            step: String::new(),
            path: Vec::new(),
            attempt: 1,
            losses: head.restarts,
            spec: Arc::new(Value::Null),
            scope: protocol::Scope { workload: head.inputs.clone(), ..protocol::Scope::default() },
            cursor: None,
            timeout_ms: None,
            tenant: live.origin.tenant.to_string(),
            workflow: live.origin.workflow.map(|workflow| workflow.to_string()),
            debug: live.origin.options.debug,
            decided_ms: None,
            no_room: None,
        })
    }

    /// Returns the worker that holds the execution of an offer.
    fn holder_of(&self, id: ExecutionId, fence: Fence) -> Option<protocol::SessionId> {
        self.sessions.holder(whole(id, fence.generation()))
    }

    /// Gives a new offer to the worker of its execution, in the commit of the offer. Without a worker the execution restarts.
    pub(super) fn offer_inside(&mut self, id: ExecutionId, run: RunId, fence: Fence) {
        let Some(session) = self.holder_of(id, fence).filter(|_| !self.stopping) else { return };
        let Some(tenant) = self.executions.get(id).map(|live| live.origin.tenant.clone()) else { return };
        let work = self.work(id, run, fence);
        let now = self.now.wall;
        let Some(building) = self.open.commit(id) else { return };
        let Some(Ok(work)) = work else {
            building.queued.push((run, fence));
            return;
        };
        building.leases.push(lease(id, run, fence, session, now));
        building.timers.extend(attempt_timer(id, run, fence, work.timeout_ms, now));
        building.orders.push((session, protocol::Order::Run(Box::new(work))));
        self.sessions.hold_in(SlotUse::Inside, session, unit(id, run, fence), tenant, now);
    }

    /// Sends an offer whose values had to be read to the worker of its execution.
    pub(super) fn hand_inside(&mut self, id: ExecutionId, run: RunId, fence: Fence) {
        let work = match self.work(id, run, fence) {
            Some(Err(needs)) => {
                let what = PendingKind::Inside { run, fence };
                return self.need(id, Pending { what, reply: None, mail: None, audit: None }, needs);
            }
            Some(Ok(work)) if !self.sessions.is_held(work.unit) => work,
            Some(Ok(_)) | None => return self.rest(id),
        };
        if self.executions.get(id).is_some_and(|live| has_asked_to_stop(&live.state)) {
            return self.enqueue_input(id, Pending::lost_lease((run, fence), Loss::NotStarted, None));
        }
        let Some(session) = self.holder_of(id, fence).filter(|_| !self.stopping) else { return };
        let now = self.now.wall;
        self.sessions.hold_in(SlotUse::Inside, session, work.unit, Tenant::new(&work.tenant), now);
        if let Some(timer) = attempt_timer(id, run, fence, work.timeout_ms, now) {
            self.timers.arm(timer);
        }
        let write = Write::Lease(lease(id, run, fence, session, now));
        self.open.write(write, WriteFollowUp::Deliver(session, Box::new(work)));
    }

    /// Sends offers without a lease to a worker that still holds the execution after a restart of the engine.
    pub(super) fn redeliver_whole(&mut self, id: ExecutionId) {
        let Some(live) = self.executions.get(id) else { return };
        if awaits_uploads(live) {
            return self.end_uploads(id);
        }
        let offered = live.state.runs.iter().filter_map(|(run, step_run)| {
            if let RunState::Offered { fence } = step_run.state { Some((*run, fence)) } else { None }
        });
        for (run, fence) in offered.collect::<Vec<_>>() {
            if !self.sessions.is_held(unit(id, run, fence)) {
                let what = PendingKind::Inside { run, fence };
                self.enqueue_input(id, Pending { what, reply: None, mail: None, audit: None });
            }
        }
    }

    /// Stops the worker of an execution that has ended or begins again. The state is the one after the decision.
    pub(super) fn end_whole(&mut self, id: ExecutionId, generation: u32, grace_ms: u64) {
        if self.takes_whole(id) {
            self.ask_to_stop(id, (WHOLE, Fence::first(generation)), grace_ms);
        }
    }

    /// Handles the report that the worker is ready for the steps. It may be repeated.
    pub(super) fn whole_ready(&mut self, id: ExecutionId, fence: Fence, pending: Pending<R>) {
        let Some(live) = self.executions.get(id) else { return };
        let is_current = Fence::first(live.state.head.generation) == fence;
        if is_current && live.state.phase() == Phase::Starting {
            return self.decide(id, Pending { what: PendingKind::Report(Box::new(Input::Begin)), ..pending });
        }
        let verdict = if is_current { Verdict::Accepted } else { Verdict::Stale };
        self.answer_when_written(id, pending, crate::wake::EngineAnswer::verdict(verdict));
        self.rest(id);
    }

    /// Handles the end of a worker's work on an execution: it was stopped, cannot begin, or gave up.
    pub(super) fn whole_reported(&mut self, report: protocol::Report, reply: R) {
        let (execution, run, fence) = parts(report.unit);
        let loss = match self.sessions.release(report.unit) {
            Some((session, _, true)) => {
                let stop = Stop { execution, run, fence, session: StoredSession(session.0) };
                return self.open.write(Write::Stopped(stop), WriteFollowUp::Verdict(reply));
            }
            Some((_, _, false)) => Loss::Started,
            // The last process dispatched it, or it was answered before: the state of the execution decides.
            None => Loss::GivenBack,
        };
        let failure = match report.outcome {
            protocol::Outcome::Failed(failure) => Some(Box::new(failure)),
            protocol::Outcome::Done { .. }
            | protocol::Outcome::Stopped
            | protocol::Outcome::Later { .. }
            | protocol::Outcome::Child { .. } => None,
        };
        let what = PendingKind::WholeEnded { fence, loss, failure };
        self.enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit: None });
    }

    /// A failure before the steps began is that of the execution. After that the worker is lost; if only the end is left, that
    /// changes nothing.
    pub(super) fn whole_ended(
        &mut self,
        id: ExecutionId,
        fence: Fence,
        (loss, failure): (Loss, Option<Box<Failure>>),
        pending: Pending<R>,
    ) {
        let Some(live) = self.executions.get(id) else { return };
        let input = match failure {
            Some(failure) if live.state.phase() == Phase::Starting => {
                Input::StartFailed { failure: *failure }
            }
            _ if awaits_uploads(live) && self.config.uploads_artifacts => {
                self.answer_when_written(id, pending, crate::wake::EngineAnswer::verdict(Verdict::Accepted));
                return self.rest(id);
            }
            _ if awaits_uploads(live) => Input::Uploaded { failure: None },
            _ => {
                let unit = LeaseUnit::Execution { generation: fence.generation() };
                // A worker that reports before it is ready gives the execution back. One that disappears may have been ended by
                // what it prepared, so that loss counts.
                let is_returned = pending.reply.is_some() && live.state.phase() == Phase::Starting;
                let loss = if is_returned { Loss::GivenBack } else { loss };
                Input::LeaseLost(LeaseLost { unit, loss, cursor: None })
            }
        };
        self.decide(id, Pending { what: PendingKind::Report(Box::new(input)), ..pending });
    }
}
