//! Starts the work of schedules. Its state is in the store: due occurrences become runs, runs are claimed under a lease and
//! become executions, and the end of an execution is the end of its run.
//!
//! | module | content |
//! |---|---|
//! | [`stored`] | the JSON column of a schedule |
//! | [`target`] | the definition that an http or shell target becomes |
//! | [`plan`] | due occurrences become runs |
//! | [`work`] | one claimed run from its start to its end |
//! | [`outcome`] | the result of a run, read from its execution |

mod outcome;
mod plan;
pub(crate) mod stored;
pub(crate) mod target;
mod work;

use crate::app::App;
use crate::host::{now, seed};
use crate::ids;
use crate::problem::Problem;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass_kernel::Millis;
use windlass_schedule::Overlap;
use windlass_store::{
    Applied, Entry, LeaseKey, RunLease, ScheduleId, ScheduleWrite, Schedules as _, StoredRun,
};
use work::Work;
pub(crate) use work::cancel_execution;

/// Time after which the runs of a worker that does not renew its leases are recovered.
const LEASE_TTL: Duration = Duration::from_secs(30);
const RENEW_EVERY: Duration = LEASE_TTL.checked_div(2).expect("half of it");
/// Runs that are claimed in one transaction.
const PAGE: usize = 256;
/// Claimed and running runs of this process; others wait.
const JOBS_MAX: usize = 4_000;
/// Maximum time between two looks: the clock may be set forward.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const LOOK_SOON: Duration = Duration::from_millis(500);
/// Minimum time between two looks, against a loop without a pause.
const LOOK_MIN: Duration = Duration::from_millis(5);
/// Pause after an error of the server.
const TROUBLE: Duration = Duration::from_secs(1);
/// Active runs of one schedule that a newer one cancels at a time.
const REPLACED_MAX: usize = 1_000;

/// Starts the work of schedules until the server stops.
pub(crate) async fn run(app: Arc<App>) {
    let number = match ids::fresh_number() {
        Ok(number) => number,
        Err(problem) => return tracing::error!(%problem, "schedules start no work"),
    };
    let worker_id = format!("wrk_{number:032x}");
    Scheduler { app, worker_id, jobs: JoinSet::new(), renewed: Instant::now() }.run().await;
}

/// Writes one change of schedules.
pub(crate) async fn store(app: &App, write: ScheduleWrite) -> Result<Applied, Problem> {
    let applied = app.store_entries(vec![Entry::Schedule(Box::new(write))]).await?;
    applied.first().copied().ok_or_else(|| Problem::internal("a write was not answered"))
}

struct Scheduler {
    app: Arc<App>,
    worker_id: String,
    /// Runs that this process has claimed, or whose executions it waits for.
    jobs: JoinSet<()>,
    renewed: Instant,
}

impl Scheduler {
    async fn run(mut self) {
        let app = self.app.clone();
        let mut is_recovered = false;
        loop {
            let looked = match is_recovered {
                true => self.look().await,
                false => self.recover().await.map(|()| Duration::ZERO),
            };
            is_recovered |= looked.is_ok();
            let pause = looked.unwrap_or_else(|problem| {
                tracing::warn!(%problem, "cannot work on schedules; retrying");
                TROUBLE
            });
            tokio::select! {
                () = app.schedule_bell.notified() => {}
                Some(_) = self.jobs.join_next() => {}
                () = tokio::time::sleep(pause.max(LOOK_MIN)) => {}
                () = app.stopped() => break,
            }
        }
        while self.jobs.join_next().await.is_some() {}
    }

    /// Takes up what an earlier process left. That process is dead, because this one holds the folder: its leases are over.
    async fn recover(&mut self) -> Result<(), Problem> {
        let only_worker = Some(self.worker_id.clone());
        while store(&self.app, ScheduleWrite::Expire { at: now(), only_worker: only_worker.clone() }).await?
            == Applied::Done
        {}
        let mut after = None;
        loop {
            let page = self.app.followers.look(move |reader| reader.runs_of_executions(after, PAGE)).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id);
            for run in page {
                self.jobs.spawn(Work::of_execution(self.app.clone(), run).follow());
            }
        }
    }

    /// Does everything that is due. Returns the time until something is due again.
    async fn look(&mut self) -> Result<Duration, Problem> {
        self.renew().await?;
        plan::plan_due(&self.app).await?;
        let is_blocked_by_end = self.dispatch().await?;
        let at = now();
        let next = self.app.followers.look(move |reader| reader.next_attention(at)).await?;
        if next.lease_expiry.is_some_and(|expiry| expiry <= at) {
            store(&self.app, ScheduleWrite::Expire { at, only_worker: None }).await?;
            return Ok(LOOK_MIN);
        }
        let times = [next.occurrence, next.run, next.lease_expiry].into_iter().flatten();
        let pause = times.min().map_or(LOOK_EVERY, |next| Duration::from_millis(next.since(at)));
        let until_renewal = RENEW_EVERY.saturating_sub(self.renewed.elapsed());
        let pause = if self.jobs.is_empty() { pause } else { pause.min(until_renewal) };
        Ok(if is_blocked_by_end { pause.min(LOOK_SOON) } else { pause.min(LOOK_EVERY) })
    }

    async fn renew(&mut self) -> Result<(), Problem> {
        if self.jobs.is_empty() || self.renewed.elapsed() < RENEW_EVERY {
            return Ok(());
        }
        let (at, worker_id) = (now(), self.worker_id.clone());
        store(&self.app, ScheduleWrite::Renew { worker_id, at, expires_at: expiry(at) }).await?;
        self.renewed = Instant::now();
        Ok(())
    }

    /// Claims runs that are due. Returns whether one waits for something that no run of this process will report.
    async fn dispatch(&mut self) -> Result<bool, Problem> {
        let (mut after, mut blocked) = (None, BTreeSet::new());
        loop {
            let until = now();
            let page = self.app.followers.look(move |reader| reader.waiting_runs(after, until, PAGE)).await?;
            let room = JOBS_MAX.saturating_sub(self.jobs.len());
            let Some(last) = page.last().filter(|_| room > 0) else { break };
            after = Some((last.due_time, last.id));
            let wanted = page.into_iter().filter(|run| !blocked.contains(&run.schedule));
            let refused = self.claim(wanted.take(room).collect()).await?;
            blocked.extend(refused);
        }
        let mut is_blocked_by_end = false;
        for schedule in blocked {
            is_blocked_by_end |= self.unblock(schedule).await?;
        }
        Ok(is_blocked_by_end)
    }

    /// Claims runs in one transaction and begins with them. Returns the schedules whose runs must wait.
    async fn claim(&mut self, runs: Vec<StoredRun>) -> Result<Vec<ScheduleId>, Problem> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let at = now();
        let claims: Vec<(StoredRun, RunLease)> = runs
            .into_iter()
            .map(|run| {
                let (id, worker_id, lease_key) = (run.id, self.worker_id.clone(), LeaseKey(seed()));
                (run, RunLease { run: id, worker_id, lease_key, expires_at: expiry(at) })
            })
            .collect();
        let writes = claims.iter().map(|(_, lease)| ScheduleWrite::Claim { lease: lease.clone(), at });
        let entries = writes.map(|write| Entry::Schedule(Box::new(write))).collect();
        let applied = self.app.store_entries(entries).await?;
        let mut refused = Vec::new();
        for ((run, lease), applied) in claims.into_iter().zip(applied) {
            match applied {
                Applied::Done => {
                    self.jobs.spawn(Work::claimed(self.app.clone(), run, lease.lease_key).begin());
                }
                Applied::Conflict => refused.push(run.schedule),
                // Cancelled or superseded meanwhile.
                _ => {}
            }
        }
        Ok(refused)
    }

    /// Cancels active runs that a waiting one replaces. Returns whether none is active: then the execution of an earlier
    /// attempt has not ended, which no run reports.
    async fn unblock(&mut self, schedule: ScheduleId) -> Result<bool, Problem> {
        let active =
            self.app.followers.look(move |reader| reader.active_runs(schedule, REPLACED_MAX)).await?;
        let Some(first) = active.first() else { return Ok(true) };
        let tenant = first.tenant.clone();
        let found = self.app.followers.look(move |reader| reader.schedule(&tenant, schedule)).await?;
        if found.is_some_and(|schedule| schedule.policy.overlap == Overlap::Replace) {
            for run in &active {
                cancel_execution(&self.app, run, "replaced by a newer occurrence", None).await;
            }
        }
        Ok(false)
    }
}

fn expiry(at: Millis) -> Millis {
    at.plus(u64::try_from(LEASE_TTL.as_millis()).unwrap_or(u64::MAX))
}
