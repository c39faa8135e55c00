//! One number line for journal rows and log chunks, so that what happened and what was said are in one order.

use crate::commit::Position;
use crate::store::StoreError;
use rusqlite::Connection;

/// The last number that was given.
#[derive(Debug)]
pub(super) struct Positions(i64);

impl Positions {
    /// Inside the transaction that goes on from there: another process may have written since the last one.
    pub(super) fn of(conn: &Connection) -> Result<Positions, StoreError> {
        let sql = "SELECT max(coalesce((SELECT max(position) FROM journal), 0), \
                   coalesce((SELECT max(position) FROM logs), 0))";
        Ok(Positions(conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?))
    }

    pub(super) fn next(&mut self) -> Position {
        self.0 += 1;
        Position(self.0)
    }
}
