//! The production store over a file. A crash copies the file as a dying machine would leave it: everything that was synced,
//! and of the batch on its way as many bytes as chance has it.

use super::Fate;
use crate::rng::Rng;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;
use windlass_store::sqlite::{Sqlite, SqliteReader};
use windlass_store::{Applied, Artifacts, Store, StoreError, Write};

#[derive(Debug)]
pub struct FileStore {
    folder: TempDir,
    /// Number of the copy. Each crash continues in a new one.
    copy: u32,
    open: Sqlite,
}

/// An empty store, created once: the statements of its schema take as long as a simulated system.
static EMPTY: LazyLock<Result<Vec<u8>, StoreError>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().map_err(broken)?;
    let store = place(folder.path(), 0);
    // Closed, so that nothing is left in its log.
    drop(Sqlite::open(&store)?);
    std::fs::read(&store).map_err(broken)
});

impl FileStore {
    pub fn new() -> Result<FileStore, StoreError> {
        // Crashes are made by copying, so nothing is gained from a disk that is slow to sync.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.map_err(broken)?;
        let first = place(folder.path(), 0);
        std::fs::write(&first, EMPTY.as_ref().map_err(Clone::clone)?).map_err(broken)?;
        let open = Sqlite::open(&first)?;
        Ok(FileStore { folder, copy: 0, open })
    }

    pub fn write(&mut self, batch: &[Write], fate: Fate) -> Result<Vec<Applied>, StoreError> {
        match fate {
            Fate::Synced => self.open.write(batch),
            Fate::FailedLost => Err(StoreError::Io("the sync failed".into())),
            Fate::FailedKept => {
                self.open.write(batch)?;
                Err(StoreError::Io("the answer of the disk was lost".into()))
            }
        }
    }

    /// Folder of all copies: data that was once on disk stays there.
    pub fn artifacts(&self) -> Artifacts {
        self.open.artifacts()
    }

    pub fn reader(&self) -> Result<SqliteReader, StoreError> {
        self.open.reader()
    }

    pub fn crash(&mut self, outstanding: Option<&[Write]>, rng: &mut Rng) -> Result<(), StoreError> {
        let from = place(self.folder.path(), self.copy);
        let before = length(&log(&from))?;
        if let Some(batch) = outstanding {
            // Its answer is lost.
            let _ = self.open.write(batch);
        }
        let after = length(&log(&from))?;
        let kept = before + rng.below(after.saturating_sub(before) + 1);
        self.copy += 1;
        let to = place(self.folder.path(), self.copy);
        std::fs::copy(&from, &to).map_err(broken)?;
        if kept > 0 {
            std::fs::copy(log(&from), log(&to)).map_err(broken)?;
            let cut = OpenOptions::new().write(true).open(log(&to)).map_err(broken)?;
            cut.set_len(kept).map_err(broken)?;
        }
        self.open = Sqlite::open(&to)?;
        Ok(())
    }
}

fn place(folder: &Path, copy: u32) -> PathBuf {
    folder.join(format!("copy-{copy}.db"))
}

fn log(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn length(file: &Path) -> Result<u64, StoreError> {
    match File::open(file).and_then(|file| file.metadata()) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(broken(error)),
    }
}

fn broken(error: io::Error) -> StoreError {
    StoreError::Io(format!("the simulator cannot copy a store: {error}"))
}
