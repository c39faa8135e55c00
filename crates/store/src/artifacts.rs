//! Artifacts as files, named by the digest of their content, in a folder per tenant. Equal values of two tenants are
//! two files: no tenant can read a value of another one by its digest, or learn from a response that it exists. A file
//! under its final name is complete and on disk: it is written under another name, synced, and renamed. It is never
//! written again. Its modification time is that of the last put, because rows that refer to it may not be committed
//! yet.

use crate::objects::{PutArtifact, PutArtifacts};
use crate::origin::Tenant;
use crate::store::{StoreError, StoreResult};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use windlass_artifact::{Artifact, KeyHasher, digest, key_of};
use windlass_kernel::Millis;

/// Number of leading digits of a name that form a folder, so that no folder has too many entries.
const FOLDER_DIGITS: usize = 2;
/// Prefix of a tenant's id in the name of its folder.
const TENANT_PREFIX: &str = "t-";

static UNFINISHED: AtomicU64 = AtomicU64::new(0);

/// Keys of artifacts that each tenant's rows name.
pub type References = BTreeMap<Tenant, BTreeSet<String>>;

/// A folder of artifacts; copies are handles of the same one.
#[derive(Debug, Clone)]
pub struct Artifacts {
    folder: PathBuf,
    /// Present if artifacts are copied into an object store.
    put: Option<Arc<PutArtifacts>>,
    copies: Option<Arc<dyn ArtifactCopies>>,
}

/// Copies of artifacts outside of the data folder.
pub trait ArtifactCopies: std::fmt::Debug + Send + Sync {
    /// Writes the copy of an artifact into `to`; returns false if there is none. `Err` has the reason why it cannot be
    /// read now. Blocks on the network for a bounded time.
    fn fetch(&self, tenant: &Tenant, key: &str, to: &mut Upload) -> Result<bool, String>;
}

impl Artifacts {
    /// Returns the artifacts of a folder, which is created when the first artifact is kept.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Artifacts {
        Artifacts { folder: folder.into(), put: None, copies: None }
    }

    /// Records what is put from now on, through this handle and its clones.
    pub(crate) fn record_put(&mut self) {
        self.put = Some(Arc::default());
    }

    /// Fetches what is missing from these copies, through this handle and its clones.
    pub(crate) fn set_copies(&mut self, copies: Arc<dyn ArtifactCopies>) {
        self.copies = Some(copies);
    }

    /// Takes the record of what was put since the last call.
    pub(crate) fn take_put(&self) -> Vec<PutArtifact> {
        self.put.as_ref().map(|put| put.take()).unwrap_or_default()
    }

    fn note_put(&self, tenant: Option<&Tenant>, key: &str, bytes: u64) {
        if let (Some(put), Some(tenant)) = (&self.put, tenant) {
            let (tenant, key, at) = (tenant.clone(), key.to_owned(), now());
            put.add(PutArtifact { tenant, key, bytes, at });
        }
    }

    /// Stores an artifact. Returns how many bytes were added: 0 if it was stored already. After `Ok` a crash does not
    /// lose it.
    pub fn keep(&self, tenant: &Tenant, artifact: &Artifact) -> StoreResult<u64> {
        self.keep_for(Some(tenant), &artifact.key, &artifact.bytes)
    }

    /// Stores a file of another folder in the same way, by moving it. Its content is not compared with the key.
    pub fn keep_file(&self, tenant: &Tenant, key: &str, file: &Path) -> StoreResult<u64> {
        let path = self.path(Some(tenant), key).ok_or_else(|| no_key(key))?;
        let found = fs::symlink_metadata(file).map_err(|error| trouble(file, &error))?;
        if !found.is_file() {
            return Err(trouble(file, &io::Error::other("it is not a file")));
        }
        let length = found.len();
        let is_new = self.place(&path, |to| move_file(file, to)).map_err(|error| trouble(&path, &error))?;
        self.note_put(Some(tenant), key, length);
        Ok(if is_new { length } else { 0 })
    }

    /// Begins a file for bytes that arrive piece by piece.
    pub fn begin_upload(&self) -> StoreResult<Upload> {
        let folder = self.uploads();
        fs::create_dir_all(&folder).map_err(|error| trouble(&folder, &error))?;
        let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number}", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| trouble(&path, &error))?;
        Ok(Upload { path, file, hasher: KeyHasher::default(), length: 0 })
    }

    /// Removes the uploads that an earlier process did not finish. Only for the process that has the folder's lock.
    pub fn clear_uploads(&self) -> StoreResult<()> {
        let folder = self.uploads();
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(trouble(&folder, &error)),
            _ => Ok(()),
        }
    }

    fn uploads(&self) -> PathBuf {
        self.folder.with_extension("uploads")
    }

    /// Puts the copy of an artifact into the folder if its file is missing and there is one.
    pub fn fetch_missing(&self, tenant: &Tenant, key: &str) -> StoreResult<()> {
        let Some(copies) = &self.copies else { return Ok(()) };
        if digest(key).is_none() || self.find_file(tenant, key)?.is_some() {
            return Ok(());
        }
        let mut upload = self.begin_upload()?;
        match copies.fetch(tenant, key, &mut upload) {
            Ok(true) if upload.key() == key => self.keep_file(tenant, key, upload.path()).map(drop),
            Ok(true) => Err(StoreError::Io(format!("the copy of artifact {key} is damaged"))),
            Ok(false) => Ok(()),
            Err(why) => Err(StoreError::Io(format!("the copy of artifact {key} cannot be read: {why}"))),
        }
    }

    /// Removes the file of an artifact that has a copy. Returns its length; None if there is no such file.
    pub fn remove_copied(&self, file: &ArtifactFile) -> StoreResult<Option<u64>> {
        match fs::remove_file(&file.path) {
            Ok(()) => Ok(Some(file.bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(trouble(&file.path, &error)),
        }
    }

    /// Returns the file of an artifact and its length. Its content is not compared with the key.
    pub fn find_file(&self, tenant: &Tenant, key: &str) -> StoreResult<Option<(PathBuf, u64)>> {
        let Some(path) = self.path(Some(tenant), key) else { return Ok(None) };
        match fs::metadata(&path) {
            Ok(about) => Ok(Some((path, about.len()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(trouble(&path, &error)),
        }
    }

    /// Returns the bytes of an artifact; None if the tenant has none of that key, or if its content has changed.
    pub fn read(&self, tenant: &Tenant, key: &str) -> StoreResult<Option<Vec<u8>>> {
        self.read_of(Some(tenant), key)
    }

    /// Opens the file of an artifact, for values that are too large to be read at once. Its content is not compared
    /// with its digest. Returns None if the tenant has no such artifact.
    pub fn open(&self, tenant: &Tenant, key: &str) -> StoreResult<Option<File>> {
        let Some(path) = self.path(Some(tenant), key) else { return Ok(None) };
        match File::open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(trouble(&path, &error)),
        }
    }

    /// Returns the value of an artifact.
    pub fn value(&self, tenant: &Tenant, key: &str) -> StoreResult<Option<Arc<Value>>> {
        Ok(self.read(tenant, key)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()).map(Arc::new))
    }

    /// Returns the content of a listed file; None if it was removed meanwhile, or if its content has changed.
    pub fn read_listed(&self, listed: &ArtifactFile) -> StoreResult<Option<Vec<u8>>> {
        self.read_of(listed.tenant.as_ref(), &listed.key)
    }

    /// Keeps the content of a file that was listed in another folder, for the same tenant.
    pub fn keep_listed(&self, listed: &ArtifactFile, bytes: &[u8]) -> StoreResult<()> {
        self.keep_for(listed.tenant.as_ref(), &listed.key, bytes).map(drop)
    }

    /// Lists the files of all tenants.
    pub fn list(&self) -> StoreResult<Vec<ArtifactFile>> {
        let mut found = Vec::new();
        for folder in entries(&self.folder)? {
            match tenant_of(&name_of(&folder)) {
                Some(tenant) => {
                    for folder in entries(&folder)? {
                        files_in(&folder, Some(&tenant), &mut found)?;
                    }
                }
                None => files_in(&folder, None, &mut found)?,
            }
        }
        Ok(found)
    }

    /// Removes artifacts that no row of their tenant refers to and that were put before a time. Returns the number of
    /// removed files and bytes, and the bytes that each tenant has left.
    pub fn sweep(&self, referenced: &References, put_before: SystemTime) -> StoreResult<Swept> {
        let mut swept = Swept::default();
        for file in self.list()? {
            let named = |tenant| referenced.get(tenant).is_some_and(|keys| keys.contains(&file.key));
            let is_loose = !file.tenant.as_ref().is_some_and(named);
            if is_loose && file.put_at < put_before {
                fs::remove_file(&file.path).map_err(|error| trouble(&file.path, &error))?;
                swept.files += 1;
                swept.bytes += file.bytes;
            } else if let Some(tenant) = file.tenant {
                *swept.left.entry(tenant).or_default() += file.bytes;
            }
        }
        Ok(swept)
    }

    /// Returns the bytes of each tenant.
    pub fn used(&self) -> StoreResult<BTreeMap<Tenant, u64>> {
        let mut used = BTreeMap::new();
        for file in self.list()? {
            if let Some(tenant) = file.tenant {
                *used.entry(tenant).or_default() += file.bytes;
            }
        }
        Ok(used)
    }

    /// Returns whether there are artifacts that an earlier version kept for all tenants together.
    pub(crate) fn has_shared(&self) -> StoreResult<bool> {
        Ok(entries(&self.folder)?.iter().any(|folder| tenant_of(&name_of(folder)).is_none()))
    }

    /// Moves artifacts that an earlier version kept for all tenants together to the tenants whose rows name them. May be
    /// repeated after a crash: a shared file is removed after every owner has it.
    pub(crate) fn divide(&self, referenced: &References) -> StoreResult<()> {
        for file in self.list()?.into_iter().filter(|file| file.tenant.is_none()) {
            let owners = referenced.iter().filter(|(_, keys)| keys.contains(&file.key));
            let bytes = self.read_listed(&file)?;
            for (tenant, _) in owners {
                if let Some(bytes) = &bytes {
                    self.keep_for(Some(tenant), &file.key, bytes)?;
                }
            }
            fs::remove_file(&file.path).map_err(|error| trouble(&file.path, &error))?;
        }
        for folder in entries(&self.folder)? {
            if tenant_of(&name_of(&folder)).is_none() {
                // A folder that still has other files in it stays.
                let _ = fs::remove_dir(&folder);
            }
        }
        Ok(())
    }

    fn read_of(&self, tenant: Option<&Tenant>, key: &str) -> StoreResult<Option<Vec<u8>>> {
        let Some(path) = self.path(tenant, key) else { return Ok(None) };
        match fs::read(&path) {
            Ok(bytes) => Ok((key_of(&bytes) == key).then_some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(trouble(&path, &error)),
        }
    }

    fn keep_for(&self, tenant: Option<&Tenant>, key: &str, bytes: &[u8]) -> StoreResult<u64> {
        let path = self.path(tenant, key).ok_or_else(|| no_key(key))?;
        let is_new = self.place(&path, |to| write(to, bytes)).map_err(|error| trouble(&path, &error))?;
        self.note_put(tenant, key, bytes.len() as u64);
        Ok(if is_new { bytes.len() as u64 } else { 0 })
    }

    /// Returns the path of an artifact. Without a tenant, it is one that an earlier version kept for all tenants
    /// together.
    fn path(&self, tenant: Option<&Tenant>, key: &str) -> Option<PathBuf> {
        let digits = digest(key)?;
        let folder = tenant.map_or_else(|| self.folder.clone(), |tenant| self.folder.join(folder_of(tenant)));
        Some(folder.join(&digits[..FOLDER_DIGITS]).join(digits))
    }

    /// Writes a file under its final name, or renews its time if it exists. Returns whether it is new.
    fn place(&self, path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<bool> {
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        let is_new = !path.exists();
        if is_new {
            let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
            let unfinished = folder.join(format!(".{}-{number}", std::process::id()));
            let written = write(&unfinished).and_then(|()| fs::rename(&unfinished, path));
            if written.is_err() {
                // The first error is the one to report.
                let _ = fs::remove_file(&unfinished);
            }
            written?;
        } else {
            File::options().append(true).open(path)?.set_modified(SystemTime::now())?;
        }
        // An existing file is synced, too: the thread that wrote it may not have synced it yet.
        let above = self.folder.parent();
        let own = folder.ancestors().take_while(|folder| Some(*folder) != above);
        for folder in own.chain(above) {
            File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()?;
        }
        Ok(is_new)
    }
}

/// Returns the path of an artifact in a folder or in an object store; None if `key` is not a key.
#[must_use]
pub fn artifact_path(tenant: &Tenant, key: &str) -> Option<String> {
    let digits = digest(key)?;
    Some(format!("{}/{}/{digits}", folder_of(tenant), &digits[..FOLDER_DIGITS]))
}

/// A file that is being received. It is removed when this is dropped, unless [`Artifacts::keep_file`] has moved it.
#[derive(Debug)]
pub struct Upload {
    path: PathBuf,
    file: File,
    hasher: KeyHasher,
    length: u64,
}

impl Upload {
    pub fn write(&mut self, bytes: &[u8]) -> StoreResult<()> {
        self.file.write_all(bytes).map_err(|error| trouble(&self.path, &error))?;
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the key for the bytes so far.
    #[must_use]
    pub fn key(&self) -> String {
        self.hasher.clone().finish()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // An upload that was kept has no file. One that cannot be removed is removed when the folder is opened again.
        let _ = fs::remove_file(&self.path);
    }
}

/// Moves a file and syncs it. A file on another file system cannot be moved, so it is copied.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    if fs::rename(from, to).is_err() {
        fs::copy(from, to)?;
        fs::remove_file(from)?;
    }
    File::open(to)?.sync_all()
}

/// Prefix of the digits in a key.
const KEY_PREFIX: &[u8] = b"sha256:";
const KEY_DIGITS: usize = 64;

/// Returns the keys of artifacts in the bytes of a row. Rows hold texts as they are, so a key is found by searching.
pub(crate) fn find_keys(bytes: &[u8]) -> Vec<String> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while let Some(at) = rest.windows(KEY_PREFIX.len()).position(|part| part == KEY_PREFIX) {
        rest = &rest[at..];
        let key = rest.get(..KEY_PREFIX.len() + KEY_DIGITS).and_then(|key| std::str::from_utf8(key).ok());
        found.extend(key.filter(|key| digest(key).is_some()).map(str::to_owned));
        rest = &rest[KEY_PREFIX.len()..];
    }
    found
}

/// A file of an artifact.
#[derive(Debug, Clone)]
pub struct ArtifactFile {
    /// None if an earlier version kept it, for all tenants together.
    pub tenant: Option<Tenant>,
    pub key: String,
    pub path: PathBuf,
    pub bytes: u64,
    pub put_at: SystemTime,
}

/// Result of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    pub files: u64,
    pub bytes: u64,
    /// Bytes that tenants have left.
    pub left: BTreeMap<Tenant, u64>,
}

fn files_in(folder: &Path, tenant: Option<&Tenant>, found: &mut Vec<ArtifactFile>) -> StoreResult<()> {
    for path in entries(folder)? {
        let key = format!("sha256:{}", name_of(&path));
        let about = digest(&key).and_then(|_| fs::metadata(&path).ok());
        let about = about.and_then(|about| Some((about.len(), about.modified().ok()?)));
        found.extend(about.map(|(bytes, put_at)| ArtifactFile {
            tenant: tenant.cloned(),
            key,
            path,
            bytes,
            put_at,
        }));
    }
    Ok(())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the name of a tenant's folder. Every id has a distinct name that is safe in a path, whatever characters it
/// has.
fn folder_of(tenant: &Tenant) -> String {
    let mut name = TENANT_PREFIX.to_owned();
    for byte in tenant.0.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

/// Returns the tenant of a folder; None if the folder belongs to no tenant.
fn tenant_of(name: &str) -> Option<Tenant> {
    let mut rest = name.strip_prefix(TENANT_PREFIX)?.as_bytes();
    let mut id = Vec::new();
    while let Some((first, others)) = rest.split_first() {
        let (byte, others) = match first {
            b'%' => {
                let (digits, others) = others.split_at_checked(2)?;
                (u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?, others)
            }
            byte => (*byte, others),
        };
        id.push(byte);
        rest = others;
    }
    String::from_utf8(id).ok().map(|id| Tenant::new(&id))
}

/// Lists the entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> StoreResult<Vec<PathBuf>> {
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

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
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

    fn own() -> Tenant {
        Tenant::default()
    }

    fn artifact(value: &Value) -> Artifact {
        set_aside(value, Source::Own, 1).expect("it is longer than a byte").1
    }

    #[test]
    fn a_stored_artifact_is_read_by_every_handle_of_the_folder() {
        let home = tempfile::tempdir().expect("a folder");
        let kept = artifact(&json!({ "text": "käse", "n": 0.1 }));
        let artifacts = Artifacts::in_folder(home.path().join("deep/artifacts"));
        let size = kept.bytes.len() as u64;
        assert_eq!((artifacts.keep(&own(), &kept), artifacts.keep(&own(), &kept)), (Ok(size), Ok(0)));
        let other = Artifacts::in_folder(home.path().join("deep/artifacts"));
        assert_eq!(other.read(&own(), &kept.key), Ok(Some(kept.bytes.clone())));
        assert_eq!(other.value(&own(), &kept.key), Ok(Some(Arc::new(json!({ "text": "käse", "n": 0.1 })))));
        let names = files(&home.path().join("deep"));
        assert_eq!(names, [kept.key[7..].to_owned()], "nothing unfinished is left");
    }

    #[test]
    fn a_changed_or_missing_artifact_is_not_read() {
        let home = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::in_folder(home.path());
        let kept = artifact(&json!([1, 2]));
        assert_eq!(artifacts.read(&own(), &kept.key), Ok(None));
        artifacts.keep(&own(), &kept).expect("it is kept");
        let path = artifacts.path(Some(&own()), &kept.key).expect("a key");
        fs::write(&path, b"[1,3]").expect("it can be changed");
        assert_eq!(artifacts.read(&own(), &kept.key), Ok(None));
        for bad in ["", "sha256:../../x", "/etc/passwd"] {
            assert_eq!(artifacts.read(&own(), bad), Ok(None));
        }
    }

    #[test]
    fn a_tenant_finds_its_own_alone() {
        let home = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::in_folder(home.path());
        let kept = artifact(&json!(["mine"]));
        let [mine, other] = ["tnt_1", "../x%/Y"].map(Tenant::new);
        artifacts.keep(&mine, &kept).expect("it is kept");
        assert_eq!(artifacts.read(&other, &kept.key), Ok(None));
        assert_eq!(artifacts.keep(&other, &kept), Ok(kept.bytes.len() as u64), "it is new to the other");
        let owners: BTreeSet<_> =
            artifacts.list().expect("a list").into_iter().map(|one| one.tenant).collect();
        assert_eq!(owners, BTreeSet::from([Some(mine), Some(other)]));
    }

    #[test]
    fn shared_artifacts_are_moved_to_the_tenants_whose_rows_name_them() {
        let home = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::in_folder(home.path());
        let [both, one, none] = [json!(["b"]), json!(["o"]), json!(["n"])].map(|value| artifact(&value));
        for kept in [&both, &one, &none] {
            artifacts.keep_for(None, &kept.key, &kept.bytes).expect("it is kept");
        }
        let [a, b] = ["a", "b"].map(Tenant::new);
        let named = |keys: &[&Artifact]| keys.iter().map(|kept| kept.key.clone()).collect::<BTreeSet<_>>();
        let referenced = References::from([(a.clone(), named(&[&both, &one])), (b.clone(), named(&[&both]))]);
        assert_eq!(artifacts.has_shared(), Ok(true));
        artifacts.divide(&referenced).expect("they are divided");
        assert_eq!(artifacts.has_shared(), Ok(false));
        let has = |tenant, kept: &Artifact| artifacts.read(tenant, &kept.key).expect("a read").is_some();
        assert_eq!([has(&a, &both), has(&b, &both)], [true, true]);
        assert_eq!([has(&a, &one), has(&b, &one)], [true, false]);
        assert_eq!(artifacts.list().expect("a list").len(), 3, "what nothing names is removed");
    }

    #[test]
    fn an_upload_is_kept_under_its_key_or_removed() {
        let home = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::in_folder(home.path().join("artifacts"));
        let whole = artifact(&json!(["in", "pieces"]));
        let mut upload = artifacts.begin_upload().expect("a file");
        whole.bytes.chunks(3).for_each(|piece| upload.write(piece).expect("it is written"));
        assert_eq!((upload.key(), upload.length()), (whole.key.clone(), whole.bytes.len() as u64));
        let kept = artifacts.keep_file(&own(), &whole.key, upload.path());
        assert_eq!(kept, Ok(whole.bytes.len() as u64));
        drop(upload);
        assert_eq!(artifacts.read(&own(), &whole.key), Ok(Some(whole.bytes)));
        let dropped = artifacts.begin_upload().expect("a file").path().to_owned();
        assert!(!dropped.exists(), "what is dropped is removed");
        let left = std::mem::ManuallyDrop::new(artifacts.begin_upload().expect("a file"));
        assert_eq!(artifacts.has_shared(), Ok(false));
        artifacts.clear_uploads().expect("they are removed");
        assert!(!left.path().exists());
    }

    #[test]
    fn a_sweep_removes_old_artifacts_that_no_row_names() {
        let home = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::in_folder(home.path());
        let [named, loose, fresh] = [json!(["n"]), json!(["l"]), json!(["f"])].map(|value| artifact(&value));
        let long_ago = SystemTime::UNIX_EPOCH;
        for kept in [&named, &loose, &fresh] {
            artifacts.keep(&own(), kept).expect("it is kept");
            let path = artifacts.path(Some(&own()), &kept.key).expect("a key");
            File::options()
                .append(true)
                .open(path)
                .and_then(|file| file.set_modified(long_ago))
                .expect("a time");
        }
        artifacts.keep(&own(), &fresh).expect("it is put there again");
        let yesterday = SystemTime::now() - std::time::Duration::from_secs(86_400);
        let referenced = References::from([
            (own(), BTreeSet::from([named.key.clone()])),
            (Tenant::new("other"), BTreeSet::from([loose.key.clone()])),
        ]);
        let swept = artifacts.sweep(&referenced, yesterday).expect("a sweep");
        assert_eq!((swept.files, swept.bytes), (1, loose.bytes.len() as u64));
        let kept_bytes = (named.bytes.len() + fresh.bytes.len()) as u64;
        assert_eq!(swept.left, BTreeMap::from([(own(), kept_bytes)]));
        let mut left: Vec<String> =
            artifacts.list().expect("a list").into_iter().map(|one| one.key).collect();
        left.sort();
        let mut expected = [named.key, fresh.key];
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_read_only_folder_is_an_error_with_its_path() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("file");
        fs::write(&file, b"").expect("a file");
        let refused = Artifacts::in_folder(&file).keep(&own(), &artifact(&json!(["x"])));
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
