//! Runs of schedules: which of them may be claimed, who may end them, and the rows that their end leaves behind.

use crate::commit::Applied;
use crate::schedules::{
    DeadLetterId, LeaseKey, RunHolder, RunOutcome, RunResult, ScheduleRunId, StoredDeadLetter, StoredRun,
};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use windlass_kernel::{ExecutionId, Millis};
use windlass_schedule::{
    AfterFailure, ClaimVerdict, RetryPolicy, RunPolicy, RunSignal, RunStatus, decide_after_failure,
    judge_claim,
};

/// Error of a run whose worker did not renew its lease.
pub const LEASE_EXPIRED: &str = "worker lease expired during execution";

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

/// Returns whether the row of a run is added. An attempt at an occurrence is one run (K10): one that exists stays as it is.
/// `known` is a run of that id, or of that occurrence and attempt.
#[must_use]
pub fn is_new_attempt(known: Option<ScheduleRunId>) -> bool {
    known.is_none()
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

/// Returns the status of a run after a signal from the holder of a lease. None: another lease is open or none, or the
/// status does not permit the signal.
#[must_use]
pub fn signal_held_run(
    status: RunStatus,
    lease: Option<LeaseKey>,
    holder: LeaseKey,
    signal: RunSignal,
) -> Option<RunStatus> {
    status.after(signal).ok().filter(|_| lease == Some(holder))
}

/// Returns the row of a run that is cancelled while it waits, or the answer to the refused write. An active run is
/// cancelled with its execution instead. `run` is None if the tenant has no such run.
pub fn cancel_waiting_run(run: Option<&StoredRun>, reason: &str, at: Millis) -> Result<StoredRun, Applied> {
    let run = run.ok_or(Applied::Duplicate)?;
    match run.status {
        RunStatus::Pending | RunStatus::RetryScheduled => {
            let status = run.status.after(RunSignal::Cancel).map_err(|_| Applied::Conflict)?;
            Ok(end_for_reason(run, status, reason, at))
        }
        RunStatus::Claimed
        | RunStatus::Running
        | RunStatus::Succeeded
        | RunStatus::Failed
        | RunStatus::DeadLettered
        | RunStatus::Cancelled
        | RunStatus::Skipped => Err(Applied::Conflict),
    }
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

/// Returns whether the lease of a worker is over: its time has passed, or the worker is not the only one alive, if that is
/// known.
#[must_use]
pub fn is_lease_over(expires_at: Millis, worker_id: &str, at: Millis, only_worker: Option<&str>) -> bool {
    expires_at <= at || only_worker.is_some_and(|alive| alive != worker_id)
}

/// Returns whether a worker renews the lease of a run. `holder` is the worker that has it; None if there is no lease. A lease
/// whose time has passed is renewed, too: no other worker can have the run before the lease is recovered.
#[must_use]
pub fn may_renew(holder: Option<&str>, worker_id: &str) -> bool {
    holder == Some(worker_id)
}

/// The recovery of a lease that is over. The lease is deleted in each case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRecovery {
    /// The run was only claimed, and waits again with this status.
    Wait(RunStatus),
    /// The run was running, and has failed.
    Fail { end: RunEnd, result: Box<RunResult> },
    /// The run has ended or does not exist.
    Drop,
}

/// Decides how a lease that is over is recovered. `facts` is None if its run does not exist.
#[must_use]
pub fn recover_lease(facts: Option<&RunEndFacts>, at: Millis) -> LeaseRecovery {
    let Some(facts) = facts else { return LeaseRecovery::Drop };
    if let Ok(status) = facts.status.after(RunSignal::Release) {
        return LeaseRecovery::Wait(status);
    }
    let holder = facts.lease_key.map(RunHolder::Lease);
    match holder.and_then(|holder| end_run(facts, holder, RunOutcome::Failed, at)) {
        Some(end) => {
            let error_text = Some(LEASE_EXPIRED.to_owned());
            LeaseRecovery::Fail { end, result: Box::new(RunResult { error_text, ..RunResult::default() }) }
        }
        None => LeaseRecovery::Drop,
    }
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

/// Returns the row of a run that ended. It keeps the note of its start if its work has no result.
#[must_use]
pub fn end_row(run: &StoredRun, status: RunStatus, result: &RunResult, at: Millis) -> StoredRun {
    StoredRun {
        status,
        finished_at: Some(at),
        http_status_code: result.http_status_code,
        exit_code: result.exit_code,
        result_json: result.result_json.as_ref().or(run.result_json.as_ref()).cloned(),
        error_text: result.error_text.clone(),
        updated_at: at,
        ..run.clone()
    }
}

/// Returns the row of a run that ended without running.
pub(super) fn end_for_reason(run: &StoredRun, status: RunStatus, reason: &str, at: Millis) -> StoredRun {
    let result = RunResult { error_text: Some(reason.to_owned()), ..RunResult::default() };
    end_row(run, status, &result, at)
}

/// Returns the row of the attempt that follows a failed one.
#[must_use]
pub fn retry_row(run: &StoredRun, attempt: u32, available_at: Millis, at: Millis) -> StoredRun {
    StoredRun {
        id: retry_id(&run.occurrence_key, attempt, at),
        attempt,
        due_time: available_at,
        status: RunStatus::RetryScheduled,
        claimed_by_worker_id: None,
        claim_expires_at: None,
        started_at: None,
        finished_at: None,
        http_status_code: None,
        exit_code: None,
        result_json: None,
        error_text: None,
        retry_available_at: Some(available_at),
        execution: None,
        created_at: at,
        updated_at: at,
        ..run.clone()
    }
}

/// Returns the dead letter of a run whose last attempt failed.
#[must_use]
pub fn letter_row(run: &StoredRun, result: &RunResult, at: Millis) -> StoredDeadLetter {
    StoredDeadLetter {
        id: dead_letter_id(run.id, at),
        tenant: run.tenant.clone(),
        run: run.id,
        schedule: run.schedule,
        occurrence_key: run.occurrence_key.clone(),
        reason: result.error_text.clone().unwrap_or_default(),
        payload_json: result.result_json.as_ref().or(run.result_json.as_ref()).cloned(),
        created_at: at,
        resolved_at: None,
        resolution: None,
    }
}

/// Returns the new time of a schedule's last successful run; None if the end of this run does not change it.
#[must_use]
pub fn last_run_after(known: Option<Millis>, status: RunStatus, at: Millis) -> Option<Millis> {
    let latest = known.map_or(at, |known| known.max(at));
    (status == RunStatus::Succeeded && known != Some(latest)).then_some(latest)
}

/// Returns the id of an attempt that follows another one. It is a function of its occurrence: a repeated write makes no
/// second one.
fn retry_id(occurrence_key: &str, attempt: u32, at: Millis) -> ScheduleRunId {
    ScheduleRunId(derive_id(&format!("run:{occurrence_key}:{attempt}"), at))
}

fn dead_letter_id(run: ScheduleRunId, at: Millis) -> DeadLetterId {
    DeadLetterId(derive_id(&format!("dead-letter:{:032x}", run.0), at))
}

/// An id of the usual form: the time in its upper 48 bits, then bits of a hash.
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
    use crate::conformance::{new_run, schedule};
    use crate::rules::first_row;
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
    }

    #[test]
    fn sch_10_sch_11_a_lease_that_is_over_returns_a_claimed_run_and_fails_a_running_one() {
        let recover = |status| recover_lease(Some(&RunEndFacts { status, ..held() }), Millis(0));
        let retry = FollowUp::Retry { attempt: 2, available_at: Millis(30_000) };
        for status in RunStatus::ALL {
            match (status, recover(status)) {
                (RunStatus::Claimed, found) => assert_eq!(found, LeaseRecovery::Wait(RunStatus::Pending)),
                (RunStatus::Running, LeaseRecovery::Fail { end, result }) => {
                    assert_eq!(end, RunEnd { status: RunStatus::Failed, follow_up: Some(retry) });
                    assert_eq!(result.error_text.as_deref(), Some(LEASE_EXPIRED));
                }
                (status, found) => assert_eq!(found, LeaseRecovery::Drop, "{status:?}"),
            }
        }
        let without_lease = RunEndFacts { lease_key: None, ..held() };
        assert_eq!(recover_lease(Some(&without_lease), Millis(0)), LeaseRecovery::Drop);
        assert_eq!(recover_lease(None, Millis(0)), LeaseRecovery::Drop);
    }

    #[test]
    fn sch_14_a_worker_renews_its_own_leases() {
        assert!(may_renew(Some("w1"), "w1"));
        assert!(!may_renew(Some("w2"), "w1"));
        assert!(!may_renew(None, "w1"));
    }

    #[test]
    fn an_attempt_at_an_occurrence_is_added_once() {
        assert!(is_new_attempt(None));
        assert!(!is_new_attempt(Some(ScheduleRunId(1))));
    }

    #[test]
    fn sch_10_a_lease_is_over_after_its_time_or_with_its_worker() {
        for (expires_at, only_worker, expected) in [
            (6, None, false),
            (5, None, true),
            (4, None, true),
            (6, Some("w1"), false),
            (5, Some("w1"), true),
            (6, Some("w2"), true),
        ] {
            let found = is_lease_over(Millis(expires_at), "w1", Millis(5), only_worker);
            assert_eq!(found, expected, "{expires_at} {only_worker:?}");
        }
    }

    #[test]
    fn sch_15_only_the_holder_of_a_lease_signals_a_claimed_run() {
        let (own, other) = (Some(LeaseKey(1)), Some(LeaseKey(2)));
        for (status, lease, signal, expected) in [
            (RunStatus::Claimed, own, RunSignal::Start, Some(RunStatus::Running)),
            (RunStatus::Claimed, own, RunSignal::Release, Some(RunStatus::Pending)),
            (RunStatus::Claimed, other, RunSignal::Start, None),
            (RunStatus::Claimed, None, RunSignal::Start, None),
            (RunStatus::Running, own, RunSignal::Start, None),
            (RunStatus::Pending, own, RunSignal::Release, None),
        ] {
            let found = signal_held_run(status, lease, LeaseKey(1), signal);
            assert_eq!(found, expected, "{status:?} {lease:?} {signal:?}");
        }
    }

    fn run(status: RunStatus) -> StoredRun {
        let first = first_row(&schedule(1, "one"), &new_run(1), Millis(1));
        let (note, worker) = (Some("\"note\"".to_owned()), Some("w1".to_owned()));
        let (started_at, execution) = (Some(Millis(3)), Some(ExecutionId(7)));
        StoredRun { status, result_json: note, claimed_by_worker_id: worker, started_at, execution, ..first }
    }

    #[test]
    fn only_a_run_that_waits_is_cancelled_without_its_execution() {
        assert_eq!(cancel_waiting_run(None, "enough", Millis(9)), Err(Applied::Duplicate));
        for status in RunStatus::ALL {
            let found = cancel_waiting_run(Some(&run(status)), "enough", Millis(9));
            match status {
                RunStatus::Pending | RunStatus::RetryScheduled => {
                    let cancelled = StoredRun {
                        finished_at: Some(Millis(9)),
                        error_text: Some("enough".to_owned()),
                        updated_at: Millis(9),
                        ..run(RunStatus::Cancelled)
                    };
                    assert_eq!(found, Ok(cancelled), "{status:?}");
                }
                _ => assert_eq!(found, Err(Applied::Conflict), "{status:?}"),
            }
        }
    }

    #[test]
    fn sch_06_sch_09_an_end_leaves_its_result_its_retry_and_its_dead_letter() {
        let result = RunResult {
            http_status_code: Some(503),
            exit_code: Some(7),
            error_text: Some("it broke".to_owned()),
            ..RunResult::default()
        };
        let running = run(RunStatus::Running);
        let ended = end_row(&running, RunStatus::Failed, &result, Millis(9));
        assert_eq!(
            (ended.status, ended.finished_at, ended.updated_at),
            (RunStatus::Failed, Some(Millis(9)), Millis(9))
        );
        assert_eq!((ended.http_status_code, ended.exit_code), (Some(503), Some(7)));
        assert_eq!(
            (ended.error_text.as_deref(), ended.result_json.as_deref()),
            (Some("it broke"), Some("\"note\""))
        );
        let retry = retry_row(&running, 2, Millis(30), Millis(9));
        assert_eq!((retry.status, retry.attempt, retry.due_time), (RunStatus::RetryScheduled, 2, Millis(30)));
        assert_eq!(
            (&retry.occurrence_key, retry.nominal_time),
            (&running.occurrence_key, running.nominal_time)
        );
        assert_eq!((retry.claimed_by_worker_id, retry.started_at, retry.execution), (None, None, None));
        assert_eq!((retry.result_json, retry.created_at), (None, Millis(9)));
        let letter = letter_row(&running, &result, Millis(9));
        assert_eq!((letter.run, letter.reason.as_str()), (running.id, "it broke"));
        assert_eq!(letter.payload_json.as_deref(), Some("\"note\""), "without a result, its note");
        let with_result = RunResult { result_json: Some("{}".to_owned()), ..result };
        assert_eq!(letter_row(&running, &with_result, Millis(9)).payload_json.as_deref(), Some("{}"));
        assert_eq!(
            end_row(&running, RunStatus::Failed, &with_result, Millis(9)).result_json.as_deref(),
            Some("{}")
        );
    }

    #[test]
    fn the_last_run_of_a_schedule_is_its_latest_success() {
        for (known, status, at, expected) in [
            (None, RunStatus::Succeeded, 5, Some(5)),
            (Some(4), RunStatus::Succeeded, 5, Some(5)),
            (Some(6), RunStatus::Succeeded, 5, None),
            (None, RunStatus::Failed, 5, None),
            (Some(4), RunStatus::Cancelled, 5, None),
        ] {
            let found = last_run_after(known.map(Millis), status, Millis(at));
            assert_eq!(found, expected.map(Millis), "{status:?} at {at} after {known:?}");
        }
    }

    #[test]
    fn ids_of_follow_ups_begin_with_their_time() {
        let (id, other) = (retry_id("a", 2, Millis(5)), retry_id("a", 3, Millis(5)));
        assert_eq!((id.0 >> 80, id == other, id == retry_id("a", 2, Millis(5))), (5, false, true));
    }
}
