//! Threads that read the store for requests, each over a connection of its own. No request waits for the disk on a
//! thread that serves others.

use crate::problem::Problem;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::path::Path;
use tokio::sync::oneshot;
use windlass_store::StoreError;
use windlass_store::sqlite::{Sqlite, SqliteReader};

/// What waits for a thread; whoever comes then is told to come back.
const WAITING_MAX: usize = 1_024;

type Reading = Box<dyn FnOnce(&mut SqliteReader) + Send>;

#[derive(Debug, Clone)]
pub struct Readers {
    readings: Sender<Reading>,
}

impl Readers {
    /// Threads over an existing store. They end with the last clone.
    pub fn start(store: &Path, count: usize) -> anyhow::Result<Readers> {
        let (readings, wanted) = bounded::<Reading>(WAITING_MAX);
        for number in 0..count.max(1) {
            let (reader, wanted) = (Sqlite::read_only(store)?, wanted.clone());
            let thread = std::thread::Builder::new().name(format!("windlass-read-{number}"));
            thread.spawn(move || serve(reader, &wanted))?;
        }
        Ok(Readers { readings })
    }

    /// Reads on another thread. Everything that was answered before is seen.
    pub async fn read<T, E>(
        &self,
        read: impl FnOnce(&mut SqliteReader) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let (told, answer) = oneshot::channel();
        let reading = Box::new(move |reader: &mut SqliteReader| drop(told.send(counted(reader, read))));
        match self.readings.try_send(reading) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                return Err(Problem::unavailable("too many requests read at the moment"));
            }
            Err(TrySendError::Disconnected(_)) => {
                return Err(Problem::internal("every reading thread has ended"));
            }
        }
        match answer.await {
            Ok(read) => read.map_err(Into::into),
            Err(_) => Err(Problem::internal("a reading thread has ended; its last words are above")),
        }
    }

    /// The common case: only the store can fail.
    pub async fn look<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut SqliteReader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.read(read).await
    }
}

fn counted<T>(reader: &mut SqliteReader, read: impl FnOnce(&mut SqliteReader) -> T) -> T {
    let before = reader.journal_rows_read();
    let found = read(reader);
    metrics::counter!("windlass_journal_rows_read_total").increment(reader.journal_rows_read() - before);
    found
}

fn serve(mut reader: SqliteReader, wanted: &Receiver<Reading>) {
    for reading in wanted {
        // A reading that panics ends its own request, not the thread that serves all others.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reading(&mut reader)));
        if done.is_err() {
            tracing::error!("a reading panicked; its request is answered as failed");
        }
    }
}
