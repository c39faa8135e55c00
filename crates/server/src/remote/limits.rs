//! Time limits of single calls. The time of a whole attempt is the engine's.

use super::{RemoteWorkers, is_same};
use crate::cache::lock;
use crate::host::now;
use crate::problem::Problem;
use axum::http::StatusCode;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use windlass_engine::{GroupCall, GroupReply, HeldCall, SessionKey};
use windlass_kernel::Millis;
use windlass_protocol::Unit;

/// Interval at which a starting server checks whether its leases have been found.
const LOOK: Duration = Duration::from_millis(50);

/// Time after which a call is ended again if the engine could not be reached.
const AGAIN_MS: u64 = 1_000;

/// Maximum number of calls that are ended at a time: each may be rendered again.
const ENDING_MAX: usize = 32;

/// Time limits of calls that workers hold, in the order in which they end.
#[derive(Debug, Default)]
pub(super) struct CallLimits {
    queue: Mutex<LimitQueue>,
    /// Notified when the first limit changes.
    changed: Notify,
}

#[derive(Debug, Default)]
struct LimitQueue {
    /// The number keeps limits with one time apart.
    by_time: BTreeMap<(Millis, u64), LimitedCall>,
    by_unit: HashMap<Unit, (Millis, u64)>,
    next_number: u64,
}

/// A call that ends when its time is over.
#[derive(Debug, Clone)]
struct LimitedCall {
    session: SessionKey,
    unit: Unit,
    limit_ms: u64,
}

impl CallLimits {
    fn put(&self, due: Millis, call: LimitedCall) {
        let mut queue = lock(&self.queue);
        let place = (due, queue.next_number);
        queue.next_number += 1;
        if let Some(earlier) = queue.by_unit.insert(call.unit, place) {
            queue.by_time.remove(&earlier);
        }
        queue.by_time.insert(place, call);
        self.changed.notify_one();
    }

    /// Removes the limit of a call that this session has reported, lost or returned.
    pub(super) fn remove(&self, session: &SessionKey, unit: Unit) {
        let mut queue = lock(&self.queue);
        let Some(place) = queue.by_unit.get(&unit).copied() else { return };
        if queue.by_time.get(&place).is_some_and(|call| is_same(&call.session, session)) {
            queue.by_unit.remove(&unit);
            queue.by_time.remove(&place);
        }
    }

    fn next_due(&self) -> Option<Millis> {
        lock(&self.queue).by_time.first_key_value().map(|((due, _), _)| *due)
    }

    fn take_due(&self, now: Millis) -> Option<LimitedCall> {
        let mut queue = lock(&self.queue);
        let first = queue.by_time.first_entry().filter(|first| first.key().0 <= now)?;
        let call = first.remove();
        queue.by_unit.remove(&call.unit);
        Some(call)
    }
}

/// Returns whether the same request may succeed later.
fn is_passing(problem: &Problem) -> bool {
    problem.status() == StatusCode::SERVICE_UNAVAILABLE
}

impl RemoteWorkers {
    /// Ends a call whose worker takes longer than its task allows.
    pub(crate) fn limit_call(&self, session: SessionKey, unit: Unit, limit_ms: u64, claimed_at: Millis) {
        self.limits.put(claimed_at.plus(limit_ms), LimitedCall { session, unit, limit_ms });
    }

    /// Ends calls when their time is over, as long as the server runs.
    pub(crate) async fn end_late_calls(self: Arc<Self>) {
        let ending = Arc::new(Semaphore::new(ENDING_MAX));
        loop {
            let changed = self.limits.changed.notified();
            match self.limits.next_due().map(|due| due.since(now())) {
                None => changed.await,
                Some(0) => {
                    let Ok(permit) = Arc::clone(&ending).acquire_owned().await else { return };
                    // It may have been reported meanwhile.
                    let Some(late) = self.limits.take_due(now()) else { continue };
                    let workers = Arc::clone(&self);
                    tokio::spawn(async move {
                        workers.end_late_call(late).await;
                        drop(permit);
                    });
                }
                Some(left_ms) => {
                    let _ = tokio::time::timeout(Duration::from_millis(left_ms), changed).await;
                }
            }
        }
    }

    async fn end_late_call(&self, late: LimitedCall) {
        let Err(problem) = self.end_call(&late.session, late.unit, late.limit_ms).await else { return };
        if is_passing(&problem) {
            self.limits.put(now().plus(AGAIN_MS), late);
        } else {
            tracing::debug!(%problem, "a call that took too long is not ended");
        }
    }

    async fn end_call(&self, key: &SessionKey, unit: Unit, limit_ms: u64) -> Result<(), Problem> {
        // The call may have been reported already.
        let Some(call) = self.take_call(key, unit).await? else { return Ok(()) };
        let Some(report) = self.threads.run(&key.tenant, call.time_out(limit_ms)).await else {
            return Err(super::panicked());
        };
        self.send(report).await.map(drop)
    }

    /// Limits the calls that workers hold since an earlier process. Their limits follow from their definitions, and their
    /// beginnings from their leases.
    pub(crate) async fn resume_limits(self: Arc<Self>) {
        while !self.engine.is_recovered() {
            tokio::time::sleep(LOOK).await;
        }
        let mut left: VecDeque<HeldCall> = loop {
            match self.ask(GroupCall::ListLimited).await {
                Ok(GroupReply::Limited(held)) => break held.into(),
                Ok(other) => {
                    return tracing::error!(problem = %super::unexpected_reply(other), "no limits of calls");
                }
                Err(problem) if is_passing(&problem) => tokio::time::sleep(LOOK).await,
                Err(problem) => {
                    return tracing::warn!(%problem, "time limits of calls of an earlier process are unknown");
                }
            }
        };
        while let Some(call) = left.pop_front() {
            match self.resume_limit(&call).await {
                Ok(()) => {}
                Err(problem) if is_passing(&problem) => {
                    left.push_back(call);
                    tokio::time::sleep(LOOK).await;
                }
                Err(problem) => {
                    tracing::warn!(%problem, "the time limit of a call of an earlier process is unknown");
                }
            }
        }
    }

    async fn resume_limit(&self, held: &HeldCall) -> Result<(), Problem> {
        let Some(rendered) = self.render_again(&held.session, held.unit).await? else { return Ok(()) };
        let claimed = self.hand_out(&held.session, rendered);
        if let Some(limit_ms) = claimed.call_ms {
            self.limit_call(held.session.clone(), held.unit, limit_ms, held.claimed_at);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::SessionId;
    use windlass_store::Tenant;

    fn session(id: u64) -> SessionKey {
        SessionKey { id: SessionId(id), digest: [0; 32], tenant: Tenant::new("a"), group: None }
    }

    fn call(number: u64) -> LimitedCall {
        let unit = Unit { execution: 1, run: number, fence: number };
        LimitedCall { session: session(1), unit, limit_ms: 10 }
    }

    #[test]
    fn limits_end_in_order_and_those_of_reported_calls_leave_nothing() {
        let limits = CallLimits::default();
        for number in 0..1_000 {
            limits.put(Millis(10_000 - i64::try_from(number).unwrap()), call(number));
        }
        assert_eq!(limits.next_due(), Some(Millis(9_001)));
        assert!(limits.take_due(Millis(9_000)).is_none());
        assert_eq!(limits.take_due(Millis(9_001)).map(|late| late.unit.run), Some(999));
        limits.remove(&session(2), call(998).unit);
        assert_eq!(limits.next_due(), Some(Millis(9_002)), "only its session reports a call");
        (0..999).for_each(|number| limits.remove(&session(1), call(number).unit));
        let queue = lock(&limits.queue);
        assert_eq!((queue.by_time.len(), queue.by_unit.len()), (0, 0));
    }

    #[test]
    fn a_call_has_one_limit() {
        let limits = CallLimits::default();
        limits.put(Millis(5), call(1));
        limits.put(Millis(9), call(1));
        assert!(limits.take_due(Millis(5)).is_none());
        assert!(limits.take_due(Millis(9)).is_some());
        assert_eq!(limits.next_due(), None);
    }
}
