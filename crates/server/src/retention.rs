//! Deletion of expired executions and unreferenced artifacts, in small transactions.

use crate::app::App;
use crate::database::{Database, DatabaseReader};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windlass_engine::{EngineAnswer, Folder, Handle, Request};
use windlass_kernel::{ExecutionId, Millis};
use windlass_store::{
    Applied, Artifacts, Entry, ObjectChange, ObjectWrite, Objects as _, References, Retention as _,
    ScheduleWrite, StoredObject, Swept, Tenant,
};

/// Time between two prunings, and from the start to the first.
const EVERY: Duration = Duration::from_secs(3_600);
const FIRST: Duration = Duration::from_secs(60);
/// Maximum number of executions deleted in one transaction.
const PAGE: usize = 64;
/// Maximum number of rows deleted in one transaction, which takes a few milliseconds.
const ROWS: usize = 1_000;
/// Maximum number of occurrences of schedules deleted in one transaction.
const OCCURRENCES: usize = 200;
/// Number of copies of artifacts that are read at a time.
const OBJECTS: usize = 500;
/// Minimum age of a deleted artifact: a recent one may be referenced by rows that are not written yet.
const FRESH: Duration = Duration::from_secs(24 * 3_600);

/// Counts of a pruning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    pub executions: u64,
    pub artifacts: u64,
    pub artifact_bytes: u64,
}

/// Deletes expired executions of a data folder.
#[derive(Debug)]
pub struct Pruner {
    reader: DatabaseReader,
    artifacts: Artifacts,
    engine: Handle,
}

impl Pruner {
    pub fn of(data: &Path, engine: Handle) -> anyhow::Result<Pruner> {
        let store = Folder::store(data);
        let (reader, artifacts) = (Database::read_only(&store)?, Database::artifacts_of_store(&store));
        Ok(Pruner { reader, artifacts, engine })
    }

    /// Deletes executions and runs of schedules that ended before this time, and artifacts without references. Blocks on the disk.
    pub fn run(&mut self, ended_before: Millis) -> anyhow::Result<Pruned> {
        let mut pruned = Pruned::default();
        // A deletion that an earlier process began is finished first.
        self.clear()?;
        loop {
            let page = self.reader.forgettable(ended_before, PAGE)?;
            let page = page.into_iter().map(|one| one.execution);
            let gone = self.forget(page.collect(), ended_before)?;
            if gone == 0 {
                break;
            }
            pruned.executions += gone;
            self.clear()?;
        }
        self.prune_runs(ended_before)?;
        let put_before = SystemTime::now().checked_sub(FRESH).context("the system clock is before 1970")?;
        let referenced = self.reader.referenced()?;
        let Swept { files, bytes, mut left } = self.artifacts.sweep(&referenced, put_before)?;
        (pruned.artifacts, pruned.artifact_bytes) = (files, bytes);
        self.discard_copies(&referenced, put_before, &mut left)?;
        self.store_entries(vec![Entry::ArtifactsCounted { left }])?;
        Ok(pruned)
    }

    /// Marks copies without references for deletion, and counts the bytes of those without a file.
    fn discard_copies(
        &mut self,
        referenced: &References,
        put_before: SystemTime,
        left: &mut BTreeMap<Tenant, u64>,
    ) -> anyhow::Result<()> {
        let since = put_before.duration_since(UNIX_EPOCH).unwrap_or_default();
        let put_before = Millis(i64::try_from(since.as_millis())?);
        let mut after: Option<StoredObject> = None;
        loop {
            let from = after.as_ref().map(|last| (&last.tenant, last.key.as_str()));
            let page = self.reader.objects(from, OBJECTS)?;
            let mut discarded = Vec::new();
            for object in &page {
                let StoredObject { tenant, key, bytes, .. } = object;
                if referenced.get(tenant).is_some_and(|keys| keys.contains(key)) {
                    if self.artifacts.find_file(tenant, key)?.is_none() {
                        *left.entry(tenant.clone()).or_default() += bytes;
                    }
                } else {
                    let change = ObjectChange::Discard { put_before };
                    let (tenant, key, at) = (tenant.clone(), key.clone(), crate::host::now());
                    let write = ObjectWrite::Change { tenant, key, change, at };
                    discarded.push(Entry::Object(Box::new(write)));
                }
            }
            if !discarded.is_empty() {
                self.store_entries(discarded)?;
            }
            if page.len() < OBJECTS {
                return Ok(());
            }
            after = page.into_iter().next_back();
        }
    }

    fn forget(&self, executions: Vec<ExecutionId>, ended_before: Millis) -> anyhow::Result<u64> {
        let forget = executions.into_iter().map(|execution| Entry::Forget { execution, ended_before });
        let applied = self.store_entries(forget.collect())?;
        Ok(applied.iter().filter(|applied| **applied == Applied::Done).count() as u64)
    }

    fn prune_runs(&self, ended_before: Millis) -> anyhow::Result<()> {
        let prune = || ScheduleWrite::Prune { ended_before, occurrences_max: OCCURRENCES };
        while self.store_entries(vec![Entry::Schedule(Box::new(prune()))])? == [Applied::Done] {}
        Ok(())
    }

    fn clear(&self) -> anyhow::Result<()> {
        while self.store_entries(vec![Entry::Clear { rows: ROWS }])? == [Applied::Done] {}
        Ok(())
    }

    fn store_entries(&self, entries: Vec<Entry>) -> anyhow::Result<Vec<Applied>> {
        let Some(EngineAnswer::Kept(applied)) = self.engine.call(Request::Keep(entries)) else {
            bail!("the engine is being stopped; pruning continues after the next start");
        };
        Ok(applied)
    }
}

/// Returns the time before which ended executions are deleted.
#[must_use]
pub fn ended_before(now: Millis, keep: Duration) -> Millis {
    Millis(now.0.saturating_sub(i64::try_from(keep.as_millis()).unwrap_or(i64::MAX)))
}

/// Prunes periodically until the server is stopped.
pub async fn run(app: Arc<App>, keep: Duration) {
    for pause in std::iter::once(FIRST).chain(std::iter::repeat(EVERY)) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.stopped() => return,
        }
        let (data, engine) = (app.settings.data.clone(), app.engine.clone());
        let before = ended_before(crate::host::now(), keep);
        let pruned = tokio::task::spawn_blocking(move || Pruner::of(&data, engine)?.run(before)).await;
        // Deleted executions must not stay in the cache.
        app.histories.clear();
        match pruned {
            Ok(Ok(Pruned { executions, artifacts, artifact_bytes })) => {
                tracing::info!(executions, artifacts, artifact_bytes, "pruned expired executions");
            }
            Ok(Err(error)) => tracing::error!("cannot prune expired executions: {error:#}"),
            Err(error) => tracing::error!("cannot prune expired executions: {error}"),
        }
    }
}
