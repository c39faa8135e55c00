//! Stories of executions, kept between requests: whoever asks again pays for what has happened since, not for the whole
//! journal. A story is looked up by whoever has loaded its execution, and so knows whose it is.

#[cfg(test)]
mod tests;

use crate::evidence::Ledger;
use crate::nets::Nets;
use crate::routes::{EventTeller, LogTeller};
use crate::shelf::{Bounds, Shelf, lock};
use crate::told::{Artifacts, TellError, Told, facts};
use crate::walk::Walks;
use serde_json::{Serializer, Value};
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use windlass_dialects::view::Story;
use windlass_kernel::{ExecutionId, Need, Net, NetDigest, Outputs, Record};
use windlass_store::{Reader, StoreError, Stored};

/// A story weighs as much as the JSON of its journal; in memory that is a few times as much.
const STORIES: Bounds = Bounds { entries_max: 1_000, weight_max: 128 << 20 };
/// Rows read at a time.
const PAGE: usize = 256;

#[derive(Debug)]
pub struct Stories {
    nets: Nets,
    kept: Mutex<Shelf<ExecutionId, Shared>>,
    pub events: Walks<EventTeller>,
    pub evidence: Walks<Ledger>,
    pub lines: Walks<LogTeller>,
}

/// Its own lock: whoever folds one story holds up those who want the same one, who would have to fold it otherwise, and
/// nobody else.
type Shared = Arc<RwLock<Folded>>;

/// A journal, as far as it was read.
#[derive(Debug, Default)]
struct Folded {
    story: Story,
    outputs: Outputs,
    weight: u64,
    /// None: nothing was read yet.
    net: Option<Arc<Net>>,
}

impl Default for Stories {
    fn default() -> Stories {
        Stories {
            nets: Nets::default(),
            kept: Mutex::new(Shelf::new(STORIES)),
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
        let head = &stored.state.head;
        let (id, version) = (head.id, head.version);
        let facts = facts(reader, &stored)?;
        let shared = self.shared(id);
        let read = || shared.read().unwrap_or_else(PoisonError::into_inner);
        if read().version() < version || shared.is_poisoned() {
            let net = self.net(reader, head.net)?.ok_or(TellError::NoNet(id))?;
            let mut folded = unbroken(&shared);
            // Half of a record may have been folded: it is read anew.
            let caught_up = folded.catch_up(reader, id, net).inspect_err(|_| *folded = Folded::default());
            let weight = folded.weight;
            drop(folded);
            caught_up?;
            lock(&self.kept).put(id, shared.clone(), weight);
        }
        let folded = read();
        // What is forgotten at this very moment has lost its journal first.
        let (true, Some(net)) = (folded.version() >= version, &folded.net) else {
            return Err(TellError::Gone(id));
        };
        let reader = RefCell::new(reader);
        let open = |key: &str| opened(&mut **reader.borrow_mut(), id, key);
        let (story, outputs, artifacts) = (&folded.story, &folded.outputs, Artifacts(&open));
        Ok(tell(&Told { stored, net, story, outputs, facts, artifacts }))
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

    fn shared(&self, id: ExecutionId) -> Shared {
        let mut kept = lock(&self.kept);
        let known = kept.get(&id);
        known.unwrap_or_else(|| {
            let shared = Shared::default();
            kept.put(id, shared.clone(), 0);
            shared
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
    ) -> Result<(), TellError> {
        let net = self.net.insert(net).clone();
        loop {
            let rows = reader.journal(id, self.version(), PAGE)?;
            let more = rows.len() == PAGE;
            // Rows are read whole, so each begins where the one before it ended.
            for record in rows.iter().flat_map(|row| &row.records) {
                self.fold(&net, record).map_err(|illegal| TellError::Broken(id, illegal))?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn fold(&mut self, net: &Net, record: &Record) -> Result<(), windlass_kernel::Illegal> {
        self.outputs.note(record);
        self.weight += weight(record);
        self.story.fold(net, record)
    }
}

/// What cannot be opened stays a reference; whoever follows it is told what is wrong.
fn opened(reader: &mut impl Reader, id: ExecutionId, key: &str) -> Option<Arc<Value>> {
    let found = reader.values(id, &[Need::Artifact(key.to_owned())]);
    let found = found.inspect_err(|error| tracing::error!(%error, key, "an artifact cannot be read"));
    found.ok()?.artifacts.remove(key)?
}

/// What somebody left half done is begun anew.
fn unbroken(shared: &Shared) -> RwLockWriteGuard<'_, Folded> {
    shared.write().unwrap_or_else(|poisoned| {
        let mut folded = poisoned.into_inner();
        *folded = Folded::default();
        shared.clear_poison();
        folded
    })
}

fn weight(record: &Record) -> u64 {
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A record was JSON when it was read, and nothing that is counted can fail.
    let _ = serde::Serialize::serialize(record, &mut Serializer::new(&mut count));
    count.0
}
