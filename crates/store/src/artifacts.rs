//! Artifacts as files, named by the digest of what is in them. A file under its name is whole and on disk: it is
//! written under another name, synced, and renamed. Nothing is ever written into it again. Its time says when it was
//! last put there: whoever puts it may not have said yet what refers to it.

use crate::store::StoreError;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use windlass_artifact::{Artifact, digest, key_of};

/// The first digits of a name are a folder, so that no folder has too many entries.
const FOLDER_DIGITS: usize = 2;

static UNFINISHED: AtomicU64 = AtomicU64::new(0);

/// A folder of artifacts; copies are handles of the same one.
#[derive(Debug, Clone)]
pub struct Artifacts {
    folder: PathBuf,
}

impl Artifacts {
    /// Made when the first artifact is kept.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Artifacts {
        Artifacts { folder: folder.into() }
    }

    /// After `Ok` a crash does not lose it.
    pub fn keep(&self, artifact: &Artifact) -> Result<(), StoreError> {
        let path = self.path(&artifact.key).ok_or_else(|| no_key(&artifact.key))?;
        self.put(&path, &artifact.bytes).map_err(|error| trouble(&path, &error))
    }

    /// None when it is not there, or not what it was.
    pub fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(path) = self.path(key) else { return Ok(None) };
        match fs::read(&path) {
            Ok(bytes) => Ok((key_of(&bytes) == key).then_some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(trouble(&path, &error)),
        }
    }

    /// The value it stands for.
    pub fn value(&self, key: &str) -> Result<Option<Arc<Value>>, StoreError> {
        Ok(self.read(key)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()).map(Arc::new))
    }

    /// All of them, as they lie there.
    pub fn all(&self) -> Result<Vec<Lying>, StoreError> {
        let mut found = Vec::new();
        for folder in entries(&self.folder)? {
            for path in entries(&folder)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let key = format!("sha256:{name}");
                let lying = digest(&key).and_then(|_| fs::metadata(&path).ok());
                let about = lying.and_then(|about| Some((about.len(), about.modified().ok()?)));
                found.extend(about.map(|(bytes, put_at)| Lying { key, path, bytes, put_at }));
            }
        }
        Ok(found)
    }

    /// Takes away what nothing refers to and what was put there before then. Says how many files and bytes went.
    pub fn sweep(
        &self,
        referenced: &BTreeSet<String>,
        put_before: SystemTime,
    ) -> Result<(u64, u64), StoreError> {
        let mut gone = (0, 0);
        for Lying { key, path, bytes, put_at } in self.all()? {
            if put_at < put_before && !referenced.contains(&key) {
                fs::remove_file(&path).map_err(|error| trouble(&path, &error))?;
                gone = (gone.0 + 1, gone.1 + bytes);
            }
        }
        Ok(gone)
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        let digits = digest(key)?;
        Some(self.folder.join(&digits[..FOLDER_DIGITS]).join(digits))
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        if path.exists() {
            File::options().append(true).open(path)?.set_modified(SystemTime::now())?;
        } else {
            let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
            let unfinished = folder.join(format!(".{}-{number}", std::process::id()));
            let written = write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
            if written.is_err() {
                // The first error is the one to tell.
                let _ = fs::remove_file(&unfinished);
            }
            written?;
        }
        // Also of a file that was there: whoever put it may not have come this far yet.
        for folder in [Some(folder), Some(self.folder.as_path()), self.folder.parent()].into_iter().flatten()
        {
            File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()?;
        }
        Ok(())
    }
}

/// A file of an artifact.
#[derive(Debug, Clone)]
pub struct Lying {
    pub key: String,
    pub path: PathBuf,
    pub bytes: u64,
    pub put_at: SystemTime,
}

/// What is in a folder; nothing where there is none.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let read = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        read => read,
    };
    let paths = read.and_then(|read| read.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
    paths.map_err(|error| trouble(folder, &error))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn no_key(key: &str) -> StoreError {
    StoreError::Corrupt(format!("`{key}` is no key of an artifact"))
}

fn trouble(path: &Path, error: &io::Error) -> StoreError {
    let what = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full(what),
        _ => StoreError::Io(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_artifact::{Source, set_aside};

    fn artifact(value: &Value) -> Artifact {
        set_aside(value, Source::Own, 1).expect("it is longer than a byte").1
    }

    #[test]
    fn what_is_kept_is_read_by_whoever_opens_the_folder() {
        let home = tempfile::tempdir().expect("a folder");
        let kept = artifact(&json!({ "text": "käse", "n": 0.1 }));
        let artifacts = Artifacts::in_folder(home.path().join("deep/artifacts"));
        artifacts.keep(&kept).expect("it is kept");
        artifacts.keep(&kept).expect("it is kept once more");
        let other = Artifacts::in_folder(home.path().join("deep/artifacts"));
        assert_eq!(other.read(&kept.key), Ok(Some(kept.bytes.clone())));
        assert_eq!(other.value(&kept.key), Ok(Some(Arc::new(json!({ "text": "käse", "n": 0.1 })))));
        let names = files(&home.path().join("deep"));
        assert_eq!(names, [kept.key[7..].to_owned()], "nothing unfinished is left");
    }

    #[test]
    fn what_was_changed_or_is_gone_is_not_read() {
        let home = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::in_folder(home.path());
        let kept = artifact(&json!([1, 2]));
        assert_eq!(artifacts.read(&kept.key), Ok(None));
        artifacts.keep(&kept).expect("it is kept");
        let path = artifacts.path(&kept.key).expect("a key");
        fs::write(&path, b"[1,3]").expect("it can be changed");
        assert_eq!(artifacts.read(&kept.key), Ok(None));
        for bad in ["", "sha256:../../x", "/etc/passwd"] {
            assert_eq!(artifacts.read(bad), Ok(None));
        }
    }

    #[test]
    fn a_sweep_takes_what_is_old_and_named_by_nothing() {
        let home = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::in_folder(home.path());
        let [named, loose, fresh] = [json!(["n"]), json!(["l"]), json!(["f"])].map(|value| artifact(&value));
        let long_ago = SystemTime::UNIX_EPOCH;
        for kept in [&named, &loose, &fresh] {
            artifacts.keep(kept).expect("it is kept");
            let path = artifacts.path(&kept.key).expect("a key");
            File::options()
                .append(true)
                .open(path)
                .and_then(|file| file.set_modified(long_ago))
                .expect("a time");
        }
        artifacts.keep(&fresh).expect("it is put there again");
        let yesterday = SystemTime::now() - std::time::Duration::from_secs(86_400);
        let swept = artifacts.sweep(&BTreeSet::from([named.key.clone()]), yesterday);
        assert_eq!(swept, Ok((1, loose.bytes.len() as u64)));
        let mut left: Vec<String> = artifacts.all().expect("a list").into_iter().map(|one| one.key).collect();
        left.sort();
        let mut expected = [named.key, fresh.key];
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told_with_its_path() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("file");
        fs::write(&file, b"").expect("a file");
        let refused = Artifacts::in_folder(&file).keep(&artifact(&json!(["x"])));
        assert!(matches!(refused, Err(StoreError::Io(what)) if what.contains("file")));
    }

    fn files(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path().is_dir() {
                true => found.extend(files(&entry.path())),
                false => found.push(entry.file_name().to_string_lossy().into_owned()),
            }
        }
        found
    }
}
