//! Journal rows of one execution. A mark leads near a place in the journal; from there the chain is followed back.

use super::commit::MARK_EVERY;
use crate::commit::{CommitId, Position};
use crate::journal::{Sealed, open};
use crate::store::{Damage, JournalPage, JournalRow, PageBounds, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_kernel::ExecutionId;

/// One execution's journal.
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

/// The mark at or before a version, and the one after it.
pub(super) const MARK_AT: &str = "SELECT position, version FROM journal \
     WHERE mark IS NOT NULL AND execution = ?1 AND version <= ?2 ORDER BY version DESC LIMIT 1";
pub(super) const MARK_AFTER: &str = "SELECT position, version FROM journal \
     WHERE mark IS NOT NULL AND execution = ?1 AND version > ?2 ORDER BY version LIMIT 1";

impl Chain<'_> {
    /// Rows from the one that holds version `from` on.
    pub(super) fn rows(&self, from: u64, bounds: PageBounds) -> Result<JournalPage, StoreError> {
        let mut links = self.links(from, bounds.rows_max)?;
        links.truncate(bounds.rows_max);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for link in &links {
            let (row, size) = self.sized_row(link.position)?;
            rows.push(row);
            bytes += size;
            if bytes >= bounds.bytes_max {
                break;
            }
        }
        let more = rows.len() < links.len() || rows.len() == bounds.rows_max;
        // Only the last row of all can end before the version that is asked for.
        rows.retain(|row| row.version + row.records.len() as u64 > from);
        Ok(JournalPage { more: more && !rows.is_empty(), rows })
    }

    /// The last row, of the whole journal or before the given one.
    pub(super) fn row_before(&self, row: Option<&JournalRow>) -> Result<Option<JournalRow>, StoreError> {
        let position = match row {
            Some(row) => self.step(row.position.0, row.version)?.1,
            None => Some(self.last()?),
        };
        position.map(|position| self.row(position)).transpose()
    }

    /// The row at a position, if it is whole and of this execution.
    pub(super) fn row(&self, position: i64) -> Result<JournalRow, StoreError> {
        self.sized_row(position).map(|(row, _)| row)
    }

    /// The same with the bytes that it takes on disk.
    fn sized_row(&self, position: i64) -> Result<(JournalRow, usize), StoreError> {
        let mut statement = self.conn.prepare_cached(
            "SELECT position, version, commit_id, format, checksum, records FROM journal \
             WHERE position = ?1 AND execution = ?2",
        )?;
        let found = statement.query_row([position, self.key], sealed).optional()?;
        let (position, version, commit, sealed) =
            found.ok_or_else(|| self.damage(0, format!("it is missing at position {position}")))?;
        let records = open(self.execution, version, commit, &sealed)?;
        Ok((JournalRow { position, commit, version, records }, sealed.bytes.len()))
    }

    /// Places of at least `limit` rows, if there are so many; the first holds `from`.
    fn links(&self, from: u64, limit: usize) -> Result<Vec<Link>, StoreError> {
        let mut mark = self.mark(MARK_AT, from)?;
        let mut links = Vec::new();
        while let Some(begin) = mark {
            let next = self.mark(MARK_AFTER, begin.version)?;
            let end = match next {
                Some(next) => self.step(next.position, next.version)?.1,
                None => Some(self.last()?),
            };
            links.extend(self.between(begin, end)?);
            let passed = links.iter().skip(1).take_while(|link| link.version <= from).count();
            links.drain(..passed);
            mark = next.filter(|_| links.len() < limit);
        }
        if links.is_empty() {
            return Err(self.damage(0, "its first row is missing".to_owned()).into());
        }
        Ok(links)
    }

    /// From a mark to the last row before the next one, in order.
    fn between(&self, mark: Link, end: Option<i64>) -> Result<Vec<Link>, StoreError> {
        let mut links = Vec::new();
        let mut at = end;
        while let Some(position) = at {
            let (link, before) = self.step(position, mark.version)?;
            links.push(link);
            if position == mark.position {
                links.reverse();
                return Ok(links);
            }
            at = before.filter(|_| (links.len() as u64) <= MARK_EVERY);
        }
        Err(self.damage(mark.version, "the rows after it do not lead back to it".to_owned()).into())
    }

    /// A row of the chain without its records, and the place of the one before it.
    fn step(&self, position: i64, near: u64) -> Result<(Link, Option<i64>), StoreError> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT version, before FROM journal WHERE position = ?1 AND execution = ?2")?;
        let found: Option<(i64, Option<i64>)> =
            statement.query_row([position, self.key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (version, before) = found.ok_or_else(|| {
            self.damage(near, format!("a row after it, at position {position}, is missing"))
        })?;
        Ok((Link { position, version: version.cast_unsigned() }, before))
    }

    fn mark(&self, which: &str, version: u64) -> Result<Option<Link>, StoreError> {
        let mut statement = self.conn.prepare_cached(which)?;
        let version = i64::try_from(version).unwrap_or(i64::MAX);
        let link = |row: &Row<'_>| {
            let version: i64 = row.get(1)?;
            Ok(Link { position: row.get(0)?, version: version.cast_unsigned() })
        };
        Ok(statement.query_row(params![self.key, version], link).optional()?)
    }

    fn last(&self) -> Result<i64, StoreError> {
        let mut statement = self.conn.prepare_cached("SELECT last FROM heads WHERE key = ?1")?;
        Ok(statement.query_row([self.key], |row| row.get(0))?)
    }

    fn damage(&self, version: u64, what: String) -> Damage {
        Damage { execution: self.execution, version, what }
    }
}

/// `position, version, commit_id, format, checksum, records` of a row.
pub(super) fn sealed(row: &Row<'_>) -> rusqlite::Result<(Position, u64, CommitId, Sealed)> {
    let version: i64 = row.get(1)?;
    let commit = CommitId(u128::from_be_bytes(row.get(2)?));
    let sealed = Sealed { format: row.get(3)?, checksum: row.get(4)?, bytes: row.get(5)? };
    Ok((Position(row.get(0)?), version.cast_unsigned(), commit, sealed))
}
