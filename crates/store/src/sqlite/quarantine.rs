//! The table of suspects.

use super::columns::{ENDED, id, id_bytes, phase_number, tenant};
use super::lists::{all, key_of};
use super::reader::SqliteReader;
use crate::quarantine::{Quarantined, Standing, Suspect};
use crate::store::StoreError;
use rusqlite::{Connection, Row, params};
use windlass_kernel::{ExecutionId, Millis, Outcome, Phase};

const COLUMNS: &str = "SELECT execution, version, deaths, quarantined_at, reason FROM quarantine";

pub(super) fn put(conn: &Connection, suspect: &Suspect) -> Result<usize, StoreError> {
    let sql = "INSERT INTO quarantine (execution, version, deaths, quarantined_at, reason) \
               VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (execution) DO UPDATE SET version = excluded.version, \
               deaths = excluded.deaths, quarantined_at = excluded.quarantined_at, reason = excluded.reason";
    let Suspect { execution, version, deaths, quarantined_at, reason } = suspect;
    let since = quarantined_at.map(|at| at.0);
    let row = params![id_bytes(*execution), version.cast_signed(), deaths, since, reason];
    Ok(conn.prepare_cached(sql)?.execute(row)?)
}

pub(super) fn remove(conn: &Connection, execution: ExecutionId) -> Result<usize, StoreError> {
    let sql = "DELETE FROM quarantine WHERE execution = ?1";
    Ok(conn.prepare_cached(sql)?.execute([id_bytes(execution)])?)
}

/// Only what finds work or counts as open is changed: the rest is for whoever repairs it.
pub(super) fn abandon(conn: &Connection, execution: ExecutionId, at: Millis) -> Result<usize, StoreError> {
    let Some(key) = key_of(conn, execution)? else { return Ok(0) };
    let sql = "UPDATE heads SET phase = ?2, at = ?3, due = NULL, goes_on = 0, held = 0 \
               WHERE key = ?1 AND phase < ?4";
    let cancelled = phase_number(Phase::Ended(Outcome::Cancelled));
    let changed = conn.prepare_cached(sql)?.execute(params![key, cancelled, at.0, ENDED])?;
    if changed == 1 {
        for (table, column) in [("step_runs", "execution"), ("stops", "execution")] {
            conn.prepare_cached(&format!("DELETE FROM {table} WHERE {column} = ?1"))?.execute([key])?;
        }
        let sql = "DELETE FROM inbox WHERE target = ?1 AND settled = 0";
        conn.prepare_cached(sql)?.execute([id_bytes(execution)])?;
        remove(conn, execution)?;
    }
    Ok(changed)
}

pub(super) fn suspect(conn: &Connection, execution: ExecutionId) -> Result<Option<Suspect>, StoreError> {
    let sql = format!("{COLUMNS} WHERE execution = ?1");
    Ok(all(conn, &sql, [id_bytes(execution)], read)?.into_iter().next())
}

fn read(row: &Row<'_>) -> Result<Suspect, StoreError> {
    Ok(Suspect {
        execution: id(row.get(0)?),
        version: row.get::<_, i64>(1)?.cast_unsigned(),
        deaths: row.get(2)?,
        quarantined_at: row.get::<_, Option<i64>>(3)?.map(Millis),
        reason: row.get(4)?,
    })
}

impl Quarantined for SqliteReader {
    fn suspects(&mut self) -> Result<Vec<Suspect>, StoreError> {
        self.at_once(|conn| all(conn, &format!("{COLUMNS} ORDER BY execution"), [], read))
    }

    fn standing(&mut self, execution: ExecutionId) -> Result<Option<Standing>, StoreError> {
        let sql = "SELECT h.version, e.tenant, e.parent FROM executions e LEFT JOIN heads h ON h.key = e.key \
                   WHERE e.id = ?1";
        let read = |row: &Row<'_>| {
            Ok(Standing {
                version: row.get::<_, Option<i64>>(0)?.unwrap_or_default().cast_unsigned(),
                tenant: tenant(&row.get::<_, String>(1)?),
                parent: row.get::<_, Option<_>>(2)?.map(id),
            })
        };
        self.at_once(|conn| Ok(all(conn, sql, [id_bytes(execution)], read)?.into_iter().next()))
    }
}
