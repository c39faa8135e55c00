//! The open batch: decisions that are made while the previous batch is being written.

use super::Lane;
use super::deciding::{AwaitedState, Pending, PendingKind};
use super::reading::List;
use crate::ids::IdMap;
use crate::resources::ResourceRequest;
use crate::wake::{Effect, EngineAnswer, GroupReply, Lookup, Refusal};
use std::sync::Arc;
use windlass_artifact::Artifact;
use windlass_kernel::{Changes, ExecutionId, Fence, Input, Net, Record, Rejected, RunId, any_of};
use windlass_protocol as protocol;
use windlass_store::{
    Applied, Commit, CommitId, Creation, DueTimer, Entry, Lease, LogChunk, Mail, MailId, Stop, WHOLE, Write,
    project,
};

/// Maximum number of inputs of one execution in one commit: a thousand reports take a few commits, and no commit
/// becomes too large.
const INPUTS_PER_COMMIT_MAX: usize = 256;
/// Number of records from which a commit takes no further input. With the records of the last input, which the limits
/// of a net bound to a few per firing, a commit stays below the maximum of a row: 2^16 messages.
const RECORDS_PER_COMMIT_MAX: usize = 8_192;
/// Maximum number of writes in one transaction: a disk takes a few tens of milliseconds for them.
const WRITES_MAX: usize = 4_096;

#[derive(Debug)]
pub(super) struct Batch<R> {
    pub commits: Vec<Building<R>>,
    places: IdMap<ExecutionId, usize>,
    pub writes: Vec<Write>,
    /// Consequences of each write.
    thens: Vec<WriteFollowUp<R>>,
    /// Answers that depend on commits that are not on disk yet.
    pub answers: Vec<(ExecutionId, Pending<R>, EngineAnswer)>,
    /// Executions with inputs that wait for the next batch.
    pub deferred: Vec<ExecutionId>,
    /// Executions that change outside of their commits.
    touched: Vec<ExecutionId>,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        let (commits, places) = (Vec::new(), IdMap::default());
        let (writes, thens) = (Vec::new(), Vec::new());
        let (answers, deferred, touched) = (Vec::new(), Vec::new(), Vec::new());
        Batch { commits, places, writes, thens, answers, deferred, touched }
    }
}

/// Consequence of a write once it is on disk.
#[derive(Debug)]
pub(super) enum WriteFollowUp<R> {
    Nothing,
    Verdict(R),
    /// Stores the session of a worker outside of this process.
    Opened(R),
    /// Stores a worker's value.
    Stored(R),
    /// Serves a resource whose owner is stored.
    Serve(Box<ResourceRequest>, R),
    Defined(R, Arc<Net>),
    /// Sends queued work to its worker.
    Deliver(protocol::SessionId, Box<protocol::Work>),
    /// One of several entries; the last of them is answered for all.
    Kept(Option<R>),
    /// Releases the execution from quarantine.
    Released(ExecutionId, R),
    /// Repeats the read of a list that contained an execution which cannot be read.
    LookAgain(Lookup, List),
}

/// A commit to which inputs are added.
#[derive(Debug)]
pub(super) struct Building<R> {
    pub id: ExecutionId,
    pub expected: u64,
    pub net: Arc<Net>,
    pub creation: Option<Creation>,
    pub records: Arc<Vec<Record>>,
    pub changes: Vec<Changes>,
    pub artifacts: Vec<Artifact>,
    /// Decisions that are answered, or decided again if another writer was first.
    pub decided: Vec<(Pending<R>, EngineAnswer)>,
    pub answered: Vec<(RunId, Fence)>,
    pub consumed: Vec<MailId>,
    pub mail: Vec<Mail>,
    pub stops: Vec<Stop>,
    pub leases: Vec<Lease>,
    pub orders: Vec<(protocol::SessionId, protocol::Order)>,
    /// Offers for the queue.
    pub queued: Vec<(RunId, Fence)>,
    /// Offers without a worker that are withdrawn.
    pub withdrawn: Vec<(RunId, Fence)>,
    /// Offers without a worker that this closes.
    pub closed: Vec<(RunId, Fence)>,
    pub timers: Vec<DueTimer>,
    /// Whether it has mail for other executions.
    posts: bool,
    /// Whether the execution waits for a worker that takes it as a whole.
    pub awaits_worker: bool,
    /// Whether the kernel stopped at its limit of one decision; the rest is a commit of its own.
    pub goes_on: bool,
}

impl<R> Building<R> {
    pub fn new(id: ExecutionId, expected: u64, net: Arc<Net>) -> Building<R> {
        Building {
            id,
            expected,
            net,
            creation: None,
            records: Arc::default(),
            changes: Vec::new(),
            artifacts: Vec::new(),
            decided: Vec::new(),
            answered: Vec::new(),
            consumed: Vec::new(),
            mail: Vec::new(),
            stops: Vec::new(),
            leases: Vec::new(),
            orders: Vec::new(),
            queued: Vec::new(),
            withdrawn: Vec::new(),
            closed: Vec::new(),
            timers: Vec::new(),
            posts: false,
            awaits_worker: false,
            goes_on: false,
        }
    }

    fn is_full(&self) -> bool {
        self.goes_on
            || self.decided.len() >= INPUTS_PER_COMMIT_MAX
            || self.records.len() >= RECORDS_PER_COMMIT_MAX
    }

    fn close(&mut self, id: CommitId) -> Commit {
        self.posts = !self.mail.is_empty();
        let changes = Changes::folded(std::mem::take(&mut self.changes));
        Commit {
            id,
            execution: self.id,
            expected: self.expected,
            creation: self.creation.clone(),
            answered: std::mem::take(&mut self.answered),
            rows: project(&self.net, &changes, &self.records),
            records: self.records.clone(),
            artifacts: std::mem::take(&mut self.artifacts),
            leases: self.leases.clone(),
            stops: std::mem::take(&mut self.stops),
            mail: std::mem::take(&mut self.mail),
            consumed: std::mem::take(&mut self.consumed),
            audits: self.decided.iter().filter_map(|(asked, _)| asked.audit.as_deref().cloned()).collect(),
        }
    }
}

impl<R> Batch<R> {
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty() && self.writes.is_empty() && self.answers.is_empty()
    }

    /// Returns whether no further decision follows after the batch is handed over.
    fn is_complete(&self) -> bool {
        self.deferred.is_empty() && !self.commits.iter().any(|commit| commit.goes_on)
    }

    pub fn is_full(&self) -> bool {
        self.commits.len() + self.writes.len() >= WRITES_MAX
    }

    pub fn write(&mut self, write: Write, then: WriteFollowUp<R>) {
        match &write {
            Write::Lease(Lease { execution, .. })
            | Write::Log(LogChunk { execution, .. })
            | Write::Progress { execution, .. } => self.touched.push(*execution),
            any_of![Write: Commit Define Net Checkpoint Accept Settle Fetched Stopped Entry] => {}
        }
        self.writes.push(write);
        self.thens.push(then);
    }

    pub fn add_entries(&mut self, entries: Vec<Entry>, reply: R) {
        let last = entries.len().saturating_sub(1);
        let mut reply = Some(reply);
        for (place, entry) in entries.into_iter().enumerate() {
            let answered = if place == last { reply.take() } else { None };
            self.write(Write::Entry(Box::new(entry)), WriteFollowUp::Kept(answered));
        }
    }

    /// Removes the lease of a queued offer from the batch; returns false if the batch does not have it.
    pub fn unlease(&mut self, unit: protocol::Unit) -> bool {
        let delivers =
            |then: &WriteFollowUp<R>| matches!(then, WriteFollowUp::Deliver(_, work) if work.unit == unit);
        let Some(place) = self.thens.iter().position(delivers) else { return false };
        self.writes.remove(place);
        self.thens.remove(place);
        true
    }

    pub fn commit(&mut self, id: ExecutionId) -> Option<&mut Building<R>> {
        let place = *self.places.get(&id)?;
        self.commits.get_mut(place)
    }

    pub fn begin(&mut self, building: Building<R>) {
        self.places.insert(building.id, self.commits.len());
        self.commits.push(building);
    }

    /// Returns whether the commit of an execution is closed: its next input belongs to the next commit.
    pub fn is_closed_for(&self, id: ExecutionId) -> bool {
        self.places.get(&id).and_then(|place| self.commits.get(*place)).is_some_and(Building::is_full)
    }

    pub fn records_of(&self, id: ExecutionId) -> Option<&Arc<Vec<Record>>> {
        self.places.get(&id).and_then(|place| self.commits.get(*place)).map(|building| &building.records)
    }

    /// Takes a commit out, because the state that it was decided on has changed.
    fn withdraw(&mut self, id: ExecutionId) -> Option<Building<R>> {
        let place = self.places.remove(&id)?;
        let taken = self.commits.remove(place);
        for other in self.places.values_mut().filter(|other| **other > place) {
            *other -= 1;
        }
        Some(taken)
    }
}

impl<R> Lane<R> {
    /// Hands the open batch over if the disk is free.
    pub(super) fn flush(&mut self) {
        if self.syncing.is_some() || self.open.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.open);
        self.groups.seal();
        if batch.commits.is_empty() && batch.writes.is_empty() {
            // The commits that these answers depend on are on disk by now.
            return self.give_answers(batch.answers);
        }
        let mut writes = Vec::with_capacity(batch.commits.len() + batch.writes.len());
        for building in &mut batch.commits {
            let id = CommitId(self.random_wide());
            writes.push(Write::Commit(Box::new(building.close(id))));
        }
        writes.append(&mut batch.writes);
        self.effects.push(Effect::Write(writes));
        let going_on: Vec<_> =
            batch.commits.iter().filter(|commit| commit.goes_on).map(|commit| commit.id).collect();
        let deferred = std::mem::take(&mut batch.deferred);
        self.syncing = Some(batch);
        for id in going_on {
            self.go_on(id);
        }
        for id in deferred {
            self.resume(id);
        }
    }

    /// Handles a batch that is on disk: now, and not before, all its decisions become visible (K7).
    pub(super) fn written(&mut self, applied: Vec<Applied>) {
        let Some(batch) = self.syncing.take() else { return };
        let is_committed =
            applied.iter().take(batch.commits.len()).all(|one| matches!(one, Applied::Committed(_)));
        if is_committed && self.open.is_complete() {
            // Decisions made meanwhile depend on this batch: the next write need not wait for the answers.
            self.flush();
        }
        if self.config.watched {
            let changed = batch.commits.iter().map(|commit| commit.id).chain(batch.touched);
            self.effects.push(Effect::Changed(changed.collect()));
        }
        let mut results = applied.into_iter();
        let mut posted = false;
        for building in batch.commits {
            posted |= building.posts;
            match results.next() {
                Some(Applied::Committed(_)) => self.committed(building),
                Some(Applied::Duplicate) if building.creation.is_some() => {
                    self.existed(building, &Refusal::Rejected(Rejected::Exists));
                }
                Some(Applied::Taken) => self.existed(building, &Refusal::KeyTaken),
                Some(
                    any_of![Applied: Conflict Fenced Duplicate Done Defined Accepted QueueFull HookTaken],
                )
                | None => self.handle_conflict(building),
            }
        }
        let mut kept = Vec::new();
        for then in batch.thens {
            match (then, results.next()) {
                (WriteFollowUp::Kept(reply), result) => {
                    kept.extend(result);
                    if let Some(reply) = reply {
                        self.answer(reply, EngineAnswer::Kept(std::mem::take(&mut kept)));
                    }
                }
                (then, result) => self.wrote(then, result),
            }
        }
        self.give_answers(batch.answers);
        self.answer_claims();
        if posted {
            self.mail.poke();
        }
    }

    fn committed(&mut self, building: Building<R>) {
        let id = building.id;
        self.tally.count(&building.records);
        self.leave_room(&building);
        for (pending, answer) in building.decided {
            self.reply_to(id, pending, answer);
        }
        self.answer_agents(id, &building.records);
        for (session, order) in building.orders {
            self.give_order(session, order);
        }
        for (run, fence) in building.queued {
            self.enqueue(id, run, fence);
        }
        for (run, fence) in building.closed {
            self.unqueue(id, run, fence);
        }
        for timer in building.timers {
            self.timers.arm(timer);
        }
        if building.awaits_worker {
            self.await_worker(id);
        }
        self.end_uploads(id);
        self.note_commit_written(id);
    }

    fn give_order(&mut self, session: protocol::SessionId, order: protocol::Order) {
        let order = match order {
            protocol::Order::Run(work) if self.sessions.is_claiming(session) => {
                return self.deliver_outside(session, *work);
            }
            order => order,
        };
        match &order {
            protocol::Order::Run(work) => self.sessions.sent(work.unit, self.now.steady),
            protocol::Order::Stop { unit, .. } => self.sessions.stop_sent(*unit),
            protocol::Order::Unknown => {}
        }
        self.effects.push(Effect::Order(session, order));
    }

    fn give_answers(&mut self, answers: Vec<(ExecutionId, Pending<R>, EngineAnswer)>) {
        for (id, pending, answer) in answers {
            self.reply_to(id, pending, answer);
        }
    }

    /// Answers the caller of an input. A decision of an agent is answered when what it began has ended.
    pub(super) fn reply_to(&mut self, id: ExecutionId, pending: Pending<R>, answer: EngineAnswer) {
        let Some(reply) = pending.reply else { return };
        match (&pending.what, answer) {
            (PendingKind::Agent(input), EngineAnswer::Reply(protocol::Reply::Agent(answer)))
                if *answer == protocol::AgentAnswer::Noted =>
            {
                self.agent_noted(id, input, reply);
            }
            (_, answer) => self.answer(reply, answer),
        }
    }

    fn wrote(&mut self, then: WriteFollowUp<R>, result: Option<Applied>) {
        match (then, result) {
            (WriteFollowUp::Nothing | WriteFollowUp::Kept(_), _) => {}
            (WriteFollowUp::Opened(reply), _) => self.answer(reply, EngineAnswer::Group(GroupReply::Opened)),
            (WriteFollowUp::Stored(reply), _) => {
                self.answer(reply, EngineAnswer::resource(protocol::ResourceReply::Stored));
            }
            (WriteFollowUp::Serve(request, reply), _) => self.effects.push(Effect::Serve(*request, reply)),
            (WriteFollowUp::Released(id, reply), _) => self.released(id, reply),
            (WriteFollowUp::LookAgain(lookup, list), _) => self.read_list(lookup, list),
            (WriteFollowUp::Verdict(reply), Some(Applied::Done)) => {
                self.answer_verdict(reply, protocol::Verdict::Accepted);
            }
            (WriteFollowUp::Verdict(reply), _) => self.answer_verdict(reply, protocol::Verdict::Stale),
            (WriteFollowUp::Defined(reply, net), Some(Applied::Defined(id, version, workflow))) => {
                self.executions.keep_definition(id, &net, workflow);
                self.answer(reply, EngineAnswer::Defined { id, version, workflow });
            }
            (WriteFollowUp::Defined(reply, _), Some(Applied::HookTaken(other))) => {
                self.answer(reply, EngineAnswer::Refused(Refusal::HookTaken(other)));
            }
            (WriteFollowUp::Defined(reply, _), _) => {
                self.answer(reply, EngineAnswer::Refused(Refusal::NoDefinition))
            }
            (WriteFollowUp::Deliver(session, work), Some(Applied::Done)) => {
                self.give_order(session, protocol::Order::Run(work));
            }
            // The offer was closed before the lease was written.
            (WriteFollowUp::Deliver(_, work), _) => self.return_undelivered(work.unit),
        }
    }

    /// Counts down the commits in flight, and answers callers that wait for the execution to rest.
    fn note_commit_written(&mut self, id: ExecutionId) {
        let Some(live) = self.executions.get_mut(id) else { return };
        live.unwritten = live.unwritten.saturating_sub(1);
        if live.unwritten == 0 && !live.waiters.is_empty() {
            let phase = live.state.phase();
            let waiters = std::mem::take(&mut live.waiters).into_iter();
            let (rested, waiting) = waiters.partition(|(rest, _)| live.rests(*rest));
            live.waiters = waiting;
            let rested: Vec<(AwaitedState, R)> = rested;
            rested.into_iter().for_each(|(_, reply)| self.answer(reply, EngineAnswer::Rested(phase)));
        }
        self.read_missing(id);
        self.trim(id);
    }

    /// Removes an execution that waits from memory if possible.
    pub(super) fn rest(&mut self, id: ExecutionId) {
        let sessions = &self.sessions;
        self.executions.evict_idle(id, self.config.idle_max, &|id| sessions.work_on(id));
    }

    pub(super) fn trim(&mut self, id: ExecutionId) {
        if let Some(live) = self.executions.get_mut(id) {
            live.trim_values();
        }
        self.rest(id);
    }

    /// Handles a taken id or key: that execution began before.
    fn existed(&mut self, building: Building<R>, refusal: &Refusal) {
        self.forget(&building);
        let _ = self.executions.take(building.id);
        for (pending, _) in building.decided {
            self.settle_mail(pending.mail, Some(refusal.to_string()));
            if let Some(reply) = pending.reply {
                self.answer(reply, EngineAnswer::Refused(refusal.clone()));
            }
        }
    }

    /// Handles a conflict: another writer wrote the execution first, and all later decisions are repeated on its
    /// commit.
    fn handle_conflict(&mut self, building: Building<R>) {
        let id = building.id;
        self.forget(&building);
        let later = self.open.withdraw(id);
        if let Some(later) = &later {
            self.forget(later);
        }
        let waiting = match self.executions.take(id) {
            Some(super::live::Residency::Live(live)) => {
                let waiters = live.waiters.into_iter();
                let awaits = waiters.map(|(rest, reply)| Pending {
                    what: PendingKind::Await(rest),
                    reply: Some(reply),
                    mail: None,
                    audit: None,
                });
                live.waiting.into_iter().chain(awaits).collect()
            }
            Some(super::live::Residency::Loading(_)) | None => Vec::new(),
        };
        let decided = building.decided.into_iter().chain(later.into_iter().flat_map(|later| later.decided));
        let answers = std::mem::take(&mut self.open.answers).into_iter();
        let (again, kept): (Vec<_>, Vec<_>) = answers.partition(|(of, ..)| *of == id);
        self.open.answers = kept;
        let again = again.into_iter().map(|(_, pending, _)| pending);
        for pending in decided.map(|(pending, _)| pending).chain(again).chain(waiting) {
            self.enqueue_input(id, without_assignment(pending));
        }
    }

    /// Frees slots that were reserved for offers which were never written.
    fn forget(&mut self, building: &Building<R>) {
        for lease in &building.leases {
            self.groups.unassign(protocol::SessionId(lease.session.0));
            self.sessions.release(super::dispatch::unit(building.id, lease.run, lease.fence));
        }
    }
}

/// Frees the slot of an assignment that was not written: the execution waits for another one.
fn without_assignment<R>(pending: Pending<R>) -> Pending<R> {
    let is_assignment =
        matches!(&pending.what, PendingKind::Input(input) if matches!(**input, Input::Assign { .. }));
    if !is_assignment {
        return pending;
    }
    Pending { what: PendingKind::Sort { run: WHOLE, fence: Fence(0) }, ..pending }
}
