//! Runs of schedules: which of them may be claimed, who may end them, and what follows their end.

use crate::commit::Applied;
use crate::schedules::{DeadLetterId, LeaseKey, RunHolder, RunOutcome, ScheduleRunId};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use windlass_kernel::{ExecutionId, Millis};
use windlass_schedule::{
    AfterFailure, ClaimVerdict, RetryPolicy, RunPolicy, RunSignal, RunStatus, decide_after_failure,
    judge_claim,
};

/// Error of a run whose worker did not renew its lease.
pub const LEASE_EXPIRED: &str = "worker lease expired during execution";

/// Runs of one schedule that may wait. Without a bound, a schedule whose runs take longer than its interval would fill the
/// disk; occurrences beyond it are skipped.
pub const QUEUE_MAX: usize = 1_000;

#[must_use]
pub fn is_queue_full(waiting: usize) -> bool {
    waiting >= QUEUE_MAX
}

/// Facts about a run that a worker wants to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunClaimFacts {
    pub status: RunStatus,
    pub due_time: Millis,
    pub policy: RunPolicy,
    /// Other runs of the schedule that are claimed or running.
    pub active: u32,
    /// The execution of an earlier attempt at the occurrence has not ended.
    pub earlier_is_live: bool,
}

/// Decides whether a run becomes claimed: it waits, it is due, and the policies of its schedule allow it.
#[must_use]
pub fn judge_run_claim(facts: &RunClaimFacts, at: Millis) -> Applied {
    if facts.status.after(RunSignal::Claim).is_err() {
        return Applied::Fenced;
    }
    let verdict = judge_claim(facts.policy.overlap, facts.policy.max_concurrency, facts.active);
    let may_claim = facts.due_time <= at && !facts.earlier_is_live && verdict == ClaimVerdict::Claim;
    if may_claim { Applied::Done } else { Applied::Conflict }
}

/// Facts about a run that is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEndFacts {
    pub status: RunStatus,
    pub attempt: u32,
    pub lease_key: Option<LeaseKey>,
    pub execution: Option<ExecutionId>,
    pub retry: RetryPolicy,
}

/// The end of a run, and what is written with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd {
    pub status: RunStatus,
    pub follow_up: Option<FollowUp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowUp {
    Retry { attempt: u32, available_at: Millis },
    DeadLetter,
}

/// Decides how a run ends. None: it has ended, or the caller does not hold it any more.
#[must_use]
pub fn end_run(facts: &RunEndFacts, holder: RunHolder, outcome: RunOutcome, at: Millis) -> Option<RunEnd> {
    let is_held = match holder {
        RunHolder::Lease(key) => facts.lease_key == Some(key),
        RunHolder::Execution(execution) => facts.lease_key.is_none() && facts.execution == Some(execution),
    };
    if !is_held {
        return None;
    }
    let (signal, follow_up) = match outcome {
        RunOutcome::Succeeded => (RunSignal::Succeed, None),
        RunOutcome::Cancelled => (RunSignal::Cancel, None),
        RunOutcome::Failed => match follow_failure(facts, at) {
            retry @ FollowUp::Retry { .. } => (RunSignal::Fail, Some(retry)),
            FollowUp::DeadLetter => (RunSignal::GiveUp, Some(FollowUp::DeadLetter)),
        },
    };
    facts.status.after(signal).ok().map(|status| RunEnd { status, follow_up })
}

/// Returns the next state of a run whose lease expired: a claimed one waits again, a running one has failed.
#[must_use]
pub fn expire_run(facts: &RunEndFacts, at: Millis) -> Option<RunEnd> {
    if let Ok(status) = facts.status.after(RunSignal::Release) {
        return Some(RunEnd { status, follow_up: None });
    }
    end_run(facts, RunHolder::Lease(facts.lease_key?), RunOutcome::Failed, at)
}

fn follow_failure(facts: &RunEndFacts, at: Millis) -> FollowUp {
    let finished_at = Timestamp::from_millisecond(at.0).unwrap_or(Timestamp::MAX);
    match decide_after_failure(facts.retry, facts.attempt, finished_at) {
        AfterFailure::Retry { attempt, available_at } => {
            FollowUp::Retry { attempt, available_at: Millis(available_at.as_millisecond()) }
        }
        AfterFailure::DeadLetter => FollowUp::DeadLetter,
    }
}

/// Returns the id of an attempt that follows another one. It is a function of its occurrence: a repeated write makes no
/// second one.
#[must_use]
pub fn retry_id(occurrence_key: &str, attempt: u32, at: Millis) -> ScheduleRunId {
    ScheduleRunId(derive_id(&format!("run:{occurrence_key}:{attempt}"), at))
}

#[must_use]
pub fn dead_letter_id(run: ScheduleRunId, at: Millis) -> DeadLetterId {
    DeadLetterId(derive_id(&format!("dead-letter:{:032x}", run.0), at))
}

/// Derives an id of the usual form: the time in its upper 48 bits, then bits of a hash.
fn derive_id(name: &str, at: Millis) -> u128 {
    let digest = Sha256::digest(name.as_bytes());
    let bits = digest.iter().take(10).fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
    // Version 7 and the variant of UUIDs.
    let (version, variant) = (0x7 << 76, 0x2 << 62);
    let bits = bits & !(0xf << 76) & !(0x3 << 62);
    u128::from(at.0.max(0).cast_unsigned()) << 80 | bits | version | variant
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_schedule::{Misfire, Overlap, Strategy};

    const RETRY: RetryPolicy = RetryPolicy {
        max_attempts: 2,
        strategy: Strategy::Exponential,
        initial_delay_seconds: 30,
        max_delay_seconds: 900,
    };

    fn claim() -> RunClaimFacts {
        let policy = RunPolicy {
            overlap: Overlap::Forbid,
            misfire: Misfire::RunOnceIfLate,
            timeout_seconds: 1,
            max_concurrency: 1,
            jitter_seconds: 0,
        };
        let (status, due_time) = (RunStatus::Pending, Millis(10));
        RunClaimFacts { status, due_time, policy, active: 0, earlier_is_live: false }
    }

    #[test]
    fn sch_03_a_claim_checks_status_time_and_policies() {
        let check = |facts: RunClaimFacts, at: i64, expected: Applied| {
            assert_eq!(judge_run_claim(&facts, Millis(at)), expected, "{facts:?} at {at}");
        };
        check(claim(), 10, Applied::Done);
        check(RunClaimFacts { status: RunStatus::RetryScheduled, ..claim() }, 10, Applied::Done);
        check(RunClaimFacts { status: RunStatus::RetryScheduled, ..claim() }, 9, Applied::Conflict);
        check(RunClaimFacts { active: 1, ..claim() }, 10, Applied::Conflict);
        check(RunClaimFacts { earlier_is_live: true, ..claim() }, 10, Applied::Conflict);
        for status in [RunStatus::Claimed, RunStatus::Running, RunStatus::Skipped, RunStatus::Succeeded] {
            check(RunClaimFacts { status, ..claim() }, 10, Applied::Fenced);
        }
    }

    fn held() -> RunEndFacts {
        let (lease_key, execution) = (Some(LeaseKey(1)), Some(ExecutionId(7)));
        RunEndFacts { status: RunStatus::Running, attempt: 1, lease_key, execution, retry: RETRY }
    }

    #[test]
    fn sch_15_only_the_holder_of_a_run_ends_it() {
        let ends = |facts: RunEndFacts, holder: RunHolder| {
            end_run(&facts, holder, RunOutcome::Succeeded, Millis(0)).is_some()
        };
        let lease = |key| RunHolder::Lease(LeaseKey(key));
        assert!(ends(held(), lease(1)));
        assert!(!ends(held(), lease(2)));
        assert!(!ends(held(), RunHolder::Execution(ExecutionId(7))), "it has a lease");
        let unleased = RunEndFacts { lease_key: None, ..held() };
        assert!(ends(unleased, RunHolder::Execution(ExecutionId(7))));
        assert!(!ends(unleased, RunHolder::Execution(ExecutionId(8))));
        assert!(!ends(unleased, lease(1)));
        for status in RunStatus::ALL.into_iter().filter(|status| *status != RunStatus::Running) {
            assert!(!ends(RunEndFacts { status, ..held() }, lease(1)), "{status:?}");
        }
    }

    #[test]
    fn sch_06_sch_09_a_failure_has_exactly_one_follow_up() {
        let end = |attempt, outcome| {
            end_run(&RunEndFacts { attempt, ..held() }, RunHolder::Lease(LeaseKey(1)), outcome, Millis(0))
        };
        let retry = FollowUp::Retry { attempt: 2, available_at: Millis(30_000) };
        let failed = RunEnd { status: RunStatus::Failed, follow_up: Some(retry) };
        let dead = RunEnd { status: RunStatus::DeadLettered, follow_up: Some(FollowUp::DeadLetter) };
        assert_eq!(end(1, RunOutcome::Failed), Some(failed));
        assert_eq!(end(2, RunOutcome::Failed), Some(dead));
        let cancelled = RunEnd { status: RunStatus::Cancelled, follow_up: None };
        assert_eq!(end(1, RunOutcome::Cancelled), Some(cancelled));
        assert_eq!(expire_run(&held(), Millis(0)), Some(failed));
        let claimed = RunEndFacts { status: RunStatus::Claimed, ..held() };
        let waits = RunEnd { status: RunStatus::Pending, follow_up: None };
        assert_eq!(expire_run(&claimed, Millis(0)), Some(waits));
    }

    #[test]
    fn ids_of_follow_ups_begin_with_their_time() {
        let (id, other) = (retry_id("a", 2, Millis(5)), retry_id("a", 3, Millis(5)));
        assert_eq!((id.0 >> 80, id == other, id == retry_id("a", 2, Millis(5))), (5, false, true));
    }
}
