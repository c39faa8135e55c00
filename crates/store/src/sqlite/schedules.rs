//! Schedules, and the lists of their runs and dead letters.

use super::SqliteReader;
use super::columns::{Column, Columns, json, limit, read_row, workflow_bytes};
use super::schedule_runs::count_active;
use super::statements::{Conditions, execute, query_all, query_count, query_first};
use crate::commit::{Applied, WorkflowId};
use crate::origin::Tenant;
use crate::rules::{
    ScheduleFacts, TriggeredChange, TriggeredFacts, change_schedule, is_name_taken, judge_schedule_deletion,
    replace_triggered,
};
use crate::schedules::{
    Attention, ChainQuery, DeadLetterId, DeadLetterNotice, DeadLetterQuery, LeaseKey, Receipt, RunQuery,
    ScheduleId, ScheduleLoad, ScheduleQuery, ScheduleRunId, Schedules, StoredDeadLetter, StoredRun,
    StoredSchedule, WaitingPage, WaitingQuery,
};
use crate::store::{StoreError, StoreResult};
use rusqlite::{Connection, Row, params, params_from_iter};
use windlass_kernel::Millis;
use windlass_schedule::RunStatus;

/// Ids as columns.
macro_rules! id_columns {
    ($($type:ident)*) => {
        $(impl Column for $type {
            fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
                let bytes: [u8; 16] = row.get(column)?;
                Ok($type(u128::from_be_bytes(bytes)))
            }
        }

        impl $type {
            pub(super) fn bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }
        })*
    };
}

id_columns! { ScheduleId ScheduleRunId DeadLetterId }

impl Column for RunStatus {
    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        let name = row.text(column)?;
        RunStatus::of_name(name)
            .ok_or_else(|| StoreError::Corrupt(format!("`{name}` is not the status of a run")))
    }
}

impl Column for LeaseKey {
    fn read(row: &Row<'_>, column: usize) -> StoreResult<Self> {
        row.read(column).map(LeaseKey)
    }
}

const SCHEDULE: &str = "SELECT id, tenant, name, enabled, spec, policy, retry, revision, paused_at, next_run_at, \
     last_run_at, definition, workflow, dead_letter_url, created_at, updated_at FROM schedules";

pub(super) const DUE: &str = "SELECT id, tenant, name, enabled, spec, policy, retry, revision, paused_at, next_run_at, \
     last_run_at, definition, workflow, dead_letter_url, created_at, updated_at FROM schedules \
     WHERE enabled = 1 AND next_run_at <= ?1 ORDER BY next_run_at LIMIT ?2";

pub(super) const DUE_LATEST: &str = "SELECT id, tenant, name, enabled, spec, policy, retry, revision, paused_at, next_run_at, \
     last_run_at, definition, workflow, dead_letter_url, created_at, updated_at FROM schedules \
     WHERE enabled = 1 AND next_run_at <= ?1 ORDER BY next_run_at DESC LIMIT ?2";

pub(super) const RUN: &str = "SELECT id, tenant, schedule, occurrence_key, attempt, nominal_time, due_time, status, \
     claimed_by_worker_id, claim_expires_at, started_at, finished_at, http_status_code, exit_code, result_json, error_text, \
     retry_available_at, execution, requested_by, created_at, updated_at FROM schedule_runs";

pub(super) const LETTER_COLUMNS: &str = "d.id, d.tenant, d.run, d.schedule, d.occurrence_key, d.reason, d.payload_json, \
     d.created_at, d.resolved_at, d.resolution";

const LETTER: &str = "SELECT id, tenant, run, schedule, occurrence_key, reason, payload_json, created_at, resolved_at, \
     resolution FROM dead_letters";

fn read_schedule(row: &Row<'_>) -> StoreResult<StoredSchedule> {
    Ok(StoredSchedule {
        id: row.read(0)?,
        tenant: row.read(1)?,
        name: row.get(2)?,
        enabled: row.get(3)?,
        spec: row.get(4)?,
        policy: row.json(5, "the policy of a schedule")?,
        retry: row.json(6, "the retry policy of a schedule")?,
        revision: row.read(7)?,
        paused_at: row.read(8)?,
        next_run_at: row.read(9)?,
        last_run_at: row.read(10)?,
        definition: row.read(11)?,
        workflow: row.read(12)?,
        dead_letter_url: row.get(13)?,
        created_at: row.read(14)?,
        updated_at: row.read(15)?,
    })
}

pub(super) fn read_run(row: &Row<'_>) -> StoreResult<StoredRun> {
    Ok(read_row![row, StoredRun: id tenant schedule occurrence_key attempt nominal_time due_time status
        claimed_by_worker_id claim_expires_at started_at finished_at http_status_code exit_code result_json error_text
        retry_available_at execution requested_by created_at updated_at])
}

pub(super) fn read_letter(row: &Row<'_>) -> StoreResult<StoredDeadLetter> {
    Ok(read_row![row, StoredDeadLetter: id tenant run schedule occurrence_key reason payload_json created_at
        resolved_at resolution])
}

pub(super) fn find_letter(
    conn: &Connection,
    tenant: &Tenant,
    id: DeadLetterId,
) -> StoreResult<Option<StoredDeadLetter>> {
    let sql = format!("{LETTER} WHERE id = ?1 AND tenant = ?2");
    query_first(conn, &sql, params![id.bytes(), tenant.0], read_letter)
}

pub(super) fn find(conn: &Connection, id: ScheduleId) -> StoreResult<Option<StoredSchedule>> {
    query_first(conn, &format!("{SCHEDULE} WHERE id = ?1"), [id.bytes()], read_schedule)
}

pub(super) fn find_of(
    conn: &Connection,
    tenant: &Tenant,
    id: ScheduleId,
) -> StoreResult<Option<StoredSchedule>> {
    Ok(find(conn, id)?.filter(|schedule| schedule.tenant == *tenant))
}

/// Returns the schedule of a tenant that has a name.
fn find_name_holder(conn: &Connection, tenant: &Tenant, name: &str) -> StoreResult<Option<ScheduleId>> {
    let sql = "SELECT id FROM schedules WHERE tenant = ?1 AND name = ?2";
    query_first(conn, sql, params![tenant.0, name], |row| row.read(0))
}

pub(super) fn create(conn: &Connection, schedule: &StoredSchedule) -> StoreResult<Applied> {
    if is_name_taken(schedule.id, find_name_holder(conn, &schedule.tenant, &schedule.name)?) {
        return Ok(Applied::Taken);
    }
    let created = insert(conn, schedule)?;
    Ok(if created == 1 { Applied::Done } else { Applied::Duplicate })
}

fn insert(conn: &Connection, schedule: &StoredSchedule) -> StoreResult<usize> {
    let sql = "INSERT INTO schedules (id, tenant, name, enabled, spec, policy, retry, revision, paused_at, next_run_at, \
               last_run_at, created_at, updated_at, definition, workflow, dead_letter_url) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) \
               ON CONFLICT DO NOTHING";
    let StoredSchedule { id, tenant, name, enabled, spec, policy, retry, revision, .. } = schedule;
    let (paused, next) = (schedule.paused_at.map(|at| at.0), schedule.next_run_at.map(|at| at.0));
    let last = schedule.last_run_at.map(|at| at.0);
    let (policy, retry, revision) = (json(policy), json(retry), revision.cast_signed());
    let values = params![
        id.bytes(),
        tenant.0,
        name,
        enabled,
        spec,
        policy,
        retry,
        revision,
        paused,
        next,
        last,
        schedule.created_at.0,
        schedule.updated_at.0,
        schedule.definition.map(workflow_bytes),
        schedule.workflow.map(workflow_bytes),
        schedule.dead_letter_url
    ];
    execute(conn, sql, values)
}

pub(super) fn change(
    conn: &Connection,
    schedule: &StoredSchedule,
    keeps_times: bool,
) -> StoreResult<Applied> {
    let known = find_of(conn, &schedule.tenant, schedule.id)?;
    let name_holder = find_name_holder(conn, &schedule.tenant, &schedule.name)?;
    let facts = ScheduleFacts { known: known.as_ref(), name_holder };
    match change_schedule(schedule, facts, keeps_times) {
        Ok(row) => update(conn, &row).map(|()| Applied::Done),
        Err(refused) => Ok(refused),
    }
}

fn update(conn: &Connection, schedule: &StoredSchedule) -> StoreResult<()> {
    let sql = "UPDATE schedules SET name = ?2, enabled = ?3, spec = ?4, policy = ?5, retry = ?6, revision = ?7, \
               paused_at = ?8, next_run_at = ?9, updated_at = ?10, definition = ?11, dead_letter_url = ?12 WHERE id = ?1";
    let StoredSchedule { id, name, enabled, spec, policy, retry, revision, updated_at, .. } = schedule;
    let (paused, next) = (schedule.paused_at.map(|at| at.0), schedule.next_run_at.map(|at| at.0));
    let values = params![
        id.bytes(),
        name,
        enabled,
        spec,
        json(policy),
        json(retry),
        revision.cast_signed(),
        paused,
        next,
        updated_at.0,
        schedule.definition.map(workflow_bytes),
        schedule.dead_letter_url
    ];
    execute(conn, sql, values).map(drop)
}

pub(super) fn delete(conn: &Connection, tenant: &Tenant, id: ScheduleId) -> StoreResult<Applied> {
    let active = match find_of(conn, tenant, id)? {
        Some(found) => Some(count_active(conn, found.id, None)?),
        None => None,
    };
    let verdict = judge_schedule_deletion(active);
    if verdict == Applied::Done {
        delete_rows(conn, id)?;
    }
    Ok(verdict)
}

fn delete_rows(conn: &Connection, id: ScheduleId) -> StoreResult<()> {
    for sql in [
        "DELETE FROM execution_receipts WHERE run IN (SELECT id FROM schedule_runs WHERE schedule = ?1)",
        "DELETE FROM dead_letter_notices WHERE letter IN (SELECT id FROM dead_letters WHERE schedule = ?1)",
        "DELETE FROM dead_letters WHERE schedule = ?1",
        "DELETE FROM schedule_runs WHERE schedule = ?1",
        "DELETE FROM schedules WHERE id = ?1",
    ] {
        execute(conn, sql, [id.bytes()])?;
    }
    Ok(())
}

/// Returns the condition that a run has one of these statuses. The partial indexes have the same text, so the statuses are
/// written and not bound.
pub(super) fn has_status(statuses: &[RunStatus]) -> String {
    let names: Vec<String> = statuses.iter().map(|status| format!("'{}'", status.name())).collect();
    format!("status IN ({})", names.join(", "))
}

/// Returns the query for schedules with runs that wait, found one after the other by the index: however long a queue is, it
/// costs one step.
pub(super) fn queues_query() -> String {
    let waits = has_status(&RunStatus::WAITING);
    format!(
        "WITH RECURSIVE queues (schedule, number) AS ( \
         SELECT min(schedule), 1 FROM schedule_runs WHERE {waits} AND schedule > ?1 \
         UNION ALL SELECT (SELECT min(r.schedule) FROM schedule_runs r WHERE r.{waits} \
         AND r.schedule > queues.schedule), number + 1 FROM queues WHERE queues.schedule IS NOT NULL AND number < ?2) \
         SELECT schedule FROM queues WHERE schedule IS NOT NULL"
    )
}

/// Looks up what the rules want to know about the schedules of a tenant.
struct Lookups<'l> {
    conn: &'l Connection,
    tenant: &'l Tenant,
}

impl TriggeredFacts for Lookups<'_> {
    fn name_holder(&mut self, name: &str) -> StoreResult<Option<ScheduleId>> {
        find_name_holder(self.conn, self.tenant, name)
    }

    fn count_active(&mut self, schedule: ScheduleId) -> StoreResult<usize> {
        count_active(self.conn, schedule, None)
    }
}

/// Makes these the schedules of a workflow's triggers.
pub(super) fn write_triggered(
    conn: &Connection,
    (tenant, workflow): (&Tenant, WorkflowId),
    wanted: &[StoredSchedule],
) -> StoreResult<()> {
    let sql = format!("{SCHEDULE} WHERE workflow = ?1");
    let known = query_all(conn, &sql, [workflow_bytes(workflow)], read_schedule)?;
    for change in replace_triggered(workflow, wanted, &known, &mut Lookups { conn, tenant })? {
        match change {
            TriggeredChange::Create(schedule) => drop(insert(conn, &schedule)?),
            TriggeredChange::Replace(schedule) => update(conn, &schedule)?,
            TriggeredChange::Delete(id) => delete_rows(conn, id)?,
        }
    }
    Ok(())
}

/// Returns the query for the due runs of one schedule that wait.
pub(super) fn waiting_query() -> String {
    let waits = has_status(&RunStatus::WAITING);
    format!("{RUN} WHERE schedule = ?1 AND {waits} AND due_time <= ?2 ORDER BY due_time, id LIMIT ?3")
}

impl Schedules for SqliteReader {
    fn schedule(&mut self, tenant: &Tenant, id: ScheduleId) -> StoreResult<Option<StoredSchedule>> {
        find_of(&self.conn, tenant, id)
    }

    fn schedules(&mut self, query: &ScheduleQuery) -> StoreResult<Vec<StoredSchedule>> {
        let mut conditions = Conditions::default();
        conditions.add("tenant = ?", query.tenant.0.to_string());
        conditions.add_if("enabled = ?", query.enabled.map(i64::from));
        conditions.add_if("name = ?", query.name.clone());
        conditions.add_if("id < ?", query.before.map(|id| id.bytes().to_vec()));
        let (sql, values) = conditions.finish(SCHEDULE, "id DESC", limit(query.limit));
        query_all(&self.conn, &sql, params_from_iter(values), read_schedule)
    }

    fn due_schedules(&mut self, until: Millis, count: usize) -> StoreResult<Vec<StoredSchedule>> {
        let half = limit(count.div_ceil(2));
        self.at_once(|conn| {
            let mut found = query_all(conn, DUE, params![until.0, half], read_schedule)?;
            for latest in query_all(conn, DUE_LATEST, params![until.0, half], read_schedule)? {
                if !found.iter().any(|earliest| earliest.id == latest.id) {
                    found.push(latest);
                }
            }
            Ok(found)
        })
    }

    fn schedule_run(&mut self, tenant: &Tenant, id: ScheduleRunId) -> StoreResult<Option<StoredRun>> {
        let sql = format!("{RUN} WHERE id = ?1 AND tenant = ?2");
        query_first(&self.conn, &sql, params![id.bytes(), tenant.0], read_run)
    }

    fn schedule_runs(&mut self, query: &RunQuery) -> StoreResult<Vec<StoredRun>> {
        let mut conditions = Conditions::default();
        conditions.add("tenant = ?", query.tenant.0.to_string());
        conditions.add_if("schedule = ?", query.schedule.map(|id| id.bytes().to_vec()));
        conditions.add_if("status = ?", query.status.map(|status| status.name().to_owned()));
        conditions.add_if("id < ?", query.before.map(|id| id.bytes().to_vec()));
        let (sql, values) = conditions.finish(RUN, "id DESC", limit(query.limit));
        query_all(&self.conn, &sql, params_from_iter(values), read_run)
    }

    fn waiting_runs(&mut self, query: WaitingQuery) -> StoreResult<WaitingPage> {
        let WaitingQuery { after, until, schedules, each } = query;
        self.at_once(|conn| {
            let values = params![after.bytes(), limit(schedules)];
            let queues: Vec<ScheduleId> = query_all(conn, &queues_query(), values, |row| row.read(0))?;
            let mut page = WaitingPage { runs: Vec::new(), last: queues.last().copied() };
            let sql = waiting_query();
            for schedule in queues {
                let values = params![schedule.bytes(), until.0, limit(each)];
                page.runs.extend(query_all(conn, &sql, values, read_run)?);
            }
            Ok(page)
        })
    }

    fn active_runs(&mut self, schedule: ScheduleId, count: usize) -> StoreResult<Vec<StoredRun>> {
        let is_active = has_status(&RunStatus::ACTIVE);
        let sql = format!("{RUN} WHERE schedule = ?1 AND {is_active} ORDER BY id LIMIT ?2");
        query_all(&self.conn, &sql, params![schedule.bytes(), limit(count)], read_run)
    }

    fn runs_of_executions(
        &mut self,
        after: Option<ScheduleRunId>,
        count: usize,
    ) -> StoreResult<Vec<StoredRun>> {
        // The first condition is that of the index.
        let is_active = has_status(&RunStatus::ACTIVE);
        let sql = format!(
            "{RUN} WHERE {is_active} AND status = ?3 AND id > ?1 \
             AND NOT EXISTS (SELECT 1 FROM worker_leases l WHERE l.run = schedule_runs.id) ORDER BY id LIMIT ?2"
        );
        let after = after.unwrap_or(ScheduleRunId(0));
        let values = params![after.bytes(), limit(count), RunStatus::Running.name()];
        query_all(&self.conn, &sql, values, read_run)
    }

    fn next_attention(&mut self, after: Millis) -> StoreResult<Attention> {
        let waits = has_status(&RunStatus::WAITING);
        let sql = format!(
            "SELECT (SELECT min(next_run_at) FROM schedules WHERE enabled = 1), \
             (SELECT min(due_time) FROM schedule_runs WHERE {waits} AND due_time > ?1), \
             (SELECT min(expires_at) FROM worker_leases), \
             (SELECT min(due) FROM dead_letter_notices WHERE due IS NOT NULL)"
        );
        let found = query_first(&self.conn, &sql, [after.0], |row| {
            Ok(read_row![row, Attention: occurrence run lease_expiry notice])
        })?;
        Ok(found.unwrap_or_default())
    }

    fn nominal_runs(
        &mut self,
        schedule: ScheduleId,
        (from, to): (Millis, Millis),
        count: usize,
    ) -> StoreResult<Vec<StoredRun>> {
        let sql = format!(
            "{RUN} WHERE schedule = ?1 AND nominal_time BETWEEN ?2 AND ?3 ORDER BY nominal_time, attempt LIMIT ?4"
        );
        query_all(&self.conn, &sql, params![schedule.bytes(), from.0, to.0, limit(count)], read_run)
    }

    fn chains(&mut self, query: &ChainQuery) -> StoreResult<Vec<StoredRun>> {
        // SQLite uses the index for `nominal_time <=` only, not for the comparison of pairs.
        let sql = format!(
            "{RUN} WHERE schedule = ?1 AND occurrence_key IN (SELECT occurrence_key FROM schedule_runs \
             WHERE schedule = ?1 AND attempt = 1 AND nominal_time <= ?3 AND (nominal_time, occurrence_key) < (?3, ?4) \
             ORDER BY nominal_time DESC, occurrence_key DESC LIMIT ?2) \
             ORDER BY nominal_time DESC, occurrence_key DESC, attempt"
        );
        let (at, key) = query.before.as_ref().map_or((i64::MAX, ""), |(at, key)| (at.0, key.as_str()));
        query_all(&self.conn, &sql, params![query.schedule.bytes(), limit(query.limit), at, key], read_run)
    }

    fn due_notices(&mut self, until: Millis, count: usize) -> StoreResult<Vec<DeadLetterNotice>> {
        super::notices::find_due(&self.conn, until, count)
    }

    fn count_schedules(&mut self, tenant: &Tenant) -> StoreResult<usize> {
        query_count(&self.conn, "SELECT count(*) FROM schedules WHERE tenant = ?1", [&tenant.0])
    }

    fn schedule_load(&mut self, now: Millis) -> StoreResult<ScheduleLoad> {
        let (waits, is_active) = (has_status(&RunStatus::WAITING), has_status(&RunStatus::ACTIVE));
        let sql = format!(
            "SELECT (SELECT count(*) FROM schedules), (SELECT count(*) FROM schedules WHERE enabled = 1), \
             (SELECT count(*) FROM schedule_runs WHERE {waits} AND due_time <= ?1), \
             (SELECT count(*) FROM schedule_runs WHERE {waits} AND due_time > ?1), \
             (SELECT count(*) FROM schedule_runs WHERE {is_active}), \
             (SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL)"
        );
        let found = query_first(&self.conn, &sql, [now.0], |row| {
            Ok(read_row![row, ScheduleLoad: schedules enabled due waiting active dead_letters])
        })?;
        Ok(found.unwrap_or_default())
    }

    fn receipts(&mut self, run: ScheduleRunId) -> StoreResult<Vec<(Receipt, Millis)>> {
        let sql = "SELECT receipt_kind, content_type, body, created_at FROM execution_receipts WHERE run = ?1 \
                   ORDER BY number";
        query_all(&self.conn, sql, [run.bytes()], |row| {
            Ok((read_row![row, Receipt: receipt_kind content_type body], row.read(3)?))
        })
    }

    fn dead_letter(&mut self, tenant: &Tenant, id: DeadLetterId) -> StoreResult<Option<StoredDeadLetter>> {
        find_letter(&self.conn, tenant, id)
    }

    fn dead_letters(&mut self, query: &DeadLetterQuery) -> StoreResult<Vec<StoredDeadLetter>> {
        let mut conditions = Conditions::default();
        conditions.add("tenant = ?", query.tenant.0.to_string());
        conditions.add_if("schedule = ?", query.schedule.map(|id| id.bytes().to_vec()));
        conditions.add_if("id < ?", query.before.map(|id| id.bytes().to_vec()));
        let (sql, values) = conditions.finish(LETTER, "id DESC", limit(query.limit));
        query_all(&self.conn, &sql, params_from_iter(values), read_letter)
    }
}
