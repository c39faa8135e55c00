//! The data folder: its holder, and its layout. The lock ends with its process, so a process that gets it knows that
//! the last holder has ended.

use crate::private::{make_private, tighten};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time for which a process that only reads the holder may have the lock, and the number of such processes that
/// are waited for.
const READER_LOCK: Duration = Duration::from_millis(2);
const READER_LOCKS_MAX: u32 = 10;

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error(
        "the data folder {} is in use by {holder}: wait for it to end, or choose another folder with --data",
        .path.display()
    )]
    InUse { path: PathBuf, holder: String },
    #[error("cannot use the data folder {}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A data folder that this process holds until the value is dropped or the process ends.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates the folder if it is missing and locks it for this process; `what` describes the process. The folder, and
    /// all files that this process writes from now on, are for its user only.
    pub fn hold(path: &Path, what: &str) -> Result<Folder, FolderError> {
        let io = |source| FolderError::Io { path: path.to_owned(), source };
        make_private();
        std::fs::create_dir_all(path).map_err(io)?;
        tighten(path).map_err(io)?;
        let file = path.join("lock");
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&file);
        let mut lock = options.map_err(io)?;
        match exclusive(&lock) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(FolderError::InUse { path: path.to_owned(), holder: holder(&mut lock) });
            }
            Err(errno) => return Err(io(errno.into())),
        }
        note(&mut lock, what).map_err(io)?;
        Ok(Folder { path: path.to_owned(), _lock: lock })
    }

    /// Returns the current holder of the folder; nothing is created or changed.
    pub fn holder(path: &Path) -> Result<Option<String>, FolderError> {
        let io = |source| FolderError::Io { path: path.to_owned(), source };
        let mut lock = match File::open(path.join("lock")) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        // The lock is shared, so that two processes that read the holder do not report each other as the holder.
        match flock(&lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(Some(holder(&mut lock))),
            Err(errno) => Err(io(errno.into())),
        }
    }

    /// Returns the path of the store of a folder.
    #[must_use]
    pub fn store(path: &Path) -> PathBuf {
        path.join("windlass.db")
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Takes the exclusive lock. A process that only reads the holder has it for an instant, so the call is repeated.
fn exclusive(lock: &File) -> rustix::io::Result<()> {
    for _ in 0..READER_LOCKS_MAX {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(READER_LOCK),
            other => return other,
        }
    }
    flock(lock, FlockOperation::NonBlockingLockExclusive)
}

fn note(lock: &mut File, what: &str) -> io::Result<()> {
    lock.set_len(0)?;
    lock.seek(io::SeekFrom::Start(0))?;
    write!(lock, "process {} ({what})", std::process::id())
}

fn holder(lock: &mut File) -> String {
    let mut text = String::new();
    match lock.read_to_string(&mut text) {
        Ok(read) if read > 0 => text,
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_learns_who_is_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = Folder::hold(folder.path(), "windlass run a.yaml").unwrap();
        let error = Folder::hold(folder.path(), "windlass serve").unwrap_err().to_string();
        let expected = format!("process {} (windlass run a.yaml)", std::process::id());
        assert!(error.contains(&expected), "{error}");
        drop(first);
        Folder::hold(folder.path(), "windlass serve").unwrap();
    }

    #[test]
    fn reading_the_holder_takes_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Folder::holder(&folder.path().join("missing")).unwrap(), None);
        let first = Folder::hold(folder.path(), "windlass serve").unwrap();
        let holder = Folder::holder(folder.path()).unwrap().unwrap();
        assert!(holder.contains("windlass serve"), "{holder}");
        drop(first);
        assert_eq!(Folder::holder(folder.path()).unwrap(), None);
        Folder::hold(folder.path(), "windlass run").unwrap();
    }

    #[test]
    fn the_error_of_a_folder_that_cannot_be_made_names_its_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Folder::hold(&file.path().join("data"), "windlass run").unwrap_err().to_string();
        assert!(error.contains("data"), "{error}");
    }
}
