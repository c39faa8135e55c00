//! Threads that read the store for requests, each over its own connection. Threads that serve other requests never wait
//! for the disk.

mod queue;

use crate::database::{Database, DatabaseReader};
use crate::problem::Problem;
use queue::{LaneId, Queue, Reading, Refused};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use windlass_store::{Artifacts, ServerReader as _, StoreError, Tenant};

/// Maximum number of requests that wait for a thread. Further ones are refused with a request to retry.
const REQUESTS_MAX: usize = 512;
/// Maximum number of followers of executions that wait for a thread. They do not count as requests.
const FOLLOWERS_MAX: usize = 512;
/// Maximum number of waiting reads of one tenant: half of all requests, so that one tenant cannot cause refusals for
/// others.
const TENANT_MAX: usize = REQUESTS_MAX / 2;
/// Time for which a read that can be divided holds a thread. It is short for a caller, and long in comparison to the
/// queue in which the read waits again.
const SLICE: Duration = Duration::from_millis(20);

/// The end of a slice.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    until: Option<Instant>,
}

impl Slice {
    /// Slice for reads that are not divided.
    pub const WHOLE: Slice = Slice { until: None };

    #[must_use]
    pub fn begin() -> Slice {
        Slice { until: Some(Instant::now() + SLICE) }
    }

    #[must_use]
    pub fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

#[derive(Debug, Clone)]
pub struct Readers {
    threads: Arc<Threads>,
    places: Arc<Semaphore>,
    is_patient: bool,
    /// Lane of the reads.
    lane: LaneId,
}

/// Ends the threads when the last handle is dropped.
#[derive(Debug)]
struct Threads(Arc<Queue>);

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Readers {
    /// Starts threads over an existing store: as many as one tenant may use at a time, and one more, which serves other
    /// tenants meanwhile. They end with the last clone.
    pub fn start(store: &Path, artifacts: &Artifacts, per_tenant: usize) -> anyhow::Result<Readers> {
        Readers::start_threads(store, artifacts, per_tenant.max(1) + 1, per_tenant)
    }

    /// Starts one thread, for a process with one tenant.
    pub fn start_one(store: &Path) -> anyhow::Result<Readers> {
        Readers::start_threads(store, &Database::artifacts_of_store(store), 1, 1)
    }

    fn start_threads(
        store: &Path,
        artifacts: &Artifacts,
        count: usize,
        per_tenant: usize,
    ) -> anyhow::Result<Readers> {
        let queue = Arc::new(Queue::new(per_tenant));
        let threads = Arc::new(Threads(queue.clone()));
        for number in 0..count {
            let (reader, queue) = (Database::read_only(store)?.with_artifacts(artifacts), queue.clone());
            let thread = std::thread::Builder::new().name(format!("windlass-read-{number}"));
            thread.spawn(move || serve(reader, &queue))?;
        }
        Ok(Readers { threads, places: Arc::new(Semaphore::new(REQUESTS_MAX)), is_patient: false, lane: None })
    }

    /// Returns a handle for followers of executions, which can wait.
    #[must_use]
    pub fn patient(&self) -> Readers {
        Readers { places: Arc::new(Semaphore::new(FOLLOWERS_MAX)), is_patient: true, ..self.clone() }
    }

    /// Returns a handle of the same threads for a tenant, which shares them evenly with the others.
    #[must_use]
    pub fn of(&self, tenant: &Tenant) -> Readers {
        Readers { lane: Some(tenant.clone()), ..self.clone() }
    }

    /// Reads on another thread. Earlier answers are visible to the read.
    pub async fn read<T, E>(
        &self,
        read: impl FnOnce(&mut DatabaseReader) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let _place = self.place().await?;
        let (sender, answer) = oneshot::channel();
        let reading: Reading =
            Box::new(move |reader: &mut DatabaseReader| drop(sender.send(counted(reader, read))));
        let waiting_max = match (&self.lane, self.is_patient) {
            (Some(_), false) => TENANT_MAX,
            _ => usize::MAX,
        };
        self.threads.0.push(&self.lane, waiting_max, reading).map_err(|refused| match refused {
            Refused::Full => busy(),
            Refused::Closed => Problem::internal("every reader thread has ended"),
        })?;
        match answer.await {
            Ok(read) => read.map_err(Into::into),
            Err(_) => Err(Problem::internal("a reader thread has ended; see the earlier lines of the log")),
        }
    }

    /// Reads a long list in slices. Between two slices other reads run, and the read stops when the caller has
    /// disconnected. `step` returns None when its slice ends before everything was read.
    pub async fn read_in_slices<S, T, E>(
        &self,
        mut state: S,
        step: impl Fn(&mut DatabaseReader, &mut S, Slice) -> Result<Option<T>, E> + Send + Sync + 'static,
    ) -> Result<T, Problem>
    where
        S: Send + 'static,
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let step = Arc::new(step);
        loop {
            let step = step.clone();
            let slice = self.read(move |reader| {
                let found = step(reader, &mut state, Slice::begin())?;
                Ok::<_, E>((state, found))
            });
            let (rest, found) = slice.await?;
            match found {
                Some(found) => return Ok(found),
                None => state = rest,
            }
        }
    }

    /// Takes one of the places for waiting reads. A follower waits for a free place; a request without one is refused.
    async fn place(&self) -> Result<SemaphorePermit<'_>, Problem> {
        let place = match self.is_patient {
            true => self.places.acquire().await.ok(),
            false => self.places.try_acquire().ok(),
        };
        place.ok_or_else(busy)
    }

    /// Reads with a function whose only errors are those of the store.
    pub async fn look<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut DatabaseReader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.read(read).await
    }
}

fn busy() -> Problem {
    Problem::unavailable("too many reads are waiting; retry later")
}

fn counted<T>(reader: &mut DatabaseReader, read: impl FnOnce(&mut DatabaseReader) -> T) -> T {
    let before = reader.journal_rows_read();
    let found = read(reader);
    metrics::counter!("windlass_journal_rows_read_total").increment(reader.journal_rows_read() - before);
    found
}

fn serve(mut reader: DatabaseReader, queue: &Queue) {
    while let Some((lane, reading)) = queue.next() {
        let begun = Instant::now();
        // A read that panics ends its own request, and not the thread that serves all others.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reading(&mut reader)));
        queue.done(&lane, begun.elapsed());
        if done.is_err() {
            tracing::error!("a read panicked; its request fails");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use std::sync::mpsc::{Sender, channel};

    /// Returns readers whose only thread is held until the sender is dropped.
    fn held(folder: &Path) -> (Readers, Sender<()>) {
        let store = folder.join("windlass.db");
        drop(Database::open(&store).unwrap());
        let readers = Readers::start_one(&store).unwrap();
        let (hold, held) = channel::<()>();
        let wait: Reading = Box::new(move |_| assert!(held.recv().is_err()));
        readers.threads.0.push(&None, 1, wait).unwrap();
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
                tokio::spawn(async move {
                    readers.look(move |_| Ok(number)).await.map_err(|p| p.status().as_u16())
                })
            };
            (0..count).map(one).collect()
        };
        let following = all(&patient, 3 * FOLLOWERS_MAX);
        let asking = all(&readers, REQUESTS_MAX + 10);
        // All reads have arrived before the thread is released.
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

    #[tokio::test]
    async fn a_long_reading_of_one_tenant_lets_another_tenant_pass() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("windlass.db");
        drop(Database::open(&store).unwrap());
        let readers = Readers::start(&store, &Database::artifacts_of_store(&store), 2).unwrap();
        let hostile = readers.of(&Tenant::new("hostile"));
        // Endless reads: each ends only with its caller.
        let endless = |readers: Readers| async move {
            let step = |_: &mut DatabaseReader, turns: &mut u64, slice: Slice| {
                *turns += 1;
                while !slice.is_over() {
                    std::hint::spin_loop();
                }
                Ok::<Option<()>, StoreError>(None)
            };
            readers.read_in_slices(0, step).await
        };
        let attacks: Vec<_> = (0..16).map(|_| tokio::spawn(endless(hostile.clone()))).collect();
        let other = readers.of(&Tenant::new("other"));
        for number in 0..20 {
            assert_eq!(other.look(move |_| Ok(number)).await.ok(), Some(number));
        }
        attacks.into_iter().for_each(|attack| attack.abort());
    }
}
