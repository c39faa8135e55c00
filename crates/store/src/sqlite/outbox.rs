//! Events on their way out.

use super::SqliteReader;
use super::columns::{id, id_bytes, limit, parsed, tenant, workflow};
use super::lists::all;
use crate::origin::{Options, Tenant};
use crate::outbox::{
    DeliveryQuery, DeliveryState, NewDeliveries, NewDelivery, Outbox, StoredDelivery, Teller, Try,
};
use crate::store::StoreError;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use windlass_kernel::{ExecutionId, Millis};

/// With the execution itself.
pub(super) fn begin(conn: &Connection, execution: i64) -> Result<(), StoreError> {
    conn.prepare_cached("INSERT INTO tellers (execution) VALUES (?1)")?.execute([execution])?;
    Ok(())
}

/// Nothing when another number is the last: somebody else was there. While its receiver is given up they are, too.
pub(super) fn add(conn: &Connection, new: &NewDeliveries) -> Result<usize, StoreError> {
    let made = i64::try_from(new.made.len()).unwrap_or(i64::MAX);
    let before = new.made.first().map(|first| first.number.cast_signed() - 1);
    let sql = "UPDATE tellers SET seen = max(seen, ?2), number = number + ?3 \
               WHERE execution = (SELECT key FROM executions WHERE id = ?1) AND number = coalesce(?4, number)";
    let values = params![id_bytes(new.execution), new.seen.cast_signed(), made, before];
    let changed = conn.prepare_cached(sql)?.execute(values)?;
    if changed == 1 {
        for delivery in &new.made {
            insert(conn, new, delivery)?;
        }
    }
    Ok(changed)
}

fn insert(conn: &Connection, new: &NewDeliveries, delivery: &NewDelivery) -> Result<(), StoreError> {
    let sql = "INSERT INTO deliveries (tenant, execution, number, message, event, state, attempts, due, error, \
               created_at, updated_at, body) SELECT e.tenant, e.key, ?2, ?3, ?4, \
               iif(t.given_up IS NULL, 'pending', 'given_up'), 0, iif(t.given_up IS NULL, ?5, NULL), t.given_up, \
               ?5, ?5, ?6 FROM executions e JOIN tellers t ON t.execution = e.key WHERE e.id = ?1";
    let NewDelivery { number, message, event, body } = delivery;
    let (number, message) = (number.cast_signed(), message.cast_signed());
    let values = params![id_bytes(new.execution), number, message, event, new.at.0, body];
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

pub(super) fn tried(conn: &Connection, tried: &Try) -> Result<usize, StoreError> {
    let sql = "UPDATE deliveries SET state = ?3, attempts = ?4, due = ?5, answer = ?6, error = ?7, updated_at = ?8 \
               WHERE execution = (SELECT key FROM executions WHERE id = ?1) AND number = ?2";
    let Try { execution, number, state, attempts, due, answer, error, at } = tried;
    let due = due.map(|due| due.0);
    let values =
        params![id_bytes(*execution), number.cast_signed(), state.name(), attempts, due, answer, error, at.0];
    Ok(conn.prepare_cached(sql)?.execute(values)?)
}

/// The lowest pending number can be given up with all behind it, made or not: whoever does not take one takes none.
pub(super) fn give_up(
    conn: &Connection,
    execution: ExecutionId,
    why: &str,
    at: Millis,
) -> Result<usize, StoreError> {
    let sql = "UPDATE deliveries SET state = 'given_up', due = NULL, error = coalesce(error, ?2), updated_at = ?3 \
               WHERE execution = (SELECT key FROM executions WHERE id = ?1) AND state = 'pending'";
    conn.prepare_cached(sql)?.execute(params![id_bytes(execution), why, at.0])?;
    let sql = "UPDATE tellers SET given_up = ?2 WHERE execution = (SELECT key FROM executions WHERE id = ?1)";
    Ok(conn.prepare_cached(sql)?.execute(params![id_bytes(execution), why])?)
}

/// Only when nothing waits.
pub(super) fn close(conn: &Connection, execution: ExecutionId) -> Result<usize, StoreError> {
    let sql = "UPDATE tellers SET open = 0 WHERE execution = (SELECT key FROM executions WHERE id = ?1) \
               AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.execution = tellers.execution AND d.state = 'pending')";
    Ok(conn.prepare_cached(sql)?.execute([id_bytes(execution)])?)
}

/// Nothing when the tenant has no such delivery. What comes after it is sent again, too.
pub(super) fn redeliver(
    conn: &Connection,
    of: &Tenant,
    execution: ExecutionId,
    number: u64,
    at: Millis,
) -> Result<usize, StoreError> {
    let sql = "UPDATE deliveries SET state = 'pending', attempts = 0, due = ?4, updated_at = ?4 \
               WHERE execution = (SELECT key FROM executions WHERE id = ?2 AND tenant = ?1) AND number = ?3";
    let values = params![of.0, id_bytes(execution), number.cast_signed(), at.0];
    let changed = conn.prepare_cached(sql)?.execute(values)?;
    if changed == 1 {
        let sql = "UPDATE tellers SET open = 1, given_up = NULL \
                   WHERE execution = (SELECT key FROM executions WHERE id = ?1)";
        conn.prepare_cached(sql)?.execute([id_bytes(execution)])?;
    }
    Ok(changed)
}

const TELLER: &str = "SELECT t.execution, e.id, e.tenant, w.id, e.options, t.seen, t.number FROM tellers t \
     CROSS JOIN executions e ON e.key = t.execution LEFT JOIN workflows w ON w.key = e.workflow";

const DELIVERY: &str = "SELECT d.place, e.id, e.options, d.number, d.message, d.event, d.body, d.state, d.attempts, d.due, \
     d.answer, d.error, d.created_at, d.updated_at FROM deliveries d CROSS JOIN executions e ON e.key = d.execution";

impl Outbox for SqliteReader {
    fn tellers(&mut self, after: i64, count: usize) -> Result<Vec<Teller>, StoreError> {
        let sql = format!("{TELLER} WHERE t.open = 1 AND t.execution > ?1 ORDER BY t.execution LIMIT ?2");
        let found = all(&self.conn, &sql, params![after, limit(count)], teller)?;
        Ok(found.into_iter().flatten().collect())
    }

    fn teller(&mut self, execution: ExecutionId) -> Result<Option<Teller>, StoreError> {
        let sql = format!("{TELLER} WHERE e.id = ?1");
        let found = all(&self.conn, &sql, [id_bytes(execution)], teller)?;
        Ok(found.into_iter().flatten().next())
    }

    fn pending(&mut self, execution: ExecutionId, count: usize) -> Result<Vec<StoredDelivery>, StoreError> {
        let sql = format!(
            "{DELIVERY} WHERE d.state = 'pending' AND d.execution = (SELECT key FROM executions WHERE id = ?1) \
             ORDER BY d.number LIMIT ?2"
        );
        all(&self.conn, &sql, params![id_bytes(execution), limit(count)], delivery)
    }

    fn told(&mut self, execution: ExecutionId, event: &str) -> Result<Vec<u64>, StoreError> {
        let sql = "SELECT message FROM deliveries \
                   WHERE execution = (SELECT key FROM executions WHERE id = ?1) AND event = ?2";
        let message = |row: &Row<'_>| Ok(row.get::<_, i64>(0)?.cast_unsigned());
        all(&self.conn, sql, params![id_bytes(execution), event], message)
    }

    fn deliveries(&mut self, query: &DeliveryQuery) -> Result<Vec<StoredDelivery>, StoreError> {
        let mut values: Vec<Value> = vec![query.tenant.0.to_string().into()];
        let mut wheres = vec!["d.tenant = ?1".to_owned()];
        let mut also = |sql: &str, value: Value| {
            values.push(value);
            wheres.push(sql.replace('?', &format!("?{}", values.len())));
        };
        if let Some(execution) = query.execution {
            let sql = "d.execution = (SELECT key FROM executions WHERE id = ?)";
            also(sql, id_bytes(execution).to_vec().into());
        }
        if let Some(number) = query.number {
            also("d.number = ?", number.cast_signed().into());
        }
        if let Some(state) = query.state {
            also("d.state = ?", state.name().to_owned().into());
        }
        if let Some(event) = &query.event {
            also("d.event = ?", event.clone().into());
        }
        if let Some(before) = query.before {
            also("d.place < ?", before.into());
        }
        values.push(limit(query.limit).into());
        let (wheres, last) = (wheres.join(" AND "), values.len());
        let sql = format!("{DELIVERY} WHERE {wheres} ORDER BY d.place DESC LIMIT ?{last}");
        all(&self.conn, &sql, params_from_iter(values), delivery)
    }

    fn backlog(&mut self, bound: usize) -> Result<usize, StoreError> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE state = 'pending' LIMIT ?1)";
        let count: i64 = self.conn.prepare_cached(sql)?.query_row([limit(bound)], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

/// None: its options name no webhook, which no execution of a teller has.
fn teller(row: &Row<'_>) -> Result<Option<Teller>, StoreError> {
    let options: Options = parsed(&row.get::<_, String>(4)?, "options")?;
    let Some(webhook) = options.webhook else { return Ok(None) };
    Ok(Some(Teller {
        place: row.get(0)?,
        execution: id(row.get(1)?),
        tenant: tenant(&row.get::<_, String>(2)?),
        workflow: row.get::<_, Option<_>>(3)?.map(workflow),
        webhook,
        seen: row.get::<_, i64>(5)?.cast_unsigned(),
        number: row.get::<_, i64>(6)?.cast_unsigned(),
    }))
}

fn delivery(row: &Row<'_>) -> Result<StoredDelivery, StoreError> {
    let options: Options = parsed(&row.get::<_, String>(2)?, "options")?;
    let state: String = row.get(7)?;
    let unknown = || StoreError::Corrupt(format!("`{state}` is not the state of a delivery"));
    Ok(StoredDelivery {
        place: row.get(0)?,
        execution: id(row.get(1)?),
        url: options.webhook.map(|webhook| webhook.url).unwrap_or_default(),
        delivery: NewDelivery {
            number: row.get::<_, i64>(3)?.cast_unsigned(),
            message: row.get::<_, i64>(4)?.cast_unsigned(),
            event: row.get(5)?,
            body: row.get(6)?,
        },
        state: DeliveryState::of(&state).ok_or_else(unknown)?,
        attempts: row.get(8)?,
        due: row.get::<_, Option<i64>>(9)?.map(Millis),
        answer: row.get(10)?,
        error: row.get(11)?,
        created_at: Millis(row.get(12)?),
        updated_at: Millis(row.get(13)?),
    })
}
