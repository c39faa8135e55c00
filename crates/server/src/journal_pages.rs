//! Lists that follow from a journal, page by page. An item depends on the state before its record, so the state where a
//! page ended is cached: the next page reads its own records only.

use crate::answers::PAGE_BYTES_MAX;
use crate::cache::{Cache, CacheBounds};
use crate::loaded::ReadError;
use crate::readers::Slice;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use windlass_kernel::{Execution, ExecutionId, Net, Record};
use windlass_store::{JournalRow, PageBounds, Reader};
use windlass_views::{Projection, Timeline};

/// Number of checkpoints of one list of all executions.
const CHECKPOINTS: CacheBounds = CacheBounds { entries_max: 1_000, weight_max: 32 << 20 };
/// Rows read at a time: few at first, because one row may have more items than a page.
const ROWS_MIN: usize = 4;
const ROWS_MAX: usize = 256;
/// Records of a window: the unit in which a list is read from its end.
const WINDOW: u64 = 512;
/// Windows before a position whose beginnings are cached while a list is read from its end.
const WINDOWS_CACHED: u64 = 16;
/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// Position of an item: the number of records before its own, and its number among the items of that record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct JournalCursor {
    version: u64,
    item: usize,
}

impl JournalCursor {
    /// Returns the position before all items of a record.
    #[must_use]
    pub fn before(version: u64) -> JournalCursor {
        JournalCursor { version, item: 0 }
    }

    /// Returns the position after all items of a record.
    #[must_use]
    pub fn after(version: u64) -> JournalCursor {
        JournalCursor::before(version + 1)
    }
}

impl fmt::Display for JournalCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.version, self.item)
    }
}

impl FromStr for JournalCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<JournalCursor, ()> {
        let (version, item) = text.split_once('.').ok_or(())?;
        let (Ok(version), Ok(item)) = (version.parse(), item.parse()) else { return Err(()) };
        Ok(JournalCursor { version, item })
    }
}

/// The state before a record.
#[derive(Debug, Clone)]
struct Checkpoint<P> {
    timeline: Timeline,
    projection: P,
}

/// The pages of one list, with checkpoints by execution and version.
#[derive(Debug)]
pub struct JournalPages<P> {
    checkpoints: Cache<(ExecutionId, u64), Arc<Checkpoint<P>>>,
}

impl<P: Projection> Default for JournalPages<P> {
    fn default() -> JournalPages<P> {
        JournalPages { checkpoints: Cache::new(CHECKPOINTS) }
    }
}

/// A page that is being read. Reading can stop between two records and continue later.
#[derive(Debug)]
pub struct PageRead<P: Projection> {
    id: ExecutionId,
    from: JournalCursor,
    limit: usize,
    at: Checkpoint<P>,
    items: Vec<P::Item>,
    /// Bytes of the items.
    bytes: usize,
    rows_max: usize,
    is_end_kept: bool,
}

impl<P: Projection> PageRead<P> {
    /// Returns the state after the records that were read.
    #[must_use]
    pub fn state(&self) -> &Execution<'static> {
        self.at.timeline.state()
    }

    /// Returns the number of records that were read.
    pub fn version(&self) -> u64 {
        self.at.timeline.version()
    }
}

/// The items of the window before a position, while they are read. Reading can stop between two records.
#[derive(Debug)]
pub struct WindowRead<P: Projection> {
    id: ExecutionId,
    before: JournalCursor,
    /// Version at which the window begins.
    from: u64,
    at: Checkpoint<P>,
    items: VecDeque<(JournalCursor, P::Item)>,
    /// Bytes of the items.
    bytes: usize,
    /// Whether its first items are left out, because all together are too large.
    is_cut: bool,
}

/// Items, each with the position before it, and the position before all of them.
pub(crate) type WindowItems<P> = (VecDeque<(JournalCursor, <P as Projection>::Item)>, JournalCursor);

impl<P: Projection> WindowRead<P> {
    fn take(&mut self) -> WindowItems<P> {
        let items = std::mem::take(&mut self.items);
        let first = items.front().filter(|_| self.is_cut).map(|(place, _)| *place);
        (items, first.unwrap_or(JournalCursor::before(self.from)))
    }
}

/// Items, and the position of the next one.
pub(crate) type Items<P> = (Vec<<P as Projection>::Item>, Option<JournalCursor>);

impl<P: Projection> JournalPages<P> {
    /// Begins a page with at most `limit` items; the item that makes the page large is its last. `first` is the projection
    /// before the first record.
    pub fn begin(&self, id: ExecutionId, first: P, from: JournalCursor, limit: usize) -> PageRead<P> {
        let known = self.checkpoints.last((id, 0)..=(id, from.version)).map(Arc::unwrap_or_clone);
        let at = known.unwrap_or_else(|| Checkpoint { timeline: Timeline::default(), projection: first });
        PageRead { id, from, limit, at, items: Vec::new(), bytes: 0, rows_max: ROWS_MIN, is_end_kept: false }
    }

    /// Continues a page. Returns None when the slice ends first.
    pub fn read(
        &self,
        reader: &mut impl Reader,
        net: &Net,
        page: &mut PageRead<P>,
        slice: Slice,
    ) -> Result<Option<Items<P>>, ReadError> {
        loop {
            let version = page.at.timeline.version();
            let bounds = PageBounds { rows_max: page.rows_max, bytes_max: READ_BYTES };
            let journal = reader.journal_page(page.id, version, bounds)?;
            page.rows_max = ROWS_MAX.min(page.rows_max * 2);
            for record in records(journal.rows, version) {
                if let Some(next) = self.add(net, page, &record)? {
                    return Ok(Some((std::mem::take(&mut page.items), Some(next))));
                }
            }
            if !journal.more {
                return Ok(Some((std::mem::take(&mut page.items), None)));
            }
            if slice.is_over() {
                return Ok(None);
            }
        }
    }

    /// Begins to read the items of the window before a position. `first` is the projection before the first record.
    pub fn begin_before(&self, id: ExecutionId, first: P, before: JournalCursor) -> WindowRead<P> {
        let last = if before.item > 0 { before.version } else { before.version.saturating_sub(1) };
        let from = last - last % WINDOW;
        let known = self.checkpoints.last((id, 0)..=(id, from)).map(Arc::unwrap_or_clone);
        let at = known.unwrap_or_else(|| Checkpoint { timeline: Timeline::default(), projection: first });
        WindowRead { id, before, from, at, items: VecDeque::new(), bytes: 0, is_cut: false }
    }

    /// Continues a window. Returns None when the slice ends first. Of items that are too large for a page, only the last
    /// ones are returned.
    pub fn read_before(
        &self,
        reader: &mut impl Reader,
        net: &Net,
        window: &mut WindowRead<P>,
        slice: Slice,
    ) -> Result<Option<WindowItems<P>>, ReadError> {
        loop {
            let version = window.at.timeline.version();
            let bounds = PageBounds { rows_max: ROWS_MAX, bytes_max: READ_BYTES };
            let journal = reader.journal_page(window.id, version, bounds)?;
            for record in records(journal.rows, version) {
                let version = window.at.timeline.version();
                if JournalCursor::before(version) >= window.before {
                    return Ok(Some(window.take()));
                }
                self.add_before(net, window, &record)?;
            }
            if !journal.more {
                return Ok(Some(window.take()));
            }
            if slice.is_over() {
                return Ok(None);
            }
        }
    }

    fn add_before(&self, net: &Net, window: &mut WindowRead<P>, record: &Record) -> Result<(), ReadError> {
        let WindowRead { id, before, from, at, items, bytes, is_cut } = window;
        let version = at.timeline.version();
        let is_cached = version + WINDOWS_CACHED * WINDOW > *from && version <= *from;
        if version > 0 && version % WINDOW == 0 && is_cached {
            let weight = at.timeline.weight() as u64;
            self.checkpoints.insert((*id, version), Arc::new(at.clone()), weight);
        }
        let entry = at.timeline.advance(net, record).map_err(|illegal| ReadError::Broken(*id, illegal))?;
        for (item, found) in at.projection.project(net, record, &entry).into_iter().enumerate() {
            let place = JournalCursor { version, item };
            if version >= *from && place < *before {
                *bytes += P::bytes(&found);
                items.push_back((place, found));
            }
        }
        while *bytes > PAGE_BYTES_MAX && items.len() > 1 {
            *bytes -= items.pop_front().map_or(0, |(_, item)| P::bytes(&item));
            *is_cut = true;
        }
        Ok(())
    }

    /// Adds the items of a record. Returns the place of the next item when the page is full.
    fn add(
        &self,
        net: &Net,
        page: &mut PageRead<P>,
        record: &Record,
    ) -> Result<Option<JournalCursor>, ReadError> {
        let PageRead { id, from, limit, at, items, bytes, is_end_kept, .. } = page;
        let version = at.timeline.version();
        let is_full = |items: &Vec<P::Item>, bytes| items.len() == *limit || bytes >= PAGE_BYTES_MAX;
        let full = is_full(items, *bytes);
        if version > 0 && (version == from.version || full && !*is_end_kept) {
            *is_end_kept = full;
            let weight = at.timeline.weight() as u64;
            self.checkpoints.insert((*id, version), Arc::new(at.clone()), weight);
        }
        let entry = at.timeline.advance(net, record).map_err(|illegal| ReadError::Broken(*id, illegal))?;
        let found = at.projection.project(net, record, &entry).into_iter().enumerate();
        let begin = if version == from.version { from.item } else { 0 };
        for (number, item) in found.skip(begin).filter(|_| version >= from.version) {
            if is_full(items, *bytes) {
                return Ok(Some(JournalCursor { version, item: number }));
            }
            *bytes += P::bytes(&item);
            items.push(item);
        }
        Ok(None)
    }

    /// Stores the state at the end of the journal after a page without a next one, for a reader that waits for more.
    pub fn store_end(&self, page: PageRead<P>) {
        let PageRead { id, at, .. } = page;
        if !at.timeline.state().phase().is_ended() {
            let weight = at.timeline.weight() as u64;
            self.checkpoints.insert((id, at.timeline.version()), Arc::new(at), weight);
        }
    }

    /// Drops all checkpoints, after executions were deleted.
    pub fn clear(&self) {
        self.checkpoints.clear();
    }
}

/// Records from a version on; the first row may begin before it.
fn records(rows: Vec<JournalRow>, version: u64) -> impl Iterator<Item = Record> {
    let seen = rows.first().map_or(0, |row| version.saturating_sub(row.version));
    rows.into_iter().flat_map(|row| row.records).skip(usize::try_from(seen).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for cursor in [JournalCursor::default(), JournalCursor { version: 20_000, item: 3 }] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "17", "x.y", "1.", ".1", "-1.0", "1.0.0"] {
            assert_eq!(text.parse::<JournalCursor>(), Err(()), "{text}");
        }
    }
}
