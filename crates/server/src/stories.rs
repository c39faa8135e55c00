//! Stories of executions, kept between requests: whoever asks again pays for what has happened since, not for the whole
//! journal. A story is looked up by whoever has loaded its execution, and so knows whose it is.

#[cfg(test)]
mod tests;

use crate::evidence::Ledger;
use crate::nets::Nets;
use crate::readers::Slice;
use crate::routes::{EventTeller, LogTeller};
use crate::shelf::{Bounds, Shelf, lock};
use crate::told::{TellError, Told, facts};
use crate::walk::Walks;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use windlass_kernel::{ExecutionId, Need, Net, NetDigest, Outputs, Record};
use windlass_store::{PageBounds, Reader, StoreError, Stored, Tenant};
use windlass_views::{ResultPlace, Sources, Story, ValueAddress, ValuePlace};

/// A story weighs as much as the JSON that it holds; in memory that is a few times as much.
const STORIES: Bounds = Bounds { entries_max: 1_000, weight_max: 128 << 20 };
/// What one live step-run or standing token takes, roughly.
const LIVE_WEIGHT: usize = 512;
/// What is read at a time.
const PAGE: PageBounds = PageBounds { rows_max: 256, bytes_max: 1 << 20 };

#[derive(Debug)]
pub struct Stories {
    nets: Nets,
    kept: Mutex<Shelf<ExecutionId, Arc<Shared>>>,
    turns: Mutex<BTreeMap<Tenant, Arc<Semaphore>>>,
    pub events: Walks<EventTeller>,
    pub evidence: Walks<Ledger>,
    pub lines: Walks<LogTeller>,
}

/// Long stories of one tenant that are folded at a time: each takes a few megabytes and a thread.
const FOLDING_MAX: usize = 2;
/// Tenants whose turns are kept before unused ones are dropped.
const TURNS_MAX: usize = 256;

/// A story and its locks. One task folds it at a time; the others that want it wait without holding a thread.
#[derive(Debug, Default)]
struct Shared {
    folded: RwLock<Folded>,
    folding: Arc<tokio::sync::Mutex<()>>,
}

/// A telling on its way: an execution that was loaded, and its story as far as it was folded.
#[derive(Debug)]
pub struct Telling {
    stored: Stored,
    shared: Arc<Shared>,
}

/// The right to fold a long story.
#[derive(Debug)]
pub struct Turn {
    _story: OwnedMutexGuard<()>,
    _tenant: Option<OwnedSemaphorePermit>,
}

/// A journal, as far as it was read.
#[derive(Debug, Default)]
struct Folded {
    story: Story,
    outputs: Outputs<ResultPlace>,
    /// None: nothing was read yet.
    net: Option<Arc<Net>>,
}

impl Default for Stories {
    fn default() -> Stories {
        Stories {
            nets: Nets::default(),
            kept: Mutex::new(Shelf::new(STORIES)),
            turns: Mutex::default(),
            events: Walks::default(),
            evidence: Walks::default(),
            lines: Walks::default(),
        }
    }
}

impl Stories {
    /// Tells of an execution that was loaded just now, with everything that happened to it until then, or later.
    pub fn tell<T>(
        &self,
        reader: &mut impl Reader,
        stored: Stored,
        tell: impl FnOnce(&Told<'_>) -> T,
    ) -> Result<T, TellError> {
        let telling = self.begin(stored);
        self.catch_up(reader, &telling, Slice::WHOLE)?;
        self.finish(reader, telling, tell)
    }

    /// Begins to tell of an execution that was loaded just now.
    pub fn begin(&self, stored: Stored) -> Telling {
        let shared = self.shared(stored.state.head.id);
        Telling { stored, shared }
    }

    /// Waits for the turn to fold a long story: one task at a time for a story, a few for a tenant.
    pub async fn turn(&self, telling: &Telling) -> Turn {
        let story = telling.shared.folding.clone().lock_owned().await;
        let turns = self.turns_of(&telling.stored.origin.tenant);
        Turn { _story: story, _tenant: turns.acquire_owned().await.ok() }
    }

    /// Folds what had happened when the execution was loaded. Returns false when the slice is over first.
    pub fn catch_up(
        &self,
        reader: &mut impl Reader,
        telling: &Telling,
        slice: Slice,
    ) -> Result<bool, TellError> {
        let Telling { stored, shared } = telling;
        let head = &stored.state.head;
        let (id, version) = (head.id, head.version);
        if shared.read().version() >= version && !shared.folded.is_poisoned() {
            return Ok(true);
        }
        let net = self.net(reader, head.net)?.ok_or(TellError::NoNet(id))?;
        let mut folded = shared.write();
        // Half of a record may have been folded: it is read anew.
        let caught_up = folded.catch_up(reader, id, net, slice).inspect_err(|_| *folded = Folded::default());
        let weight = folded.weight();
        drop(folded);
        let caught_up = caught_up?;
        lock(&self.kept).put(id, shared.clone(), weight);
        Ok(caught_up)
    }

    /// Tells of an execution whose story has caught up.
    pub fn finish<T>(
        &self,
        reader: &mut impl Reader,
        telling: Telling,
        tell: impl FnOnce(&Told<'_>) -> T,
    ) -> Result<T, TellError> {
        let Telling { stored, shared } = telling;
        let (id, version) = (stored.state.head.id, stored.state.head.version);
        let facts = facts(reader, &stored)?;
        let folded = shared.read();
        // What is forgotten at this very moment has lost its journal first.
        let (true, Some(net)) = (folded.version() >= version, &folded.net) else {
            return Err(TellError::Gone(id));
        };
        let reader = RefCell::new(reader);
        let open = |key: &str| opened(&mut **reader.borrow_mut(), id, key);
        let read = |place: &ValuePlace| value_at(&mut **reader.borrow_mut(), id, place);
        let (story, outputs, sources) =
            (&folded.story, &folded.outputs, Sources { open: &open, read: &read });
        Ok(tell(&Told { stored, net, story, outputs, facts, sources }))
    }

    /// None: the store does not have it.
    pub fn net(&self, reader: &mut impl Reader, digest: NetDigest) -> Result<Option<Arc<Net>>, StoreError> {
        self.nets.net(reader, digest)
    }

    /// After something was forgotten: nothing of it stays in memory.
    pub fn clear(&self) {
        lock(&self.kept).clear();
        self.events.clear();
        self.evidence.clear();
        self.lines.clear();
    }

    fn shared(&self, id: ExecutionId) -> Arc<Shared> {
        let mut kept = lock(&self.kept);
        let known = kept.get(&id);
        known.unwrap_or_else(|| {
            let shared = Arc::<Shared>::default();
            kept.put(id, shared.clone(), 0);
            shared
        })
    }

    fn turns_of(&self, tenant: &Tenant) -> Arc<Semaphore> {
        let mut turns = lock(&self.turns);
        if turns.len() >= TURNS_MAX {
            turns.retain(|_, turns| Arc::strong_count(turns) > 1);
        }
        turns.entry(tenant.clone()).or_insert_with(|| Arc::new(Semaphore::new(FOLDING_MAX))).clone()
    }
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Folded> {
        self.folded.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a panic left half done is begun anew.
    fn write(&self) -> RwLockWriteGuard<'_, Folded> {
        self.folded.write().unwrap_or_else(|poisoned| {
            let mut folded = poisoned.into_inner();
            *folded = Folded::default();
            self.folded.clear_poison();
            folded
        })
    }
}

impl Folded {
    fn version(&self) -> u64 {
        self.story.state.head.version
    }

    fn catch_up(
        &mut self,
        reader: &mut impl Reader,
        id: ExecutionId,
        net: Arc<Net>,
        slice: Slice,
    ) -> Result<bool, TellError> {
        let net = self.net.insert(net).clone();
        loop {
            let page = reader.journal_page(id, self.version(), PAGE)?;
            // Rows are read whole, so each begins where the one before it ended.
            for record in page.rows.iter().flat_map(|row| &row.records) {
                self.fold(&net, record).map_err(|illegal| TellError::Broken(id, illegal))?;
            }
            if !page.more {
                return Ok(true);
            }
            if slice.is_over() {
                return Ok(false);
            }
        }
    }

    fn fold(&mut self, net: &Net, record: &Record) -> Result<(), windlass_kernel::Illegal> {
        let version = self.version();
        self.outputs.note_with(record, &mut |index, value| ResultPlace::of(version, index, value));
        self.story.fold(net, record)
    }

    fn weight(&self) -> u64 {
        let state = &self.story.state;
        let live = state.runs.len() + state.arrived.len() + state.gated.len() + state.joins.len();
        (self.story.weight() + LIVE_WEIGHT * (live + state.latest.len() + 1)) as u64
    }
}

/// What cannot be opened stays a reference; whoever follows it is told what is wrong.
fn opened(reader: &mut impl Reader, id: ExecutionId, key: &str) -> Option<Arc<Value>> {
    let found = reader.values(id, &[Need::Artifact(key.to_owned())]);
    let found = found.inspect_err(|error| tracing::error!(%error, key, "an artifact cannot be read"));
    found.ok()?.artifacts.remove(key)?
}

/// A value of the journal; None when it cannot be read, which is logged.
pub fn value_at(reader: &mut impl Reader, id: ExecutionId, place: &ValuePlace) -> Option<Arc<Value>> {
    let read = read_value(reader, id, place.address());
    read.inspect_err(|error| tracing::error!(%error, "a value of a journal cannot be read")).ok()?
}

/// A value of the journal; None when there is none at that address.
pub fn read_value(
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
