//! A lane: one loop that owns its executions. It is a state machine without threads, disk or clock: [`Lane::wake`]
//! takes one wake-up and the time, [`Lane::take_effects`] returns the effects.
//!
//! Inputs are decided at once on the state in memory, which is ahead of the disk. Decisions collect in the open batch.
//! When the previous batch is on disk, the open one is written as a whole, and only then the answers, orders and mail
//! of its commits are sent (K7).

mod agents;
mod asking;
mod batch;
mod deciding;
mod depth;
mod dispatch;
mod groups;
mod lines;
mod live;
mod mail;
mod outcome;
mod outside;
mod quarantine;
mod queue;
mod reading;
mod recovery;
mod retry;
mod rooms;
mod runners;
mod sessions;
mod starts;
mod timers;
mod whole;

/// Maximum number of rows that each lookup reads at a time.
pub(crate) mod pages {
    pub use super::mail::PAGE as INBOX;
    pub use super::recovery::PAGE as RECOVERY;
    pub use super::timers::PAGE as DUE;
}

pub(crate) use agents::end_of;

use crate::activity::Activities;
use crate::ids::new_execution_id;
use crate::resources::{NoResources, Resources};
use crate::wake::{Effect, EngineAnswer, Fatal, Load, Lookup, Now, ReadId, Request, Tally, Wake};
use batch::Batch;
use deciding::{AwaitedState, Pending, PendingKind, StartRequester};
use groups::Groups;
use live::Executions;
use quarantine::Quarantined;
use queue::Queue;
use reading::Reads;
use rooms::{Rooms, Starter};
use serde_json::Value;
use sessions::Sessions;
use std::sync::Arc;
use timers::Timers;
use windlass_kernel::{ExecutionId, Net};
use windlass_protocol as protocol;
use windlass_protocol::Call;
use windlass_store::{Entry, Quarantine, StoredDefinition, WorkerSession};

#[derive(Debug, Clone)]
pub struct Config {
    /// Chooses execution ids, commit ids and random bits; the same seed and wake-ups give the same effects.
    pub seed: u64,
    /// Maximum number of idle executions in memory; others are loaded when an input arrives.
    pub idle_max: usize,
    /// Interval at which the inbox is read without a reason. Mail of this lane is read as soon as its commit is on disk, and
    /// every other writer holds the folder or runs before the engine, so nothing waits for this read.
    pub inbox_poll_ms: u64,
    pub lease_ttl_ms: u64,
    /// Whether the ids of changed executions are reported.
    pub watched: bool,
    pub check_child: ChildCheck,
    /// Reporters of the current executions of the engine's threads.
    pub activities: Activities,
    pub resources: Arc<dyn Resources>,
    /// Rules of every session.
    pub rules: Arc<protocol::WorkerRules>,
    /// Quarantined executions, from the store.
    pub quarantined: Vec<(ExecutionId, Quarantine)>,
    /// Sessions of workers outside of this process that an earlier process opened.
    pub sessions: Vec<WorkerSession>,
    /// Whether offers of the last process may belong to groups of such workers.
    pub has_groups: bool,
    /// Artifacts are copied to another place: what waits for its uploads ends when they are reported by
    /// [`windlass_kernel::Input::Uploaded`].
    pub uploads_artifacts: bool,
}

/// Decides whether a sub-execution may start with its inputs, and returns the Net that it runs if that is not the Net
/// of its definition; `Err` has the problem. The engine knows no dialect. Never called on the lane's thread.
#[derive(Clone)]
pub struct ChildCheck(Arc<CheckChild>);

type CheckChild = dyn Fn(&StoredDefinition, &Net, &Value) -> Result<Option<Arc<Net>>, String> + Send + Sync;

impl ChildCheck {
    pub fn new(
        check: impl Fn(&StoredDefinition, &Net, &Value) -> Result<Option<Arc<Net>>, String>
        + Send
        + Sync
        + 'static,
    ) -> ChildCheck {
        ChildCheck(Arc::new(check))
    }

    pub(crate) fn check(
        &self,
        definition: &StoredDefinition,
        net: &Net,
        inputs: &Value,
    ) -> Result<Option<Arc<Net>>, String> {
        (self.0)(definition, net, inputs)
    }
}

impl Default for ChildCheck {
    /// Accepts all inputs; every definition runs its own Net.
    fn default() -> ChildCheck {
        ChildCheck::new(|_, _, _| Ok(None))
    }
}

impl std::fmt::Debug for ChildCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChildCheck")
    }
}

impl Default for Config {
    fn default() -> Self {
        let lease_ttl_ms = protocol::LEASE_TTL_MS;
        Config {
            seed: 0,
            idle_max: 2_048,
            inbox_poll_ms: 1_000,
            lease_ttl_ms,
            watched: false,
            check_child: ChildCheck::default(),
            activities: Activities::default(),
            resources: Arc::new(NoResources),
            rules: Arc::default(),
            quarantined: Vec::new(),
            sessions: Vec::new(),
            has_groups: false,
            uploads_artifacts: false,
        }
    }
}

#[derive(Debug)]
pub struct Lane<R> {
    config: Config,
    now: Now,
    /// Time at which the lane began, on the steady clock.
    began: u64,
    random: u64,
    executions: Executions<R>,
    open: Batch<R>,
    /// The batch that is being written.
    syncing: Option<Batch<R>>,
    sessions: Sessions,
    groups: Groups<R>,
    agents: agents::Agents<R>,
    queue: Queue,
    runners: runners::Runners,
    starts: starts::Starts,
    timers: Timers,
    reads: Reads<R>,
    mail: mail::Inbox,
    recovery: recovery::Recovery,
    quarantined: Quarantined,
    rooms: Rooms<R>,
    tally: Tally,
    stopping: bool,
    effects: Vec<Effect<R>>,
}

impl<R> Lane<R> {
    /// Begins with recovery: work that was offered, due or posted when the last process ended is looked up first.
    #[must_use]
    pub fn new(config: Config, now: Now) -> Lane<R> {
        let mut config = config;
        let quarantined = Quarantined::of(std::mem::take(&mut config.quarantined));
        let mut lane = Lane {
            quarantined,
            rooms: Rooms::default(),
            random: config.seed ^ 0x9e37_79b9_7f4a_7c15,
            config,
            now,
            began: now.steady,
            executions: Executions::default(),
            open: Batch::default(),
            syncing: None,
            sessions: Sessions::default(),
            groups: Groups::default(),
            agents: agents::Agents::default(),
            queue: Queue::default(),
            runners: runners::Runners::default(),
            starts: starts::Starts::default(),
            timers: Timers::default(),
            reads: Reads::default(),
            mail: mail::Inbox::default(),
            recovery: recovery::Recovery::default(),
            tally: Tally::default(),
            stopping: false,
            effects: Vec::new(),
        };
        lane.restore_sessions();
        lane.recover();
        lane
    }

    pub fn wake(&mut self, wake: Wake<R>, now: Now) {
        self.now = now;
        match wake {
            Wake::Ask(request, reply) if self.stopping => self.ask_late(request, reply),
            Wake::Ask(request, reply) => self.ask(request, reply),
            Wake::Call(call, reply) if self.stopping => self.call_late(call, reply),
            Wake::Call(call, reply) => self.call(call, reply),
            Wake::Written(Ok(applied)) => self.written(applied),
            Wake::Found(id, found) => self.found(id, found),
            Wake::Written(Err(error)) => self.fatal(error),
            Wake::Tick => {}
            Wake::Stop => self.stopping = true,
        }
        self.time_passes();
    }

    /// Hands the open batch to the disk if the disk is free. Called when no further wake-up waits.
    pub fn settle(&mut self) {
        self.dispatch();
        self.flush();
        if self.stopping && self.is_at_rest() {
            let waiting = self.executions.take_waiters().into_iter().chain(self.agents.take_all());
            for reply in waiting.chain(self.groups.take_replies()) {
                self.answer(reply, EngineAnswer::Stopping);
            }
            self.effects.push(Effect::Stopped);
        }
    }

    pub fn take_effects(&mut self) -> Vec<Effect<R>> {
        std::mem::take(&mut self.effects)
    }

    /// Returns the time until the next `Tick` is wanted at the latest, in milliseconds.
    #[must_use]
    pub fn sleep_ms(&self) -> u64 {
        if self.stopping {
            return u64::MAX;
        }
        let timer = self.timers.next().map(|due| due.since(self.now.wall));
        let steady = [self.sessions.next_expiry(), self.mail.next_poll(), self.timers.next_read()];
        let steady = steady.into_iter().flatten().map(|at| at.saturating_sub(self.now.steady));
        steady.chain(timer).min().unwrap_or(u64::MAX)
    }

    /// Returns whether the open batch has the size of one transaction: then no more requests are taken until it is
    /// handed over.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.open.is_full()
    }

    /// Returns the number of units that workers hold, each of which may be reported at any moment.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.sessions.held()
    }

    /// Returns whether all work from before the start has been found and passed to its execution.
    #[must_use]
    pub fn is_recovered(&self) -> bool {
        self.recovery.is_over()
    }

    fn is_at_rest(&self) -> bool {
        self.open.is_empty() && self.syncing.is_none() && !self.reads.are_awaited()
    }

    fn ask(&mut self, request: Request, reply: R) {
        match request {
            Request::Define(definition) => self.define(definition, reply),
            Request::Start(start) => {
                let tenant = start.origin.tenant.clone();
                self.begin_in_room(&tenant, Starter::Start(start, reply));
            }
            Request::Retry { id, retry, net, audit } => {
                self.retry(id, (retry, net), StartRequester { reply: Some(reply), mail: None, audit });
            }
            Request::Give { execution, input, audit } => {
                let what = PendingKind::Input(Box::new(input));
                self.enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit });
            }
            Request::Release { execution, audit } => self.release(execution, *audit, reply),
            Request::Await(execution) => self.wait_for(execution, AwaitedState::ForPeople, reply),
            Request::AwaitPause(execution) => self.wait_for(execution, AwaitedState::Paused, reply),
            Request::Limit(limits) => {
                self.queue.limit(limits.slots);
                self.rooms.limit(limits.open);
                self.answer(reply, EngineAnswer::Accepted);
            }
            Request::Keep(entries) => self.store_entries(entries, reply),
            Request::Load => self.report_load(reply),
            Request::Group(call) => self.group_call(call, reply),
        }
    }

    /// Handles a request while the lane stops: new work is refused.
    fn ask_late(&mut self, request: Request, reply: R) {
        match request {
            Request::Keep(_) | Request::Load => self.ask(request, reply),
            Request::Define(_)
            | Request::Start(_)
            | Request::Retry { .. }
            | Request::Give { .. }
            | Request::Release { .. }
            | Request::Limit(_)
            | Request::Await(_)
            | Request::AwaitPause(_)
            | Request::Group(_) => self.answer(reply, EngineAnswer::Stopping),
        }
    }

    fn call(&mut self, call: Call, reply: R) {
        match call {
            Call::Register(register) => self.register(&register, reply),
            Call::Beat(beat) => self.beat(&beat, reply),
            Call::Leave(session) => self.leave(session, reply),
            Call::Report(report) => self.report(*report, reply),
            Call::Checkpoint(checkpoint) => self.checkpoint(checkpoint, reply),
            Call::Agent(call) => self.agent(*call, reply),
            Call::Progress(progress) => self.progress(progress, reply),
            Call::Log(log) => self.log(log, reply),
            Call::Resource(call) => self.serve_resource(*call, false, reply),
        }
    }

    /// Handles a call of a worker while the lane stops: results are still accepted.
    fn call_late(&mut self, call: Call, reply: R) {
        match call {
            Call::Leave(_)
            | Call::Report(_)
            | Call::Checkpoint(_)
            | Call::Progress(_)
            | Call::Log(_)
            | Call::Resource(_) => self.call(call, reply),
            Call::Register(_) | Call::Beat(_) | Call::Agent(_) => self.answer(reply, EngineAnswer::Stopping),
        }
    }

    /// Writes rows of other tables, all of them in one transaction.
    fn store_entries(&mut self, entries: Vec<Entry>, reply: R) {
        if entries.is_empty() {
            return self.answer(reply, EngineAnswer::Kept(Vec::new()));
        }
        self.open.add_entries(entries, reply);
    }

    fn report_load(&mut self, reply: R) {
        let load = Load {
            queued: self.queue.len(),
            in_flight: self.sessions.held(),
            slots: self.sessions.slots(),
            live: self.executions.len(),
            quarantined: self.quarantined.len(),
            recovered: self.is_recovered(),
            lost: self.sessions.lost(),
            tally: self.tally,
        };
        self.answer(reply, EngineAnswer::Load(load));
    }

    fn time_passes(&mut self) {
        if self.stopping {
            // The next process finds a timer that is due now in its row.
            return;
        }
        self.due_timers();
        self.expire_sessions();
        self.poll_inbox();
    }

    fn answer(&mut self, reply: R, answer: EngineAnswer) {
        self.effects.push(Effect::Answer(reply, answer));
    }

    fn answer_verdict(&mut self, reply: R, verdict: protocol::Verdict) {
        self.answer(reply, EngineAnswer::verdict(verdict));
    }

    fn fatal(&mut self, fatal: impl Into<Fatal>) {
        self.effects.push(Effect::Fatal(fatal.into()));
    }

    fn read(&mut self, lookup: Lookup, why: reading::LookupReason<R>) {
        let id: ReadId = self.reads.expect(why);
        self.effects.push(Effect::Read(id, lookup));
    }

    /// Returns random bits from splitmix64: enough for jitter and ids, and the same in every run of a seed.
    fn random_bits(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn random_wide(&mut self) -> u128 {
        u128::from(self.random_bits()) << 64 | u128::from(self.random_bits())
    }

    fn new_execution_id(&mut self) -> ExecutionId {
        let random = self.random_wide();
        new_execution_id(self.now.wall, random)
    }
}
