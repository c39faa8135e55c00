//! Artifacts that workers outside of the server may fetch, by the topmost execution that they belong to.

use super::columns::{Columns as _, id_bytes};
use super::statements::{execute, query_first};
use crate::commit::Applied;
use crate::store::StoreResult;
use rusqlite::{Connection, params};
use windlass_kernel::ExecutionId;

/// Trigger of an execution that a step of another one started.
const CHILD: &str = "workflow";
/// Maximum depth of executions that start each other; the limits of Nets are lower.
const DEPTH_MAX: usize = 1_000;

const ADD: &str = "INSERT OR IGNORE INTO artifact_owners (execution, artifact) VALUES (?1, ?2)";

pub(super) fn add(conn: &Connection, execution: ExecutionId, artifacts: &[String]) -> StoreResult<Applied> {
    let Some(top) = find_top(conn, execution)? else { return Ok(Applied::Duplicate) };
    let mut added = 0;
    for artifact in artifacts {
        added += execute(conn, ADD, params![top, artifact])?;
    }
    Ok(if added > 0 { Applied::Done } else { Applied::Duplicate })
}

pub(super) fn take_over(conn: &Connection, from: ExecutionId, to: ExecutionId) -> StoreResult<Applied> {
    let (Some(source), Some(top)) = (find_top(conn, from)?, find_top(conn, to)?) else {
        return Ok(Applied::Duplicate);
    };
    let sql = "INSERT OR IGNORE INTO artifact_owners (execution, artifact) \
               SELECT ?2, artifact FROM artifact_owners WHERE execution = ?1";
    let added = execute(conn, sql, [source, top])?;
    Ok(if added > 0 { Applied::Done } else { Applied::Duplicate })
}

pub(super) fn owns(conn: &Connection, execution: ExecutionId, artifact: &str) -> StoreResult<bool> {
    let Some(top) = find_top(conn, execution)? else { return Ok(false) };
    let sql = "SELECT 1 FROM artifact_owners WHERE execution = ?1 AND artifact = ?2";
    let owned = query_first(conn, sql, params![top, artifact], |row| Ok(row.get::<_, i64>(0)?))?;
    Ok(owned.is_some())
}

/// Returns the number of the execution that an execution is a part of, over all levels, or its own.
fn find_top(conn: &Connection, execution: ExecutionId) -> StoreResult<Option<i64>> {
    let sql = "SELECT key, trigger, parent FROM executions WHERE id = ?1";
    let (mut top, mut next) = (None, Some(execution));
    for _ in 0..DEPTH_MAX {
        let Some(id) = next else { break };
        let row = query_first(conn, sql, [id_bytes(id)], |row| {
            let parent: Option<ExecutionId> = row.read(2)?;
            Ok((row.get::<_, i64>(0)?, row.text(1)? == CHILD, parent))
        })?;
        let Some((key, is_child, parent)) = row else { break };
        top = Some(key);
        next = parent.filter(|_| is_child);
    }
    Ok(top)
}
