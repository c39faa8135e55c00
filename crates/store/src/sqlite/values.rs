//! Values that a decision needs and the live state does not hold.

use super::chain::Chain;
use super::lists::all;
use crate::store::{PageBounds, StoreError};
use std::collections::BTreeSet;
use windlass_kernel::{Event, Fence, Need, Record, Role, RunId, Values, answer};

/// What is read of a journal at a time.
const PAGE: PageBounds = PageBounds { rows_max: 256, bytes_max: 1 << 20 };

pub(super) fn values(chain: Chain<'_>, needs: &[Need]) -> Result<Values, StoreError> {
    let mut values = Values::default();
    let mut positions = BTreeSet::new();
    let mut of_runs = Vec::new();
    for need in needs {
        match need {
            Need::Output(run) | Need::Items(run) => {
                positions.extend(places(chain, *run)?);
                of_runs.push(need.clone());
            }
            Need::Answer(run, fence) => {
                let records = since_offer(chain, *run, *fence)?;
                values.load(&records, std::slice::from_ref(need));
            }
            Need::Results(run) => values.load(&since_loop(chain, *run)?, std::slice::from_ref(need)),
            Need::Artifact(_) => {}
        }
    }
    let mut records = Vec::new();
    for position in positions {
        records.extend(chain.row(position)?.records);
    }
    values.load(&records, &of_runs);
    Ok(values)
}

/// Journal rows with a step-run's values. What was taken over from another execution is in the first row.
fn places(chain: Chain<'_>, run: RunId) -> Result<Vec<i64>, StoreError> {
    let sql = "SELECT position FROM facts WHERE execution = ?1 AND run = ?2";
    let mut found = all(chain.conn, sql, [chain.key, run.0.cast_signed()], |row| Ok(row.get(0)?))?;
    if found.is_empty() {
        found.extend(
            chain.rows(0, PageBounds { rows_max: 1, bytes_max: 1 })?.rows.first().map(|row| row.position.0),
        );
    }
    Ok(found)
}

/// Everything since a loop began.
fn since_loop(chain: Chain<'_>, run: RunId) -> Result<Vec<Record>, StoreError> {
    let mut from = match places(chain, run)?.first() {
        Some(position) => chain.row(*position)?.version,
        None => 0,
    };
    let mut records = Vec::new();
    loop {
        let rows = chain.rows(from, PAGE)?.rows;
        let Some(last) = rows.last() else { return Ok(records) };
        from = last.version + last.records.len() as u64;
        records.extend(rows.into_iter().flat_map(|row| row.records).filter(tells_results));
    }
}

fn tells_results(record: &Record) -> bool {
    matches!(
        record.event,
        Event::Done { .. }
            | Event::Fired { role: Role::Iteration { .. }, .. }
            | Event::IterationEnded { output: Some(_), .. }
    )
}

/// What was said under a fence, with the record that opened it; read backwards, one row at a time.
fn since_offer(chain: Chain<'_>, run: RunId, fence: Fence) -> Result<Vec<Record>, StoreError> {
    let mut kept = Vec::new();
    let mut row = chain.row_before(None)?;
    while let Some(at) = row {
        let about = |record: &&Record| {
            opened(record) == Some(fence) || answer(record).is_some_and(|(key, _)| key == (run, fence))
        };
        kept.extend(at.records.iter().rev().filter(about).cloned());
        if at.records.iter().any(|record| opened(record).is_some_and(|open| open <= fence)) {
            break;
        }
        row = chain.row_before(Some(&at))?;
    }
    kept.reverse();
    Ok(kept)
}

/// The fence that a record opens. They rise, so nothing under a fence lies before a lower one.
fn opened(record: &Record) -> Option<Fence> {
    match &record.event {
        Event::Offered { fence, .. }
        | Event::ChildStarted { fence, .. }
        | Event::AwaitingManual { fence, .. } => Some(*fence),
        _ => None,
    }
}
