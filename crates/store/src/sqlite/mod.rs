//! The embedded store: one SQLite file in WAL mode, with one writer and any number of readers.

mod access;
mod artifact_owners;
mod audit_rows;
mod catalog;
mod chain;
mod checking;
mod checkpoint;
mod columns;
mod commit;
mod connect;
mod creation;
mod definitions;
mod entry;
mod executions;
mod hooks;
mod keys;
mod lists;
mod mail;
mod memory;
mod migrate;
mod notices;
mod objects;
mod outbox;
mod quarantine;
mod reader;
mod registry;
mod retention;
mod schedule_runs;
mod schedules;
mod secrets;
mod state;
mod statements;
mod tasks;
#[cfg(test)]
mod tests;
mod timers;
mod usage;
mod workers;
mod write;

use crate::artifacts::{ArtifactCopies, Artifacts};
use crate::commit::{Applied, Write};
use crate::seal::AuditSeal;
use crate::store::{Store, StoreError, StoreResult};
use crate::usage::Usages;
use checkpoint::{BOUNDS, Bounds, Checkpoints};
use keys::Keys;
pub use reader::SqliteReader;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
pub use secrets::SqliteSecrets;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    conn: Connection,
    artifacts: Artifacts,
    keys: Keys,
    usages: Arc<Usages>,
    seal: Option<Arc<AuditSeal>>,
    checkpoints: Checkpoints,
    /// After a failed write the state of the disk is unknown until the store is opened again.
    failed: Option<StoreError>,
}

impl Sqlite {
    /// Opens a store, creates it if there is none, and brings its schema up to date. A store written by a newer version is
    /// refused before anything is changed.
    pub fn open(path: &Path) -> StoreResult<Sqlite> {
        Sqlite::open_within(path, BOUNDS)
    }

    fn open_within(path: &Path, bounds: Bounds) -> StoreResult<Sqlite> {
        connect::inspect(path)?;
        let conn = connect::open_writer(path)?;
        migrate::migrate(&conn, path)?;
        let checkpoints = Checkpoints::start(path, bounds)?;
        let (path, artifacts, keys) = (path.to_owned(), artifacts_of(path), Keys::default());
        if artifacts.has_shared()? {
            artifacts.divide(&retention::referenced(&conn)?)?;
            usage::set_artifacts(&conn, &artifacts.used()?)?;
        }
        let usages = Arc::new(usage::load(&conn)?);
        Ok(Sqlite { path, conn, artifacts, keys, usages, seal: None, checkpoints, failed: None })
    }

    /// Opens an existing store for reading only, also while another process writes.
    pub fn read_only(path: &Path) -> StoreResult<SqliteReader> {
        connect::inspect_existing(path)?;
        SqliteReader::open(path)
    }

    /// Copies an existing store as it is at one moment into a file that does not exist yet. Other processes may write
    /// meanwhile.
    pub fn copy(path: &Path, into: &Path) -> StoreResult<()> {
        connect::inspect_existing(path)?;
        let name = into.display().to_string();
        connect::open_reader(path)?.execute("VACUUM INTO ?1", [name]).map_err(StoreError::from)?;
        let sync = std::fs::File::open(into).and_then(|file| file.sync_all());
        sync.map_err(|error| StoreError::Io(format!("{}: {error}", into.display())))
    }

    /// Returns the artifacts, for workers that make references before they report.
    #[must_use]
    pub fn artifacts(&self) -> Artifacts {
        self.artifacts.clone()
    }

    /// Writes a row for every artifact that is put from now on, so that it is copied into an object store. Readers fetch artifacts
    /// that are missing from there.
    pub fn copy_artifacts(&mut self, copies: Arc<dyn ArtifactCopies>) {
        self.artifacts.record_put();
        self.artifacts.set_copies(copies);
    }

    /// Seals audit rows from now on.
    pub fn seal_audit(&mut self, seal: Arc<AuditSeal>) {
        self.seal = Some(seal);
    }

    /// Returns the bytes that tenants use, kept up to date by every write.
    #[must_use]
    pub fn usages(&self) -> Arc<Usages> {
        self.usages.clone()
    }

    /// Returns the artifacts of the store at this path.
    #[must_use]
    pub fn artifacts_of_store(path: &Path) -> Artifacts {
        artifacts_of(path)
    }

    /// Keeps the artifacts of a batch before its transaction begins, so that no committed row refers to a missing one.
    fn keep_artifacts(&mut self, batch: &[Write]) -> StoreResult<()> {
        let commits = || {
            batch
                .iter()
                .filter_map(|write| if let Write::Commit(commit) = write { Some(commit) } else { None })
        };
        for commit in commits().filter(|commit| !commit.artifacts.is_empty()) {
            let created = commits().filter(|other| other.execution == commit.execution);
            let tenant = match created.filter_map(|other| other.creation.as_ref()).next() {
                Some(creation) => Some(creation.origin.tenant.clone()),
                None => self.keys.find(&self.conn, commit.execution)?.map(|owned| owned.tenant),
            };
            // A commit of an execution that does not exist is refused.
            if let Some(tenant) = tenant {
                for artifact in &commit.artifacts {
                    let added = self.artifacts.keep(&tenant, artifact)?;
                    self.usages.add_artifacts(&tenant, added);
                }
            }
        }
        Ok(())
    }
}

/// Returns the artifacts in the folder next to the file.
pub(crate) fn artifacts_of(path: &Path) -> Artifacts {
    Artifacts::in_folder(path.with_file_name("artifacts"))
}

impl Store for Sqlite {
    type Reader = SqliteReader;

    fn reader(&self) -> StoreResult<SqliteReader> {
        Ok(SqliteReader::open(&self.path)?.with_artifacts(&self.artifacts))
    }

    fn write(&mut self, batch: &[Write]) -> StoreResult<Vec<Applied>> {
        if let Some(error) = &self.failed {
            let what =
                format!("an earlier write failed ({error}); nothing is written until it is opened again");
            return Err(StoreError::Io(what));
        }
        let applied = self.checkpoints.keep_short(&self.conn, batch.len()).and_then(|()| {
            if batch.is_empty() {
                return Ok(Vec::new());
            }
            self.keep_artifacts(batch)?;
            let put = self.artifacts.take_put();
            write::apply(&self.conn, &mut self.keys, (&self.usages, self.seal.as_deref()), &put, batch)
        });
        self.failed = applied.as_ref().err().cloned();
        applied
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if self.failed.is_none() {
            return self.checkpoints.close(&self.conn);
        }
        // The outcome of the failed write is unknown: the log is left as it is.
        self.checkpoints.stop();
        let _ = self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
}
