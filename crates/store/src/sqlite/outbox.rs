//! Deliveries of events to webhooks.

use super::SqliteReader;
use super::columns::{Columns, id_bytes, limit, read_row};
use super::statements::{Conditions, execute, find_key, query_all, query_count, query_first};
use crate::commit::Applied;
use crate::origin::{Options, Tenant};
use crate::outbox::{
    DeliveryAttempt, DeliveryQuery, DeliverySource, NewDeliveries, NewDelivery, Outbox, StoredDelivery,
};
use crate::rules::{
    DeliveryStatus, OutboxStatus, begin_delivery, continues_numbering, give_up_receiver,
    judge_outbox_closing, redeliver,
};
use crate::store::StoreResult;
use rusqlite::{Connection, Row, params, params_from_iter};
use windlass_kernel::{ExecutionId, Millis};

/// Adds an execution that has events to deliver, together with its first row.
pub(super) fn begin(conn: &Connection, execution: i64) -> StoreResult<()> {
    execute(conn, "INSERT INTO tellers (execution) VALUES (?1)", [execution]).map(drop)
}

/// Adds deliveries; none when their numbers do not follow.
pub(super) fn add(conn: &Connection, new: &NewDeliveries) -> StoreResult<usize> {
    let sql = "SELECT t.execution, e.tenant, t.number, t.given_up FROM tellers t \
               CROSS JOIN executions e ON e.key = t.execution WHERE e.id = ?1";
    let found = query_first(conn, sql, [id_bytes(new.execution)], |row| {
        Ok((row.get(0)?, row.get(1)?, row.read(2)?, row.get(3)?))
    })?;
    let Some((key, tenant, last, given_up)): Option<(i64, String, u64, Option<String>)> = found else {
        return Ok(0);
    };
    if !continues_numbering(last, new) {
        return Ok(0);
    }
    let sql = "INSERT INTO deliveries (tenant, execution, number, message, event, body, state, attempts, due, error, \
               created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)";
    for NewDelivery { number, message, event, body } in &new.made {
        let DeliveryStatus { state, attempts, due, error, .. } = begin_delivery(given_up.as_deref(), new.at);
        let (number, message, due) = (number.cast_signed(), message.cast_signed(), due.map(|due| due.0));
        let values =
            params![tenant, key, number, message, event, body, state.name(), attempts, due, error, new.at.0];
        execute(conn, sql, values)?;
    }
    let made = i64::try_from(new.made.len()).unwrap_or(i64::MAX);
    let sql = "UPDATE tellers SET seen = max(seen, ?2), number = number + ?3 WHERE execution = ?1";
    execute(conn, sql, [key, new.seen.cast_signed(), made])
}

/// A delivery as its status is changed.
struct Changed {
    execution: i64,
    number: i64,
    status: DeliveryStatus,
}

/// Reads deliveries of an execution whose status may change; `which` narrows them.
fn read_statuses(conn: &Connection, which: &str, values: impl rusqlite::Params) -> StoreResult<Vec<Changed>> {
    let sql = format!(
        "SELECT d.state, d.attempts, d.due, d.answer, d.error, d.execution, d.number FROM deliveries d \
         JOIN executions e ON e.key = d.execution WHERE e.id = ?1 AND {which}"
    );
    query_all(conn, &sql, values, |row| {
        let status = read_row![row, DeliveryStatus: state attempts due answer error];
        Ok(Changed { execution: row.get(5)?, number: row.get(6)?, status })
    })
}

fn write_status(
    conn: &Connection,
    (execution, number): (i64, i64),
    status: &DeliveryStatus,
    at: Millis,
) -> StoreResult<usize> {
    let sql = "UPDATE deliveries SET state = ?3, attempts = ?4, due = ?5, answer = ?6, error = ?7, updated_at = ?8 \
               WHERE execution = ?1 AND number = ?2";
    let DeliveryStatus { state, attempts, due, answer, error } = status;
    let due = due.map(|due| due.0);
    execute(conn, sql, params![execution, number, state.name(), attempts, due, answer, error, at.0])
}

pub(super) fn record_try(conn: &Connection, tried: &DeliveryAttempt) -> StoreResult<usize> {
    let Some(key) = find_key(conn, tried.execution)? else { return Ok(0) };
    let DeliveryAttempt { state, attempts, due, answer, error, at, .. } = tried.clone();
    let status = DeliveryStatus { state, attempts, due, answer, error };
    write_status(conn, (key, tried.number.cast_signed()), &status, at)
}

/// Gives up the receiver of an execution.
pub(super) fn give_up_all(
    conn: &Connection,
    execution: ExecutionId,
    why: &str,
    at: Millis,
) -> StoreResult<usize> {
    let sql = "SELECT t.open, t.given_up, t.execution FROM tellers t JOIN executions e ON e.key = t.execution \
               WHERE e.id = ?1";
    let found = query_first(conn, sql, [id_bytes(execution)], |row| {
        Ok((read_row![row, OutboxStatus: is_open given_up], row.get(2)?))
    })?;
    let Some((outbox, key)) = found else { return Ok(0) };
    let pending = read_statuses(conn, "d.state = 'pending'", [id_bytes(execution)])?;
    let (numbers, pending): (Vec<i64>, _) =
        pending.into_iter().map(|pending| (pending.number, pending.status)).unzip();
    let (outbox, given_up) = give_up_receiver(outbox, pending, why);
    for (number, status) in numbers.into_iter().zip(&given_up) {
        write_status(conn, (key, number), status, at)?;
    }
    write_outbox(conn, key, &outbox)
}

fn write_outbox(conn: &Connection, execution: i64, outbox: &OutboxStatus) -> StoreResult<usize> {
    let sql = "UPDATE tellers SET open = ?2, given_up = ?3 WHERE execution = ?1";
    execute(conn, sql, params![execution, outbox.is_open, outbox.given_up])
}

/// Closes the outbox of an execution.
pub(super) fn close(conn: &Connection, execution: ExecutionId) -> StoreResult<Applied> {
    let sql = "SELECT EXISTS (SELECT 1 FROM deliveries d WHERE d.execution = t.execution AND d.state = 'pending'), \
               t.execution FROM tellers t JOIN executions e ON e.key = t.execution WHERE e.id = ?1";
    let found: Option<(bool, i64)> =
        query_first(conn, sql, [id_bytes(execution)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let verdict = judge_outbox_closing(found.map(|(has_pending, _)| has_pending));
    if let (Applied::Done, Some((_, key))) = (verdict, found) {
        execute(conn, "UPDATE tellers SET open = 0 WHERE execution = ?1", [key])?;
    }
    Ok(verdict)
}

/// Requests one delivery of the tenant once more; those that are made after it are sent again, too.
pub(super) fn request_again(
    conn: &Connection,
    of: &Tenant,
    execution: ExecutionId,
    number: u64,
    at: Millis,
) -> StoreResult<usize> {
    let values = params![id_bytes(execution), of.0, number.cast_signed()];
    let found = read_statuses(conn, "e.tenant = ?2 AND d.number = ?3", values)?.into_iter().next();
    let Some(Changed { execution, number, status }) = found else { return Ok(0) };
    let (outbox, status) = redeliver(status, at);
    write_outbox(conn, execution, &outbox)?;
    write_status(conn, (execution, number), &status, at)
}

const SOURCE: &str = "SELECT t.execution, e.id, e.tenant, w.id, e.options, t.seen, t.number FROM tellers t \
     CROSS JOIN executions e ON e.key = t.execution LEFT JOIN workflows w ON w.key = e.workflow";

const DELIVERY: &str = "SELECT d.number, d.message, d.event, d.body, d.place, e.id, e.options, d.state, d.attempts, d.due, \
     d.answer, d.error, d.created_at, d.updated_at FROM deliveries d CROSS JOIN executions e ON e.key = d.execution";

impl Outbox for SqliteReader {
    fn delivery_sources(&mut self, after: i64, count: usize) -> StoreResult<Vec<DeliverySource>> {
        let sql = format!("{SOURCE} WHERE t.open = 1 AND t.execution > ?1 ORDER BY t.execution LIMIT ?2");
        let found = query_all(&self.conn, &sql, params![after, limit(count)], read_source)?;
        Ok(found.into_iter().flatten().collect())
    }

    fn delivery_source(&mut self, execution: ExecutionId) -> StoreResult<Option<DeliverySource>> {
        let sql = format!("{SOURCE} WHERE e.id = ?1");
        Ok(query_first(&self.conn, &sql, [id_bytes(execution)], read_source)?.flatten())
    }

    fn pending(&mut self, execution: ExecutionId, count: usize) -> StoreResult<Vec<StoredDelivery>> {
        let sql = format!(
            "{DELIVERY} WHERE d.state = 'pending' AND d.execution = (SELECT key FROM executions WHERE id = ?1) \
             ORDER BY d.number LIMIT ?2"
        );
        query_all(&self.conn, &sql, params![id_bytes(execution), limit(count)], read_delivery)
    }

    fn delivered_messages(&mut self, execution: ExecutionId, event: &str) -> StoreResult<Vec<u64>> {
        let sql = "SELECT message FROM deliveries \
                   WHERE execution = (SELECT key FROM executions WHERE id = ?1) AND event = ?2";
        query_all(&self.conn, sql, params![id_bytes(execution), event], |row| row.read(0))
    }

    fn deliveries(&mut self, query: &DeliveryQuery) -> StoreResult<Vec<StoredDelivery>> {
        let mut conditions = Conditions::default();
        conditions.add("d.tenant = ?", query.tenant.0.to_string());
        let execution = query.execution.map(|execution| id_bytes(execution).to_vec());
        conditions.add_if("d.execution = (SELECT key FROM executions WHERE id = ?)", execution);
        conditions.add_if("d.number = ?", query.number.map(u64::cast_signed));
        conditions.add_if("d.state = ?", query.state.map(|state| state.name().to_owned()));
        conditions.add_if("d.event = ?", query.event.clone());
        conditions.add_if("d.place < ?", query.before);
        let (sql, values) = conditions.finish(DELIVERY, "d.place DESC", limit(query.limit));
        query_all(&self.conn, &sql, params_from_iter(values), read_delivery)
    }

    fn backlog(&mut self, bound: usize) -> StoreResult<usize> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE state = 'pending' LIMIT ?1)";
        query_count(&self.conn, sql, [limit(bound)])
    }
}

/// Returns None for options without a webhook, which no execution in this table has.
fn read_source(row: &Row<'_>) -> StoreResult<Option<DeliverySource>> {
    let options: Options = row.json(4, "options")?;
    let Some(webhook) = options.webhook else { return Ok(None) };
    Ok(Some(DeliverySource {
        place: row.get(0)?,
        execution: row.read(1)?,
        tenant: row.read(2)?,
        workflow: row.read(3)?,
        webhook,
        seen: row.read(5)?,
        number: row.read(6)?,
    }))
}

fn read_delivery(row: &Row<'_>) -> StoreResult<StoredDelivery> {
    let options: Options = row.json(6, "options")?;
    Ok(StoredDelivery {
        place: row.get(4)?,
        execution: row.read(5)?,
        url: options.webhook.map(|webhook| webhook.url).unwrap_or_default(),
        delivery: read_row![row, NewDelivery: number message event body],
        state: row.read(7)?,
        attempts: row.get(8)?,
        due: row.read(9)?,
        answer: row.get(10)?,
        error: row.get(11)?,
        created_at: row.read(12)?,
        updated_at: row.read(13)?,
    })
}
