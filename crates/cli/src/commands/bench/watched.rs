//! The store with a counter in front: the number of synced batches, their contents and, in a traced run, their times.

use super::figures::Latencies;
use super::trace::Trace;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use windlass_store::{Applied, Store, StoreError, Write};

#[derive(Debug)]
pub struct Watched<S> {
    store: S,
    tally: Arc<Tally>,
}

/// Counts of a store.
#[derive(Debug, Default)]
pub struct Tally {
    /// Each is one transaction and one sync.
    pub batches: AtomicU64,
    pub commits: AtomicU64,
    pub records: AtomicU64,
    /// Time from handing a batch to the store to its answer.
    latencies: Mutex<Latencies>,
    pub trace: Option<Trace>,
}

impl Tally {
    pub fn new(trace: Option<Trace>) -> Tally {
        Tally { trace, ..Tally::default() }
    }

    fn latencies(&self) -> MutexGuard<'_, Latencies> {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the counts since the last call.
    pub fn take_latencies(&self) -> Latencies {
        std::mem::take(&mut *self.latencies())
    }
}

impl<S> Watched<S> {
    pub fn new(store: S, tally: Arc<Tally>) -> Watched<S> {
        Watched { store, tally }
    }
}

impl<S: Store> Store for Watched<S> {
    type Reader = S::Reader;

    fn write(&mut self, batch: &[Write]) -> Result<Vec<Applied>, StoreError> {
        if let Some(trace) = &self.tally.trace {
            trace.begins();
        }
        let began = Instant::now();
        let applied = self.store.write(batch)?;
        self.tally.latencies().push(began.elapsed());
        self.tally.batches.fetch_add(1, Ordering::Relaxed);
        for write in batch {
            if let Write::Commit(commit) = write {
                self.tally.commits.fetch_add(1, Ordering::Relaxed);
                self.tally.records.fetch_add(commit.records.len() as u64, Ordering::Relaxed);
            }
        }
        if let Some(trace) = &self.tally.trace {
            trace.acknowledged(batch, &applied);
        }
        Ok(applied)
    }

    fn reader(&self) -> Result<S::Reader, StoreError> {
        self.store.reader()
    }
}
