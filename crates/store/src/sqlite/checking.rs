//! The check of a whole store: what it reads here, and rows that must not exist.

use super::chain;
use super::columns::{Columns as _, limit};
use super::creation::{ORIGIN, ORIGIN_COLUMNS, read_options, read_origin};
use super::reader::{SqliteReader, vanished};
use super::state;
use super::statements::{find_cursor, query_all, query_first};
use crate::check::{Audit, Problem, SealedRow};
use crate::commit::{Creation, Position};
use crate::store::StoreResult;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params};
use std::sync::Arc;
use windlass_kernel::{ExecutionId, RunId};

/// Tables whose rows belong to an execution: the column with its number, and how a row is named.
const OWNED: [(&str, &str, &str); 12] = [
    ("heads", "key", "key"),
    ("contexts", "key", "key"),
    ("step_runs", "execution", "execution || '/' || run"),
    ("parts", "execution", "execution || '/' || part"),
    ("facts", "execution", "execution || '/' || run"),
    ("stops", "execution", "execution || '/' || run"),
    ("logs", "execution", "position"),
    ("tags", "execution", "execution || '/' || tag"),
    ("idempotency", "execution", "workflow || '/' || key"),
    ("tellers", "execution", "execution"),
    ("deliveries", "execution", "place"),
    ("artifact_owners", "execution", "execution || '/' || artifact"),
];

/// Other rows that must not exist: `(table, problem, query)`. The query returns the row and, if it has one, its execution.
const WRONG: [(&str, &str, &str); 10] = [
    (
        "executions",
        "has no head",
        "SELECT e.key, e.id FROM executions e LEFT JOIN heads h ON h.key = e.key WHERE h.key IS NULL",
    ),
    (
        "executions",
        "has a definition that is not there",
        "SELECT e.key, e.id FROM executions e LEFT JOIN definitions d ON d.id = e.definition \
         WHERE e.definition IS NOT NULL AND d.id IS NULL",
    ),
    (
        "definitions",
        "has a net that is not there",
        "SELECT d.id, NULL FROM definitions d LEFT JOIN nets n ON n.digest = d.net WHERE n.key IS NULL",
    ),
    (
        "definitions",
        "is a version of a workflow that is not there",
        "SELECT d.id, NULL FROM definitions d LEFT JOIN workflows w ON w.key = d.workflow WHERE w.key IS NULL",
    ),
    (
        "executions",
        "is of another tenant than its workflow",
        "SELECT e.key, e.id FROM executions e JOIN workflows w ON w.key = e.workflow WHERE w.tenant <> e.tenant",
    ),
    (
        "step_runs",
        "has a lease or a cursor without an open offer",
        "SELECT s.run, e.id FROM step_runs s LEFT JOIN executions e ON e.key = s.execution \
         WHERE (s.class <> 0 AND (s.session IS NOT NULL OR s.cursor IS NOT NULL)) \
         OR (s.session IS NULL) <> (s.claimed_at IS NULL)",
    ),
    (
        "tags",
        "has another phase or tenant than its execution",
        "SELECT t.execution, e.id FROM tags t JOIN heads h ON h.key = t.execution \
         LEFT JOIN executions e ON e.key = h.key WHERE t.phase <> h.phase OR t.tenant <> h.tenant",
    ),
    (
        "parts",
        "waits at a gate and is in no list of its tenant",
        "SELECT p.execution, e.id FROM parts p JOIN executions e ON e.key = p.execution \
         WHERE p.part = 2 AND p.tenant IS NOT e.tenant",
    ),
    (
        "deliveries",
        "waits for a receiver that is given up",
        "SELECT d.place, e.id FROM deliveries d JOIN tellers t ON t.execution = d.execution \
         LEFT JOIN executions e ON e.key = d.execution WHERE d.state = 'pending' AND t.given_up IS NOT NULL",
    ),
    (
        "inbox",
        "is mail for an execution that is not there and that no mail starts",
        "SELECT i.seq, i.target FROM inbox i LEFT JOIN executions e ON e.id = i.target \
         WHERE e.key IS NULL AND i.settled = 0 AND NOT EXISTS \
         (SELECT 1 FROM inbox s WHERE s.target = i.target AND (s.letter -> '$.start' IS NOT NULL OR s.letter -> '$.retry' IS NOT NULL))",
    ),
];

impl Audit for SqliteReader {
    fn medium(&mut self) -> StoreResult<Vec<String>> {
        let found =
            query_all(&self.conn, "PRAGMA integrity_check(100)", [], |row| Ok(row.get::<_, String>(0)?))?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    fn executions(&mut self, after: Option<ExecutionId>, count: usize) -> StoreResult<Vec<ExecutionId>> {
        self.at_once(|conn| {
            let after = after.map_or(Ok(i64::MIN), |id| find_cursor(conn, id))?;
            let sql = "SELECT id FROM executions WHERE key > ?1 ORDER BY key LIMIT ?2";
            query_all(conn, sql, [after, limit(count)], |row| row.read(0))
        })
    }

    fn creation(&mut self, execution: ExecutionId) -> StoreResult<Option<Creation>> {
        self.of(execution, |chain| {
            let sql = format!(
                "SELECT {ORIGIN}, e.net, e.inputs, e.created_at FROM executions e \
                 LEFT JOIN workflows w ON w.key = e.workflow WHERE e.key = ?1"
            );
            query_first(chain.conn, &sql, [chain.key], read_creation)?.ok_or_else(vanished)
        })
    }

    fn sealed(&mut self, after: Position, count: usize) -> StoreResult<Vec<SealedRow>> {
        let sql = "SELECT j.position, j.version, j.commit_id, j.format, j.checksum, j.records, e.id \
                   FROM journal j LEFT JOIN executions e ON e.key = j.execution \
                   WHERE j.position > ?1 AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.key = j.execution) \
                   ORDER BY j.position LIMIT ?2";
        query_all(&self.conn, sql, params![after.0, limit(count)], |row| {
            let (position, version, commit, sealed) = chain::read_sealed(row)?;
            let execution = row.read(6)?;
            Ok(SealedRow { position, execution, version, commit, sealed })
        })
    }

    fn facts(&mut self, execution: ExecutionId) -> StoreResult<Vec<(RunId, Position)>> {
        Ok(self.of(execution, |chain| state::read_facts(chain.conn, chain.key))?.unwrap_or_default())
    }

    fn strays(&mut self, count: usize) -> StoreResult<Vec<Problem>> {
        self.at_once(|conn| {
            let mut found = Vec::new();
            for (table, column, name) in OWNED {
                let sql = format!(
                    "SELECT {name}, NULL FROM {table} \
                     WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.key = {table}.{column}) \
                     AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.key = {table}.{column})"
                );
                found.extend(find_strays(conn, table, "belongs to no execution", &sql, count)?);
            }
            for (table, what, sql) in WRONG {
                found.extend(find_strays(conn, table, what, sql, count)?);
            }
            Ok(found)
        })
    }
}

fn read_creation(row: &Row<'_>) -> StoreResult<Creation> {
    Ok(Creation {
        origin: Arc::new(read_origin(row, read_options(row)?)?),
        net: row.read(ORIGIN_COLUMNS)?,
        inputs: Arc::new(row.json(ORIGIN_COLUMNS + 1, "its inputs")?),
        at: row.read(ORIGIN_COLUMNS + 2)?,
    })
}

fn find_strays(
    conn: &Connection,
    table: &'static str,
    what: &str,
    sql: &str,
    count: usize,
) -> StoreResult<Vec<Problem>> {
    query_all(conn, &format!("{sql} LIMIT ?1"), [limit(count)], |row| {
        let which: Value = row.get(0)?;
        let which = match which {
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => text,
            Value::Null => "without a key".to_owned(),
            Value::Real(number) => number.to_string(),
            Value::Blob(bytes) => format!("of {} bytes", bytes.len()),
        };
        let execution = row.read(1)?;
        Ok(Problem { execution, version: None, table, what: format!("row {which} {what}") })
    })
}
