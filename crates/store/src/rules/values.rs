//! Values that a decision needs and the live state does not hold: which journal rows they are read from.

use crate::commit::Position;
use crate::store::{JournalRow, PageBounds, StoreResult};
use std::collections::BTreeSet;
use windlass_kernel::{Event, Fence, Need, Record, RunChange, RunId, Values, any_of};

/// Rows read of a journal at a time.
const PAGE: PageBounds = PageBounds { rows_max: 256, bytes_max: 1 << 20 };

/// Lookups in the journal of one execution.
pub trait JournalLookup {
    /// Returns the rows that hold values of a step-run (`Rows::facts`).
    fn fact_positions(&self, run: RunId) -> StoreResult<Vec<Position>>;

    fn row_at(&self, position: Position) -> StoreResult<JournalRow>;

    /// Returns rows from the one that holds version `from` on.
    fn rows_from(&self, from: u64, bounds: PageBounds) -> StoreResult<Vec<JournalRow>>;

    /// Returns the last row of the journal, or the one before the given row.
    fn row_before(&self, row: Option<&JournalRow>) -> StoreResult<Option<JournalRow>>;
}

/// Loads values from as few rows as possible. Artifacts are not in a journal: see [`artifact_keys`].
pub fn load_values(journal: &impl JournalLookup, needs: &[Need]) -> StoreResult<Values> {
    let mut values = Values::default();
    let mut positions = BTreeSet::new();
    let mut of_runs = Vec::new();
    for need in needs {
        match need {
            Need::Output(run) | Need::Items(run) => {
                positions.extend(find_rows(journal, *run)?);
                of_runs.push(need.clone());
            }
            Need::Answer(run, fence) => {
                let records = read_since_offer(journal, *run, *fence)?;
                values.load(&records, std::slice::from_ref(need));
            }
            Need::Results(run) => load_since_loop(journal, *run, &mut values)?,
            Need::Firings => load_from(journal, 0, need, &mut values)?,
            Need::Artifact(_) => {}
        }
    }
    let mut records = Vec::new();
    for position in positions {
        records.extend(journal.row_at(position)?.records);
    }
    values.load(&records, &of_runs);
    Ok(values)
}

/// Returns the artifacts that are needed. Only those of the execution's own tenant are looked up.
pub fn artifact_keys(needs: &[Need]) -> impl Iterator<Item = &String> {
    needs.iter().filter_map(|need| match need {
        Need::Artifact(key) => Some(key),
        Need::Output(_) | Need::Items(_) | Need::Results(_) | Need::Firings | Need::Answer(..) => None,
    })
}

/// Returns the rows with the values of a step-run. Imported values are in the first row of the journal.
fn find_rows(journal: &impl JournalLookup, run: RunId) -> StoreResult<Vec<Position>> {
    let found = journal.fact_positions(run)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let first = journal.rows_from(0, PageBounds { rows_max: 1, bytes_max: 1 })?;
    Ok(first.iter().map(|row| row.position).collect())
}

/// Loads the ends of a loop's iterations from all records since it began.
fn load_since_loop(journal: &impl JournalLookup, run: RunId, values: &mut Values) -> StoreResult<()> {
    let first = find_rows(journal, run)?.first().map(|position| journal.row_at(*position)).transpose()?;
    // The beginning of a loop without a list holds no value: the first row with one may be its end.
    let begins = |record: &Record| matches!(record.event, Event::LoopStarted { run: of, .. } if of == run);
    let from = first.filter(|row| row.records.iter().any(begins)).map_or(0, |row| row.version);
    load_from(journal, from, &Need::Results(run), values)
}

/// Loads what follows from all records since a version, a page at a time.
fn load_from(
    journal: &impl JournalLookup,
    mut from: u64,
    need: &Need,
    values: &mut Values,
) -> StoreResult<()> {
    loop {
        let rows = journal.rows_from(from, PAGE)?;
        rows.iter().for_each(|row| values.load(&row.records, std::slice::from_ref(need)));
        let Some(last) = rows.last() else { return Ok(()) };
        from = last.version + last.records.len() as u64;
    }
}

/// Reads what was reported under a fence, and the record that opened it: backwards, one row at a time.
fn read_since_offer(journal: &impl JournalLookup, run: RunId, fence: Fence) -> StoreResult<Vec<Record>> {
    let mut kept = Vec::new();
    let mut row = journal.row_before(None)?;
    while let Some(at) = row {
        let about = |record: &&Record| {
            opened_fence(record) == Some(fence) || record.answer().is_some_and(|(key, _)| key == (run, fence))
        };
        kept.extend(at.records.iter().rev().filter(about).cloned());
        // Fences rise: no record before a lower fence is about this offer.
        if at.records.iter().any(|record| opened_fence(record).is_some_and(|open| open <= fence)) {
            break;
        }
        row = journal.row_before(Some(&at))?;
    }
    kept.reverse();
    Ok(kept)
}

/// Returns the fence that a record opens.
fn opened_fence(record: &Record) -> Option<Fence> {
    let (_, change) = record.event.run_change()?;
    match change {
        RunChange::Offered(fence, ..)
        | RunChange::AwaitingManual(fence)
        | RunChange::ChildStarted { fence, .. } => Some(fence),
        any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed Returned Lost Retried Done Failed Dropped
            Routed AgentDecided Internal] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::world::{World, circle};
    use serde_json::json;
    use std::cell::RefCell;
    use std::sync::Arc;

    /// A journal in memory that records which rows are read.
    struct Journal {
        rows: Vec<JournalRow>,
        read: RefCell<Vec<usize>>,
    }

    impl Journal {
        fn read(&self, index: usize) -> JournalRow {
            self.read.borrow_mut().push(index);
            self.rows[index].clone()
        }
    }

    impl JournalLookup for Journal {
        fn fact_positions(&self, run: RunId) -> StoreResult<Vec<Position>> {
            let done = |row: &&JournalRow| {
                row.records
                    .iter()
                    .any(|record| matches!(record.event, Event::Done { run: of, .. } if of == run))
            };
            Ok(self.rows.iter().filter(done).map(|row| row.position).collect())
        }

        fn row_at(&self, position: Position) -> StoreResult<JournalRow> {
            Ok(self.read(usize::try_from(position.0).expect("an index")))
        }

        fn rows_from(&self, from: u64, bounds: PageBounds) -> StoreResult<Vec<JournalRow>> {
            let holds = |row: &JournalRow| row.version + row.records.len() as u64 > from;
            let indexes = (0..self.rows.len()).filter(|index| holds(&self.rows[*index]));
            Ok(indexes.take(bounds.rows_max).map(|index| self.read(index)).collect())
        }

        fn row_before(&self, row: Option<&JournalRow>) -> StoreResult<Option<JournalRow>> {
            let end = row.map_or(self.rows.len(), |row| usize::try_from(row.position.0).expect("an index"));
            Ok(end.checked_sub(1).map(|index| self.read(index)))
        }
    }

    #[test]
    fn only_rows_that_can_hold_a_value_are_read() {
        let (mut world, first) = World::create(&circle(), 1);
        let mut commits = vec![first];
        let mut open = vec![world.open()[0]];
        for n in 0..9 {
            commits.push(world.done(json!(n)));
            open.push(world.open()[0]);
        }
        let row = |(commit, index): (crate::commit::Commit, i64)| JournalRow {
            position: Position(index),
            commit: commit.id,
            version: commit.expected,
            records: commit.records.to_vec(),
        };
        let journal =
            Journal { rows: commits.into_iter().zip(0..).map(row).collect(), read: RefCell::default() };
        let load = |need: Need| {
            let values = load_values(&journal, &[need]).expect("no read fails");
            (values, journal.read.take())
        };
        let (values, read) = load(Need::Output(open[4].0));
        assert_eq!((values.outputs[&open[4].0].clone(), read), (Arc::new(json!(4)), vec![5]));
        let (values, read) = load(Need::Output(RunId(404)));
        assert!(values.outputs.is_empty());
        assert_eq!(read, [0, 0], "an import is in the first row");
        let (values, read) = load(Need::Answer(open[7].0, open[7].1));
        assert!(values.answers[&open[7]].is_some());
        assert_eq!(read, [9, 8, 7], "back to the row that opened the fence");
        assert_eq!(artifact_keys(&[Need::Artifact("a".into()), Need::Items(open[0].0)]).count(), 1);
    }
}
