//! Retention. The rows that find an execution are deleted at once, in one transaction; its journal, values and log lines
//! follow in pieces, so that no commit waits long. What is still to be deleted is a table, which survives a crash.

use super::columns::{Columns, ENDED, id_bytes, limit};
use super::keys::Keys;
use super::reader::SqliteReader;
use super::statements::{execute, find_key, query_all, query_first};
use super::usage::count_appended;
use super::write::Transaction;
use crate::artifacts::{References, find_keys};
use crate::commit::Applied;
use crate::origin::Tenant;
use crate::retention::{Forgettable, Retention};
use crate::rules::{EndedFacts, may_forget};
use crate::store::StoreResult;
use crate::usage::Usage;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use windlass_kernel::{ExecutionId, Millis};

/// Executions and the facts about them that [`may_forget`] decides on.
const ENDED_FACTS: &str = "SELECT h.phase, h.at, \
     (SELECT q.phase FROM executions p JOIN heads q ON q.key = p.key WHERE p.id = e.parent), \
     EXISTS (SELECT 1 FROM inbox i WHERE i.target IN (e.id, e.parent) AND i.settled = 0), \
     (SELECT max(i.at) FROM inbox i WHERE i.target IN (e.id, e.parent) AND i.settled = 1), \
     EXISTS (SELECT 1 FROM tellers t WHERE t.execution = e.key AND t.open = 1), e.id, e.tenant, e.definition, \
     e.options ->> '$.runner' IS NOT NULL \
     AND EXISTS (SELECT 1 FROM executions c WHERE c.parent = e.id AND c.trigger = 'workflow') \
     FROM heads h CROSS JOIN executions e ON e.key = h.key";

/// Tables with an execution's number in a column; its rows are deleted at once.
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
/// Tables of which an execution may have many rows, with the columns that identify a row.
const IN_PIECES: [(&str, &str); 4] = [
    ("facts", "execution, run, position"),
    ("parts", "execution, part, key"),
    ("deliveries", "place"),
    ("artifact_owners", "execution, artifact"),
];

/// Hides an execution that may be deleted. Work for it may have arrived since it was listed, so the transaction that
/// deletes it looks up the facts.
pub(super) fn forget(
    conn: &Connection,
    keys: &mut Keys,
    execution: ExecutionId,
    ended_before: Millis,
) -> StoreResult<Applied> {
    let Some(key) = find_key(conn, execution)? else { return Ok(Applied::Duplicate) };
    let facts = query_first(conn, &format!("{ENDED_FACTS} WHERE h.key = ?1"), [key], read_facts)?;
    if !facts.is_some_and(|facts| may_forget(&facts, ended_before)) {
        return Ok(Applied::Duplicate);
    }
    let sql = "INSERT INTO forgotten (key, last, tenant) SELECT h.key, h.last, e.tenant \
               FROM heads h JOIN executions e ON e.key = h.key WHERE h.key = ?1";
    execute(conn, sql, [key])?;
    execute(conn, "UPDATE highest_forgotten SET key = max(key, ?1)", [key])?;
    super::quarantine::remove(conn, execution)?;
    execute(conn, "DELETE FROM inbox WHERE target = ?1 AND settled = 1", [id_bytes(execution)])?;
    for (table, column) in AT_ONCE {
        execute(conn, &format!("DELETE FROM {table} WHERE {column} = ?1"), [key])?;
    }
    keys.remove(execution);
    Ok(Applied::Done)
}

/// Deletes at most this many rows of forgotten executions; `Duplicate` when there are none left.
pub(super) fn clear(transaction: &mut Transaction<'_>, rows: usize) -> StoreResult<Applied> {
    let conn = transaction.conn;
    let next = query_first(conn, "SELECT key, last, tenant FROM forgotten LIMIT 1", [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?))
    })?;
    let Some((key, last, owner)) = next else { return Ok(Applied::Duplicate) };
    count_appended(conn, transaction.positions.last)?;
    let mut freed = Usage::default();
    let mut left = rows.saturating_sub(delete_journal(conn, key, last, rows, &mut freed)?);
    if left > 0 {
        left = left.saturating_sub(delete_logs(conn, key, left, &mut freed)?);
    }
    for (table, columns) in IN_PIECES {
        if left > 0 {
            left = left.saturating_sub(delete_rows(conn, table, columns, key, left)?);
        }
    }
    owner.iter().for_each(|owner| transaction.usage.add(&Tenant::new(owner), freed));
    if left > 0 {
        execute(conn, "DELETE FROM forgotten WHERE key = ?1", [key])?;
    }
    Ok(Applied::Done)
}

/// Deletes journal rows from the newest on, each naming the one before it, and notes where to continue.
fn delete_journal(
    conn: &Connection,
    key: i64,
    last: Option<i64>,
    rows: usize,
    freed: &mut Usage,
) -> StoreResult<usize> {
    let (mut at, mut gone) = (last, 0);
    while let Some(position) = at.filter(|_| gone < rows) {
        let sql = "DELETE FROM journal WHERE position = ?1 RETURNING before, length(records)";
        let row: Option<(Option<i64>, i64)> =
            query_all(conn, sql, [position], |row| Ok((row.get(0)?, row.get(1)?)))?.pop();
        at = row.and_then(|(before, _)| before);
        freed.journal -= row.map_or(0, |(_, bytes)| bytes);
        gone += 1;
    }
    execute(conn, "UPDATE forgotten SET last = ?2 WHERE key = ?1", params![key, at])?;
    Ok(gone)
}

fn delete_logs(conn: &Connection, key: i64, rows: usize, freed: &mut Usage) -> StoreResult<usize> {
    let sql = "DELETE FROM logs WHERE position IN (SELECT position FROM logs WHERE execution = ?1 LIMIT ?2) \
               RETURNING length(lines)";
    let gone: Vec<i64> = query_all(conn, sql, params![key, limit(rows)], |row| Ok(row.get(0)?))?;
    freed.logs -= gone.iter().sum::<i64>();
    Ok(gone.len())
}

fn delete_rows(conn: &Connection, table: &str, columns: &str, key: i64, rows: usize) -> StoreResult<usize> {
    let sql = format!(
        "DELETE FROM {table} WHERE ({columns}) IN (SELECT {columns} FROM {table} WHERE execution = ?1 LIMIT ?2)"
    );
    execute(conn, &sql, [key, limit(rows)])
}

fn read_facts(row: &Row<'_>) -> StoreResult<EndedFacts> {
    Ok(EndedFacts {
        phase: row.read(0)?,
        at: row.read(1)?,
        parent: row.read(2)?,
        has_open_mail: row.get(3)?,
        newest_answer: row.read(4)?,
        has_deliveries: row.get(5)?,
        owns_values_of_children: row.get(9)?,
    })
}

/// Calls `take` with every execution that may be forgotten, the longest ended first, until it returns false.
fn walk_forgettable(
    conn: &Connection,
    ended_before: Millis,
    mut take: impl FnMut(&EndedFacts, &Row<'_>) -> StoreResult<bool>,
) -> StoreResult<()> {
    let sql = format!("{ENDED_FACTS} WHERE h.at < ?1 AND h.phase >= ?2 ORDER BY h.at");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([ended_before.0, ENDED])?;
    while let Some(row) = rows.next()? {
        let facts = read_facts(row)?;
        if may_forget(&facts, ended_before) && !take(&facts, row)? {
            break;
        }
    }
    Ok(())
}

impl Retention for SqliteReader {
    fn forgettable(&mut self, ended_before: Millis, count: usize) -> StoreResult<Vec<Forgettable>> {
        let mut found = Vec::new();
        self.at_once(|conn| {
            walk_forgettable(conn, ended_before, |EndedFacts { phase, at, .. }, row| {
                if found.len() == count {
                    return Ok(false);
                }
                let sql = "SELECT name FROM definitions WHERE id = ?1";
                let definition = [row.get::<_, Option<i64>>(8)?];
                let name = query_first(conn, sql, definition, |row| Ok(row.get(0)?))?;
                let (execution, tenant) = (row.read(6)?, row.read(7)?);
                found.push(Forgettable { execution, tenant, name, phase: *phase, ended_at: *at });
                Ok(true)
            })
        })?;
        Ok(found)
    }

    fn count_forgettable(&mut self, ended_before: Millis) -> StoreResult<u64> {
        let mut count = 0;
        walk_forgettable(&self.conn, ended_before, |_, _| {
            count += 1;
            Ok(true)
        })?;
        Ok(count)
    }

    fn referenced(&mut self) -> StoreResult<References> {
        self.at_once(referenced)
    }
}

/// Rows that can refer to an artifact, each with its tenant. Mail for an execution that does not exist yet names the
/// tenant of that execution.
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

pub(super) fn referenced(conn: &Connection) -> StoreResult<References> {
    let mut found = References::new();
    for sql in NAMING {
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(1)? {
                let keys = find_keys(bytes);
                if !keys.is_empty() {
                    found.entry(row.read(0)?).or_default().extend(keys);
                }
            }
        }
    }
    Ok(found)
}
