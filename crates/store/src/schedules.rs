//! Schedules, their runs and dead letters. Writes are entries; each is one transaction with everything that follows from
//! it (K10).

use crate::commit::WorkflowId;
use crate::origin::Tenant;
use crate::store::StoreResult;
use windlass_kernel::{ExecutionId, Millis};
use windlass_schedule::{RetryPolicy, RunPolicy, RunStatus};

/// Id of a schedule. Ids of this module begin with the time of their creation, so lists are ordered by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleId(pub u128);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleRunId(pub u128);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadLetterId(pub u128);

/// Random number of one lease. A worker that lost its lease has a number that no row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseKey(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSchedule {
    pub id: ScheduleId,
    pub tenant: Tenant,
    /// Unique among the schedules of the tenant.
    pub name: String,
    pub enabled: bool,
    /// Times and target as JSON. The store does not parse it.
    pub spec: String,
    pub policy: RunPolicy,
    pub retry: RetryPolicy,
    /// Number of changes by users. A plan that was made from an earlier revision is refused.
    pub revision: u64,
    pub paused_at: Option<Millis>,
    /// Time of the next occurrence that has no run yet.
    pub next_run_at: Option<Millis>,
    pub last_run_at: Option<Millis>,
    /// The definition that an http or shell target became.
    pub definition: Option<WorkflowId>,
    /// The workflow whose trigger made the schedule.
    pub workflow: Option<WorkflowId>,
    /// Receives a request for every dead letter.
    pub dead_letter_url: Option<String>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

/// A run before its first claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    pub id: ScheduleRunId,
    pub occurrence_key: String,
    pub nominal_time: Millis,
    /// The earliest time at which it starts.
    pub due_time: Millis,
    /// Reason for which it never runs; None if it is to run.
    pub skipped: Option<String>,
    /// JSON that is kept until the run ends: the reason of a trigger.
    pub note: Option<String>,
    /// The user who requested the run; None if the schedule did.
    pub requested_by: Option<String>,
}

/// Due occurrences of a schedule that become runs, together with the time of the first one that does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccurrencePlan {
    pub schedule: ScheduleId,
    /// The revision and the time of the next occurrence that the plan was made from.
    pub revision: u64,
    pub planned_from: Millis,
    pub runs: Vec<NewRun>,
    pub next_run_at: Option<Millis>,
    pub at: Millis,
}

/// A worker's right to a run until a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLease {
    pub run: ScheduleRunId,
    pub worker_id: String,
    pub lease_key: LeaseKey,
    pub expires_at: Millis,
}

/// The holder of a running run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunHolder {
    Lease(LeaseKey),
    /// The run has no lease and ends with its execution.
    Execution(ExecutionId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    Succeeded,
    Failed,
    Cancelled,
}

impl RunOutcome {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RunOutcome::Succeeded => "succeeded",
            RunOutcome::Failed => "failed",
            RunOutcome::Cancelled => "cancelled",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunResult {
    pub http_status_code: Option<u16>,
    pub exit_code: Option<i64>,
    pub result_json: Option<String>,
    pub error_text: Option<String>,
    pub receipts: Vec<Receipt>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub receipt_kind: String,
    pub content_type: String,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleWrite {
    /// `Taken` when the tenant has a schedule of that name.
    Create(Box<StoredSchedule>),
    /// Replaces name, times, target and policies. `Taken` as above, `Conflict` when another change came first, `Duplicate`
    /// when the tenant has no such schedule. With `keeps_times` the next occurrence is the stored one, which a planner may
    /// have moved meanwhile.
    Change { schedule: Box<StoredSchedule>, keeps_times: bool },
    /// Deletes a schedule with all its runs. `Conflict` while one of them is active, `Duplicate` when there is none.
    Delete { tenant: Tenant, schedule: ScheduleId },
    /// `Conflict` when the schedule was changed or planned meanwhile.
    Plan(Box<OccurrencePlan>),
    /// Adds a run besides the planned ones; `Duplicate` when the tenant has no such schedule, `QueueFull` when too many of
    /// its runs wait.
    Trigger { tenant: Tenant, schedule: ScheduleId, run: Box<NewRun>, at: Millis },
    /// Adds runs for past occurrences, as far as none has one that was not skipped. `Duplicate` when the tenant has no such
    /// schedule, `QueueFull` when too many of its runs would wait.
    Backfill { tenant: Tenant, schedule: ScheduleId, runs: Vec<NewRun>, at: Millis },
    /// Takes a run under a lease. `Conflict` when it must wait, `Fenced` when it is not waiting any more.
    Claim { lease: RunLease, at: Millis },
    /// A claimed run begins, with its execution if that could be started. Without `keeps_lease` the run belongs to its
    /// execution from now on.
    Begin {
        run: ScheduleRunId,
        lease_key: LeaseKey,
        execution: Option<ExecutionId>,
        keeps_lease: bool,
        at: Millis,
    },
    /// A claimed run waits again.
    Release { run: ScheduleRunId, lease_key: LeaseKey, at: Millis },
    /// Renews the leases of a worker on these runs; `Duplicate` if it holds none of them. A lease that is left out
    /// expires.
    Renew { worker_id: String, held: Vec<ScheduleRunId>, at: Millis, expires_at: Millis },
    /// Ends a run: receipts, its retry or dead letter and the end of its lease are one transaction.
    Finish { run: ScheduleRunId, holder: RunHolder, outcome: RunOutcome, result: Box<RunResult>, at: Millis },
    /// Cancels a run that waits. `Conflict` when it is active or has ended, `Duplicate` when the tenant has no such run.
    Cancel { tenant: Tenant, run: ScheduleRunId, reason: String, at: Millis },
    /// Recovers runs whose lease expired, and those of every other worker if this one is the only one alive.
    Expire { at: Millis, only_worker: Option<String> },
    /// Records an attempt to send the notice of a dead letter; `Duplicate` when there is none.
    Notice(NoticeAttempt),
    /// Deletes the runs of occurrences that ended before a time, with their receipts and resolved dead letters. `Duplicate`
    /// when there is none.
    Prune { ended_before: Millis, occurrences_max: usize },
    /// Resolves a dead letter: with a new run, which is added as that of a trigger, it is redriven, without one discarded.
    /// `Duplicate` when the tenant has no such letter, `Conflict` when it was resolved before, `QueueFull` when too many
    /// runs of its schedule wait for another one.
    Resolve { tenant: Tenant, letter: DeadLetterId, redriven: Option<Box<NewRun>>, at: Millis },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    pub id: ScheduleRunId,
    pub tenant: Tenant,
    pub schedule: ScheduleId,
    pub occurrence_key: String,
    pub attempt: u32,
    pub nominal_time: Millis,
    pub due_time: Millis,
    pub status: RunStatus,
    pub claimed_by_worker_id: Option<String>,
    pub claim_expires_at: Option<Millis>,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    pub http_status_code: Option<u16>,
    pub exit_code: Option<i64>,
    pub result_json: Option<String>,
    pub error_text: Option<String>,
    pub retry_available_at: Option<Millis>,
    pub execution: Option<ExecutionId>,
    pub requested_by: Option<String>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDeadLetter {
    pub id: DeadLetterId,
    pub tenant: Tenant,
    pub run: ScheduleRunId,
    pub schedule: ScheduleId,
    pub occurrence_key: String,
    pub reason: String,
    pub payload_json: Option<String>,
    pub created_at: Millis,
    pub resolved_at: Option<Millis>,
    /// `redriven` or `discarded`.
    pub resolution: Option<String>,
}

/// Reads schedules. Lists are newest first and continue before an id.
pub trait Schedules {
    fn schedule(&mut self, tenant: &Tenant, id: ScheduleId) -> StoreResult<Option<StoredSchedule>>;

    fn schedules(&mut self, query: &ScheduleQuery) -> StoreResult<Vec<StoredSchedule>>;

    /// Returns enabled schedules of all tenants with an occurrence until a time: as many of the latest ones as of the
    /// earliest, so that schedules with a long backlog do not delay the others.
    fn due_schedules(&mut self, until: Millis, limit: usize) -> StoreResult<Vec<StoredSchedule>>;

    fn schedule_run(&mut self, tenant: &Tenant, id: ScheduleRunId) -> StoreResult<Option<StoredRun>>;

    fn schedule_runs(&mut self, query: &RunQuery) -> StoreResult<Vec<StoredRun>>;

    /// Returns runs of all tenants that wait and are due: the earliest ones of every schedule, schedule by schedule.
    fn waiting_runs(&mut self, query: WaitingQuery) -> StoreResult<WaitingPage>;

    /// Returns active runs of a schedule.
    fn active_runs(&mut self, schedule: ScheduleId, limit: usize) -> StoreResult<Vec<StoredRun>>;

    /// Returns running runs of all tenants that end with their execution, in the order of their ids.
    fn runs_of_executions(
        &mut self,
        after: Option<ScheduleRunId>,
        limit: usize,
    ) -> StoreResult<Vec<StoredRun>>;

    /// Returns the times at which work is due next. Of waiting runs, those due after a time count.
    fn next_attention(&mut self, after: Millis) -> StoreResult<Attention>;

    /// Returns runs of a schedule by the nominal time of their occurrence, the earliest first.
    fn nominal_runs(
        &mut self,
        schedule: ScheduleId,
        window: (Millis, Millis),
        limit: usize,
    ) -> StoreResult<Vec<StoredRun>>;

    /// Returns all attempts at the newest occurrences of a schedule, the newest occurrence first, the first attempt first.
    fn chains(&mut self, query: &ChainQuery) -> StoreResult<Vec<StoredRun>>;

    /// Returns notices of all tenants that are due until a time, the earliest first.
    fn due_notices(&mut self, until: Millis, limit: usize) -> StoreResult<Vec<DeadLetterNotice>>;

    fn count_schedules(&mut self, tenant: &Tenant) -> StoreResult<usize>;

    fn schedule_load(&mut self, now: Millis) -> StoreResult<ScheduleLoad>;

    fn receipts(&mut self, run: ScheduleRunId) -> StoreResult<Vec<(Receipt, Millis)>>;

    fn dead_letter(&mut self, tenant: &Tenant, id: DeadLetterId) -> StoreResult<Option<StoredDeadLetter>>;

    fn dead_letters(&mut self, query: &DeadLetterQuery) -> StoreResult<Vec<StoredDeadLetter>>;
}

/// Times at which work is due next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attention {
    pub occurrence: Option<Millis>,
    pub run: Option<Millis>,
    pub lease_expiry: Option<Millis>,
    pub notice: Option<Millis>,
}

/// Counts over all tenants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScheduleLoad {
    pub schedules: u64,
    pub enabled: u64,
    /// Runs that wait although they are due.
    pub due: u64,
    /// Runs that wait for their time: retries and occurrences with jitter.
    pub waiting: u64,
    pub active: u64,
    /// Dead letters that are not resolved.
    pub dead_letters: u64,
}

/// A request about a dead letter that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterNotice {
    pub letter: StoredDeadLetter,
    pub url: String,
    /// Attempts so far.
    pub attempts: u32,
}

/// The result of an attempt to send a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeAttempt {
    pub letter: DeadLetterId,
    pub attempts: u32,
    /// Time of the next attempt; None if it was delivered or is given up.
    pub due: Option<Millis>,
    pub error_text: Option<String>,
}

/// Runs that wait, of some schedules in the order of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingQuery {
    pub after: ScheduleId,
    /// The runs are due until this time.
    pub until: Millis,
    pub schedules: usize,
    /// Runs of one schedule.
    pub each: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingPage {
    pub runs: Vec<StoredRun>,
    /// The last schedule of the page; None if no schedule is after the given one.
    pub last: Option<ScheduleId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleQuery {
    pub tenant: Tenant,
    pub enabled: Option<bool>,
    pub name: Option<String>,
    pub before: Option<ScheduleId>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuery {
    pub tenant: Tenant,
    pub schedule: Option<ScheduleId>,
    pub status: Option<RunStatus>,
    pub before: Option<ScheduleRunId>,
    pub limit: usize,
}

/// Occurrences of a schedule, each with all of its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainQuery {
    pub schedule: ScheduleId,
    /// Nominal time and key of the occurrence before which the list begins; `None` for the newest ones.
    pub before: Option<(Millis, String)>,
    /// Maximum number of occurrences.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterQuery {
    pub tenant: Tenant,
    pub schedule: Option<ScheduleId>,
    pub before: Option<DeadLetterId>,
    pub limit: usize,
}
