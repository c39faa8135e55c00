//! Rows of an execution's state that change in place.

use crate::commit::Lease;
use crate::rows::{LiveRun, PartRow};
use crate::store::StoreError;
use rusqlite::{Connection, params};
use windlass_kernel::RunId;

/// The row stays where it is. A new offer clears the lease of the one before.
pub(super) fn refresh(
    conn: &Connection,
    key: i64,
    run: RunId,
    row: &LiveRun,
    lease: Option<&Lease>,
) -> Result<(), StoreError> {
    let fence = row.fence.map(|fence| fence.0.cast_signed());
    let changed = conn
        .prepare_cached(
            "UPDATE step_runs SET due = ?5, state = ?6, fence = ?4, \
             session = iif(fence IS ?4, session, NULL), claimed_at = iif(fence IS ?4, claimed_at, NULL), \
             started_at = iif(fence IS ?4, started_at, NULL), cursor = iif(fence IS ?4, cursor, NULL), \
             progress = iif(fence IS ?4, progress, NULL) \
             WHERE class = ?1 AND execution = ?2 AND run = ?3",
        )?
        .execute(params![
            row.class as i64,
            key,
            run.0.cast_signed(),
            fence,
            row.due.map(|due| due.0),
            row.state
        ])?;
    one(changed, "a step-run that goes on")?;
    let Some(lease) = lease else { return Ok(()) };
    conn.prepare_cached(
        "UPDATE step_runs SET session = ?4, claimed_at = ?5, started_at = ?6 \
         WHERE class = ?1 AND execution = ?2 AND run = ?3",
    )?
    .execute(params![
        row.class as i64,
        key,
        run.0.cast_signed(),
        lease.session.0.cast_signed(),
        lease.claimed_at.0,
        lease.started_at.map(|at| at.0),
    ])?;
    Ok(())
}

pub(super) fn part(conn: &Connection, key: i64, row: &PartRow) -> Result<(), StoreError> {
    let Some(value) = &row.value else {
        let changed = conn
            .prepare_cached("DELETE FROM parts WHERE execution = ?1 AND part = ?2 AND key = ?3")?
            .execute(params![key, row.part as i64, row.key])?;
        return one(changed, "an entry of the state that went");
    };
    conn.prepare_cached(
        "INSERT INTO parts (execution, part, key, due, value) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (execution, part, key) DO UPDATE SET due = excluded.due, value = excluded.value",
    )?
    .execute(params![key, row.part as i64, row.key, row.due.map(|due| due.0), value])?;
    Ok(())
}

/// A change must meet the one row it was made for, else the rows do not follow from the journal (K1).
pub(super) fn one(changed: usize, what: &str) -> Result<(), StoreError> {
    if changed == 1 {
        return Ok(());
    }
    Err(StoreError::Corrupt(format!("{what} is not in the rows of its execution; run the check (K1)")))
}
