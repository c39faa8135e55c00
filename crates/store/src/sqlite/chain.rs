//! Journal rows of one execution. A mark leads near a place in the journal; from there the chain is followed back.

use super::columns::Columns as _;
use super::commit::MARK_EVERY;
use super::statements::{query_all, query_first};
use crate::commit::{CommitId, Position};
use crate::journal::{Sealed, open};
use crate::rules::{JournalLookup, fill_page};
use crate::store::{Damage, JournalPage, JournalRow, PageBounds, StoreResult};
use rusqlite::{Connection, Row};
use windlass_kernel::{ExecutionId, RunId};

/// Journal of one execution.
#[derive(Clone, Copy)]
pub(super) struct Chain<'c> {
    pub(super) conn: &'c Connection,
    pub(super) execution: ExecutionId,
    pub(super) key: i64,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    position: i64,
    version: u64,
}

/// The mark at or before a version, and the one after it. No mark precedes the first rows of an execution.
pub(super) const MARK_AT: &str = "SELECT position, version FROM journal \
     WHERE mark IS NOT NULL AND execution = ?1 AND version <= ?2 ORDER BY version DESC LIMIT 1";
pub(super) const MARK_AFTER: &str = "SELECT position, version FROM journal \
     WHERE mark IS NOT NULL AND execution = ?1 AND version > ?2 ORDER BY version LIMIT 1";

impl Chain<'_> {
    /// Rows from the one that holds version `from` on.
    pub(super) fn read_page(&self, from: u64, bounds: PageBounds) -> StoreResult<JournalPage> {
        let links = self.links(from, bounds.rows_max)?;
        fill_page(&links, from, bounds, |link| self.read_row(link.position))
    }

    /// Reads the row at a position, if it is whole and of this execution, and its bytes on disk.
    fn read_row(&self, position: i64) -> StoreResult<(JournalRow, usize)> {
        let sql = "SELECT position, version, commit_id, format, checksum, records FROM journal \
                   WHERE position = ?1 AND execution = ?2";
        let found = query_first(self.conn, sql, [position, self.key], read_sealed)?;
        let (position, version, commit, sealed) =
            found.ok_or_else(|| self.damage(0, format!("it is missing at position {position}")))?;
        let records = open(self.execution, version, commit, &sealed)?;
        Ok((JournalRow { position, commit, version, records }, sealed.bytes.len()))
    }

    /// Returns places of at least `limit` rows, if there are as many; the first holds `from`.
    fn links(&self, from: u64, limit: usize) -> StoreResult<Vec<Link>> {
        let mut mark = self.mark(MARK_AT, from)?;
        let mut links = Vec::new();
        loop {
            let next = self.mark(MARK_AFTER, mark.map_or(from, |mark| mark.version))?;
            let end = match next {
                Some(next) => self.step(next.position, next.version)?.1,
                None => Some(self.last()?),
            };
            links.extend(self.between(mark, end)?);
            let passed = links.iter().skip(1).take_while(|link| link.version <= from).count();
            links.drain(..passed);
            if next.is_none() || links.len() >= limit {
                return Ok(links);
            }
            mark = next;
        }
    }

    /// Reads from a mark to the last row before the next one, in order. Without a mark, reads from the first row.
    fn between(&self, mark: Option<Link>, end: Option<i64>) -> StoreResult<Vec<Link>> {
        let near = mark.map_or(0, |mark| mark.version);
        let mut links = Vec::new();
        let mut at = end;
        while let Some(position) = at {
            let (link, before) = self.step(position, near)?;
            links.push(link);
            let is_begin = match mark {
                Some(mark) => position == mark.position,
                None => link.version == 0,
            };
            if is_begin {
                links.reverse();
                return Ok(links);
            }
            at = before.filter(|_| (links.len() as u64) <= MARK_EVERY);
        }
        let begin = if mark.is_some() { "it" } else { "the first one" };
        Err(self.damage(near, format!("the rows after it do not lead back to {begin}")).into())
    }

    /// Returns a row of the chain without its records, and the place of the one before it.
    fn step(&self, position: i64, near: u64) -> StoreResult<(Link, Option<i64>)> {
        let sql = "SELECT version, before FROM journal WHERE position = ?1 AND execution = ?2";
        let found = query_first(self.conn, sql, [position, self.key], |row| {
            Ok((Link { position, version: row.read(0)? }, row.get(1)?))
        })?;
        let missing = || self.damage(near, format!("a row after it, at position {position}, is missing"));
        Ok(found.ok_or_else(missing)?)
    }

    fn mark(&self, sql: &str, version: u64) -> StoreResult<Option<Link>> {
        let version = i64::try_from(version).unwrap_or(i64::MAX);
        query_first(self.conn, sql, [self.key, version], |row| {
            Ok(Link { position: row.get(0)?, version: row.read(1)? })
        })
    }

    fn last(&self) -> StoreResult<i64> {
        let found = query_first(self.conn, "SELECT last FROM heads WHERE key = ?1", [self.key], |row| {
            Ok(row.get(0)?)
        })?;
        found.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
    }

    fn damage(&self, version: u64, what: String) -> Damage {
        Damage { execution: self.execution, version, what }
    }
}

impl JournalLookup for Chain<'_> {
    fn fact_positions(&self, run: RunId) -> StoreResult<Vec<Position>> {
        let sql = "SELECT position FROM facts WHERE execution = ?1 AND run = ?2";
        query_all(self.conn, sql, [self.key, run.0.cast_signed()], |row| Ok(Position(row.get(0)?)))
    }

    fn row_at(&self, position: Position) -> StoreResult<JournalRow> {
        self.read_row(position.0).map(|(row, _)| row)
    }

    fn rows_from(&self, from: u64, bounds: PageBounds) -> StoreResult<Vec<JournalRow>> {
        self.read_page(from, bounds).map(|page| page.rows)
    }

    fn row_before(&self, row: Option<&JournalRow>) -> StoreResult<Option<JournalRow>> {
        let position = match row {
            Some(row) => self.step(row.position.0, row.version)?.1,
            None => Some(self.last()?),
        };
        position.map(|position| self.row_at(Position(position))).transpose()
    }
}

/// Reads the columns `position, version, commit_id, format, checksum, records`.
pub(super) fn read_sealed(row: &Row<'_>) -> StoreResult<(Position, u64, CommitId, Sealed)> {
    let commit = CommitId(u128::from_be_bytes(row.get(2)?));
    let sealed = Sealed { format: row.get(3)?, checksum: row.get(4)?, bytes: row.get(5)? };
    Ok((row.read(0)?, row.read(1)?, commit, sealed))
}
