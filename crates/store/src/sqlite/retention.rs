//! Forgetting executions. What finds one goes at once, in one transaction; its journal, values and log lines follow in
//! pieces, so that no commit waits long. The list of what is still to go is a table: a crash loses nothing of it.

use super::columns::{ENDED, id, id_bytes, limit, phase, tenant};
use super::keys::Keys;
use super::lists::{all, key_of};
use super::reader::SqliteReader;
use crate::artifacts::References;
use crate::commit::Applied;
use crate::retention::{Forgettable, Retention};
use crate::store::StoreError;
use crate::usage::{Usage, UsageChanges};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};
use windlass_kernel::{ExecutionId, Millis};

/// Nobody needs an ended execution whose parent has ended too, which has no mail to be read and nothing more to tell. An
/// answer that nobody fetched for as long is waited for no more: whoever asked is gone.
pub(super) const FORGETTABLE: &str = "FROM heads h CROSS JOIN executions e ON e.key = h.key \
     WHERE h.at < ?1 AND h.phase >= 10 \
     AND NOT EXISTS (SELECT 1 FROM executions p JOIN heads q ON q.key = p.key WHERE p.id = e.parent AND q.phase < 10) \
     AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.target IN (e.id, e.parent) AND (i.settled = 0 OR i.at >= ?1)) \
     AND NOT EXISTS (SELECT 1 FROM tellers t WHERE t.execution = e.key AND t.open = 1)";

/// Rows that have an execution's number in a column; each goes with it.
const AT_ONCE: [(&str, &str); 8] = [
    ("heads", "key"),
    ("contexts", "key"),
    ("step_runs", "execution"),
    ("stops", "execution"),
    ("tags", "execution"),
    ("idempotency", "execution"),
    ("tellers", "execution"),
    ("executions", "key"),
];
/// Of these it may have many; with the columns that name a row.
const IN_PIECES: [(&str, &str); 3] =
    [("facts", "execution, run, position"), ("parts", "execution, part, key"), ("deliveries", "place")];

/// `Duplicate`: it is not there, or has not ended.
pub(super) fn forget(
    conn: &Connection,
    keys: &mut Keys,
    execution: ExecutionId,
) -> Result<Applied, StoreError> {
    let Some(key) = key_of(conn, execution)? else { return Ok(Applied::Duplicate) };
    let sql = "INSERT INTO forgotten (key, last, tenant) SELECT h.key, h.last, e.tenant \
               FROM heads h JOIN executions e ON e.key = h.key WHERE h.key = ?1 AND h.phase >= ?2";
    if conn.prepare_cached(sql)?.execute([key, ENDED])? == 0 {
        return Ok(Applied::Duplicate);
    }
    conn.prepare_cached("UPDATE highest_forgotten SET key = max(key, ?1)")?.execute([key])?;
    super::quarantine::remove(conn, execution)?;
    conn.prepare_cached("DELETE FROM inbox WHERE target = ?1 AND settled = 1")?
        .execute([id_bytes(execution)])?;
    for (table, column) in AT_ONCE {
        conn.prepare_cached(&format!("DELETE FROM {table} WHERE {column} = ?1"))?.execute([key])?;
    }
    keys.forget(execution);
    Ok(Applied::Done)
}

/// Takes away at most so many rows of forgotten executions. `Duplicate`: there are none left.
pub(super) fn clear(conn: &Connection, usage: &mut UsageChanges, rows: usize) -> Result<Applied, StoreError> {
    let next = conn
        .prepare_cached("SELECT key, last, tenant FROM forgotten LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?)))
        .optional()?;
    let Some((key, last, owner)) = next else { return Ok(Applied::Duplicate) };
    let mut freed = Usage::default();
    let mut left = rows.saturating_sub(journal(conn, key, last, rows, &mut freed)?);
    if left > 0 {
        left = left.saturating_sub(logs(conn, key, left, &mut freed)?);
    }
    for (table, columns) in IN_PIECES {
        if left > 0 {
            left = left.saturating_sub(piece(conn, table, columns, key, left)?);
        }
    }
    owner.iter().for_each(|owner| usage.add(&tenant(owner), freed));
    if left > 0 {
        conn.prepare_cached("DELETE FROM forgotten WHERE key = ?1")?.execute([key])?;
    }
    Ok(Applied::Done)
}

/// Journal rows from the newest on, each naming the one before it. Where it stopped is where it goes on.
fn journal(
    conn: &Connection,
    key: i64,
    last: Option<i64>,
    rows: usize,
    freed: &mut Usage,
) -> Result<usize, StoreError> {
    let (mut at, mut gone) = (last, 0);
    while let Some(position) = at.filter(|_| gone < rows) {
        let mut statement =
            conn.prepare_cached("DELETE FROM journal WHERE position = ?1 RETURNING before, length(records)")?;
        let row: Option<(Option<i64>, i64)> =
            statement.query_row([position], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        at = row.and_then(|(before, _)| before);
        freed.journal -= row.map_or(0, |(_, bytes)| bytes);
        gone += 1;
    }
    conn.prepare_cached("UPDATE forgotten SET last = ?2 WHERE key = ?1")?.execute(params![key, at])?;
    Ok(gone)
}

fn logs(conn: &Connection, key: i64, rows: usize, freed: &mut Usage) -> Result<usize, StoreError> {
    let sql = "DELETE FROM logs WHERE position IN (SELECT position FROM logs WHERE execution = ?1 LIMIT ?2) \
               RETURNING length(lines)";
    let gone: Vec<i64> = all(conn, sql, params![key, limit(rows)], |row| Ok(row.get(0)?))?;
    freed.logs -= gone.iter().sum::<i64>();
    Ok(gone.len())
}

fn piece(conn: &Connection, table: &str, columns: &str, key: i64, rows: usize) -> Result<usize, StoreError> {
    let sql = format!(
        "DELETE FROM {table} WHERE ({columns}) IN (SELECT {columns} FROM {table} WHERE execution = ?1 LIMIT ?2)"
    );
    Ok(conn.prepare_cached(&sql)?.execute(params![key, limit(rows)])?)
}

impl Retention for SqliteReader {
    fn forgettable(&mut self, ended_before: Millis, count: usize) -> Result<Vec<Forgettable>, StoreError> {
        let sql = format!(
            "SELECT e.id, e.tenant, (SELECT name FROM definitions d WHERE d.id = e.definition), h.phase, h.at \
             {FORGETTABLE} ORDER BY h.at LIMIT ?2"
        );
        self.at_once(|conn| {
            all(conn, &sql, params![ended_before.0, limit(count)], |row| {
                Ok(Forgettable {
                    execution: id(row.get(0)?),
                    tenant: tenant(&row.get::<_, String>(1)?),
                    name: row.get(2)?,
                    phase: phase(row.get(3)?)?,
                    ended_at: Millis(row.get(4)?),
                })
            })
        })
    }

    fn count_forgettable(&mut self, ended_before: Millis) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) {FORGETTABLE}");
        let count: i64 = self.conn.prepare_cached(&sql)?.query_row([ended_before.0], |row| row.get(0))?;
        Ok(count.max(0).cast_unsigned())
    }

    fn referenced(&mut self) -> Result<References, StoreError> {
        self.at_once(referenced)
    }
}

/// Rows that can name an artifact, each with its tenant. Mail for an execution that is not there yet says whose it is to
/// be.
const NAMING: [&str; 11] = [
    "SELECT e.tenant, j.records FROM journal j JOIN executions e ON e.key = j.execution",
    "SELECT tenant, inputs FROM executions",
    "SELECT e.tenant, h.state FROM heads h JOIN executions e ON e.key = h.key",
    "SELECT e.tenant, c.ctx FROM contexts c JOIN executions e ON e.key = c.key",
    "SELECT e.tenant, s.state FROM step_runs s JOIN executions e ON e.key = s.execution",
    "SELECT e.tenant, s.cursor FROM step_runs s JOIN executions e ON e.key = s.execution",
    "SELECT e.tenant, p.value FROM parts p JOIN executions e ON e.key = p.execution",
    "SELECT coalesce(e.tenant, i.letter ->> '$.start.tenant', 'default'), i.letter \
     FROM inbox i LEFT JOIN executions e ON e.id = i.target",
    "SELECT w.tenant, d.workload FROM definitions d JOIN workflows w ON w.key = d.workflow",
    "SELECT DISTINCT w.tenant, n.spec FROM nets n JOIN definitions d ON d.net = n.digest \
     JOIN workflows w ON w.key = d.workflow",
    "SELECT tenant, body FROM deliveries",
];

pub(super) fn referenced(conn: &Connection) -> Result<References, StoreError> {
    let mut found = References::new();
    for sql in NAMING {
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(1)? {
                let keys = keys_in(bytes);
                if !keys.is_empty() {
                    found.entry(tenant(&row.get::<_, String>(0)?)).or_default().extend(keys);
                }
            }
        }
    }
    Ok(found)
}

const KEY: &[u8] = b"sha256:";
const DIGITS: usize = 64;

/// Values are stored with their texts as they are, so a key is found by looking for it.
fn keys_in(bytes: &[u8]) -> Vec<String> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while let Some(at) = rest.windows(KEY.len()).position(|part| part == KEY) {
        rest = &rest[at..];
        let key = rest.get(..KEY.len() + DIGITS).and_then(|key| std::str::from_utf8(key).ok());
        found.extend(key.filter(|key| windlass_artifact::digest(key).is_some()).map(str::to_owned));
        rest = &rest[KEY.len()..];
    }
    found
}
