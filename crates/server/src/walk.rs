//! The journal of an execution told page by page. What a record tells depends on how the execution stood before it, so
//! where somebody stopped is kept: whoever goes on there reads that page alone.

use crate::answers::PAGE_BYTES_MAX;
use crate::follow::Happened;
use crate::readers::Slice;
use crate::shelf::{Bounds, Shelf, lock};
use crate::told::TellError;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use windlass_kernel::{Execution, ExecutionId, Net, Record, evolve};
use windlass_store::{JournalRow, PageBounds, Reader};

/// A place weighs as many bytes as what was live there takes, roughly.
const PLACES: Bounds = Bounds { entries_max: 1_000, weight_max: 32 << 20 };
/// What one live step-run or standing token takes, roughly.
const LIVE_WEIGHT: u64 = 512;
/// Rows read at a time: few at first, because one row may tell more than a page holds.
const ROWS_MIN: usize = 4;
const ROWS_MAX: usize = 256;
/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// Says what records mean, one after the other from the first on.
pub trait Teller: Clone {
    type Entry;

    fn tell(&mut self, happened: &Happened) -> Vec<Self::Entry>;

    /// Bytes of an entry's JSON, roughly.
    fn bytes(entry: &Self::Entry) -> usize;
}

/// The next entry to be told: a record, by how many there are before it, and the number of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    version: u64,
    entry: usize,
}

impl Place {
    /// After everything that a record tells.
    #[must_use]
    pub fn after(version: u64) -> Place {
        Place { version: version + 1, entry: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.version, self.entry)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Place, ()> {
        let (version, entry) = text.split_once('.').ok_or(())?;
        let (Ok(version), Ok(entry)) = (version.parse(), entry.parse()) else { return Err(()) };
        Ok(Place { version, entry })
    }
}

/// Before a record: how the execution stood, and who tells of it.
#[derive(Debug, Clone)]
struct Stand<T> {
    state: Execution<'static>,
    teller: T,
}

/// By execution and version.
type Stands<T> = Shelf<(ExecutionId, u64), Arc<Stand<T>>>;

#[derive(Debug)]
pub struct Walks<T> {
    kept: Mutex<Stands<T>>,
}

impl<T> Default for Walks<T> {
    fn default() -> Walks<T> {
        Walks { kept: Mutex::new(Shelf::new(PLACES)) }
    }
}

/// A page on its way: it can be left between two records and gone on with.
#[derive(Debug)]
pub struct Walk<T: Teller> {
    id: ExecutionId,
    from: Place,
    limit: usize,
    stand: Stand<T>,
    entries: Vec<T::Entry>,
    /// Of the entries.
    bytes: usize,
    rows_max: usize,
    marked: bool,
}

/// Entries, and where the next one is.
pub type Walked<T> = (Vec<<T as Teller>::Entry>, Option<Place>);

impl<T: Teller> Walks<T> {
    /// Begins a page of so many entries from a place on; it ends earlier with the entry that makes it large. `first` tells the journal from its beginning.
    pub fn begin(&self, id: ExecutionId, first: T, from: Place, limit: usize) -> Walk<T> {
        let stand = self.nearest(id, from.version, first);
        Walk { id, from, limit, stand, entries: Vec::new(), bytes: 0, rows_max: ROWS_MIN, marked: false }
    }

    /// A page, read as a whole.
    pub fn page(
        &self,
        reader: &mut impl Reader,
        (id, net, first): (ExecutionId, &Net, T),
        from: Place,
        limit: usize,
    ) -> Result<Walked<T>, TellError> {
        let mut walk = self.begin(id, first, from, limit);
        let walked = self.go_on(reader, net, &mut walk, Slice::WHOLE)?;
        Ok(walked.unwrap_or_default())
    }

    /// Goes on with a page. None when the slice is over first.
    pub fn go_on(
        &self,
        reader: &mut impl Reader,
        net: &Net,
        walk: &mut Walk<T>,
        slice: Slice,
    ) -> Result<Option<Walked<T>>, TellError> {
        loop {
            let version = walk.stand.state.head.version;
            let bounds = PageBounds { rows_max: walk.rows_max, bytes_max: READ_BYTES };
            let page = reader.journal_page(walk.id, version, bounds)?;
            walk.rows_max = ROWS_MAX.min(walk.rows_max * 2);
            for record in records(page.rows, version) {
                if let Some(next) = self.take(net, walk, record)? {
                    return Ok(Some((std::mem::take(&mut walk.entries), Some(next))));
                }
            }
            if !page.more {
                return Ok(Some((std::mem::take(&mut walk.entries), None)));
            }
            if slice.is_over() {
                return Ok(None);
            }
        }
    }

    /// Adds what a record tells; the place of the next entry when the page is full.
    fn take(&self, net: &Net, walk: &mut Walk<T>, record: Record) -> Result<Option<Place>, TellError> {
        let Walk { id, from, limit, stand, entries, bytes, marked, .. } = walk;
        let version = stand.state.head.version;
        let is_full = |entries: &Vec<T::Entry>, bytes| entries.len() == *limit || bytes >= PAGE_BYTES_MAX;
        let full = is_full(entries, *bytes);
        if version > 0 && (version == from.version || full && !*marked) {
            *marked = full;
            self.keep(*id, stand);
        }
        let happened = Happened::after(net, &stand.state, record);
        let told = stand.teller.tell(&happened).into_iter().enumerate();
        let begin = if version == from.version { from.entry } else { 0 };
        for (entry, told) in told.skip(begin).filter(|_| version >= from.version) {
            if is_full(entries, *bytes) {
                return Ok(Some(Place { version, entry }));
            }
            *bytes += T::bytes(&told);
            entries.push(told);
        }
        evolve(&mut stand.state, net, &happened.record).map_err(|illegal| TellError::Broken(*id, illegal))?;
        Ok(None)
    }

    /// After something was forgotten: nothing of it stays in memory.
    pub fn clear(&self) {
        lock(&self.kept).clear();
    }

    fn nearest(&self, id: ExecutionId, version: u64, first: T) -> Stand<T> {
        let known = lock(&self.kept).last((id, 0)..=(id, version));
        match known {
            Some((_, stand)) => Arc::unwrap_or_clone(stand),
            None => Stand { state: Execution::default(), teller: first },
        }
    }

    fn keep(&self, id: ExecutionId, stand: &Stand<T>) {
        let state = &stand.state;
        let live = state.runs.len() + state.arrived.len() + state.gated.len() + state.joins.len();
        let weight = LIVE_WEIGHT * (live + state.latest.len() + 1) as u64;
        lock(&self.kept).put((id, state.head.version), Arc::new(stand.clone()), weight);
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
    fn a_place_is_read_as_it_was_written() {
        for place in [Place::default(), Place { version: 20_000, entry: 3 }] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for text in ["", "17", "x.y", "1.", ".1", "-1.0", "1.0.0"] {
            assert_eq!(text.parse::<Place>(), Err(()), "{text}");
        }
    }
}
