//! Inputs and effects of a lane: two closed enums. A simulator sends the same values as the threads of a real engine.

use crate::resources::ResourceRequest;
use crate::retries::Past;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_kernel::{
    ChildResult, Event, ExecutionId, Facet, Input, LifeChange, Millis, Need, Net, NetDigest, Outcome,
    Outputs, Phase, Record, Rejected, RunChange, RunId, StartWhen, Values, any_of,
};
use windlass_protocol as protocol;
use windlass_retry::RefusedStep;
use windlass_store::{
    Applied, Audit, Definition, DefinitionId, DueTimer, Entry, MailId, Offer, Origin, Retry, Stop,
    StoreError, Stored, StoredDefinition, StoredMail, Tenant, Which, WorkerSession, WorkflowId, Write,
};

/// Time of a lane. Times in journals come from the wall clock; leases are counted on a clock that is never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    pub wall: Millis,
    /// Milliseconds since some moment before the lane began.
    pub steady: u64,
}

/// Event that a lane reacts to. `R` identifies the caller of the answer.
#[derive(Debug)]
pub enum Wake<R> {
    Ask(Request, R),
    /// Call of a worker. It is answered with an [`EngineAnswer::Reply`], except for a registration.
    Call(protocol::Call, R),
    /// The batch that was handed out is on disk, or the store is broken.
    Written(Result<Vec<Applied>, StoreError>),
    Found(ReadId, Result<Found, StoreError>),
    /// Time has passed.
    Tick,
    /// Finish what was begun and stop.
    Stop,
}

#[derive(Debug)]
pub enum Effect<R> {
    Answer(R, EngineAnswer),
    /// Writes a batch. At most one is being written at a time.
    Write(Vec<Write>),
    Read(ReadId, Lookup),
    /// The session is open. The caller that registered gets its orders until it ends.
    SessionOpen(protocol::Registered, R),
    Order(protocol::SessionId, protocol::Order),
    /// The session has ended: no order for it follows.
    SessionOver(protocol::SessionId),
    /// A worker needs a resource that the engine does not hold; its call is answered with a
    /// [`protocol::Reply::Resource`].
    Serve(ResourceRequest, R),
    /// These executions have changed, and the changes are on disk.
    Changed(Vec<ExecutionId>),
    /// Everything is answered and on disk.
    Stopped,
    /// All work on this execution stops, for this reason. Its row is being written.
    Quarantined(ExecutionId, String),
    /// The lane must not continue: an invariant is broken or the store cannot be trusted.
    Fatal(Fatal),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a thread of the engine panicked; see the earlier lines of the log")]
    Died,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

#[derive(Debug)]
pub enum Request {
    Define(Box<Definition>),
    Start(Box<Start>),
    /// Retries an ended execution as a new one (R12).
    Retry {
        /// Id of the new execution.
        id: ExecutionId,
        retry: Retry,
        /// Net of the new execution, if it is not that of its definition.
        net: Option<Arc<Net>>,
        audit: Option<Box<Audit>>,
    },
    Give {
        execution: ExecutionId,
        input: Input,
        /// Caller of the request: stored in the commit of the change, if there is one.
        audit: Option<Box<Audit>>,
    },
    /// Releases a quarantined execution.
    Release {
        execution: ExecutionId,
        audit: Box<Audit>,
    },
    /// Sets the limits of tenants from now on.
    Limit(Limits),
    /// Answered when the execution has ended or waits for people.
    Await(ExecutionId),
    /// Answered when it has ended or is paused for any reason.
    AwaitPause(ExecutionId),
    /// Rows of other tables than executions: all of them or, after a crash, none.
    Keep(Vec<Entry>),
    /// Counts of waiting and running work.
    Load,
    /// Call of a worker outside of this process; answered with an [`EngineAnswer::Group`].
    Group(GroupCall),
}

/// Call of a worker that claims work of its group. Its reports are calls of the protocol, like those of any worker.
#[derive(Debug)]
pub enum GroupCall {
    /// Opens a session, which outlives this process.
    Open(Box<WorkerSession>),
    /// Takes up to `slots` units. It is answered when there is at least one, or when the claim is ended. A later claim of
    /// the session replaces it.
    Claim {
        session: SessionKey,
        slots: u32,
        /// Operations that the worker performs; None: all of its group.
        kinds: Option<BTreeSet<String>>,
    },
    /// Answers the open claim of the session with its units so far.
    EndClaim { session: SessionKey },
    /// Renews the leases of everything that the worker still holds.
    Beat { session: SessionKey, held: Vec<protocol::Unit> },
    /// Reads the work of a unit again that the session holds.
    Fetch { session: SessionKey, unit: protocol::Unit },
    /// Reports the result of a unit that the session holds. The receipt is on disk when it is answered, with a verdict.
    Report { session: SessionKey, report: Box<protocol::Report>, receipt: [u8; 32] },
    /// Lists the calls with a time limit of their own that workers hold.
    ListLimited,
    /// Compares a report with the one that was accepted under its fence (R16); it changes nothing. Answered with a
    /// verdict.
    Repeat { session: SessionKey, report: Box<protocol::Report> },
    /// Returns units that never reached the worker.
    Return { session: SessionKey, units: Vec<protocol::Unit> },
    /// Directs orders of the session to the caller, as after a registration.
    Attach { session: SessionKey },
    /// Reports whether the process of the worker waits for orders: a worker that has disconnected gets no new work.
    Listen { session: SessionKey, listens: bool },
    /// Call of the protocol by a worker outside of this process; answered with its reply, or with
    /// [`GroupReply::NoSession`]. The audit entry is written if it is a report that starts an execution which the step does
    /// not name.
    Relay { session: SessionKey, call: Box<protocol::Call>, audit: Option<Box<Audit>> },
    /// Answered with [`GroupReply::Returned`] if the session exists and makes calls of the protocol.
    Check { session: SessionKey },
    /// Restricts the work of the group to workers of this cluster; None removes the restriction.
    Restrict { tenant: Tenant, group: String, cluster: Option<String> },
    /// Counts work and workers of groups: of a tenant, or of all.
    List { tenant: Option<Tenant> },
}

/// Proof that a caller knows the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionKey {
    pub id: protocol::SessionId,
    /// SHA-256 of the session's text.
    pub digest: [u8; 32],
    pub tenant: Tenant,
    /// The only group that the caller may work for; None: any group of the tenant.
    pub group: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum GroupReply {
    Opened,
    /// The tenant has reached its maximum number of sessions.
    TooManySessions {
        max: usize,
    },
    Claimed(Vec<protocol::Work>),
    Held {
        /// Listed units that the session no longer holds.
        lost: Vec<protocol::Unit>,
        /// Units that the worker has to stop.
        stop: Vec<protocol::Unit>,
    },
    /// There is no such session, or it has expired.
    NoSession,
    /// The session claims calls of its group, and makes none of the protocol.
    ClaimsOnly,
    /// The worker asked for something that its unit may not have; the reply says so.
    Denied(Box<protocol::Reply>),
    /// The session does not hold the unit.
    NotHeld,
    Returned,
    Groups(Vec<GroupLoad>),
    Limited(Vec<HeldCall>),
}

/// A call that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCall {
    pub session: SessionKey,
    pub unit: protocol::Unit,
    pub claimed_at: Millis,
}

/// Work and workers of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupLoad {
    pub tenant: Tenant,
    pub name: String,
    /// Units that wait for a worker.
    pub waiting: usize,
    /// Units that workers hold.
    pub claimed: usize,
    pub workers: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Number of offers that wait for a free slot.
    pub queued: usize,
    /// Number of offers that workers hold.
    pub in_flight: usize,
    pub slots: usize,
    /// Number of executions in memory.
    pub live: usize,
    /// Number of quarantined executions.
    pub quarantined: usize,
    /// Whether all unfinished work of the last process has been found.
    pub recovered: bool,
    /// Number of leases that were lost since the start.
    pub lost: u64,
    /// Number of decisions since the start.
    pub tally: Tally,
}

/// Counts of commits since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub started: u64,
    pub completed: u64,
    pub partial: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub steps_done: u64,
    pub steps_failed: u64,
    pub retries: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, records: &[Record]) {
        for record in records {
            let place = match record.event.facet() {
                Facet::Life(LifeChange::Created(_) | LifeChange::Forked(_)) => &mut self.started,
                Facet::Life(LifeChange::Ended(Outcome::Completed)) => &mut self.completed,
                Facet::Life(LifeChange::Ended(Outcome::Partial)) => &mut self.partial,
                Facet::Life(LifeChange::Ended(Outcome::Failed)) => &mut self.failed,
                Facet::Life(LifeChange::Ended(Outcome::Cancelled)) => &mut self.cancelled,
                Facet::Run(_, RunChange::Done(_)) => &mut self.steps_done,
                Facet::Run(_, RunChange::Failed { .. }) => &mut self.steps_failed,
                Facet::Run(_, RunChange::Retried) => &mut self.retries,
                Facet::Life(
                    any_of![LifeChange: PauseChanged Released Patched OutcomeDecided Cleared StopAsked
                    Restarted],
                )
                | Facet::Run(
                    _,
                    any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed Offered
                    AwaitingManual ChildStarted Returned Lost Dropped Routed AgentDecided Internal],
                )
                | any_of![Facet: Discarded Joined Internal] => continue,
            };
            *place += 1;
        }
    }
}

/// Limits of tenants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    pub slots: SlotLimits,
    pub open: OpenLimits,
}

/// Maximum number of slots of workers for one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotLimits {
    pub each: Share,
    /// Limits of tenants that have one of their own, or none.
    pub own: BTreeMap<Tenant, Option<usize>>,
}

/// A tenant's share of all slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Share {
    #[default]
    All,
    /// All slots except a reserve of a quarter, and of one slot at least: one tenant's endless work leaves room for
    /// others.
    Fair,
    AtMost(usize),
}

impl Share {
    /// The reserve of a fair share is the number of slots divided by this.
    const RESERVE: usize = 4;

    fn of(self, slots: usize) -> usize {
        match self {
            Share::All => usize::MAX,
            Share::Fair => slots.saturating_sub((slots / Share::RESERVE).max(1)).max(1),
            Share::AtMost(count) => count,
        }
    }
}

impl SlotLimits {
    /// Returns the slots that the tenant may hold, out of `slots`.
    #[must_use]
    pub fn of(&self, tenant: &Tenant, slots: usize) -> usize {
        match self.own.get(tenant) {
            Some(own) => own.unwrap_or(usize::MAX),
            None => self.each.of(slots),
        }
    }
}

/// Maximum number of open executions of one tenant. None: no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenLimits {
    pub each: Option<usize>,
    /// Limits of tenants that have one of their own, or none.
    pub own: BTreeMap<Tenant, Option<usize>>,
}

impl OpenLimits {
    #[must_use]
    pub fn of(&self, tenant: &Tenant) -> Option<usize> {
        self.own.get(tenant).copied().unwrap_or(self.each)
    }
}

#[derive(Debug)]
pub struct Start {
    /// Origin of the start, with its definition.
    pub origin: Arc<Origin>,
    /// Inputs of the caller. They replace the defaults and are never evaluated.
    pub inputs: serde_json::Value,
    /// Inputs of the definition; templates in them are rendered when the execution has its id.
    pub defaults: serde_json::Value,
    pub timeout_ms: Option<u64>,
    pub when: StartWhen,
    /// The net of the definition with the settings of this start.
    pub net: Option<Arc<Net>>,
}

impl Start {
    /// Returns a start by the owner of the data folder.
    #[must_use]
    pub fn by_hand(
        definition: DefinitionId,
        inputs: serde_json::Value,
        defaults: serde_json::Value,
    ) -> Start {
        let origin = Arc::new(Origin { definition: Some(definition), ..Origin::default() });
        Start { origin, inputs, defaults, timeout_ms: None, when: StartWhen::Now, net: None }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum EngineAnswer {
    Defined {
        id: DefinitionId,
        version: u32,
        workflow: WorkflowId,
    },
    Started(ExecutionId),
    /// The input took effect, or had taken effect before.
    Accepted,
    Refused(Refusal),
    Rested(Phase),
    /// Reply to the call of a worker.
    Reply(protocol::Reply),
    /// Result of each entry.
    Kept(Vec<Applied>),
    Load(Load),
    /// Reply to the call of a worker outside of this process.
    Group(GroupReply),
    /// The lane stops; retry after the restart.
    Stopping,
}

impl EngineAnswer {
    pub(crate) fn resource(reply: protocol::ResourceReply) -> EngineAnswer {
        EngineAnswer::Reply(protocol::Reply::Resource(Box::new(reply)))
    }

    pub(crate) fn verdict(verdict: protocol::Verdict) -> EngineAnswer {
        EngineAnswer::Reply(protocol::Reply::Verdict(verdict))
    }

    pub(crate) fn agent(answer: protocol::AgentAnswer) -> EngineAnswer {
        EngineAnswer::Reply(protocol::Reply::Agent(Box::new(answer)))
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Rejected(#[from] Rejected),
    #[error("execution {0} does not exist")]
    NoExecution(ExecutionId),
    #[error("the definition does not exist")]
    NoDefinition,
    #[error(
        "workflow {0} has the path of one of its hooks: change one of the paths, or delete that workflow"
    )]
    HookTaken(WorkflowId),
    #[error("an execution was started with this idempotency key before")]
    KeyTaken,
    #[error("{0}")]
    BadInputs(String),
    #[error(transparent)]
    NotRetried(#[from] NotRetried),
    #[error(
        "execution {execution} is quarantined and not worked on: {reason}. \
         An operator releases or cancels it with `windlass admin quarantine`"
    )]
    Quarantined { execution: ExecutionId, reason: String },
    #[error(
        "the tenant has {limit} executions that have not ended, including sub-workflows, which is its limit"
    )]
    NoRoom { limit: usize },
    #[error("execution {0} is not quarantined")]
    NotQuarantined(ExecutionId),
    #[error("stored data of the execution cannot be read: {0}; `windlass admin check` finds the damage")]
    Unreadable(String),
}

/// Reason for which an execution cannot be retried from a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRetried {
    #[error("its definition has no step `{step}`; its steps are {}", .known.join(", "))]
    NoStep { step: String, known: Vec<String> },
    #[error("step `{step}` never ran, so a retry cannot begin there")]
    NeverFired { step: String },
    #[error("step `{step}` fired {fired} times, so it has no firing {firing}; they are counted from 1")]
    NoFiring { step: String, firing: u32, fired: u32 },
    #[error("firing {firing} of step `{step}` was skipped, so a retry cannot begin there")]
    Skipped { step: String, firing: u32 },
    #[error("step `{step}` is the final step, which runs again at the end of every retry; name another step")]
    Final { step: String },
    #[error("only playbooks are retried from one firing of a step; omit the firing")]
    NoFirings,
    #[error("{}", explain_lost(.0))]
    Lost(Vec<(String, RefusedStep)>),
}

/// Explains why completed steps cannot be taken over under a changed definition.
fn explain_lost(steps: &[(String, RefusedStep)]) -> String {
    let each = steps.iter().map(|(step, why)| format!("step `{step}` {}", describe_lost(*why)));
    format!("completed work would be lost: {}", each.collect::<Vec<_>>().join("; "))
}

/// Describes why a completed step cannot be taken over, and the repair.
#[must_use]
pub fn describe_lost(why: RefusedStep) -> &'static str {
    match why {
        RefusedStep::Removed => {
            "completed and the new definition does not have it; keep its name, or retry from a step before it"
        }
        RefusedStep::Moved => {
            "completed and is in another loop of the new definition; move it back, or retry from a step before it"
        }
        RefusedStep::Rerouted => {
            "completed and the arcs that lead to it changed; retry from the step before it"
        }
    }
}

/// Data that a lane has to look up on disk before it can continue with an execution.
#[derive(Debug, Clone)]
pub enum Lookup {
    Execution(ExecutionId),
    Net(NetDigest),
    Values(ExecutionId, Vec<Need>),
    Definition(DefinitionId),
    /// An ended execution and the plan of its retry, which may run another Net than that of its definition.
    Past(Box<Retry>, Option<Arc<Net>>),
    /// The definition that a child's start names: that version, or the newest.
    Named(Tenant, Which, Option<u32>),
    /// End of a step-run that an agent requested, searched in one page of the journal from this version on.
    End(ExecutionId, RunId, u64),
    /// The next page of the journal of an ended child.
    Result(Box<ChildReading>),
    Due {
        after: Option<DueTimer>,
        until: Millis,
    },
    Offers {
        after: Option<(ExecutionId, RunId)>,
    },
    Stops {
        after: Option<Stop>,
    },
    Unfinished,
    Inbox {
        after: Option<MailId>,
    },
    Inputs(Box<InputsLookup>),
    /// Number of executions of a tenant that have not ended, counted up to this number.
    Open(Tenant, usize),
    /// Open offers of one execution.
    OffersOf(ExecutionId),
    /// The open offer of a step-run, if there is one.
    Offer(ExecutionId, RunId),
    /// Open mail to one execution.
    InboxOf(ExecutionId),
}

impl Lookup {
    /// Returns the execution whose rows are read; None for lists and definitions.
    #[must_use]
    pub fn execution(&self) -> Option<ExecutionId> {
        match self {
            Lookup::Execution(id)
            | Lookup::Values(id, _)
            | Lookup::End(id, ..)
            | Lookup::OffersOf(id)
            | Lookup::Offer(id, _)
            | Lookup::InboxOf(id) => Some(*id),
            Lookup::Inputs(wanted) => Some(wanted.execution),
            Lookup::Past(retry, _) => Some(retry.of),
            Lookup::Result(reading) => Some(reading.child),
            Lookup::Net(_)
            | Lookup::Open(..)
            | Lookup::Definition(_)
            | Lookup::Named(..)
            | Lookup::Due { .. }
            | Lookup::Offers { .. }
            | Lookup::Stops { .. }
            | Lookup::Unfinished
            | Lookup::Inbox { .. } => None,
        }
    }
}

/// Journal of an ended child, read page by page: between two pages the only reader serves other lookups.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildReading {
    pub child: ExecutionId,
    /// The version of the next record.
    pub(crate) version: u64,
    pub(crate) outputs: Outputs,
    pub(crate) last: Option<Event>,
}

impl ChildReading {
    #[must_use]
    pub fn new(child: ExecutionId) -> ChildReading {
        ChildReading { child, version: 0, outputs: Outputs::default(), last: None }
    }
}

/// Whole inputs of an execution that is to start. They are rendered and checked on threads other than the lane's,
/// because the duration depends on the definition.
#[derive(Debug, Clone)]
pub struct InputsLookup {
    pub execution: ExecutionId,
    pub tenant: Tenant,
    pub given: Arc<serde_json::Value>,
    pub defaults: Defaults,
}

#[derive(Debug, Clone)]
pub enum Defaults {
    /// Defaults of a start whose inputs were checked by the caller.
    Of(serde_json::Value),
    /// Defaults of the definition, whose schema the inputs must fit, and its Net.
    Definition(DefinitionId, Arc<Net>),
}

/// Inputs of a start with their defaults.
#[derive(Debug)]
pub struct PreparedStart {
    pub inputs: serde_json::Value,
    /// The Net that runs, if it is not that of the definition.
    pub net: Option<Arc<Net>>,
}

#[derive(Debug)]
pub enum Found {
    Execution(Option<Box<Stored>>),
    Net(Option<Arc<Net>>),
    Values(Values),
    Definition(Option<Box<(StoredDefinition, Arc<Net>)>>),
    Past(Option<Box<Past>>),
    End(Option<protocol::AgentAnswer>),
    Result(Option<ChildResult>),
    /// The page did not contain it; the journal continues at this version.
    EndLater(u64),
    /// The journal continues.
    ResultLater(Box<ChildReading>),
    Due(Vec<DueTimer>),
    Offers(Vec<Offer>),
    Stops(Vec<Stop>),
    Unfinished(Vec<ExecutionId>),
    Inbox(Vec<StoredMail>),
    /// `Err` has the problem of the inputs.
    Inputs(Result<PreparedStart, String>),
    Open(usize),
}
