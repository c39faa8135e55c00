//! Workers outside of this process that run steps themselves: they have slots, and get orders like the workers of this
//! process. What the start of an execution binds to a group of them waits here until one has a free slot.

use super::Lane;
use super::asking::CheckedCall;
use super::batch::WriteFollowUp;
use super::deciding::{Pending, PendingKind};
use super::dispatch::{attempt_timer, has_asked_to_stop, lease};
use super::groups::GroupKey;
use super::lines::Lines;
use super::queue::{Queued, QueuedWork};
use crate::wake::{Effect, EngineAnswer, GroupReply, SessionKey};
use windlass_kernel::{ExecutionId, Fence, Loss, Phase, RunId};
use windlass_protocol as protocol;
use windlass_protocol::{
    AgentAnswer, Call, Order, Outcome, Reply, ResourceAsk, ResourceReply, Rights, Variables,
};
use windlass_store::{Audit, Priority, Runner, Tenant, WHOLE, Write};

/// Workers of a tenant that an execution is bound to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunnerKey {
    pub tenant: Tenant,
    pub runner: Runner,
}

impl RunnerKey {
    pub fn group(&self) -> GroupKey {
        GroupKey { tenant: self.tenant.clone(), name: self.runner.group.clone() }
    }
}

/// Executions and offers that found no free slot, by the workers that they wait for.
#[derive(Debug, Default)]
pub(super) struct Runners {
    waiting: Lines<RunnerKey>,
    /// Whether something was added that was not matched with free slots yet.
    has_new: bool,
}

impl Runners {
    fn push(&mut self, key: &RunnerKey, priority: Priority, queued: Queued) {
        self.has_new |= self.waiting.push(key, priority, queued);
    }

    fn is_awaited(&self, key: &RunnerKey) -> bool {
        self.waiting.len(key) > 0
    }

    /// Removes an execution that has ended, or an offer that is closed. Returns false if it does not wait here.
    pub fn withdraw(&mut self, queued: &Queued) -> bool {
        self.waiting.withdraw(queued).is_some()
    }

    /// Returns the groups with waiting work, and the number of waiting units.
    pub fn waiting(&self) -> impl Iterator<Item = (GroupKey, usize)> {
        self.waiting.iter().map(|(key, waiting)| (key.group(), waiting))
    }
}

impl<R> Lane<R> {
    /// Returns the workers that an execution is bound to; None: those of this process.
    pub(super) fn runner_of(&self, id: ExecutionId) -> Option<RunnerKey> {
        let origin = &self.executions.get(id)?.origin;
        let runner = origin.options.runner.clone()?;
        Some(RunnerKey { tenant: origin.tenant.clone(), runner })
    }

    pub(super) fn await_runner(&mut self, key: RunnerKey, priority: Priority, queued: Queued) {
        self.runners.push(&key, priority, queued);
    }

    /// Assigns waiting work to free slots.
    pub(super) fn dispatch_runners(&mut self) {
        let has_free = self.sessions.take_freed_runners();
        let has_new = std::mem::take(&mut self.runners.has_new);
        if self.stopping || !(has_free || has_new) {
            return;
        }
        for key in self.runners.waiting.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            while self.runners.is_awaited(&key)
                && let Some(session) =
                    self.sessions.reserve_runner(&key.group(), key.runner.cluster.as_deref())
                && let Some(Queued { execution, work }) = self.runners.waiting.pop(&key)
            {
                let (run, fence) = match work {
                    QueuedWork::Offer(run, fence) => (run, fence),
                    QueuedWork::Start | QueuedWork::Whole => (WHOLE, Fence(0)),
                };
                let what = PendingKind::Taken { run, fence, session };
                self.enqueue_input(execution, Pending { what, reply: None, mail: None, audit: None });
            }
        }
    }

    /// Uses a slot that was reserved for a waiting execution, or for one of its offers.
    pub(super) fn give_to_runner(
        &mut self,
        id: ExecutionId,
        run: RunId,
        fence: Fence,
        session: protocol::SessionId,
    ) {
        let what = PendingKind::Taken { run, fence, session };
        if self.open.is_closed_for(id) {
            self.open.deferred.push(id);
            if let Some(live) = self.executions.get_mut(id) {
                live.waiting.push_front(Pending { what, reply: None, mail: None, audit: None });
            }
            return;
        }
        if run == WHOLE {
            return self.assign_to_runner(id, session);
        }
        let work = match self.work(id, run, fence) {
            Some(Err(needs)) => {
                return self.need(id, Pending { what, reply: None, mail: None, audit: None }, needs);
            }
            Some(Ok(work)) if !self.sessions.is_held(work.unit) => Some(work),
            Some(Ok(_)) | None => None,
        };
        self.sessions.unreserve_runner(session);
        let Some(work) = work else { return self.rest(id) };
        if self.executions.get(id).is_some_and(|live| has_asked_to_stop(&live.state)) {
            return self.enqueue_input(id, Pending::lost_lease((run, fence), Loss::NotStarted, None));
        }
        if !self.sessions.has_slot(session) {
            return self.enqueue(id, run, fence);
        }
        let now = self.now.wall;
        self.sessions.hold(session, work.unit, Tenant::new(&work.tenant), now);
        if let Some(timer) = attempt_timer(id, run, fence, work.timeout_ms, now) {
            self.timers.arm(timer);
        }
        let write = Write::Lease(lease(id, run, fence, session, now));
        self.open.write(write, WriteFollowUp::Deliver(session, Box::new(work)));
    }

    fn assign_to_runner(&mut self, id: ExecutionId, session: protocol::SessionId) {
        self.sessions.unreserve_runner(session);
        self.starts.leave(id);
        let Some(live) = self.executions.get(id) else { return };
        let (tenant, generation) = (live.origin.tenant.clone(), live.state.head.generation);
        if live.state.phase() != Phase::Queued {
            return self.rest(id);
        }
        if !self.sessions.has_slot(session) {
            return self.await_worker(id);
        }
        self.lease_whole(id, generation, session, tenant);
    }

    /// Gives a new offer to a worker with a free slot in the commit of the offer, unless others wait longer.
    pub(super) fn offer_to_runner(&mut self, id: ExecutionId, run: RunId, fence: Fence, key: &RunnerKey) {
        let straight = !self.stopping && !self.runners.is_awaited(key);
        let session = if straight {
            self.sessions.reserve_runner(&key.group(), key.runner.cluster.as_deref())
        } else {
            None
        };
        if let Some(session) = session {
            self.sessions.unreserve_runner(session);
        }
        let work = session.and_then(|_| self.work(id, run, fence));
        self.lease_new((id, run, fence), work, session.map(|session| (session, key.tenant.clone())));
    }

    /// Directs the orders of a session of an earlier connection or process to this caller from now on.
    pub(super) fn attach(&mut self, key: &SessionKey, reply: R) {
        if !self.knows_outside(key) || self.sessions.is_claiming(key.id) {
            return self.answer(reply, EngineAnswer::Reply(Reply::Order(Order::Unknown)));
        }
        self.renew(key.id);
        self.sessions.set_reachable(key.id, true);
        let registered = protocol::Registered { session: key.id, rules: self.config.rules.clone() };
        self.effects.push(Effect::SessionOpen(registered, reply));
    }

    /// Makes a call of the protocol for a worker outside of this process. The worker may act only for the units that
    /// its session holds. `audit` is written if the call starts an execution that its step does not name.
    pub(super) fn relay(&mut self, key: &SessionKey, call: Call, audit: Option<Box<Audit>>, reply: R) {
        if !self.knows_outside(key) {
            return self.answer(reply, EngineAnswer::Group(GroupReply::NoSession));
        }
        // The server makes the calls of claimed units itself.
        if self.sessions.is_claiming(key.id) && !matches!(call, Call::Leave(_)) {
            return self.answer(reply, EngineAnswer::Group(GroupReply::ClaimsOnly));
        }
        self.renew(key.id);
        let holds = |unit: protocol::Unit| self.sessions.holder(unit) == Some(key.id);
        let stale = EngineAnswer::verdict(protocol::Verdict::Stale);
        match call {
            Call::Beat(beat) if beat.session == key.id => self.beat(&beat, reply),
            Call::Leave(session) if session == key.id => self.leave(session, reply),
            Call::Report(report) if holds(report.unit) && matches!(report.outcome, Outcome::Child { .. }) => {
                self.make_checked(CheckedCall::Report(*report), audit, reply);
            }
            Call::Report(report) if holds(report.unit) => self.report(*report, reply),
            // The report may have been accepted before; then it is accepted again.
            Call::Report(report) if !report.unit.is_whole() => self.begin_repeat(key, *report, reply),
            Call::Checkpoint(checkpoint) if holds(checkpoint.unit) => self.checkpoint(checkpoint, reply),
            Call::Progress(progress) if holds(progress.unit) => self.progress(progress, reply),
            Call::Log(log) if holds(log.unit) => self.log(self.with_own_step(log), reply),
            Call::Agent(call) if holds(call.unit) => {
                self.make_checked(CheckedCall::Agent(*call), audit, reply);
            }
            // Programs run as the user of the worker, who belongs to the tenant and not to the server.
            Call::Resource(call) if holds(call.unit) && call.ask == ResourceAsk::GetRights => {
                let rights = Rights { programs: true, variables: Variables::All };
                self.answer(reply, EngineAnswer::resource(ResourceReply::Rights(rights)));
            }
            Call::Resource(call) if holds(call.unit) => self.serve_resource(*call, true, reply),
            Call::Resource(_) => self.answer(reply, EngineAnswer::resource(ResourceReply::Stale)),
            Call::Agent(_) => self.answer(reply, EngineAnswer::agent(AgentAnswer::Stale)),
            Call::Report(_) | Call::Checkpoint(_) | Call::Progress(_) | Call::Log(_) => {
                self.answer(reply, stale)
            }
            Call::Register(_) | Call::Beat(_) | Call::Leave(_) => {
                self.answer(reply, EngineAnswer::Group(GroupReply::NoSession))
            }
        }
    }
}
