//! Writes of schedules: each is one transaction with everything that follows from it (K10).

use super::columns::{Columns, ENDED, id_bytes, limit, read_row};
use super::schedules::{self, RUN, read_run};
use super::statements::{execute, query_all, query_count, query_first};
use crate::commit::Applied;
use crate::origin::Tenant;
use crate::rules::{
    FollowUp, LEASE_EXPIRED, QUEUE_MAX, RunClaimFacts, RunEnd, RunEndFacts, dead_letter_id, end_run,
    expire_run, is_queue_full, judge_run_claim, retry_id,
};
use crate::schedules::{
    DeadLetterId, LeaseKey, NewRun, OccurrencePlan, Receipt, RunHolder, RunLease, RunOutcome, RunResult,
    ScheduleId, ScheduleRunId, ScheduleWrite, StoredRun, StoredSchedule,
};
use crate::store::{StoreError, StoreResult};
use rusqlite::{Connection, params};
use windlass_kernel::{ExecutionId, Millis};
use windlass_schedule::{RunSignal, RunStatus, SkipReason, find_superseded};

/// Leases that one write recovers; the next write recovers more.
const EXPIRED_MAX: i64 = 1_000;

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
    let sql = "SELECT count(*) FROM schedule_runs WHERE schedule = ?1 AND status IN ('claimed', 'running') AND id <> ?2";
    query_count(conn, sql, params![schedule.bytes(), except.unwrap_or(ScheduleRunId(0)).bytes()])
}

/// Turns due occurrences into runs. The plan is refused if it was made from times that are not those of the schedule any
/// more, so every occurrence has one run.
fn insert_plan(conn: &Connection, plan: &OccurrencePlan) -> StoreResult<Applied> {
    let sql = "UPDATE schedules SET next_run_at = ?4, updated_at = ?5 WHERE id = ?1 AND revision = ?2 AND next_run_at = ?3";
    let next = plan.next_run_at.map(|at| at.0);
    let revision = plan.revision.cast_signed();
    let is_current =
        execute(conn, sql, params![plan.schedule.bytes(), revision, plan.planned_from.0, next, plan.at.0])?;
    let schedule = if is_current == 1 { schedules::find(conn, plan.schedule)? } else { None };
    let Some(schedule) = schedule else { return Ok(Applied::Conflict) };
    let mut waiting = count_waiting(conn, schedule.id)?;
    for run in &plan.runs {
        match run.skipped.is_none() && is_queue_full(waiting) {
            true => {
                let skipped = Some(SkipReason::QueueFull.text().to_owned());
                insert_new(conn, &schedule, &NewRun { skipped, ..run.clone() }, plan.at)?;
            }
            false => insert_new(conn, &schedule, run, plan.at)?,
        }
        waiting += usize::from(run.skipped.is_none());
    }
    supersede(conn, &schedule, plan.at)?;
    Ok(Applied::Done)
}

/// Counts the runs of a schedule that wait, up to the bound of a queue.
fn count_waiting(conn: &Connection, schedule: ScheduleId) -> StoreResult<usize> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM schedule_runs \
               WHERE schedule = ?1 AND status IN ('pending', 'retry_scheduled') LIMIT ?2)";
    query_count(conn, sql, params![schedule.bytes(), limit(QUEUE_MAX)])
}

fn trigger(
    conn: &Connection,
    tenant: &Tenant,
    schedule: ScheduleId,
    run: &NewRun,
    at: Millis,
) -> StoreResult<Applied> {
    let Some(schedule) = schedules::find_of(conn, tenant, schedule)? else { return Ok(Applied::Duplicate) };
    if is_queue_full(count_waiting(conn, schedule.id)?) {
        return Ok(Applied::Conflict);
    }
    insert_new(conn, &schedule, run, at)?;
    supersede(conn, &schedule, at)?;
    Ok(Applied::Done)
}

/// Adds runs for past occurrences. Those that ran, run or wait are left out, so that two backfills of the same time
/// start nothing twice.
fn backfill(
    conn: &Connection,
    (tenant, schedule): (&Tenant, ScheduleId),
    runs: &[NewRun],
    at: Millis,
) -> StoreResult<Applied> {
    let Some(schedule) = schedules::find_of(conn, tenant, schedule)? else { return Ok(Applied::Duplicate) };
    let mut missing = Vec::new();
    for run in runs {
        let sql =
            "SELECT 1 FROM schedule_runs WHERE schedule = ?1 AND nominal_time = ?2 AND status <> 'skipped'";
        let values = params![schedule.id.bytes(), run.nominal_time.0];
        if query_first(conn, sql, values, |_| Ok(()))?.is_none() {
            missing.push(run);
        }
    }
    if count_waiting(conn, schedule.id)? + missing.len() > QUEUE_MAX {
        return Ok(Applied::Conflict);
    }
    missing.into_iter().try_for_each(|run| insert_new(conn, &schedule, run, at))?;
    supersede(conn, &schedule, at)?;
    Ok(Applied::Done)
}

const INSERT: &str = "INSERT INTO schedule_runs (id, tenant, schedule, occurrence_key, attempt, nominal_time, due_time, \
     status, finished_at, result_json, error_text, retry_available_at, requested_by, created_at, updated_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14) ON CONFLICT DO NOTHING";

fn insert_new(conn: &Connection, schedule: &StoredSchedule, run: &NewRun, at: Millis) -> StoreResult<()> {
    let NewRun { id, occurrence_key, nominal_time, due_time, skipped, note, requested_by } = run;
    let status = if skipped.is_some() { RunStatus::Skipped } else { RunStatus::Pending };
    let finished = skipped.as_ref().map(|_| at.0);
    let values = params![
        id.bytes(),
        schedule.tenant.0,
        schedule.id.bytes(),
        occurrence_key,
        1,
        nominal_time.0,
        due_time.0,
        status.name(),
        finished,
        note,
        skipped,
        None::<i64>,
        requested_by,
        at.0
    ];
    execute(conn, INSERT, values).map(drop)
}

/// Skips runs that wait for their first attempt and that a newer one supersedes.
fn supersede(conn: &Connection, schedule: &StoredSchedule, at: Millis) -> StoreResult<()> {
    if !schedule.policy.overlap.supersedes() {
        return Ok(());
    }
    let sql = format!(
        "{RUN} WHERE schedule = ?1 AND status IN ('pending', 'retry_scheduled') AND status = 'pending' \
         AND attempt = 1 ORDER BY nominal_time, id"
    );
    let waiting = query_all(conn, &sql, [schedule.id.bytes()], read_run)?;
    for run in find_superseded(schedule.policy.overlap, &waiting) {
        let result =
            RunResult { error_text: Some(SkipReason::Superseded.text().to_owned()), ..RunResult::default() };
        set_ended(conn, run.id, signalled(run, RunSignal::Supersede)?, &result, at)?;
    }
    Ok(())
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
    let schedule = schedules::find(conn, run.schedule)?;
    let missing = || StoreError::Corrupt(format!("the schedule of run {:032x} is missing", id.0));
    Ok(Some((run, schedule.ok_or_else(missing)?)))
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

/// Returns the run if it is held under this lease and its status permits the signal, with the status after it.
fn held(
    conn: &Connection,
    (id, key): (ScheduleRunId, LeaseKey),
    signal: RunSignal,
) -> StoreResult<Option<RunStatus>> {
    let Some(run) = find_run(conn, id)? else { return Ok(None) };
    let is_held = lease_of(conn, id)? == Some(key);
    Ok(run.status.after(signal).ok().filter(|_| is_held))
}

fn begin(
    conn: &Connection,
    held_run: (ScheduleRunId, LeaseKey),
    execution: Option<ExecutionId>,
    keeps_lease: bool,
    at: Millis,
) -> StoreResult<Applied> {
    let Some(status) = held(conn, held_run, RunSignal::Start)? else { return Ok(Applied::Fenced) };
    let sql = "UPDATE schedule_runs SET status = ?2, started_at = ?3, execution = ?4, updated_at = ?3 WHERE id = ?1";
    execute(conn, sql, params![held_run.0.bytes(), status.name(), at.0, execution.map(id_bytes)])?;
    if !keeps_lease {
        end_lease(conn, held_run.0)?;
    }
    Ok(Applied::Done)
}

fn release(conn: &Connection, run: ScheduleRunId, key: LeaseKey, at: Millis) -> StoreResult<Applied> {
    let Some(status) = held(conn, (run, key), RunSignal::Release)? else { return Ok(Applied::Fenced) };
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
        let sql =
            "UPDATE worker_leases SET heartbeat_at = ?3, expires_at = ?4 WHERE run = ?1 AND worker_id = ?2";
        if execute(conn, sql, params![run.bytes(), worker_id, at.0, expires_at.0])? == 1 {
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
    set_ended(conn, run.id, end.status, result, at)?;
    for (receipt, number) in result.receipts.iter().zip(1_i64..) {
        let Receipt { receipt_kind, content_type, body } = receipt;
        let sql = "INSERT INTO execution_receipts (run, number, receipt_kind, content_type, body, created_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        execute(conn, sql, params![run.id.bytes(), number, receipt_kind, content_type, body, at.0])?;
    }
    match end.follow_up {
        Some(FollowUp::Retry { attempt, available_at }) => {
            insert_retry(conn, run, attempt, available_at, at)?
        }
        Some(FollowUp::DeadLetter) => insert_letter(conn, run, (schedule, result), at)?,
        None => {}
    }
    end_lease(conn, run.id)?;
    if end.status == RunStatus::Succeeded {
        let sql = "UPDATE schedules SET last_run_at = max(coalesce(last_run_at, 0), ?2) WHERE id = ?1";
        execute(conn, sql, params![run.schedule.bytes(), at.0])?;
    }
    Ok(())
}

fn set_ended(
    conn: &Connection,
    run: ScheduleRunId,
    status: RunStatus,
    result: &RunResult,
    at: Millis,
) -> StoreResult<()> {
    let sql = "UPDATE schedule_runs SET status = ?2, finished_at = ?3, http_status_code = ?4, exit_code = ?5, \
               result_json = coalesce(?6, result_json), error_text = ?7, updated_at = ?3 WHERE id = ?1";
    let RunResult { http_status_code, exit_code, result_json, error_text, .. } = result;
    let values =
        params![run.bytes(), status.name(), at.0, http_status_code, exit_code, result_json, error_text];
    execute(conn, sql, values).map(drop)
}

fn insert_retry(
    conn: &Connection,
    run: &StoredRun,
    attempt: u32,
    available_at: Millis,
    at: Millis,
) -> StoreResult<()> {
    let id = retry_id(&run.occurrence_key, attempt, at);
    let status = RunStatus::RetryScheduled.name();
    let values = params![
        id.bytes(),
        run.tenant.0,
        run.schedule.bytes(),
        run.occurrence_key,
        attempt,
        run.nominal_time.0,
        available_at.0,
        status,
        None::<i64>,
        None::<String>,
        None::<String>,
        available_at.0,
        run.requested_by,
        at.0
    ];
    execute(conn, INSERT, values).map(drop)
}

fn insert_letter(
    conn: &Connection,
    run: &StoredRun,
    (of, result): (&StoredSchedule, &RunResult),
    at: Millis,
) -> StoreResult<()> {
    let sql = "INSERT INTO dead_letters (id, tenant, run, schedule, occurrence_key, reason, payload_json, created_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let id = dead_letter_id(run.id, at);
    let reason = result.error_text.as_deref().unwrap_or_default();
    let payload = result.result_json.as_ref().or(run.result_json.as_ref());
    let (run_id, schedule) = (run.id.bytes(), run.schedule.bytes());
    let values =
        params![id.bytes(), run.tenant.0, run_id, schedule, run.occurrence_key, reason, payload, at.0];
    execute(conn, sql, values)?;
    match &of.dead_letter_url {
        Some(url) => super::notices::insert(conn, id, url, at),
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
    let Some(run) = found else { return Ok(Applied::Duplicate) };
    let waits = matches!(run.status, RunStatus::Pending | RunStatus::RetryScheduled);
    let Ok(status) = run.status.after(RunSignal::Cancel) else { return Ok(Applied::Conflict) };
    if !waits {
        return Ok(Applied::Conflict);
    }
    let result = RunResult { error_text: Some(reason.to_owned()), ..RunResult::default() };
    set_ended(conn, id, status, &result, at)?;
    Ok(Applied::Done)
}

/// Recovers runs whose lease expired; `Duplicate` when there are none.
fn expire(conn: &Connection, at: Millis, only_worker: Option<&str>) -> StoreResult<Applied> {
    let sql = "SELECT run FROM worker_leases WHERE expires_at <= ?1 OR worker_id <> coalesce(?2, worker_id) \
               ORDER BY expires_at LIMIT ?3";
    let expired: Vec<ScheduleRunId> =
        query_all(conn, sql, params![at.0, only_worker, EXPIRED_MAX], |row| row.read(0))?;
    for id in &expired {
        let Some((run, schedule)) = find_with_schedule(conn, *id)? else {
            end_lease(conn, *id)?;
            continue;
        };
        match expire_run(&end_facts(conn, &run, &schedule)?, at) {
            Some(RunEnd { status: status @ RunStatus::Pending, .. }) => set_waiting(conn, *id, status, at)?,
            Some(end) => {
                let error_text = Some(LEASE_EXPIRED.to_owned());
                end_with(
                    conn,
                    (&run, &schedule),
                    end,
                    &RunResult { error_text, ..RunResult::default() },
                    at,
                )?;
            }
            None => end_lease(conn, *id)?,
        }
    }
    Ok(if expired.is_empty() { Applied::Duplicate } else { Applied::Done })
}

/// Deletes the runs of old occurrences. The last run of an occurrence decides, because earlier attempts end before it.
/// Dead letters that are not resolved stay.
fn prune(conn: &Connection, ended_before: Millis, occurrences_max: usize) -> StoreResult<Applied> {
    let sql = "SELECT occurrence_key FROM schedule_runs r WHERE finished_at < ?1 AND finished_at IS NOT NULL \
               AND status <> 'failed' AND NOT EXISTS (SELECT 1 FROM dead_letters d \
               WHERE d.schedule = r.schedule AND d.run = r.id AND d.resolved_at IS NULL) \
               ORDER BY finished_at LIMIT ?2";
    let keys: Vec<String> =
        query_all(conn, sql, params![ended_before.0, limit(occurrences_max)], |row| Ok(row.get(0)?))?;
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

fn resolve(
    conn: &Connection,
    (tenant, id): (&Tenant, DeadLetterId),
    redriven: Option<&NewRun>,
    at: Millis,
) -> StoreResult<Applied> {
    struct Letter {
        schedule: ScheduleId,
        resolved_at: Option<Millis>,
    }
    let sql = "SELECT schedule, resolved_at FROM dead_letters WHERE id = ?1 AND tenant = ?2";
    let found = query_first(conn, sql, params![id.bytes(), tenant.0], |row| {
        Ok(read_row![row, Letter: schedule resolved_at])
    })?;
    let Some(letter) = found else { return Ok(Applied::Duplicate) };
    if letter.resolved_at.is_some() {
        return Ok(Applied::Conflict);
    }
    if let Some(run) = redriven
        && let Some(schedule) = schedules::find(conn, letter.schedule)?
    {
        insert_new(conn, &schedule, run, at)?;
    }
    let sql = "UPDATE dead_letters SET resolved_at = ?2, resolution = ?3 WHERE id = ?1";
    let resolution = if redriven.is_some() { "redriven" } else { "discarded" };
    execute(conn, sql, params![id.bytes(), at.0, resolution])?;
    Ok(Applied::Done)
}
