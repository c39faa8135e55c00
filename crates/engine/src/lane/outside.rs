//! Calls of workers outside of this process. Their sessions are rows that outlive the process: what such a worker holds
//! after a restart of the server it still holds.

use super::Lane;
use super::batch::WriteFollowUp;
use super::deciding::{Pending, PendingKind};
use super::dispatch::{attempt_timer, has_asked_to_stop, lease, parts, unit};
use super::groups::{GroupKey, Route};
use super::queue::{Queued, QueuedWork};
use super::sessions::{Outside, report_input};
use crate::wake::{EngineAnswer, GroupCall, GroupLoad, GroupReply, HeldCall, SessionKey};
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::net::Work;
use windlass_kernel::{Execution, ExecutionId, Fence, Loss, Millis, Net, RunId, RunState, any_of};
use windlass_protocol as protocol;
use windlass_store::{
    Entry, Lease, Offer, ReportReceipt, Session as StoredSession, Stop, Tenant, WHOLE, WorkerSession, Write,
};

/// Maximum number of sessions of one tenant: more than a fleet has processes, and few enough to be kept in memory.
const SESSIONS_MAX: usize = 1_000;
/// Maximum number of units of one session. A worker with more has many processes, each of which can have a session.
const HELD_MAX: usize = 10_000;

impl<R> Lane<R> {
    /// Restores the sessions of an earlier process. Each gets its whole lease time, because no other worker got its
    /// units.
    pub(super) fn restore_sessions(&mut self) {
        for session in std::mem::take(&mut self.config.sessions) {
            self.open_outside(&session);
        }
    }

    fn open_outside(&mut self, session: &WorkerSession) {
        let WorkerSession { id, digest, tenant, group, cluster, slots, worker, .. } = session;
        let group = GroupKey { tenant: tenant.clone(), name: group.clone() };
        let (digest, cluster, renew_at) = (*digest, cluster.clone(), self.now.steady);
        let outside = Outside { group, cluster, claims: *slots == 0, is_attached: false, digest, renew_at };
        let expires = self.now.steady + self.config.lease_ttl_ms;
        self.sessions.open_outside(protocol::SessionId(id.0), (worker.clone(), *slots), outside, expires);
    }

    pub(super) fn group_call(&mut self, call: GroupCall, reply: R) {
        match call {
            GroupCall::Open(session) => self.open_session(*session, reply),
            GroupCall::Claim { session, slots, kinds } => self.claim(&session, slots, kinds, reply),
            GroupCall::EndClaim { session } => {
                if self.knows_claiming(&session) {
                    self.groups.end_claim(session.id);
                    self.answer_claims();
                }
                self.answer(reply, EngineAnswer::Group(GroupReply::Returned));
            }
            GroupCall::Beat { session, held } => self.beat_outside(&session, held, reply),
            GroupCall::Fetch { session, unit } => self.begin_fetch(&session, unit, reply),
            GroupCall::Report { session, report, receipt } => {
                self.report_call(&session, *report, receipt, reply);
            }
            GroupCall::ListLimited => {
                let limited = self.limited_calls();
                self.answer(reply, EngineAnswer::Group(GroupReply::Limited(limited)));
            }
            GroupCall::Repeat { session, .. } if !self.knows_claiming(&session) => {
                self.answer(reply, EngineAnswer::Group(GroupReply::NoSession));
            }
            GroupCall::Repeat { session, report } => self.begin_repeat(&session, *report, reply),
            GroupCall::Return { session, units } => {
                let is_known = self.knows_claiming(&session);
                for unit in units.into_iter().filter(|_| is_known) {
                    if self.sessions.holder(unit) == Some(session.id) {
                        self.lost(unit, Loss::NotStarted);
                    }
                }
                self.answer(reply, EngineAnswer::Group(GroupReply::Returned));
            }
            GroupCall::Attach { session } => self.attach(&session, reply),
            GroupCall::Listen { session, listens } => {
                if self.knows_outside(&session) {
                    self.sessions.set_reachable(session.id, listens);
                }
                self.answer(reply, EngineAnswer::Group(GroupReply::Returned));
            }
            GroupCall::Relay { session, call, audit } => self.relay(&session, *call, audit, reply),
            GroupCall::Check { session } => {
                let found = match self.knows_outside(&session) {
                    true if self.sessions.is_claiming(session.id) => GroupReply::ClaimsOnly,
                    true => GroupReply::Returned,
                    false => GroupReply::NoSession,
                };
                self.answer(reply, EngineAnswer::Group(found));
            }
            GroupCall::Restrict { tenant, group, cluster } => {
                for barred in self.sessions.restrict(&GroupKey { tenant, name: group }, cluster) {
                    self.groups.end_claim(barred);
                }
                self.answer_claims();
                self.answer(reply, EngineAnswer::Group(GroupReply::Returned));
            }
            GroupCall::List { tenant } => {
                let loads = self.group_loads(tenant.as_ref());
                self.answer(reply, EngineAnswer::Group(GroupReply::Groups(loads)));
            }
        }
    }

    fn open_session(&mut self, session: WorkerSession, reply: R) {
        if !self.make_room_for(&session) {
            let refused = GroupReply::TooManySessions { max: SESSIONS_MAX };
            return self.answer(reply, EngineAnswer::Group(refused));
        }
        self.open_outside(&session);
        self.open.write(
            Write::Entry(Box::new(Entry::WorkerSession(Box::new(session)))),
            WriteFollowUp::Opened(reply),
        );
    }

    /// Returns whether the tenant has room for a new session, after one without work was closed if necessary. Groups have
    /// equal shares, so that a token of one group cannot keep the workers of another one out.
    fn make_room_for(&mut self, session: &WorkerSession) -> bool {
        if self.sessions.outside_of(&session.tenant) < SESSIONS_MAX {
            return true;
        }
        let group = GroupKey { tenant: session.tenant.clone(), name: session.group.clone() };
        // A worker sends a request twice in the time of a lease, so one that missed both has probably ended.
        let silent_until = self.now.steady + self.config.lease_ttl_ms / 4;
        let Some(closed) = self.sessions.find_replaceable(&group, silent_until, |id| self.groups.claims(id))
        else {
            return false;
        };
        self.close_idle(closed);
        true
    }

    pub(super) fn knows_outside(&self, key: &SessionKey) -> bool {
        let outside = self.sessions.outside(key.id);
        outside.is_some_and(|outside| {
            outside.digest == key.digest
                && outside.group.tenant == key.tenant
                && key.group.as_ref().is_none_or(|group| *group == outside.group.name)
        })
    }

    /// Returns whether the caller knows a session that claims calls of its group. A worker that gets orders does not mix both:
    /// it would hold calls that the server makes for it, and could ask for what the server has for them.
    fn knows_claiming(&self, key: &SessionKey) -> bool {
        self.sessions.is_claiming(key.id) && self.knows_outside(key)
    }

    /// Renews the session of a worker that is alive. Its row is written less often than calls of the worker arrive.
    pub(super) fn renew(&mut self, session: protocol::SessionId) {
        let (now, ttl_ms) = (self.now.steady, self.config.lease_ttl_ms);
        if self.sessions.renew(session, now + ttl_ms, now, ttl_ms / 4) {
            let expires_at = self.now.wall.plus(ttl_ms);
            let renewed = Entry::WorkerRenewed { session: StoredSession(session.0), expires_at };
            self.open.write(Write::Entry(Box::new(renewed)), WriteFollowUp::Nothing);
            self.drop_receipts(session);
        }
    }

    /// Deletes receipts that are no longer needed: a worker without an answer repeats its report until its session
    /// expires. A worker that waited for this process to start has the same time from the start on.
    fn drop_receipts(&mut self, session: protocol::SessionId) {
        let kept_ms = 2 * self.config.lease_ttl_ms;
        if self.sessions.is_claiming(session) && self.now.steady.saturating_sub(self.began) >= kept_ms {
            let before = Millis(self.now.wall.0.saturating_sub(i64::try_from(kept_ms).unwrap_or(i64::MAX)));
            let dropped = Entry::ReceiptsDropped { session: StoredSession(session.0), before };
            self.open.write(Write::Entry(Box::new(dropped)), WriteFollowUp::Nothing);
        }
    }

    fn claim(&mut self, key: &SessionKey, slots: u32, kinds: Option<BTreeSet<String>>, reply: R) {
        if !self.knows_claiming(key) {
            return self.answer(reply, EngineAnswer::Group(GroupReply::NoSession));
        }
        self.renew(key.id);
        if self.sessions.is_barred(key.id) {
            // The restriction overtook the claim; the next one is refused.
            return self.answer(reply, EngineAnswer::Group(GroupReply::Claimed(Vec::new())));
        }
        let Some(group) = self.sessions.outside(key.id).map(|outside| outside.group.clone()) else { return };
        let left = HELD_MAX.saturating_sub(self.sessions.held_by_session(key.id));
        let slots = slots.min(u32::try_from(left).unwrap_or(u32::MAX));
        if let Some(earlier) = self.groups.claim(key.id, &group, (slots, kinds), reply) {
            self.answer(earlier, EngineAnswer::Group(GroupReply::Claimed(Vec::new())));
        }
        // A claim that does not wait gets what is there.
        self.dispatch_groups();
    }

    /// Handles a heartbeat. The worker has given up units that it does not list, unless the claim's answer may be
    /// newer.
    fn beat_outside(&mut self, key: &SessionKey, held: Vec<protocol::Unit>, reply: R) {
        if !self.knows_claiming(key) {
            return self.answer(reply, EngineAnswer::Group(GroupReply::NoSession));
        }
        self.renew(key.id);
        let held: BTreeSet<protocol::Unit> = held.into_iter().collect();
        let overdue = self.now.steady.saturating_sub(self.config.lease_ttl_ms / 4);
        let (dropped, stop) = self.sessions.compare(key.id, &held, overdue);
        let is_lost = |unit: &protocol::Unit| self.sessions.holder(*unit) != Some(key.id);
        let lost = held.iter().copied().filter(is_lost).collect();
        for unit in dropped {
            self.lost(unit, Loss::Started);
        }
        self.answer(reply, EngineAnswer::Group(GroupReply::Held { lost, stop }));
    }

    fn begin_fetch(&mut self, key: &SessionKey, unit: protocol::Unit, reply: R) {
        if !self.knows_claiming(key) {
            return self.answer(reply, EngineAnswer::Group(GroupReply::NoSession));
        }
        if self.sessions.holder(unit) != Some(key.id) {
            return self.answer(reply, EngineAnswer::Group(GroupReply::NotHeld));
        }
        let (execution, run, fence) = parts(unit);
        let what = PendingKind::Fetch { run, fence };
        self.enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit: None });
    }

    pub(super) fn fetch(&mut self, unit: protocol::Unit, pending: Pending<R>) {
        let (execution, run, fence) = parts(unit);
        let reply = match self.work(execution, run, fence) {
            Some(Err(needs)) => return self.need(execution, pending, needs),
            Some(Ok(work)) => GroupReply::Claimed(vec![work]),
            None => GroupReply::NotHeld,
        };
        if let Some(caller) = pending.reply {
            self.answer(caller, EngineAnswer::Group(reply));
        }
    }

    /// Handles a report. Its receipt is written in the batch of the decision, or in an earlier one. It is read only if
    /// the journal has an answer under the fence, so the receipt of a report that was not accepted proves nothing.
    fn report_call(&mut self, key: &SessionKey, report: protocol::Report, digest: [u8; 32], reply: R) {
        if !self.knows_claiming(key) {
            return self.answer(reply, EngineAnswer::Group(GroupReply::NoSession));
        }
        if self.sessions.holder(report.unit) != Some(key.id) {
            return self.answer_verdict(reply, protocol::Verdict::Stale);
        }
        let (execution, run, fence) = parts(report.unit);
        let (session, at) = (StoredSession(key.id.0), self.now.wall);
        let receipt = ReportReceipt { execution, run, fence, session, digest, at };
        self.open.write(Write::Entry(Box::new(Entry::Receipt(Box::new(receipt)))), WriteFollowUp::Nothing);
        self.report(report, reply);
    }

    fn limited_calls(&self) -> Vec<HeldCall> {
        let mut calls = self.sessions.held_calls();
        calls.retain(|call| {
            let (execution, run, _) = parts(call.unit);
            // The limit of an execution that is not in memory yet is unknown.
            self.executions.get(execution).is_none() || self.task_is_limited(execution, run)
        });
        calls
    }

    fn task_is_limited(&self, id: ExecutionId, run: RunId) -> bool {
        self.group_task(id, run).is_some_and(|task| task.is_limited)
    }

    pub(super) fn begin_repeat(&mut self, key: &SessionKey, report: protocol::Report, reply: R) {
        if !self.knows_outside(key) {
            return self.answer(reply, EngineAnswer::Group(GroupReply::NoSession));
        }
        let (execution, run, fence) = parts(report.unit);
        let input = Box::new(report_input(report, None, None));
        let what = PendingKind::Repeat { input, run, fence, tenant: key.tenant.clone() };
        self.enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit: None });
    }

    /// Compares a report only if its fence is closed: under an open fence it would be taken for the first report.
    pub(super) fn repeat(&mut self, id: ExecutionId, pending: Pending<R>) {
        let Pending { what: PendingKind::Repeat { input, run, fence, tenant }, reply, mail, audit } = pending
        else {
            return;
        };
        let Some(live) = self.executions.get(id) else { return };
        let state = live.state.run(run).map(|run| &run.state);
        let is_open = matches!(state, Some(RunState::Offered { fence: open }) if *open == fence);
        if !is_open && live.origin.tenant == tenant {
            return self.decide(id, Pending { what: PendingKind::Report(input), reply, mail, audit });
        }
        if let Some(reply) = reply {
            self.answer_verdict(reply, protocol::Verdict::Stale);
        }
        self.rest(id);
    }

    /// Returns the group whose workers claim an offer; None: it is for the workers of this process.
    pub(super) fn route(&self, id: ExecutionId, run: RunId) -> Option<Route> {
        let task = self.group_task(id, run)?;
        let tenant = self.executions.get(id)?.origin.tenant.clone();
        let group = GroupKey { tenant, name: task.group.to_owned() };
        Some(Route { group, operation: task.operation.to_owned() })
    }

    fn group_task(&self, id: ExecutionId, run: RunId) -> Option<protocol::GroupTask<'_>> {
        let live = self.executions.get(id)?;
        let step_run = live.state.run(run)?;
        let Work::Task { spec } = Execution::work_of(&live.net, step_run) else { return None };
        protocol::group_task(spec, step_run.cursor.as_deref())
    }

    /// Gives a new offer to a claim that waits for it, in the commit of the offer.
    pub(super) fn offer_to_group(&mut self, id: ExecutionId, run: RunId, fence: Fence, route: &Route) {
        let session = if self.stopping { None } else { self.groups.session_for(route) };
        let work = session.and_then(|_| self.work(id, run, fence));
        let to = session.map(|session| (session, route.group.tenant.clone()));
        if let Some(session) = self.lease_new((id, run, fence), work, to) {
            self.groups.assign_new(session);
        }
    }

    /// Queues an offer for the workers of this process or for its group.
    pub(super) fn enqueue(&mut self, id: ExecutionId, run: RunId, fence: Fence) {
        if run == WHOLE {
            return self.await_worker(id);
        }
        if self.takes_whole(id) {
            return self.hand_inside(id, run, fence);
        }
        let route = self.route(id, run);
        let Some(live) = self.executions.get(id) else { return };
        let (tenant, priority) = (live.origin.tenant.clone(), live.origin.options.priority);
        let offer = Queued { execution: id, work: QueuedWork::Offer(run, fence) };
        match (route, self.runner_of(id)) {
            (Some(route), _) => self.groups.push(&route, priority, offer),
            (None, Some(key)) => self.await_runner(key, priority, offer),
            (None, None) => self.queue.push(&tenant, priority, offer),
        }
    }

    /// Assigns waiting offers to waiting claims.
    pub(super) fn dispatch_groups(&mut self) {
        while !self.stopping
            && let Some((session, Queued { execution, work })) = self.groups.next_match()
        {
            let QueuedWork::Offer(run, fence) = work else { continue };
            let what = PendingKind::Claimed { run, fence, session };
            self.enqueue_input(execution, Pending { what, reply: None, mail: None, audit: None });
        }
        self.answer_claims();
    }

    pub(super) fn unreserve(&mut self, session: protocol::SessionId) {
        self.groups.unreserve(session);
    }

    /// Hands a queued offer to the claim that it was matched with.
    pub(super) fn hand_to_claim(
        &mut self,
        id: ExecutionId,
        run: RunId,
        fence: Fence,
        session: protocol::SessionId,
    ) {
        let work = match self.work(id, run, fence) {
            Some(Err(needs)) => {
                let what = PendingKind::Claimed { run, fence, session };
                return self.need(id, Pending { what, reply: None, mail: None, audit: None }, needs);
            }
            Some(Ok(work)) => Some(work),
            None => None,
        };
        // The offer was queued twice: by recovery and by this process.
        let Some(work) = work.filter(|work| !self.sessions.is_held(work.unit)) else {
            return self.groups.unreserve(session);
        };
        if self.executions.get(id).is_some_and(|live| has_asked_to_stop(&live.state)) {
            self.groups.unreserve(session);
            return self.enqueue_input(id, Pending::lost_lease((run, fence), Loss::NotStarted, None));
        }
        if !self.groups.assign_reserved(session) {
            let (Some(route), Some(live)) = (self.route(id, run), self.executions.get(id)) else { return };
            let offer = Queued { execution: id, work: QueuedWork::Offer(run, fence) };
            return self.groups.put_back(&route, live.origin.options.priority, offer);
        }
        let now = self.now.wall;
        self.sessions.hold(session, work.unit, Tenant::new(&work.tenant), now);
        if let Some(timer) = attempt_timer(id, run, fence, work.timeout_ms, now) {
            self.timers.arm(timer);
        }
        let write = Write::Lease(lease(id, run, fence, session, now));
        self.open.write(write, WriteFollowUp::Deliver(session, Box::new(work)));
    }

    /// Delivers a unit whose lease is on disk. If the worker has disconnected, its session expires with the lease.
    pub(super) fn deliver_outside(&mut self, session: protocol::SessionId, work: protocol::Work) {
        self.sessions.sent(work.unit, self.now.steady);
        let unit = work.unit;
        if self.groups.deliver(session, work).is_some() {
            self.lost(unit, Loss::NotStarted);
        }
    }

    pub(super) fn answer_claims(&mut self) {
        for (reply, units) in self.groups.take_complete() {
            self.answer(reply, EngineAnswer::Group(GroupReply::Claimed(units)));
        }
    }

    /// Closes the session of a worker outside of this process.
    pub(super) fn close_outside(&mut self, session: protocol::SessionId) {
        let closed = Entry::WorkerClosed { session: StoredSession(session.0) };
        self.open.write(Write::Entry(Box::new(closed)), WriteFollowUp::Nothing);
        if let Some(reply) = self.groups.drop_claim(session) {
            self.answer(reply, EngineAnswer::Group(GroupReply::NoSession));
        }
    }

    /// Keeps an offer that a worker outside of this process has held since the last process.
    pub(super) fn keep_offer(&mut self, offer: &Offer, lease: &Lease) {
        let Offer { execution, run, fence, tenant, cursor, .. } = offer;
        let (session, unit) = (protocol::SessionId(lease.session.0), unit(*execution, *run, *fence));
        if self.sessions.is_held(unit) {
            return;
        }
        self.sessions.hold(session, unit, tenant.clone(), lease.claimed_at);
        self.sessions.restored(unit, cursor.clone(), None, self.now.steady);
        let what = PendingKind::Kept { run: *run, fence: *fence, claimed_at: lease.claimed_at };
        self.enqueue_input(*execution, Pending { what, reply: None, mail: None, audit: None });
    }

    /// Arms the timer of an attempt that has run since the last process.
    pub(super) fn rearm(&mut self, id: ExecutionId, run: RunId, fence: Fence, claimed_at: Millis) {
        if run == WHOLE {
            return self.redeliver_whole(id);
        }
        let Some(live) = self.executions.get(id) else { return };
        let Some(step_run) = live.state.run(run) else { return };
        let timeout_ms = live.net.step(step_run.step).timeout_ms;
        if let Some(timer) = attempt_timer(id, run, fence, timeout_ms, claimed_at) {
            self.timers.arm(timer);
        }
    }

    /// Keeps a stop that the last process requested from a worker outside, which has not answered.
    pub(super) fn keep_stop(&mut self, stop: Stop) {
        let (session, unit) =
            (protocol::SessionId(stop.session.0), unit(stop.execution, stop.run, stop.fence));
        let Some(outside) = self.sessions.outside(session) else { return self.stopped(stop) };
        let tenant = outside.group.tenant.clone();
        if !self.sessions.is_held(unit) {
            self.sessions.hold(session, unit, tenant, self.now.wall);
        }
        self.sessions.restored(unit, None, Some(0), self.now.steady);
    }

    fn group_loads(&self, of: Option<&Tenant>) -> Vec<GroupLoad> {
        let mut loads: BTreeMap<GroupKey, GroupLoad> = BTreeMap::new();
        let mut load_of = |key: &GroupKey, change: &dyn Fn(&mut GroupLoad)| {
            if of.is_none_or(|tenant| *tenant == key.tenant) {
                change(loads.entry(key.clone()).or_insert_with(|| GroupLoad {
                    tenant: key.tenant.clone(),
                    name: key.name.clone(),
                    waiting: 0,
                    claimed: 0,
                    workers: 0,
                }));
            }
        };
        for (key, waiting) in self.groups.waiting() {
            load_of(key, &|load| load.waiting += waiting);
        }
        for (key, waiting) in self.runners.waiting() {
            load_of(&key, &|load| load.waiting += waiting);
        }
        for (key, claimed) in self.sessions.outside_loads() {
            load_of(key, &|load| {
                load.claimed += claimed;
                load.workers += 1;
            });
        }
        loads.into_values().collect()
    }
}

/// Returns whether the first task of some step runs in this process.
pub(super) fn has_local_work(net: &Net) -> bool {
    net.steps().any(|(_, step)| match &step.work {
        Work::Task { spec } => protocol::group_task(spec, None).is_none(),
        any_of![Work: Pure Child Approval Delay] => false,
    })
}
