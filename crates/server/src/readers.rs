//! Threads that read the store for requests, each over a connection of its own. No request waits for the disk on a
//! thread that serves others.

use crate::problem::Problem;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use windlass_store::StoreError;
use windlass_store::sqlite::{Sqlite, SqliteReader};

/// Requests that wait for a thread; whoever comes then is told to come back.
const REQUESTS_MAX: usize = 512;
/// The same for those who follow executions. They wait for their turn, however many there are, and take no request's.
const FOLLOWERS_MAX: usize = 512;

type Reading = Box<dyn FnOnce(&mut SqliteReader) + Send>;

#[derive(Debug, Clone)]
pub struct Readers {
    readings: Sender<Reading>,
    places: Arc<Semaphore>,
    is_patient: bool,
}

impl Readers {
    /// Threads over an existing store. They end with the last clone.
    pub fn start(store: &Path, count: usize) -> anyhow::Result<Readers> {
        let (readings, wanted) = bounded::<Reading>(REQUESTS_MAX + FOLLOWERS_MAX);
        for number in 0..count.max(1) {
            let (reader, wanted) = (Sqlite::read_only(store)?, wanted.clone());
            let thread = std::thread::Builder::new().name(format!("windlass-read-{number}"));
            thread.spawn(move || serve(reader, &wanted))?;
        }
        Ok(Readers { readings, places: Arc::new(Semaphore::new(REQUESTS_MAX)), is_patient: false })
    }

    /// The same threads, for those who follow executions and can wait.
    #[must_use]
    pub fn patient(&self) -> Readers {
        let places = Arc::new(Semaphore::new(FOLLOWERS_MAX));
        Readers { readings: self.readings.clone(), places, is_patient: true }
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
        let _place = self.place().await?;
        let (told, answer) = oneshot::channel();
        let reading = Box::new(move |reader: &mut SqliteReader| drop(told.send(counted(reader, read))));
        if self.readings.try_send(reading).is_err() {
            return Err(Problem::internal("every reading thread has ended"));
        }
        match answer.await {
            Ok(read) => read.map_err(Into::into),
            Err(_) => Err(Problem::internal("a reading thread has ended; its last words are above")),
        }
    }

    /// There are as many as can wait for a thread.
    async fn place(&self) -> Result<SemaphorePermit<'_>, Problem> {
        let place = match self.is_patient {
            true => self.places.acquire().await.ok(),
            false => self.places.try_acquire().ok(),
        };
        place.ok_or_else(|| Problem::unavailable("too many requests read at the moment"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_store::sqlite::Sqlite;

    /// Readers whose only thread is held until the sender is dropped.
    fn held(folder: &Path) -> (Readers, Sender<()>) {
        let store = folder.join("windlass.db");
        drop(Sqlite::open(&store).unwrap());
        let readers = Readers::start(&store, 1).unwrap();
        let (hold, held) = bounded::<()>(0);
        readers.readings.send(Box::new(move |_| assert!(held.recv().is_err()))).unwrap();
        (readers, hold)
    }

    #[tokio::test]
    async fn requests_are_sent_away_when_too_many_wait_and_followers_wait_for_their_turn() {
        let folder = tempfile::tempdir().unwrap();
        let (readers, hold) = held(folder.path());
        let patient = readers.patient();
        let all = |readers: &Readers, count: usize| -> Vec<_> {
            let one = |number| {
                let readers = readers.clone();
                tokio::spawn(
                    async move { readers.look(move |_| Ok(number)).await.map_err(|p| p.status.as_u16()) },
                )
            };
            (0..count).map(one).collect()
        };
        let following = all(&patient, 3 * FOLLOWERS_MAX);
        let asking = all(&readers, REQUESTS_MAX + 10);
        // Everybody has come before the thread is let go.
        while asking.iter().filter(|read| read.is_finished()).count() < 10
            || patient.places.available_permits() > 0
        {
            tokio::task::yield_now().await;
        }
        drop(hold);
        for (number, read) in following.into_iter().enumerate() {
            assert_eq!(read.await.unwrap(), Ok(number));
        }
        let mut refused = 0;
        for read in asking {
            refused += usize::from(read.await.unwrap() == Err(503));
        }
        assert_eq!(refused, 10);
    }
}
