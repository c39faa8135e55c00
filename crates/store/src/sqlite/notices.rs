//! Requests about dead letters that are to be sent.

use super::columns::{Columns, limit};
use super::schedules::{LETTER_COLUMNS, read_letter};
use super::statements::{execute, query_all};
use crate::commit::Applied;
use crate::schedules::{DeadLetterId, DeadLetterNotice, NoticeAttempt};
use crate::store::StoreResult;
use rusqlite::{Connection, params};
use windlass_kernel::Millis;

pub(super) fn insert(conn: &Connection, letter: DeadLetterId, url: &str, at: Millis) -> StoreResult<()> {
    let sql = "INSERT INTO dead_letter_notices (letter, url, attempts, due) VALUES (?1, ?2, 0, ?3)";
    execute(conn, sql, params![letter.bytes(), url, at.0]).map(drop)
}

pub(super) fn find_due(conn: &Connection, until: Millis, count: usize) -> StoreResult<Vec<DeadLetterNotice>> {
    let sql = format!(
        "SELECT {LETTER_COLUMNS}, n.url, n.attempts FROM dead_letter_notices n JOIN dead_letters d ON d.id = n.letter \
         WHERE n.due <= ?1 ORDER BY n.due LIMIT ?2"
    );
    query_all(conn, &sql, params![until.0, limit(count)], |row| {
        Ok(DeadLetterNotice { letter: read_letter(row)?, url: row.get(10)?, attempts: row.read(11)? })
    })
}

/// Records an attempt to send a notice; `Duplicate` when the notice was deleted with its schedule.
pub(super) fn record(conn: &Connection, attempt: &NoticeAttempt) -> StoreResult<Applied> {
    let NoticeAttempt { letter, attempts, due, error_text } = attempt;
    let sql = "UPDATE dead_letter_notices SET attempts = ?2, due = ?3, error_text = ?4 WHERE letter = ?1";
    let changed = execute(conn, sql, params![letter.bytes(), attempts, due.map(|at| at.0), error_text])?;
    Ok(if changed == 1 { Applied::Done } else { Applied::Duplicate })
}
