//! The simulated world of schedules: servers over one store, and their faults.

use super::judge::{Broken, Ledger, check_schedule};
use super::population::{Member, begin, end_of, just_before, key_of, member};
use crate::rng::Rng;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use windlass_kernel::{ExecutionId, Millis};
use windlass_schedule::{PlanRules, occurrence_key, plan_page, spread_due_time};
use windlass_store::sqlite::{Sqlite, SqliteReader};
use windlass_store::{
    Applied, DeadLetterQuery, Entry, LeaseKey, NewRun, OccurrencePlan, RunHolder, RunLease, RunOutcome,
    RunResult, ScheduleId, ScheduleRunId, ScheduleWrite, Schedules as _, Store as _, StoreError, StoredRun,
    Tenant, WaitingQuery, Write,
};

/// Time after which a lease is lost. Steps of the simulation are shorter, so that a server that lives keeps its leases.
const LEASE_MS: u64 = 90 * 60 * 1_000;
const STEP_MAX_S: u64 = 40 * 60;
const GRACE: SignedDuration = SignedDuration::from_mins(50);
const SERVERS: usize = 3;
/// Steps between two comparisons of all ended runs with what they were.
const AUDIT_EVERY: u64 = 250;
/// Steps after the end of the time until everything must have ended.
const DRAIN_MAX: u64 = 20_000;

/// Extent of the simulation.
#[derive(Debug, Clone, Copy)]
pub struct ScheduleExtent {
    pub seed: u64,
    pub schedules: usize,
    pub days: u32,
}

/// Counts of what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScheduleCounts {
    pub steps: u64,
    pub occurrences: u64,
    pub runs: u64,
    pub skipped: u64,
    pub dead_letters: u64,
    pub crashes: u64,
    pub freezes: u64,
    pub clock_jumps: u64,
    /// Writes of a server that had lost its lease, all of them refused.
    pub fenced: u64,
}

/// Simulates and judges. The store is a folder that is deleted at the end.
pub fn simulate(extent: ScheduleExtent) -> Result<ScheduleCounts, Broken> {
    let failed = |error: &dyn std::fmt::Display| Broken { rule: "the store works", what: error.to_string() };
    // What is on disk is not in question here, and memory is faster.
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let folder = folder.map_err(|error| failed(&error))?;
    let path = folder.path().join("store.db");
    let mut world = World::open(&path, extent).map_err(|error| failed(&error))?;
    let outcome = world.run().map_err(|error| failed(&error))?;
    outcome?;
    Ok(world.counts)
}

/// A process that was killed: nothing of what it was about to do happens.
struct Killed;

/// A run that a server works on.
#[derive(Debug, Clone)]
struct Job {
    run: ScheduleRunId,
    lease: LeaseKey,
    /// Set once the run has begun.
    ends_at: Option<Millis>,
    outcome: RunOutcome,
    /// A run of a workflow ends with its execution, without a lease.
    keeps_lease: bool,
}

#[derive(Debug, Clone)]
struct Server {
    worker_id: String,
    /// Time until which it does nothing: it is dead, or frozen with its jobs in memory.
    away_until: Millis,
    jobs: Vec<Job>,
}

struct World<'p> {
    path: &'p Path,
    /// None while it is being opened again.
    store: Option<Sqlite>,
    reader: SqliteReader,
    extent: ScheduleExtent,
    rng: Rng,
    members: BTreeMap<ScheduleId, Member>,
    servers: Vec<Server>,
    /// Executions of workflows: they go on without any server.
    executions: BTreeMap<ScheduleRunId, Job>,
    now: Millis,
    /// Writes until the server that writes is killed; None: it lives.
    doom: Option<u64>,
    next_number: u64,
    ledger: Ledger,
    counts: ScheduleCounts,
}

type StoreResult<T> = Result<T, StoreError>;

impl<'p> World<'p> {
    fn open(path: &'p Path, extent: ScheduleExtent) -> StoreResult<World<'p>> {
        let store = Sqlite::open(path)?;
        let (reader, mut rng) = (store.reader()?, Rng::new(extent.seed));
        let members: Vec<Member> =
            (0..extent.schedules).map(|number| member(number, extent.days, &mut rng)).collect();
        let mut world = World {
            path,
            store: Some(store),
            reader,
            extent,
            rng,
            members: members.iter().map(|member| (member.id, member.clone())).collect(),
            servers: Vec::new(),
            executions: BTreeMap::new(),
            now: Millis(begin().as_millisecond()),
            doom: None,
            next_number: 1 << 32,
            ledger: Ledger::default(),
            counts: ScheduleCounts::default(),
        };
        world.servers = (0..SERVERS).map(|_| world.new_server(Millis(0))).collect();
        let create = members.iter().map(|member| ScheduleWrite::Create(Box::new(member.stored.clone())));
        let creations: Vec<ScheduleWrite> = create.collect();
        let _ = world.write(creations)?;
        Ok(world)
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn new_server(&mut self, away_until: Millis) -> Server {
        Server { worker_id: format!("wrk_{}", self.number()), away_until, jobs: Vec::new() }
    }

    /// Writes as one transaction. A server that is killed here may have written or not; it never learns which.
    fn write(&mut self, writes: Vec<ScheduleWrite>) -> StoreResult<Result<Vec<Applied>, Killed>> {
        if writes.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let is_killed = self.doom == Some(0);
        self.doom = self.doom.map(|left| left.saturating_sub(1));
        if is_killed && self.rng.percent(50) {
            return Ok(Err(Killed));
        }
        let entries: Vec<Write> = writes
            .into_iter()
            .map(|write| Write::Entry(Box::new(Entry::Schedule(Box::new(write)))))
            .collect();
        let Some(store) = &mut self.store else {
            return Err(StoreError::Corrupt("the store is closed".to_owned()));
        };
        let applied = store.write(&entries)?;
        Ok(if is_killed { Err(Killed) } else { Ok(applied) })
    }

    fn run(&mut self) -> StoreResult<Result<(), Broken>> {
        let end = end_of(self.extent.days);
        let mut drained = 0;
        loop {
            self.counts.steps += 1;
            let is_over = instant(self.now) > end;
            if is_over {
                drained += 1;
                if self.is_idle()? {
                    break;
                }
                if drained > DRAIN_MAX {
                    let what = format!("not within {DRAIN_MAX} steps");
                    return Ok(Err(Broken { rule: "everything ends", what }));
                }
            }
            self.pass_time(is_over)?;
            self.end_executions()?;
            for index in 0..self.servers.len() {
                if self.servers[index].away_until <= self.now && self.serve(index)?.is_err() {
                    self.bury(index);
                }
            }
            if self.counts.steps.is_multiple_of(AUDIT_EVERY)
                && let Err(broken) = self.audit()?
            {
                return Ok(Err(broken));
            }
        }
        self.judge()
    }

    /// Lets time pass, with a jump of the clock now and then, and decides who dies or freezes.
    fn pass_time(&mut self, is_over: bool) -> StoreResult<()> {
        self.now = self.now.plus(self.rng.between(1, STEP_MAX_S) * 1_000);
        if is_over {
            return Ok(());
        }
        if self.rng.below(160) == 0 {
            self.counts.clock_jumps += 1;
            let minutes = i64::try_from(self.rng.between(1, 600)).unwrap_or(1);
            // Back at most two hours: leases and times of runs are later than the clock then.
            let jump = if self.rng.percent(50) { minutes } else { -minutes.min(120) };
            self.now = Millis(self.now.0 + jump * 60_000);
        }
        for index in 0..self.servers.len() {
            if self.rng.below(50) == 0 {
                self.counts.freezes += 1;
                let pause = self.rng.between(5, 240) * 60_000;
                self.servers[index].away_until = self.now.plus(pause);
            }
        }
        if self.rng.below(200) == 0 {
            // The whole installation is away for hours, and the store is opened again.
            let back = self.now.plus(self.rng.between(1, 30) * 3_600_000);
            self.counts.crashes += 1;
            for index in 0..self.servers.len() {
                self.servers[index] = self.new_server(back);
            }
            self.reopen()?;
        }
        Ok(())
    }

    fn reopen(&mut self) -> StoreResult<()> {
        self.store = None;
        let store = Sqlite::open(self.path)?;
        self.reader = store.reader()?;
        self.store = Some(store);
        Ok(())
    }

    /// Another process takes the place of one that was killed. Its jobs are gone with it.
    fn bury(&mut self, index: usize) {
        self.counts.crashes += 1;
        let back = self.now.plus(self.rng.between(0, 180) * 60_000);
        self.servers[index] = self.new_server(back);
    }

    /// Runs one pass of a server, in the order of the real scheduler.
    fn serve(&mut self, index: usize) -> StoreResult<Result<(), Killed>> {
        self.doom = (self.rng.below(25) == 0).then(|| self.rng.below(6));
        let done = self.look(index);
        self.doom = None;
        done
    }

    fn look(&mut self, index: usize) -> StoreResult<Result<(), Killed>> {
        for step in
            [World::finish_jobs, World::renew, World::expire, World::plan, World::claim, World::begin_jobs]
        {
            if step(self, index)?.is_err() {
                return Ok(Err(Killed));
            }
        }
        Ok(Ok(()))
    }

    fn renew(&mut self, index: usize) -> StoreResult<Result<(), Killed>> {
        let Server { worker_id, jobs, .. } = self.servers[index].clone();
        let held: Vec<ScheduleRunId> = jobs.iter().map(|job| job.run).collect();
        let (at, expires_at) = (self.now, self.now.plus(LEASE_MS));
        let renew = ScheduleWrite::Renew { worker_id, held, at, expires_at };
        Ok(self.write(if jobs.is_empty() { Vec::new() } else { vec![renew] })?.map(drop))
    }

    fn expire(&mut self, _: usize) -> StoreResult<Result<(), Killed>> {
        let expiry = self.reader.next_attention(self.now)?.lease_expiry;
        let is_due = expiry.is_some_and(|expiry| expiry <= self.now);
        let expire = ScheduleWrite::Expire { at: self.now, only_worker: None };
        Ok(self.write(if is_due { vec![expire] } else { Vec::new() })?.map(drop))
    }

    fn plan(&mut self, _: usize) -> StoreResult<Result<(), Killed>> {
        loop {
            let due = self.reader.due_schedules(self.now, 500)?;
            let mut plans = Vec::new();
            for schedule in due {
                let Some(member) = self.members.get(&schedule.id) else { continue };
                let first = schedule.next_run_at.unwrap_or(self.now);
                let rules =
                    PlanRules { misfire: schedule.policy.misfire, grace: GRACE, occurrences_max: 100 };
                let page = plan_page(&member.timetable, instant(first), instant(self.now), rules);
                let mut runs = Vec::new();
                for planned in page.planned {
                    let occurrence_key = occurrence_key(&key_of(schedule.id), planned.nominal);
                    let due =
                        spread_due_time(&occurrence_key, planned.nominal, schedule.policy.jitter_seconds);
                    self.next_number += 1;
                    runs.push(NewRun {
                        id: ScheduleRunId(self.next_number.into()),
                        occurrence_key,
                        nominal_time: Millis(planned.nominal.as_millisecond()),
                        due_time: Millis(due.as_millisecond()),
                        skipped: planned.skipped.map(|reason| reason.text().to_owned()),
                        note: None,
                        requested_by: None,
                    });
                }
                let next_run_at = page.next.map(|next| Millis(next.as_millisecond()));
                plans.push(ScheduleWrite::Plan(Box::new(OccurrencePlan {
                    schedule: schedule.id,
                    revision: schedule.revision,
                    planned_from: first,
                    runs,
                    next_run_at,
                    at: self.now,
                })));
            }
            if plans.is_empty() {
                return Ok(Ok(()));
            }
            if self.write(plans)?.is_err() {
                return Ok(Err(Killed));
            }
        }
    }

    fn claim(&mut self, index: usize) -> StoreResult<Result<(), Killed>> {
        let mut after = ScheduleId(0);
        loop {
            let query = WaitingQuery { after, until: self.now, schedules: 256, each: 4 };
            let page = self.reader.waiting_runs(query)?;
            let claims: Vec<RunLease> = page
                .runs
                .iter()
                .map(|run| RunLease {
                    run: run.id,
                    worker_id: self.servers[index].worker_id.clone(),
                    lease_key: LeaseKey(self.number()),
                    expires_at: self.now.plus(LEASE_MS),
                })
                .collect();
            let at = self.now;
            let writes = claims.iter().map(|lease| ScheduleWrite::Claim { lease: lease.clone(), at });
            let Ok(applied) = self.write(writes.collect())? else { return Ok(Err(Killed)) };
            for (lease, applied) in claims.iter().zip(applied) {
                if applied == Applied::Done {
                    let outcome = match self.rng.below(10) {
                        0..=5 => RunOutcome::Succeeded,
                        6 => RunOutcome::Cancelled,
                        _ => RunOutcome::Failed,
                    };
                    let (run, lease, keeps_lease) = (lease.run, lease.lease_key, self.rng.percent(70));
                    self.servers[index].jobs.push(Job { run, lease, ends_at: None, outcome, keeps_lease });
                }
            }
            match page.last {
                Some(last) => after = last,
                None => return Ok(Ok(())),
            }
        }
    }

    /// Claimed runs begin; those of workflows have no lease from then on.
    fn begin_jobs(&mut self, index: usize) -> StoreResult<Result<(), Killed>> {
        let claimed: Vec<Job> =
            self.servers[index].jobs.iter().filter(|job| job.ends_at.is_none()).cloned().collect();
        let at = self.now;
        let begin = |job: &Job| ScheduleWrite::Begin {
            run: job.run,
            lease_key: job.lease,
            execution: Some(ExecutionId(job.run.0)),
            keeps_lease: job.keeps_lease,
            at,
        };
        let applied = self.write(claimed.iter().map(begin).collect())?;
        let is_known = applied.is_ok();
        let applied = applied.unwrap_or_else(|Killed| vec![Applied::Done; claimed.len()]);
        for (job, applied) in claimed.into_iter().zip(applied) {
            let minutes =
                if self.rng.percent(5) { self.rng.between(60, 600) } else { self.rng.between(0, 30) };
            let job = Job { ends_at: Some(at.plus(minutes * 60_000)), ..job };
            self.servers[index].jobs.retain(|other| other.run != job.run);
            match (applied, job.keeps_lease) {
                // An execution that was started is there, whether its server learnt of it or not.
                (Applied::Done, false) => {
                    self.executions.insert(job.run, job);
                }
                (Applied::Done, true) => self.servers[index].jobs.push(job),
                _ => self.counts.fenced += 1,
            }
        }
        Ok(if is_known { Ok(()) } else { Err(Killed) })
    }

    fn finish_jobs(&mut self, index: usize) -> StoreResult<Result<(), Killed>> {
        let now = self.now;
        let is_over = |job: &Job| job.ends_at.is_some_and(|end| end <= now);
        let ended: Vec<Job> = self.servers[index].jobs.iter().filter(|job| is_over(job)).cloned().collect();
        let finish = |job: &Job| finish(job, RunHolder::Lease(job.lease), now);
        let Ok(applied) = self.write(ended.iter().map(finish).collect())? else { return Ok(Err(Killed)) };
        self.servers[index].jobs.retain(|job| !is_over(job));
        self.counts.fenced += applied.iter().filter(|applied| **applied == Applied::Fenced).count() as u64;
        Ok(Ok(()))
    }

    /// Executions end by themselves, and every live server ends their runs. A second end changes nothing.
    fn end_executions(&mut self) -> StoreResult<()> {
        let now = self.now;
        if !self.servers.iter().any(|server| server.away_until <= now) {
            return Ok(());
        }
        let over = |job: &&Job| job.ends_at.is_some_and(|end| end <= now);
        let ended: Vec<Job> = self.executions.values().filter(over).cloned().collect();
        let of_execution = |job: &Job| finish(job, RunHolder::Execution(ExecutionId(job.run.0)), now);
        let writes: Vec<ScheduleWrite> = ended.iter().chain(&ended).map(of_execution).collect();
        let _ = self.write(writes)?;
        self.executions.retain(|run, _| !ended.iter().any(|job| job.run == *run));
        Ok(())
    }

    fn is_idle(&mut self) -> StoreResult<bool> {
        let load = self.reader.schedule_load(self.now)?;
        let is_planned = self.reader.next_attention(self.now)?.occurrence.is_none();
        Ok(is_planned && load.due + load.waiting + load.active == 0)
    }

    fn all_runs(&mut self, schedule: ScheduleId) -> StoreResult<Vec<StoredRun>> {
        self.reader.nominal_runs(schedule, (Millis(i64::MIN), Millis(i64::MAX)), usize::MAX)
    }

    fn audit(&mut self) -> StoreResult<Result<(), Broken>> {
        for id in self.members.keys().copied().collect::<Vec<_>>() {
            let runs = self.all_runs(id)?;
            if let Err(broken) = self.ledger.check(&runs) {
                return Ok(Err(broken));
            }
        }
        Ok(Ok(()))
    }

    fn judge(&mut self) -> StoreResult<Result<(), Broken>> {
        if let Err(broken) = self.audit()? {
            return Ok(Err(broken));
        }
        if let Some(lease) = self.reader.next_attention(self.now)?.lease_expiry {
            return Ok(Err(Broken { rule: "no lease is left", what: format!("one until {}", lease.0) }));
        }
        let letters = self.letters()?;
        self.counts.dead_letters = letters.len() as u64;
        for member in self.members.values().cloned().collect::<Vec<_>>() {
            let runs = self.all_runs(member.id)?;
            let times = member.timetable.occurrences(just_before(begin()));
            let expected: BTreeSet<Millis> = times.map(|nominal| Millis(nominal.as_millisecond())).collect();
            self.counts.occurrences += expected.len() as u64;
            self.counts.runs += runs.len() as u64;
            let is_skipped = |run: &&StoredRun| run.status == windlass_schedule::RunStatus::Skipped;
            self.counts.skipped += runs.iter().filter(is_skipped).count() as u64;
            if let Err(broken) = check_schedule(&key_of(member.id), &runs, &expected, &letters) {
                return Ok(Err(broken));
            }
        }
        Ok(Ok(()))
    }

    fn letters(&mut self) -> StoreResult<BTreeSet<ScheduleRunId>> {
        let tenant = Tenant::default();
        let query = DeadLetterQuery { tenant, schedule: None, before: None, limit: usize::MAX };
        Ok(self.reader.dead_letters(&query)?.into_iter().map(|letter| letter.run).collect())
    }
}

fn finish(job: &Job, holder: RunHolder, at: Millis) -> ScheduleWrite {
    let is_failure = job.outcome != RunOutcome::Succeeded;
    let error_text = is_failure.then(|| "it failed by chance".to_owned());
    let result = Box::new(RunResult { error_text, ..RunResult::default() });
    ScheduleWrite::Finish { run: job.run, holder, outcome: job.outcome, result, at }
}

fn instant(at: Millis) -> Timestamp {
    Timestamp::from_millisecond(at.0).unwrap_or(Timestamp::MAX)
}
