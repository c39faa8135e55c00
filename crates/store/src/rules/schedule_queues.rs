//! Queues of schedules: which runs are added to them, which leave them without running, and which occurrences are deleted.

use super::schedule_runs::end_for_reason;
use crate::commit::Applied;
use crate::schedules::{NewRun, OccurrencePlan, StoredDeadLetter, StoredRun, StoredSchedule};
use crate::store::StoreResult;
use windlass_kernel::Millis;
use windlass_schedule::{Overlap, RunSignal, RunStatus, SkipReason, find_superseded};

/// Runs of one schedule that may wait. Without a bound, a schedule whose runs take longer than its interval would fill the
/// disk; occurrences beyond it are skipped.
pub const QUEUE_MAX: usize = 1_000;

fn has_room(waiting: usize, added: usize) -> bool {
    waiting + added <= QUEUE_MAX
}

/// Decides whether a plan becomes runs. It does not if it was made from times that its schedule no longer has, so every
/// occurrence has one run. `schedule` is None if there is no such schedule.
#[must_use]
pub fn judge_plan(schedule: Option<&StoredSchedule>, plan: &OccurrencePlan) -> Applied {
    let is_current = |schedule: &StoredSchedule| {
        schedule.revision == plan.revision && schedule.next_run_at == Some(plan.planned_from)
    };
    if schedule.is_some_and(is_current) { Applied::Done } else { Applied::Conflict }
}

/// Returns the rows of the runs of a plan. Those for which the queue has no room are skipped.
#[must_use]
pub fn plan_runs(schedule: &StoredSchedule, plan: &OccurrencePlan, mut waiting: usize) -> Vec<StoredRun> {
    let plan_run = |new: &NewRun| {
        let row = first_row(schedule, new, plan.at);
        if row.status.is_terminal() {
            return row;
        }
        if !has_room(waiting, 1) {
            return skip(&row, SkipReason::QueueFull.text(), plan.at);
        }
        waiting += 1;
        row
    };
    plan.runs.iter().map(plan_run).collect()
}

/// Decides whether runs are added that no plan contains: by a trigger, a backfill or a redriven dead letter. `waiting` is
/// the number of runs that wait; None if there is no such schedule.
#[must_use]
pub fn judge_added_runs(waiting: Option<usize>, added: usize) -> Applied {
    match waiting {
        None => Applied::Duplicate,
        Some(waiting) if !has_room(waiting, added) => Applied::QueueFull,
        Some(_) => Applied::Done,
    }
}

/// Returns whether a backfill runs an occurrence, from the statuses of all runs with its nominal time. If one of them ran,
/// runs or waits, it does not, so two backfills of the same time start nothing twice.
#[must_use]
pub fn is_backfilled(statuses: impl IntoIterator<Item = RunStatus>) -> bool {
    statuses.into_iter().all(|status| status == RunStatus::Skipped)
}

/// Returns the row of a run before its first claim.
#[must_use]
pub fn first_row(schedule: &StoredSchedule, new: &NewRun, at: Millis) -> StoredRun {
    let row = StoredRun {
        id: new.id,
        tenant: schedule.tenant.clone(),
        schedule: schedule.id,
        occurrence_key: new.occurrence_key.clone(),
        attempt: 1,
        nominal_time: new.nominal_time,
        due_time: new.due_time,
        status: RunStatus::Pending,
        claimed_by_worker_id: None,
        claim_expires_at: None,
        started_at: None,
        finished_at: None,
        http_status_code: None,
        exit_code: None,
        result_json: new.note.clone(),
        error_text: None,
        retry_available_at: None,
        execution: None,
        requested_by: new.requested_by.clone(),
        created_at: at,
        updated_at: at,
    };
    match &new.skipped {
        Some(reason) => skip(&row, reason, at),
        None => row,
    }
}

fn skip(run: &StoredRun, reason: &str, at: Millis) -> StoredRun {
    end_for_reason(run, RunStatus::Skipped, reason, at)
}

/// Returns the rows of the runs that a newer one supersedes, out of those of one schedule that wait. An occurrence whose
/// first attempt has begun is carried to its end.
#[must_use]
pub fn supersede_runs(overlap: Overlap, waiting: &[StoredRun], at: Millis) -> Vec<StoredRun> {
    let may_end = |run: &&StoredRun| run.attempt == 1 && run.status.after(RunSignal::Supersede).is_ok();
    let mut first_attempts: Vec<&StoredRun> = waiting.iter().filter(may_end).collect();
    first_attempts.sort_by_key(|run| (run.nominal_time, run.id));
    let superseded = find_superseded(overlap, &first_attempts).iter();
    superseded.map(|run| skip(run, SkipReason::Superseded.text(), at)).collect()
}

/// Requested resolution of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterResolution {
    /// The occurrence runs again, after `waiting` waiting runs of its schedule.
    Redrive {
        waiting: usize,
    },
    Discard,
}

/// Returns the row of a dead letter that is resolved, or the answer to the refused write. A redriven occurrence obeys the
/// bound of the queue, and its dead letter stays open if there is no room. `letter` is None if the tenant has no such
/// letter.
pub fn resolve_letter(
    letter: Option<&StoredDeadLetter>,
    resolution: LetterResolution,
    at: Millis,
) -> Result<StoredDeadLetter, Applied> {
    let letter = letter.ok_or(Applied::Duplicate)?;
    if letter.resolved_at.is_some() {
        return Err(Applied::Conflict);
    }
    let name = match resolution {
        LetterResolution::Redrive { waiting } if !has_room(waiting, 1) => return Err(Applied::QueueFull),
        LetterResolution::Redrive { .. } => "redriven",
        LetterResolution::Discard => "discarded",
    };
    Ok(StoredDeadLetter { resolved_at: Some(at), resolution: Some(name.to_owned()), ..letter.clone() })
}

/// Returns whether an occurrence is deleted with all its attempts, from a run that ended before the given time. The last
/// attempt decides, because earlier ones end before it; a run that failed is never the last. `has_open_letter` is looked up
/// for a dead letter only: one that is not resolved keeps its occurrence.
pub fn may_prune(
    status: RunStatus,
    finished_at: Option<Millis>,
    ended_before: Millis,
    has_open_letter: impl FnOnce() -> StoreResult<bool>,
) -> StoreResult<bool> {
    if finished_at.is_none_or(|at| at >= ended_before) {
        return Ok(false);
    }
    Ok(match status {
        RunStatus::Succeeded | RunStatus::Cancelled | RunStatus::Skipped => true,
        RunStatus::DeadLettered => !has_open_letter()?,
        RunStatus::Failed
        | RunStatus::Pending
        | RunStatus::Claimed
        | RunStatus::Running
        | RunStatus::RetryScheduled => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{new_run, schedule};
    use crate::schedules::{DeadLetterId, ScheduleId, ScheduleRunId};
    use crate::store::StoreError;

    const AT: Millis = Millis(99);

    fn run(id: u128, attempt: u32, status: RunStatus) -> StoredRun {
        StoredRun { attempt, status, ..first_row(&schedule(1, "one"), &new_run(id), Millis(1)) }
    }

    fn plan() -> OccurrencePlan {
        let one = schedule(1, "one");
        OccurrencePlan {
            schedule: one.id,
            revision: one.revision,
            planned_from: one.next_run_at.expect("it is enabled"),
            runs: vec![new_run(1), NewRun { skipped: Some("late".to_owned()), ..new_run(2) }, new_run(3)],
            next_run_at: None,
            at: AT,
        }
    }

    #[test]
    fn sch_02_a_plan_is_made_from_the_newest_times_of_its_schedule() {
        let one = schedule(1, "one");
        let cases = [
            (Some(one.clone()), Applied::Done),
            (Some(StoredSchedule { revision: one.revision + 1, ..one.clone() }), Applied::Conflict),
            (Some(StoredSchedule { next_run_at: Some(AT), ..one.clone() }), Applied::Conflict),
            (Some(StoredSchedule { next_run_at: None, ..one }), Applied::Conflict),
            (None, Applied::Conflict),
        ];
        for (schedule, expected) in cases {
            assert_eq!(judge_plan(schedule.as_ref(), &plan()), expected, "{schedule:?}");
        }
    }

    #[test]
    fn occurrences_beyond_the_bound_are_skipped_and_skipped_ones_take_no_place() {
        use RunStatus::{Pending, Skipped};
        for (waiting, expected) in [
            (0, [Pending, Skipped, Pending]),
            (QUEUE_MAX - 2, [Pending, Skipped, Pending]),
            (QUEUE_MAX - 1, [Pending, Skipped, Skipped]),
            (QUEUE_MAX, [Skipped, Skipped, Skipped]),
        ] {
            let rows = plan_runs(&schedule(1, "one"), &plan(), waiting);
            assert_eq!(rows.iter().map(|row| row.status).collect::<Vec<_>>(), expected, "{waiting} wait");
            assert_eq!(rows[1].error_text.as_deref(), Some("late"));
            let reasons = rows.iter().filter(|row| row.status == Skipped);
            assert!(reasons.clone().all(|row| row.error_text.is_some() && row.finished_at == Some(AT)));
        }
    }

    #[test]
    fn runs_are_added_while_all_of_them_have_room() {
        for (waiting, added, expected) in [
            (None, 1, Applied::Duplicate),
            (Some(0), QUEUE_MAX, Applied::Done),
            (Some(0), QUEUE_MAX + 1, Applied::QueueFull),
            (Some(QUEUE_MAX - 1), 1, Applied::Done),
            (Some(QUEUE_MAX), 1, Applied::QueueFull),
            (Some(QUEUE_MAX), 0, Applied::Done),
        ] {
            assert_eq!(judge_added_runs(waiting, added), expected, "{added} after {waiting:?}");
        }
    }

    #[test]
    fn a_backfill_runs_what_has_no_run_and_what_was_skipped() {
        assert!(is_backfilled([]) && is_backfilled([RunStatus::Skipped; 2]));
        for status in RunStatus::ALL.into_iter().filter(|status| *status != RunStatus::Skipped) {
            assert!(!is_backfilled([RunStatus::Skipped, status]), "{status:?}");
        }
    }

    #[test]
    fn sch_23_the_newest_first_attempt_that_waits_supersedes_the_others() {
        use RunStatus::{Pending, RetryScheduled};
        let waiting = [
            run(5, 1, Pending),
            run(4, 2, Pending),
            run(2, 1, Pending),
            run(3, 2, RetryScheduled),
            run(1, 1, Pending),
        ];
        for (overlap, expected) in [
            (Overlap::Allow, [].as_slice()),
            (Overlap::Forbid, &[]),
            (Overlap::QueueLatest, &[1, 2]),
            (Overlap::Replace, &[1, 2]),
        ] {
            let ended = supersede_runs(overlap, &waiting, AT);
            let found: Vec<_> = ended.iter().map(|run| (run.id, run.status, run.finished_at)).collect();
            let skipped = |id: &u128| (ScheduleRunId(*id), RunStatus::Skipped, Some(AT));
            assert_eq!(found, expected.iter().map(skipped).collect::<Vec<_>>(), "{overlap:?}");
        }
    }

    #[test]
    fn a_dead_letter_is_resolved_once_and_redriven_while_its_queue_has_room() {
        let open = StoredDeadLetter {
            id: DeadLetterId(1),
            tenant: schedule(1, "one").tenant,
            run: ScheduleRunId(1),
            schedule: ScheduleId(1),
            occurrence_key: "one:1".to_owned(),
            reason: "it broke".to_owned(),
            payload_json: None,
            created_at: Millis(5),
            resolved_at: None,
            resolution: None,
        };
        let resolved = StoredDeadLetter { resolved_at: Some(Millis(6)), ..open.clone() };
        let redrive = |waiting| LetterResolution::Redrive { waiting };
        for (letter, resolution, expected) in [
            (None, LetterResolution::Discard, Err(Applied::Duplicate)),
            (None, redrive(QUEUE_MAX), Err(Applied::Duplicate)),
            (Some(&resolved), LetterResolution::Discard, Err(Applied::Conflict)),
            (Some(&resolved), redrive(QUEUE_MAX), Err(Applied::Conflict)),
            (Some(&open), redrive(QUEUE_MAX), Err(Applied::QueueFull)),
            (Some(&open), redrive(QUEUE_MAX - 1), Ok("redriven")),
            (Some(&open), LetterResolution::Discard, Ok("discarded")),
        ] {
            let expected = expected.map(|name| StoredDeadLetter {
                resolved_at: Some(AT),
                resolution: Some(name.to_owned()),
                ..open.clone()
            });
            assert_eq!(resolve_letter(letter, resolution, AT), expected, "{resolution:?}");
        }
    }

    #[test]
    fn an_occurrence_is_pruned_by_its_last_attempt_unless_its_dead_letter_is_open() {
        let check = |status: RunStatus, finished_at: Option<i64>, letter: Option<bool>, expected: bool| {
            let unasked = || StoreError::Corrupt("no letter is to be looked up".to_owned());
            let lookup = || letter.ok_or_else(unasked);
            let found = may_prune(status, finished_at.map(Millis), AT, lookup);
            assert_eq!(found, Ok(expected), "{status:?} at {finished_at:?}, open: {letter:?}");
        };
        for status in [RunStatus::Succeeded, RunStatus::Cancelled, RunStatus::Skipped] {
            check(status, Some(98), None, true);
            check(status, Some(99), None, false);
        }
        check(RunStatus::DeadLettered, Some(98), Some(false), true);
        check(RunStatus::DeadLettered, Some(98), Some(true), false);
        check(RunStatus::DeadLettered, Some(99), None, false);
        check(RunStatus::Failed, Some(1), None, false);
        for status in RunStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
            check(status, None, None, false);
        }
    }
}
