//! Histories of executions, cached between requests: a request reads the records since the last one, not the whole journal.
//! A history is looked up by the request that has loaded its execution, which has checked the tenant.

#[cfg(test)]
mod tests;

use crate::cache::{Cache, CacheBounds, lock};
use crate::feed::FeedCheckpoints;
use crate::journal_pages::JournalPages;
use crate::loaded::{LoadedExecution, ReadError, facts};
use crate::readers::Slice;
use crate::step_log::{LogBounds, StepLog, read_step_log};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use windlass_artifact::INLINE_BYTES;
use windlass_kernel::{ExecutionId, Need, Net, NetDigest, RunId};
use windlass_store::{ObjectState, Objects, PageBounds, Reader, StoreError, Stored, StoredObject, Tenant};
use windlass_views::{
    ArtifactCopy, EventProjection, EvidenceProjection, History, LogProjection, LoggedOutput,
    ProgressProjection, Sources, ValueAddress, ValuePlace,
};

/// The weight of a history is the size of its JSON; in memory it takes a few times as much.
const HISTORIES: CacheBounds = CacheBounds { entries_max: 1_000, weight_max: 128 << 20 };
/// Rows and bytes read at a time.
const PAGE: PageBounds = PageBounds { rows_max: 256, bytes_max: 1 << 20 };
/// Long histories of one tenant that are folded at a time: each takes a few megabytes and a thread.
const FOLDING_MAX: usize = 2;
/// Number of tenants whose permits are kept before unused ones are dropped.
const TENANTS_MAX: usize = 256;
/// Number of nets that are cached before unused ones are dropped.
const NETS_MAX: usize = 1_000;

/// Maximum bytes of logs that one answer reads for steps whose workers have not reported their output.
const LOGS_BYTES_MAX: usize = 16 << 20;
/// Bytes that the search for the log of one step counts at least.
const LOG_COST: usize = 64 << 10;

/// All caches of journals.
#[derive(Debug)]
pub struct Histories {
    /// Nets in use, shared by all readers of their executions.
    nets: Mutex<HashMap<NetDigest, Weak<Net>>>,
    cached: Cache<ExecutionId, Arc<SharedHistory>>,
    permits: Mutex<BTreeMap<Tenant, Arc<Semaphore>>>,
    pub events: JournalPages<EventProjection>,
    pub evidence: JournalPages<EvidenceProjection>,
    pub lines: JournalPages<LogProjection>,
    pub progress: JournalPages<ProgressProjection>,
    pub feeds: FeedCheckpoints,
    /// Artifacts are copied into a bucket, and count as ready when they are there.
    copies_artifacts: bool,
}

/// A history and its locks. One task folds it at a time; others that need it wait without holding a thread.
#[derive(Debug, Default)]
struct SharedHistory {
    folded: RwLock<FoldedJournal>,
    folding: Arc<tokio::sync::Mutex<()>>,
}

/// An execution that was loaded, with its history as far as it is folded.
#[derive(Debug)]
pub struct HistoryRead {
    stored: Stored,
    shared: Arc<SharedHistory>,
}

/// The permission to fold a long history.
#[derive(Debug)]
pub struct FoldPermit {
    _history: OwnedMutexGuard<()>,
    _tenant: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Default)]
struct FoldedJournal {
    history: History,
    /// None before the first read.
    net: Option<Arc<Net>>,
}

impl Default for Histories {
    fn default() -> Histories {
        Histories {
            nets: Mutex::default(),
            cached: Cache::new(HISTORIES),
            permits: Mutex::default(),
            events: JournalPages::default(),
            evidence: JournalPages::default(),
            lines: JournalPages::default(),
            progress: JournalPages::default(),
            feeds: FeedCheckpoints::default(),
            copies_artifacts: false,
        }
    }
}

impl Histories {
    #[must_use]
    pub fn new(copies_artifacts: bool) -> Histories {
        Histories { copies_artifacts, ..Histories::default() }
    }

    /// Calls `view` with an execution that was loaded just now and its history up to then, or later.
    pub fn view<T>(
        &self,
        reader: &mut impl Objects,
        stored: Stored,
        view: impl FnOnce(&LoadedExecution<'_>) -> T,
    ) -> Result<T, ReadError> {
        let read = self.begin(stored);
        self.catch_up(reader, &read, Slice::WHOLE)?;
        self.finish(reader, read, view)
    }

    /// Begins to read the history of an execution that was loaded just now.
    pub fn begin(&self, stored: Stored) -> HistoryRead {
        let shared = self.shared(stored.state.head.id);
        HistoryRead { stored, shared }
    }

    /// Waits for the permission to fold a long history: one task at a time for a history, a few for a tenant.
    pub async fn permit(&self, read: &HistoryRead) -> FoldPermit {
        let history = read.shared.folding.clone().lock_owned().await;
        let permits = self.permits_of(&read.stored.origin.tenant);
        FoldPermit { _history: history, _tenant: permits.acquire_owned().await.ok() }
    }

    /// Folds the records that existed when the execution was loaded. Returns false when the slice ends first.
    pub fn catch_up(
        &self,
        reader: &mut impl Reader,
        read: &HistoryRead,
        slice: Slice,
    ) -> Result<bool, ReadError> {
        let HistoryRead { stored, shared } = read;
        let head = &stored.state.head;
        let (id, version) = (head.id, head.version);
        if shared.read().history.version() >= version && !shared.folded.is_poisoned() {
            return Ok(true);
        }
        let net = self.net(reader, head.net)?.ok_or(ReadError::NoNet(id))?;
        let mut folded = shared.write();
        // A record may be folded in part, so the journal is read anew.
        let caught_up =
            folded.catch_up(reader, id, net, slice).inspect_err(|_| *folded = FoldedJournal::default());
        let weight = folded.history.weight();
        drop(folded);
        let caught_up = caught_up?;
        self.cached.insert(id, shared.clone(), weight as u64);
        Ok(caught_up)
    }

    /// Calls `view` with the net and the history of an execution, which has caught up.
    pub fn look<T>(
        &self,
        read: &HistoryRead,
        view: impl FnOnce(&Net, &History) -> T,
    ) -> Result<T, ReadError> {
        let (id, version) = (read.stored.state.head.id, read.stored.state.head.version);
        let folded = read.shared.read();
        // If the execution is deleted at this moment, its journal is deleted first.
        let (true, Some(net)) = (folded.history.version() >= version, &folded.net) else {
            return Err(ReadError::Gone(id));
        };
        Ok(view(net, &folded.history))
    }

    /// Calls `view` with an execution whose history has caught up, and everything that it refers to.
    pub fn finish<T>(
        &self,
        reader: &mut impl Objects,
        read: HistoryRead,
        view: impl FnOnce(&LoadedExecution<'_>) -> T,
    ) -> Result<T, ReadError> {
        let HistoryRead { stored, shared } = read;
        let (id, version) = (stored.state.head.id, stored.state.head.version);
        let (facts, constraints) = facts(self, reader, &stored)?;
        let folded = shared.read();
        // If the execution is deleted at this moment, its journal is deleted first.
        let (true, Some(net)) = (folded.history.version() >= version, &folded.net) else {
            return Err(ReadError::Gone(id));
        };
        let reader = RefCell::new(reader);
        let open = |key: &str| open_artifact(&mut **reader.borrow_mut(), id, key);
        let read = |place: &ValuePlace| value_at(&mut **reader.borrow_mut(), id, place);
        let tenant = stored.origin.tenant.clone();
        let copy = |key: &str| match self.copies_artifacts {
            true => find_copy(&mut **reader.borrow_mut(), &tenant, key),
            false => ArtifactCopy::Ready,
        };
        let left = Cell::new(LOGS_BYTES_MAX);
        let log = |run: RunId| logged_output(&mut **reader.borrow_mut(), id, run, &left);
        let (history, sources) =
            (&folded.history, Sources { open: &open, read: &read, copy: &copy, log: &log });
        Ok(view(&LoadedExecution { stored, net, history, facts, sources, constraints }))
    }

    /// Returns a net, if the store has it.
    pub fn net(&self, reader: &mut impl Reader, digest: NetDigest) -> Result<Option<Arc<Net>>, StoreError> {
        if let Some(net) = lock(&self.nets).get(&digest).and_then(Weak::upgrade) {
            return Ok(Some(net));
        }
        let Some(net) = reader.net(digest)?.map(Arc::new) else { return Ok(None) };
        let mut nets = lock(&self.nets);
        if nets.len() >= NETS_MAX {
            nets.retain(|_, net| net.strong_count() > 0);
        }
        nets.insert(digest, Arc::downgrade(&net));
        Ok(Some(net))
    }

    /// Drops everything, after executions were deleted.
    pub fn clear(&self) {
        self.cached.clear();
        self.events.clear();
        self.evidence.clear();
        self.lines.clear();
        self.progress.clear();
        self.feeds.clear();
    }

    fn shared(&self, id: ExecutionId) -> Arc<SharedHistory> {
        self.cached.get(&id).unwrap_or_else(|| {
            let shared = Arc::<SharedHistory>::default();
            self.cached.insert(id, shared.clone(), 0);
            shared
        })
    }

    fn permits_of(&self, tenant: &Tenant) -> Arc<Semaphore> {
        let mut permits = lock(&self.permits);
        if permits.len() >= TENANTS_MAX {
            permits.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        permits.entry(tenant.clone()).or_insert_with(|| Arc::new(Semaphore::new(FOLDING_MAX))).clone()
    }
}

impl SharedHistory {
    fn read(&self) -> RwLockReadGuard<'_, FoldedJournal> {
        self.folded.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the history for writing. After a panic the journal is read from its beginning.
    fn write(&self) -> RwLockWriteGuard<'_, FoldedJournal> {
        self.folded.write().unwrap_or_else(|poisoned| {
            let mut folded = poisoned.into_inner();
            *folded = FoldedJournal::default();
            self.folded.clear_poison();
            folded
        })
    }
}

impl FoldedJournal {
    fn catch_up(
        &mut self,
        reader: &mut impl Reader,
        id: ExecutionId,
        net: Arc<Net>,
        slice: Slice,
    ) -> Result<bool, ReadError> {
        let net = self.net.insert(net).clone();
        loop {
            let page = reader.journal_page(id, self.history.version(), PAGE)?;
            // Rows are read whole, so each begins at the end of the previous one.
            for record in page.rows.iter().flat_map(|row| &row.records) {
                self.history.fold(&net, record).map_err(|illegal| ReadError::Broken(id, illegal))?;
            }
            if !page.more {
                return Ok(true);
            }
            if slice.is_over() {
                return Ok(false);
            }
        }
    }
}

/// Reads an artifact. One that cannot be read stays a reference; a request for it reports the error.
fn open_artifact(reader: &mut impl Reader, id: ExecutionId, key: &str) -> Option<Arc<Value>> {
    let found = reader.values(id, &[Need::Artifact(key.to_owned())]);
    let found = found.inspect_err(|error| tracing::error!(%error, key, "an artifact cannot be read"));
    found.ok()?.artifacts.remove(key)?
}

/// Returns what has become of the copy of an artifact. Until its row is written, it waits.
fn find_copy(reader: &mut impl Objects, tenant: &Tenant, key: &str) -> ArtifactCopy {
    let found = reader.object(tenant, key);
    let found = found.inspect_err(|error| tracing::error!(%error, key, "the copy of an artifact is unknown"));
    match found {
        Ok(Some(StoredObject { state: ObjectState::Stored | ObjectState::Unused, .. })) => {
            ArtifactCopy::Ready
        }
        Ok(Some(StoredObject { state: ObjectState::Failed, error, .. })) => {
            ArtifactCopy::Failed(error.unwrap_or_default())
        }
        Ok(Some(StoredObject { state: ObjectState::Waiting, .. }) | None) | Err(_) => ArtifactCopy::Waiting,
    }
}

/// Reads the output of a step-run that its worker has not reported, while the answer has bytes left.
fn logged_output(
    reader: &mut impl Reader,
    id: ExecutionId,
    run: RunId,
    left: &Cell<usize>,
) -> Option<LoggedOutput> {
    let read_max = left.get();
    if read_max == 0 {
        return None;
    }
    let found = read_step_log(reader, id, run, LogBounds { read_max, text_max: INLINE_BYTES });
    let found = found.inspect_err(|error| tracing::error!(%error, "the log of a step cannot be read"));
    let StepLog { stdout, stderr, read } = found.ok()?;
    left.set(read_max.saturating_sub(read.max(LOG_COST)));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some(LoggedOutput { stdout: text(stdout), stderr: text(stderr) })
}

/// Reads a value of the journal. Logs the error and returns None if it cannot be read.
pub(crate) fn value_at(reader: &mut impl Reader, id: ExecutionId, place: &ValuePlace) -> Option<Arc<Value>> {
    let read = read_value(reader, id, place.address());
    read.inspect_err(|error| tracing::error!(%error, "a value of a journal cannot be read")).ok()?
}

/// Reads a value of the journal, if there is one at that address.
pub(crate) fn read_value(
    reader: &mut impl Reader,
    id: ExecutionId,
    address: ValueAddress,
) -> Result<Option<Arc<Value>>, StoreError> {
    let bounds = PageBounds { rows_max: 1, bytes_max: 1 };
    let rows = reader.journal_page(id, address.version, bounds)?.rows;
    let Some(row) = rows.first() else { return Ok(None) };
    let record = address.version.checked_sub(row.version).and_then(|at| usize::try_from(at).ok());
    let record = record.and_then(|at| row.records.get(at));
    Ok(record.and_then(|record| address.value_in(&record.event)))
}
