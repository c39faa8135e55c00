//! Claims due runs, a few of each schedule at a time, so that the queue of one schedule does not delay others.

use super::held::HeldRun;
use super::work::{Work, cancel_execution};
use super::{Scheduler, lease_expiry};
use crate::host::{now, seed};
use crate::problem::Problem;
use std::collections::BTreeSet;
use windlass_kernel::any_of;
use windlass_schedule::Overlap;
use windlass_store::{
    Applied, Entry, LeaseKey, RunLease, ScheduleId, ScheduleWrite, Schedules as _, StoredRun, WaitingQuery,
};

/// Number of schedules whose runs are claimed in one transaction.
const SCHEDULES_MAX: usize = 256;
/// Maximum number of runs of one schedule in it.
const EACH_MAX: usize = 4;
/// Maximum rounds of one pass over all schedules; the remaining runs are claimed by the next pass.
const TURNS_MAX: usize = 50;
/// Maximum number of active runs of one schedule that a newer one cancels at a time.
const REPLACED_MAX: usize = 1_000;

/// Result of one pass.
pub(super) struct Dispatched {
    /// A run waits for a change that no run of this process will report.
    pub needs_another_look: bool,
}

impl Scheduler {
    /// Claims due runs, until none is left that may begin.
    pub(super) async fn dispatch(&mut self) -> Result<Dispatched, Problem> {
        let mut blocked = BTreeSet::new();
        for turn in 0.. {
            let claimed = self.claim_turn(&mut blocked).await?;
            if claimed == 0 || turn == TURNS_MAX {
                break;
            }
        }
        Ok(Dispatched { needs_another_look: self.unblock(blocked).await? })
    }

    /// Visits every schedule with due runs once, beginning after the one that was served last. Returns how many runs were
    /// claimed.
    async fn claim_turn(&mut self, blocked: &mut BTreeSet<ScheduleId>) -> Result<usize, Problem> {
        let (began, mut after, mut claimed, mut has_wrapped) = (self.turn, self.turn, 0, false);
        loop {
            let query = WaitingQuery { after, until: now(), schedules: SCHEDULES_MAX, each: EACH_MAX };
            let page = self.app.followers.look(move |reader| reader.waiting_runs(query)).await?;
            let runs = page.runs.into_iter().filter(|run| !blocked.contains(&run.schedule));
            let runs: Vec<StoredRun> = runs.filter(|run| !has_wrapped || run.schedule <= began).collect();
            claimed += self.claim(runs, blocked).await?;
            match page.last {
                Some(last) if has_wrapped && last > began => return Ok(claimed),
                Some(last) => after = last,
                None if has_wrapped || began == ScheduleId(0) => return Ok(claimed),
                None => (after, has_wrapped) = (ScheduleId(0), true),
            }
        }
    }

    /// Claims runs in one transaction and begins with them. Schedules whose runs must wait are added to the blocked ones.
    async fn claim(
        &mut self,
        runs: Vec<StoredRun>,
        blocked: &mut BTreeSet<ScheduleId>,
    ) -> Result<usize, Problem> {
        let at = now();
        let mut claims: Vec<(StoredRun, HeldRun, LeaseKey)> = Vec::new();
        for run in runs {
            match self.held.take(run.id, &run.tenant) {
                Some(held) => claims.push((run, held, LeaseKey(seed()))),
                // The end of a held run is followed by another pass.
                None => drop(blocked.insert(run.schedule)),
            }
        }
        if claims.is_empty() {
            return Ok(0);
        }
        let lease = |(run, _, lease_key): &(StoredRun, HeldRun, LeaseKey)| RunLease {
            run: run.id,
            worker_id: self.worker_id.clone(),
            lease_key: *lease_key,
            expires_at: lease_expiry(&self.app, at),
        };
        let writes = claims.iter().map(|claim| ScheduleWrite::Claim { lease: lease(claim), at });
        let entries = writes.map(|write| Entry::Schedule(Box::new(write))).collect();
        let applied = self.app.store_entries(entries).await?;
        let mut claimed = 0;
        for ((run, held, lease_key), applied) in claims.into_iter().zip(applied) {
            match applied {
                Applied::Done => {
                    (claimed, self.turn) = (claimed + 1, run.schedule);
                    self.jobs.spawn(Work::claimed(self.app.clone(), run, (held, lease_key)).begin());
                }
                Applied::Conflict => drop(blocked.insert(run.schedule)),
                // Cancelled or superseded meanwhile.
                any_of![Applied: Committed Defined Accepted Fenced Duplicate Taken QueueFull HookTaken] => {}
            }
        }
        Ok(claimed)
    }

    /// Cancels active runs that a waiting one replaces. Returns whether a schedule has a waiting run and no active one:
    /// then the execution of an earlier attempt has not ended, and no run will report its end.
    async fn unblock(&mut self, blocked: BTreeSet<ScheduleId>) -> Result<bool, Problem> {
        let (replaced, is_blocked_by_end) = self
            .app
            .followers
            .look(move |reader| {
                let (mut replaced, mut is_blocked_by_end) = (Vec::new(), false);
                for schedule in blocked {
                    let active = reader.active_runs(schedule, REPLACED_MAX)?;
                    let Some(first) = active.first() else {
                        is_blocked_by_end = true;
                        continue;
                    };
                    let found = reader.schedule(&first.tenant, schedule)?;
                    if found.is_some_and(|found| found.policy.overlap == Overlap::Replace) {
                        replaced.extend(active);
                    }
                }
                Ok((replaced, is_blocked_by_end))
            })
            .await?;
        for run in &replaced {
            cancel_execution(&self.app, run, "replaced by a newer occurrence", None).await;
        }
        Ok(is_blocked_by_end)
    }
}
