//! Writes of schedules: each is one transaction with everything that follows from it (K10).

use super::columns::{Columns, ENDED, id_bytes, limit};
use super::schedules::{self, RUN, find_letter, has_status, read_run};
use super::statements::{execute, query_all, query_count, query_first};
use crate::commit::Applied;
use crate::origin::Tenant;
use crate::rules::{
    FollowUp, LeaseRecovery, LetterResolution, QUEUE_MAX, RunClaimFacts, RunEnd, RunEndFacts,
    cancel_waiting_run, end_row, end_run, first_row, is_backfilled, is_lease_over, is_new_attempt,
    judge_added_runs, judge_plan, judge_run_claim, last_run_after, letter_row, may_prune, may_renew,
    plan_runs, recover_lease, resolve_letter, retry_row, signal_held_run, supersede_runs,
};
use crate::schedules::{
    DeadLetterId, LeaseKey, NewRun, OccurrencePlan, Receipt, RunHolder, RunLease, RunOutcome, RunResult,
    ScheduleId, ScheduleRunId, ScheduleWrite, StoredDeadLetter, StoredRun, StoredSchedule,
};
use crate::store::{StoreError, StoreResult};
use rusqlite::{Connection, params};
use windlass_kernel::{ExecutionId, Millis};
use windlass_schedule::{RunSignal, RunStatus};

/// Leases that one write recovers; the next write recovers more.
const EXPIRED_MAX: usize = 1_000;

/// Runs that ended before a time, with what decides about their occurrence.
pub(super) const PRUNABLE: &str = "SELECT occurrence_key, status, finished_at, id, schedule FROM schedule_runs \
     WHERE finished_at < ?1 AND finished_at IS NOT NULL ORDER BY finished_at";

pub(super) fn write(conn: &Connection, write: &ScheduleWrite) -> StoreResult<Applied> {
    match write {
        ScheduleWrite::Create(schedule) => schedules::create(conn, schedule),
        ScheduleWrite::Change { schedule, keeps_times } => schedules::change(conn, schedule, *keeps_times),
        ScheduleWrite::Delete { tenant, schedule } => schedules::delete(conn, tenant, *schedule),
        ScheduleWrite::Plan(plan) => insert_plan(conn, plan),
        ScheduleWrite::Trigger { tenant, schedule, run, at } => trigger(conn, tenant, *schedule, run, *at),
        ScheduleWrite::Backfill { tenant, schedule, runs, at } => {
            backfill(conn, (tenant, *schedule), runs, *at)
        }
        ScheduleWrite::Claim { lease, at } => claim(conn, lease, *at),
        ScheduleWrite::Begin { run, lease_key, execution, keeps_lease, at } => {
            begin(conn, (*run, *lease_key), *execution, *keeps_lease, *at)
        }
        ScheduleWrite::Release { run, lease_key, at } => release(conn, *run, *lease_key, *at),
        ScheduleWrite::Renew { worker_id, held, at, expires_at } => {
            renew(conn, (worker_id, held), *at, *expires_at)
        }
        ScheduleWrite::Finish { run, holder, outcome, result, at } => {
            finish(conn, *run, (*holder, *outcome), result, *at)
        }
        ScheduleWrite::Cancel { tenant, run, reason, at } => cancel(conn, (tenant, *run), reason, *at),
        ScheduleWrite::Expire { at, only_worker } => expire(conn, *at, only_worker.as_deref()),
        ScheduleWrite::Notice(attempt) => super::notices::record(conn, attempt),
        ScheduleWrite::Prune { ended_before, occurrences_max } => {
            prune(conn, *ended_before, *occurrences_max)
        }
        ScheduleWrite::Resolve { tenant, letter, redriven, at } => {
            resolve(conn, (tenant, *letter), redriven.as_deref(), *at)
        }
    }
}

pub(super) fn count_active(
    conn: &Connection,
    schedule: ScheduleId,
    except: Option<ScheduleRunId>,
) -> StoreResult<usize> {
    let is_active = has_status(&RunStatus::ACTIVE);
    let sql = format!("SELECT count(*) FROM schedule_runs WHERE schedule = ?1 AND {is_active} AND id <> ?2");
    query_count(conn, &sql, params![schedule.bytes(), except.unwrap_or(ScheduleRunId(0)).bytes()])
}

/// Turns due occurrences into runs.
fn insert_plan(conn: &Connection, plan: &OccurrencePlan) -> StoreResult<Applied> {
    let found = schedules::find(conn, plan.schedule)?;
    let verdict = judge_plan(found.as_ref(), plan);
    let Some(schedule) = found.filter(|_| verdict == Applied::Done) else { return Ok(verdict) };
    let sql = "UPDATE schedules SET next_run_at = ?2, updated_at = ?3 WHERE id = ?1";
    execute(conn, sql, params![schedule.id.bytes(), plan.next_run_at.map(|at| at.0), plan.at.0])?;
    let rows = plan_runs(&schedule, plan, count_waiting(conn, schedule.id)?);
    add_runs(conn, &schedule, &rows, plan.at)?;
    Ok(Applied::Done)
}

/// Counts the runs of a schedule that wait, up to the bound of a queue.
fn count_waiting(conn: &Connection, schedule: ScheduleId) -> StoreResult<usize> {
    let waits = has_status(&RunStatus::WAITING);
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM schedule_runs WHERE schedule = ?1 AND {waits} LIMIT ?2)"
    );
    query_count(conn, &sql, params![schedule.bytes(), limit(QUEUE_MAX)])
}

fn trigger(
    conn: &Connection,
    tenant: &Tenant,
    schedule: ScheduleId,
    run: &NewRun,
    at: Millis,
) -> StoreResult<Applied> {
    let found = schedules::find_of(conn, tenant, schedule)?;
    add_unplanned(conn, found.as_ref(), [run], at)
}

fn backfill(
    conn: &Connection,
    (tenant, schedule): (&Tenant, ScheduleId),
    runs: &[NewRun],
    at: Millis,
) -> StoreResult<Applied> {
    let found = schedules::find_of(conn, tenant, schedule)?;
    let mut missing = Vec::new();
    for run in runs {
        let sql = "SELECT status FROM schedule_runs WHERE schedule = ?1 AND nominal_time = ?2";
        let statuses =
            query_all(conn, sql, params![schedule.bytes(), run.nominal_time.0], |row| row.read(0))?;
        if is_backfilled(statuses) {
            missing.push(run);
        }
    }
    add_unplanned(conn, found.as_ref(), missing, at)
}

/// Adds runs that no plan contains, or none of them.
fn add_unplanned<'r>(
    conn: &Connection,
    schedule: Option<&StoredSchedule>,
    runs: impl IntoIterator<Item = &'r NewRun, IntoIter: ExactSizeIterator>,
    at: Millis,
) -> StoreResult<Applied> {
    let runs = runs.into_iter();
    let waiting = schedule.map(|schedule| count_waiting(conn, schedule.id)).transpose()?;
    let verdict = judge_added_runs(waiting, runs.len());
    let Some(schedule) = schedule.filter(|_| verdict == Applied::Done) else { return Ok(verdict) };
    let rows: Vec<StoredRun> = runs.map(|run| first_row(schedule, run, at)).collect();
    add_runs(conn, schedule, &rows, at)?;
    Ok(Applied::Done)
}

/// Writes new runs of a schedule with the end of those that they supersede.
fn add_runs(conn: &Connection, schedule: &StoredSchedule, rows: &[StoredRun], at: Millis) -> StoreResult<()> {
    rows.iter().try_for_each(|row| insert_row(conn, row))?;
    let overlap = schedule.policy.overlap;
    if !overlap.supersedes() {
        return Ok(());
    }
    let sql = format!("{RUN} WHERE schedule = ?1 AND {}", has_status(&RunStatus::WAITING));
    let waiting = query_all(conn, &sql, [schedule.id.bytes()], read_run)?;
    supersede_runs(overlap, &waiting, at).iter().try_for_each(|row| write_end(conn, row))
}

/// Inserts the row of a run if it is a new attempt.
fn insert_row(conn: &Connection, run: &StoredRun) -> StoreResult<()> {
    let sql = "SELECT id FROM schedule_runs WHERE id = ?1 OR (occurrence_key = ?2 AND attempt = ?3)";
    let values = params![run.id.bytes(), run.occurrence_key, run.attempt];
    if !is_new_attempt(query_first(conn, sql, values, |row| row.read(0))?) {
        return Ok(());
    }
    let sql = "INSERT INTO schedule_runs (id, tenant, schedule, occurrence_key, attempt, nominal_time, due_time, \
               status, finished_at, result_json, error_text, retry_available_at, requested_by, created_at, updated_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    let StoredRun { id, tenant, schedule, occurrence_key, attempt, nominal_time, due_time, status, .. } = run;
    let values = params![
        id.bytes(),
        tenant.0,
        schedule.bytes(),
        occurrence_key,
        attempt,
        nominal_time.0,
        due_time.0,
        status.name(),
        run.finished_at.map(|at| at.0),
        run.result_json,
        run.error_text,
        run.retry_available_at.map(|at| at.0),
        run.requested_by,
        run.created_at.0,
        run.updated_at.0
    ];
    execute(conn, sql, values).map(drop)
}

/// Writes the columns that change when a run ends.
fn write_end(conn: &Connection, run: &StoredRun) -> StoreResult<()> {
    let sql = "UPDATE schedule_runs SET status = ?2, finished_at = ?3, http_status_code = ?4, exit_code = ?5, \
               result_json = ?6, error_text = ?7, updated_at = ?8 WHERE id = ?1";
    let StoredRun { id, status, http_status_code, exit_code, result_json, error_text, .. } = run;
    let finished_at = run.finished_at.map(|at| at.0);
    let (id, updated_at) = (id.bytes(), run.updated_at.0);
    let values = params![
        id,
        status.name(),
        finished_at,
        http_status_code,
        exit_code,
        result_json,
        error_text,
        updated_at
    ];
    execute(conn, sql, values).map(drop)
}

/// Returns the status after a signal that the run's status permits.
fn signalled(run: &StoredRun, signal: RunSignal) -> StoreResult<RunStatus> {
    run.status.after(signal).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn find_run(conn: &Connection, id: ScheduleRunId) -> StoreResult<Option<StoredRun>> {
    query_first(conn, &format!("{RUN} WHERE id = ?1"), [id.bytes()], read_run)
}

fn find_with_schedule(
    conn: &Connection,
    id: ScheduleRunId,
) -> StoreResult<Option<(StoredRun, StoredSchedule)>> {
    let Some(run) = find_run(conn, id)? else { return Ok(None) };
    let schedule = find_schedule(conn, run.schedule, id)?;
    Ok(Some((run, schedule)))
}

/// Returns the schedule of a run, which exists as long as the run does.
fn find_schedule(conn: &Connection, id: ScheduleId, run: ScheduleRunId) -> StoreResult<StoredSchedule> {
    let missing = || StoreError::Corrupt(format!("the schedule of run {:032x} is missing", run.0));
    schedules::find(conn, id)?.ok_or_else(missing)
}

fn claim(conn: &Connection, lease: &RunLease, at: Millis) -> StoreResult<Applied> {
    let Some((run, schedule)) = find_with_schedule(conn, lease.run)? else { return Ok(Applied::Fenced) };
    let active = count_active(conn, schedule.id, Some(run.id))?;
    let facts = RunClaimFacts {
        status: run.status,
        due_time: run.due_time,
        policy: schedule.policy,
        active: u32::try_from(active).unwrap_or(u32::MAX),
        earlier_is_live: run.attempt > 1 && has_live_execution(conn, &run.occurrence_key)?,
    };
    let verdict = judge_run_claim(&facts, at);
    if verdict != Applied::Done {
        return Ok(verdict);
    }
    let sql = "UPDATE schedule_runs SET status = ?2, claimed_by_worker_id = ?3, claim_expires_at = ?4, updated_at = ?5 \
               WHERE id = ?1";
    let status = signalled(&run, RunSignal::Claim)?;
    execute(conn, sql, params![run.id.bytes(), status.name(), lease.worker_id, lease.expires_at.0, at.0])?;
    let sql = "INSERT INTO worker_leases (run, worker_id, lease_key, acquired_at, heartbeat_at, expires_at) \
               VALUES (?1, ?2, ?3, ?4, ?4, ?5)";
    let key = lease.lease_key.0.cast_signed();
    execute(conn, sql, params![run.id.bytes(), lease.worker_id, key, at.0, lease.expires_at.0])?;
    Ok(Applied::Done)
}

/// Returns whether an execution of an attempt at the occurrence has not ended.
fn has_live_execution(conn: &Connection, occurrence_key: &str) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM schedule_runs r JOIN executions e ON e.id = r.execution JOIN heads h ON h.key = e.key \
               WHERE r.occurrence_key = ?1 AND h.phase < ?2";
    Ok(query_first(conn, sql, params![occurrence_key, ENDED], |_| Ok(()))?.is_some())
}

fn lease_of(conn: &Connection, run: ScheduleRunId) -> StoreResult<Option<LeaseKey>> {
    query_first(conn, "SELECT lease_key FROM worker_leases WHERE run = ?1", [run.bytes()], |row| row.read(0))
}

fn end_lease(conn: &Connection, run: ScheduleRunId) -> StoreResult<()> {
    execute(conn, "DELETE FROM worker_leases WHERE run = ?1", [run.bytes()]).map(drop)
}

/// Returns the status of a run after a signal from the holder of a lease.
fn signal_held(
    conn: &Connection,
    (id, key): (ScheduleRunId, LeaseKey),
    signal: RunSignal,
) -> StoreResult<Option<RunStatus>> {
    let Some(run) = find_run(conn, id)? else { return Ok(None) };
    Ok(signal_held_run(run.status, lease_of(conn, id)?, key, signal))
}

fn begin(
    conn: &Connection,
    held_run: (ScheduleRunId, LeaseKey),
    execution: Option<ExecutionId>,
    keeps_lease: bool,
    at: Millis,
) -> StoreResult<Applied> {
    let Some(status) = signal_held(conn, held_run, RunSignal::Start)? else { return Ok(Applied::Fenced) };
    let sql = "UPDATE schedule_runs SET status = ?2, started_at = ?3, execution = ?4, updated_at = ?3 WHERE id = ?1";
    execute(conn, sql, params![held_run.0.bytes(), status.name(), at.0, execution.map(id_bytes)])?;
    if !keeps_lease {
        end_lease(conn, held_run.0)?;
    }
    Ok(Applied::Done)
}

fn release(conn: &Connection, run: ScheduleRunId, key: LeaseKey, at: Millis) -> StoreResult<Applied> {
    let Some(status) = signal_held(conn, (run, key), RunSignal::Release)? else { return Ok(Applied::Fenced) };
    set_waiting(conn, run, status, at)?;
    Ok(Applied::Done)
}

fn set_waiting(conn: &Connection, run: ScheduleRunId, status: RunStatus, at: Millis) -> StoreResult<()> {
    let sql = "UPDATE schedule_runs SET status = ?2, claimed_by_worker_id = NULL, claim_expires_at = NULL, updated_at = ?3 \
               WHERE id = ?1";
    execute(conn, sql, params![run.bytes(), status.name(), at.0])?;
    end_lease(conn, run)
}

fn renew(
    conn: &Connection,
    (worker_id, held): (&str, &[ScheduleRunId]),
    at: Millis,
    expires_at: Millis,
) -> StoreResult<Applied> {
    let mut renewed = 0;
    for run in held {
        let sql = "SELECT worker_id FROM worker_leases WHERE run = ?1";
        let holder: Option<String> = query_first(conn, sql, [run.bytes()], |row| Ok(row.get(0)?))?;
        if may_renew(holder.as_deref(), worker_id) {
            let sql = "UPDATE worker_leases SET heartbeat_at = ?2, expires_at = ?3 WHERE run = ?1";
            execute(conn, sql, params![run.bytes(), at.0, expires_at.0])?;
            let sql = "UPDATE schedule_runs SET claim_expires_at = ?2 WHERE id = ?1";
            renewed += execute(conn, sql, params![run.bytes(), expires_at.0])?;
        }
    }
    Ok(if renewed > 0 { Applied::Done } else { Applied::Duplicate })
}

fn finish(
    conn: &Connection,
    id: ScheduleRunId,
    (holder, outcome): (RunHolder, RunOutcome),
    result: &RunResult,
    at: Millis,
) -> StoreResult<Applied> {
    let Some((run, schedule)) = find_with_schedule(conn, id)? else { return Ok(Applied::Fenced) };
    let facts = end_facts(conn, &run, &schedule)?;
    let Some(end) = end_run(&facts, holder, outcome, at) else { return Ok(Applied::Fenced) };
    end_with(conn, (&run, &schedule), end, result, at)?;
    Ok(Applied::Done)
}

fn end_facts(conn: &Connection, run: &StoredRun, schedule: &StoredSchedule) -> StoreResult<RunEndFacts> {
    Ok(RunEndFacts {
        status: run.status,
        attempt: run.attempt,
        lease_key: lease_of(conn, run.id)?,
        execution: run.execution,
        retry: schedule.retry,
    })
}

/// Writes the end of a run with its receipts, its follow-up and the end of its lease.
fn end_with(
    conn: &Connection,
    (run, schedule): (&StoredRun, &StoredSchedule),
    end: RunEnd,
    result: &RunResult,
    at: Millis,
) -> StoreResult<()> {
    write_end(conn, &end_row(run, end.status, result, at))?;
    for (receipt, number) in result.receipts.iter().zip(1_i64..) {
        let Receipt { receipt_kind, content_type, body } = receipt;
        let sql = "INSERT INTO execution_receipts (run, number, receipt_kind, content_type, body, created_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        execute(conn, sql, params![run.id.bytes(), number, receipt_kind, content_type, body, at.0])?;
    }
    match end.follow_up {
        Some(FollowUp::Retry { attempt, available_at }) => {
            insert_row(conn, &retry_row(run, attempt, available_at, at))?
        }
        Some(FollowUp::DeadLetter) => insert_letter(conn, schedule, &letter_row(run, result, at))?,
        None => {}
    }
    end_lease(conn, run.id)?;
    if let Some(last_run_at) = last_run_after(schedule.last_run_at, end.status, at) {
        let sql = "UPDATE schedules SET last_run_at = ?2 WHERE id = ?1";
        execute(conn, sql, params![schedule.id.bytes(), last_run_at.0])?;
    }
    Ok(())
}

fn insert_letter(conn: &Connection, of: &StoredSchedule, letter: &StoredDeadLetter) -> StoreResult<()> {
    let sql = "INSERT INTO dead_letters (id, tenant, run, schedule, occurrence_key, reason, payload_json, created_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let StoredDeadLetter {
        id, tenant, run, schedule, occurrence_key, reason, payload_json, created_at, ..
    } = letter;
    let (run, schedule, at) = (run.bytes(), schedule.bytes(), created_at.0);
    let values = params![id.bytes(), tenant.0, run, schedule, occurrence_key, reason, payload_json, at];
    execute(conn, sql, values)?;
    match &of.dead_letter_url {
        Some(url) => super::notices::insert(conn, *id, url, *created_at),
        None => Ok(()),
    }
}

fn cancel(
    conn: &Connection,
    (tenant, id): (&Tenant, ScheduleRunId),
    reason: &str,
    at: Millis,
) -> StoreResult<Applied> {
    let found = find_run(conn, id)?.filter(|run| run.tenant == *tenant);
    match cancel_waiting_run(found.as_ref(), reason, at) {
        Ok(row) => write_end(conn, &row).map(|()| Applied::Done),
        Err(refused) => Ok(refused),
    }
}

/// Recovers runs whose lease expired; `Duplicate` when there are none.
fn expire(conn: &Connection, at: Millis, only_worker: Option<&str>) -> StoreResult<Applied> {
    let sql = "SELECT run, expires_at, worker_id FROM worker_leases WHERE expires_at <= ?1 OR ?2 ORDER BY expires_at";
    let leases = query_all(conn, sql, params![at.0, only_worker.is_some()], |row| {
        let is_over = is_lease_over(row.read(1)?, row.text(2)?, at, only_worker);
        Ok(is_over.then_some(row.read(0)?))
    })?;
    let expired: Vec<ScheduleRunId> = leases.into_iter().flatten().take(EXPIRED_MAX).collect();
    for id in &expired {
        let found = find_with_schedule(conn, *id)?;
        let facts = found.as_ref().map(|(run, schedule)| end_facts(conn, run, schedule)).transpose()?;
        match (recover_lease(facts.as_ref(), at), &found) {
            (LeaseRecovery::Wait(status), _) => set_waiting(conn, *id, status, at)?,
            (LeaseRecovery::Fail { end, result }, Some((run, schedule))) => {
                end_with(conn, (run, schedule), end, &result, at)?;
            }
            (LeaseRecovery::Fail { .. }, None) => unreachable!("a verdict follows from its facts"),
            (LeaseRecovery::Drop, _) => end_lease(conn, *id)?,
        }
    }
    Ok(if expired.is_empty() { Applied::Duplicate } else { Applied::Done })
}

fn prune(conn: &Connection, ended_before: Millis, occurrences_max: usize) -> StoreResult<Applied> {
    let keys = find_prunable(conn, ended_before, occurrences_max)?;
    for key in &keys {
        for sql in [
            "DELETE FROM execution_receipts WHERE run IN (SELECT id FROM schedule_runs WHERE occurrence_key = ?1)",
            "DELETE FROM dead_letter_notices WHERE letter IN (SELECT d.id FROM dead_letters d \
             JOIN schedule_runs r ON r.id = d.run AND r.schedule = d.schedule WHERE r.occurrence_key = ?1)",
            "DELETE FROM dead_letters WHERE (schedule, run) IN \
             (SELECT schedule, id FROM schedule_runs WHERE occurrence_key = ?1)",
            "DELETE FROM schedule_runs WHERE occurrence_key = ?1",
        ] {
            execute(conn, sql, [key])?;
        }
    }
    Ok(if keys.is_empty() { Applied::Duplicate } else { Applied::Done })
}

/// Returns the keys of occurrences that may be deleted, the longest ended first.
fn find_prunable(
    conn: &Connection,
    ended_before: Millis,
    occurrences_max: usize,
) -> StoreResult<Vec<String>> {
    let mut keys = Vec::new();
    let mut statement = conn.prepare_cached(PRUNABLE)?;
    let mut rows = statement.query([ended_before.0])?;
    while let Some(row) = rows.next()?.filter(|_| keys.len() < occurrences_max) {
        let (run, schedule): (ScheduleRunId, ScheduleId) = (row.read(3)?, row.read(4)?);
        let has_open_letter = || {
            let sql = "SELECT 1 FROM dead_letters WHERE schedule = ?1 AND run = ?2 AND resolved_at IS NULL";
            let values = params![schedule.bytes(), run.bytes()];
            Ok(query_first(conn, sql, values, |_| Ok(()))?.is_some())
        };
        if may_prune(row.read(1)?, row.read(2)?, ended_before, has_open_letter)? {
            keys.push(row.get(0)?);
        }
    }
    Ok(keys)
}

fn resolve(
    conn: &Connection,
    (tenant, id): (&Tenant, DeadLetterId),
    redriven: Option<&NewRun>,
    at: Millis,
) -> StoreResult<Applied> {
    let letter = find_letter(conn, tenant, id)?;
    let added = match (&letter, redriven) {
        (Some(letter), Some(run)) => Some((find_schedule(conn, letter.schedule, letter.run)?, run)),
        _ => None,
    };
    let resolution = match &added {
        Some((schedule, _)) => LetterResolution::Redrive { waiting: count_waiting(conn, schedule.id)? },
        None => LetterResolution::Discard,
    };
    let row = match resolve_letter(letter.as_ref(), resolution, at) {
        Ok(row) => row,
        Err(refused) => return Ok(refused),
    };
    if let Some((schedule, run)) = &added {
        add_runs(conn, schedule, &[first_row(schedule, run, at)], at)?;
    }
    let sql = "UPDATE dead_letters SET resolved_at = ?2, resolution = ?3 WHERE id = ?1";
    execute(conn, sql, params![row.id.bytes(), row.resolved_at.map(|at| at.0), row.resolution])?;
    Ok(Applied::Done)
}
