//! Time limits of single calls. The time of a whole attempt is the engine's.

use super::RemoteWorkers;
use crate::host::now;
use crate::problem::Problem;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{GroupCall, GroupReply, HeldCall, SessionKey};
use windlass_kernel::Millis;
use windlass_protocol::Unit;

/// Interval at which a starting server checks whether its leases have been found.
const LOOK: Duration = Duration::from_millis(50);

impl RemoteWorkers {
    /// Ends a call whose worker takes longer than its task allows.
    pub(crate) fn limit_call(
        self: &Arc<Self>,
        key: SessionKey,
        unit: Unit,
        limit_ms: u64,
        claimed_at: Millis,
    ) {
        let workers = Arc::clone(self);
        let left_ms = claimed_at.plus(limit_ms).since(now());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(left_ms)).await;
            if let Err(problem) = workers.end_call(&key, unit, limit_ms).await {
                tracing::debug!(%problem, "a call that took too long is not ended");
            }
        });
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
        let held = match self.ask(GroupCall::ListLimited).await {
            Ok(GroupReply::Limited(held)) => held,
            Ok(other) => {
                return tracing::error!(problem = %super::unexpected_reply(other), "no limits of calls");
            }
            Err(problem) => {
                return tracing::warn!(%problem, "time limits of calls of an earlier process are unknown");
            }
        };
        for call in held {
            if let Err(problem) = self.resume_limit(&call).await {
                tracing::warn!(%problem, "the time limit of a call of an earlier process is unknown");
            }
        }
    }

    async fn resume_limit(self: &Arc<Self>, held: &HeldCall) -> Result<(), Problem> {
        let Some(rendered) = self.render_again(&held.session, held.unit).await? else { return Ok(()) };
        let claimed = self.hand_out(&held.session, rendered);
        if let Some(limit_ms) = claimed.call_ms {
            self.limit_call(held.session.clone(), held.unit, limit_ms, held.claimed_at);
        }
        Ok(())
    }
}
