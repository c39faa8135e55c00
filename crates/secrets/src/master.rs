//! Sources of master keys: the environment variable, or a file in the data folder that only its owner can read.

use crate::keyring::{KeyError, Keyring};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Environment variable with keys in the form of [`Keyring::parse`]; it takes precedence over the file.
pub const KEY_VARIABLE: &str = "WINDLASS_MASTER_KEY";

pub const KEY_FILE: &str = "master.key";

const LOCK_FILE: &str = "secrets.lock";

/// Maximum size of the key file: many times the size of [`crate::KEYS_MAX`] keys.
const FILE_MAX: u64 = 16 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum MasterError {
    #[error("there is no master key: neither {KEY_VARIABLE} nor {}; without the key that secrets were set with, they cannot be opened", .0.display())]
    Missing(PathBuf),
    #[error("others can read the master key {}: run `chmod 600 {}`, and rotate the key if someone may have read it", .0.display(), .0.display())]
    Open(PathBuf),
    #[error("cannot use the master key {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{place}: {source}")]
    Malformed { place: String, source: KeyError },
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Lock that is held until it is dropped or the process ends.
#[derive(Debug)]
pub struct KeyLock {
    _file: File,
}

/// Both sources; they are read on every call.
#[derive(Debug, Clone)]
pub struct MasterKeys {
    file: PathBuf,
    variable: Option<Zeroizing<String>>,
}

impl MasterKeys {
    /// Creates the sources of a data folder and the value of [`KEY_VARIABLE`]. An empty value counts as unset.
    #[must_use]
    pub fn new(folder: &Path, variable: Option<String>) -> MasterKeys {
        let variable = variable.filter(|text| !text.trim().is_empty()).map(Zeroizing::new);
        MasterKeys { file: folder.join(KEY_FILE), variable }
    }

    #[must_use]
    pub fn are_in_variable(&self) -> bool {
        self.variable.is_some()
    }

    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn load(&self) -> Result<Keyring, MasterError> {
        self.find_keys()?.ok_or_else(|| MasterError::Missing(self.file.clone()))
    }

    /// Waits for other processes that set or rotate secrets, because a value must not be sealed under a key that is
    /// about to be removed.
    pub fn lock(&self) -> Result<KeyLock, MasterError> {
        let path = self.file.with_file_name(LOCK_FILE);
        let lock = || -> io::Result<File> {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            file.lock()?;
            Ok(file)
        };
        lock().map(|file| KeyLock { _file: file }).map_err(|error| self.io_error(error))
    }

    /// Loads the keys, or creates a key in the file if there is none.
    pub fn load_or_create(&self) -> Result<Keyring, MasterError> {
        if let Some(ring) = self.find_keys()? {
            return Ok(ring);
        }
        let ring = Keyring::generate()?;
        match self.write_file(&ring, Existing::Keep) {
            // Another process created the file first, and its key is used.
            Err(MasterError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                self.load()
            }
            written => written.map(|()| ring),
        }
    }

    /// Replaces the file. A crash leaves the old one or the new one.
    pub fn replace(&self, ring: &Keyring) -> Result<(), MasterError> {
        self.write_file(ring, Existing::Replace)
    }

    fn find_keys(&self) -> Result<Option<Keyring>, MasterError> {
        if let Some(text) = &self.variable {
            let malformed = |source| MasterError::Malformed { place: KEY_VARIABLE.to_owned(), source };
            return Keyring::parse(text).map(Some).map_err(malformed);
        }
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.io_error(error)),
        };
        let about = file.metadata().map_err(|error| self.io_error(error))?;
        if about.mode() & 0o077 != 0 {
            return Err(MasterError::Open(self.file.clone()));
        }
        let mut text = Zeroizing::new(String::new());
        file.take(FILE_MAX).read_to_string(&mut text).map_err(|error| self.io_error(error))?;
        let malformed = |source| MasterError::Malformed { place: self.file.display().to_string(), source };
        Keyring::parse(&text).map(Some).map_err(malformed)
    }

    fn write_file(&self, ring: &Keyring, existing: Existing) -> Result<(), MasterError> {
        let written = self.write_temporary(ring).and_then(|temporary| {
            let placed = match existing {
                Existing::Replace => fs::rename(&temporary, &self.file),
                // A hard link never replaces an existing file.
                Existing::Keep => {
                    fs::hard_link(&temporary, &self.file).and_then(|()| fs::remove_file(&temporary))
                }
            };
            if placed.is_err() {
                let _ = fs::remove_file(&temporary);
            }
            placed?;
            // The file's name is on disk only after its folder is synced.
            self.file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        });
        written.map_err(|error| self.io_error(error))
    }

    fn write_temporary(&self, ring: &Keyring) -> io::Result<PathBuf> {
        let temporary = self.file.with_extension(format!("key.{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let note = "# Master keys of this data folder. The first key seals; anyone who reads this file can open all secrets.\n";
        file.write_all(note.as_bytes())?;
        file.write_all(ring.text().as_bytes())?;
        file.sync_all()?;
        Ok(temporary)
    }

    fn io_error(&self, source: io::Error) -> MasterError {
        MasterError::Io { path: self.file.clone(), source }
    }
}

#[derive(Clone, Copy)]
enum Existing {
    Keep,
    Replace,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_first_use_creates_a_file_that_only_its_owner_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let keys = MasterKeys::new(folder.path(), None);
        assert!(matches!(keys.load(), Err(MasterError::Missing(_))));
        let ring = keys.load_or_create().unwrap();
        assert_eq!(fs::metadata(keys.file()).unwrap().mode() & 0o777, 0o600);
        assert_eq!(keys.load_or_create().unwrap().newest(), ring.newest());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left there");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_what_to_run() {
        let folder = tempfile::tempdir().unwrap();
        let keys = MasterKeys::new(folder.path(), None);
        keys.load_or_create().unwrap();
        for mode in [0o640, 0o604, 0o644] {
            fs::set_permissions(keys.file(), fs::Permissions::from_mode(mode)).unwrap();
            let error = keys.load().unwrap_err().to_string();
            assert!(error.contains(&format!("chmod 600 {}", keys.file().display())), "{error}");
        }
    }

    #[test]
    fn the_variable_wins_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let ring = Keyring::generate().unwrap();
        let keys = MasterKeys::new(folder.path(), Some(ring.text().to_string()));
        assert_eq!(keys.load_or_create().unwrap().newest(), ring.newest());
        assert!(!keys.file().exists());
        let bad = MasterKeys::new(folder.path(), Some("hunter2".into()));
        let error = bad.load().unwrap_err().to_string();
        assert!(
            error.starts_with("WINDLASS_MASTER_KEY: key 1 is not") && !error.contains("hunter2"),
            "{error}"
        );
    }

    #[test]
    fn a_replaced_file_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let keys = MasterKeys::new(folder.path(), None);
        let both = keys.load_or_create().unwrap().renewed().unwrap();
        keys.replace(&both).unwrap();
        assert!(keys.load().unwrap().ids().eq(both.ids()));
        assert_eq!(fs::metadata(keys.file()).unwrap().mode() & 0o777, 0o600);
    }
}
