//! Starts the work of schedules. Its state is in the store: due occurrences become runs, runs are claimed under a lease
//! and become executions, and the end of an execution is the end of its run.
//!
//! | module | content |
//! |---|---|
//! | [`stored`] | the JSON column of a schedule |
//! | [`target`] | the definition that an http or shell target becomes |
//! | [`triggers`] | schedules of the triggers of a workflow |
//! | [`plan`] | due occurrences become runs |
//! | [`dispatch`] | claims of due runs |
//! | [`held`] | the runs that this process holds, and how many it may hold |
//! | [`work`] | one claimed run from its start to its end |
//! | [`outcome`] | the result of a run, read from its execution |
//! | [`notices`] | requests about dead letters |

mod dispatch;
mod held;
mod notices;
mod outcome;
pub(crate) mod plan;
pub(crate) mod stored;
pub(crate) mod target;
pub(crate) mod triggers;
mod work;

use crate::app::App;
use crate::host::now;
use crate::ids;
use crate::problem::Problem;
use held::HeldRuns;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_kernel::Millis;
use windlass_store::{Applied, Entry, ScheduleId, ScheduleWrite, Schedules as _};
use work::Work;
pub(crate) use work::cancel_execution;

/// Runs that are read at a time.
const PAGE: usize = 256;
/// Maximum time between two passes: the clock may be set forward.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const LOOK_SOON: Duration = Duration::from_millis(500);
/// Minimum time between two passes, against a loop without a pause.
const LOOK_MIN: Duration = Duration::from_millis(5);
/// Pause after an error of the server.
const TROUBLE: Duration = Duration::from_secs(1);

/// Starts the work of schedules until the server stops.
pub(crate) async fn run(app: Arc<App>) {
    let number = match ids::fresh_number() {
        Ok(number) => number,
        Err(problem) => return tracing::error!(%problem, "schedules start no work"),
    };
    let (worker_id, held) = (format!("wrk_{number:032x}"), Arc::<HeldRuns>::default());
    let renewal = tokio::spawn(renew_leases(app.clone(), worker_id.clone(), held.clone()));
    let notices = tokio::spawn(notices::run(app.clone()));
    Scheduler { app, worker_id, held, jobs: JoinSet::new(), turn: ScheduleId(0) }.run().await;
    renewal.abort();
    let _ = notices.await;
}

/// Writes one change of schedules.
pub(crate) async fn store(app: &App, write: ScheduleWrite) -> Result<Applied, Problem> {
    let applied = app.store_entries(vec![Entry::Schedule(Box::new(write))]).await?;
    applied.first().copied().ok_or_else(|| Problem::internal("a write was not answered"))
}

/// Renews the leases of held runs at half of their time. This is a separate task, because a pass may take longer.
async fn renew_leases(app: Arc<App>, worker_id: String, held: Arc<HeldRuns>) {
    let every = app.settings.lease_ttl / 2;
    loop {
        tokio::time::sleep(every).await;
        let (held, worker_id, at) = (held.runs(), worker_id.clone(), now());
        if held.is_empty() {
            continue;
        }
        let renew = ScheduleWrite::Renew { worker_id, held, at, expires_at: lease_expiry(&app, at) };
        if let Err(problem) = store(&app, renew).await {
            tracing::warn!(%problem, "cannot renew the leases of runs");
        }
    }
}

fn lease_expiry(app: &App, at: Millis) -> Millis {
    at.plus(u64::try_from(app.settings.lease_ttl.as_millis()).unwrap_or(u64::MAX))
}

struct Scheduler {
    app: Arc<App>,
    worker_id: String,
    held: Arc<HeldRuns>,
    /// Runs that this process has claimed, or whose executions it waits for.
    jobs: JoinSet<()>,
    /// The schedule after which the next pass begins, so that every schedule is first at some time.
    turn: ScheduleId,
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
                Some(_) = self.jobs.join_next() => while self.jobs.try_join_next().is_some() {},
                () = tokio::time::sleep(pause.max(LOOK_MIN)) => {}
                () = app.stopped() => break,
            }
        }
        while self.jobs.join_next().await.is_some() {}
    }

    /// Takes over the runs of an earlier process. That process has ended, because this one holds the folder, so its
    /// leases are over.
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
        plan::plan_due(&self.app).await?;
        let dispatched = self.dispatch().await?;
        let at = now();
        let next = self.app.followers.look(move |reader| reader.next_attention(at)).await?;
        if next.lease_expiry.is_some_and(|expiry| expiry <= at) {
            store(&self.app, ScheduleWrite::Expire { at, only_worker: None }).await?;
            return Ok(LOOK_MIN);
        }
        let times = [next.occurrence, next.run, next.lease_expiry].into_iter().flatten();
        let pause = times.min().map_or(LOOK_EVERY, |next| Duration::from_millis(next.since(at)));
        Ok(if dispatched.needs_another_look { pause.min(LOOK_SOON) } else { pause.min(LOOK_EVERY) })
    }
}
