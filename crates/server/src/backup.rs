//! Backups of a data folder, made while it is in use, and their restore.
//!
//! A backup has a snapshot of the store, the artifacts that it references, and a manifest with digests. It does not have the
//! master key, so its secrets cannot be decrypted without the original folder.

mod copying;

use crate::database::Database;
use anyhow::{Context, bail, ensure};
use copying::Copying;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use windlass_engine::{Folder, make_private};

const STORE: &str = "windlass.db";
const ARTIFACTS: &str = "artifacts";
const MANIFEST: &str = "backup.json";
const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupManifest {
    pub format: u32,
    pub program_version: String,
    pub made_at: String,
    pub store_sha256: String,
    pub store_bytes: u64,
    pub artifacts: u64,
    pub artifact_bytes: u64,
}

/// Copies the data folder into a new folder, which gets its name when it is complete.
pub fn backup(data: &Path, into: &Path) -> anyhow::Result<BackupManifest> {
    make_private();
    let store = Folder::store(data);
    ensure!(store.exists(), "there is no data in {}", data.display());
    ensure!(!into.exists(), "{} exists; name a new folder for the backup", into.display());
    let unfinished = unfinished(into)?;
    // An earlier process with the same id may have left one.
    remove(&unfinished)?;
    let made = copy_folder(&store, &unfinished).and_then(|manifest| {
        fs::rename(&unfinished, into)
            .with_context(|| format!("cannot rename the backup to {}", into.display()))?;
        Ok(manifest)
    });
    if made.is_err() {
        // The first error is reported.
        let _ = remove(&unfinished);
    }
    let manifest = made?;
    sync_folder(into.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    Ok(manifest)
}

/// Returns the path of the incomplete backup: next to the backup, with the id of this process.
fn unfinished(into: &Path) -> anyhow::Result<PathBuf> {
    let mut name = into
        .file_name()
        .with_context(|| format!("{} is not the path of a folder", into.display()))?
        .to_owned();
    name.push(format!(".unfinished-{}", std::process::id()));
    Ok(into.with_file_name(name))
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Copies artifacts before the store and after it. Those that the store references are not swept before the first copy, and
/// those added meanwhile are too recent to be swept.
fn copy_folder(store: &Path, folder: &Path) -> anyhow::Result<BackupManifest> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut artifacts = Copying::new(store, &folder.join(ARTIFACTS));
    artifacts.copy()?;
    Database::copy(store, &folder.join(STORE))?;
    artifacts.copy()?;
    artifacts.check_complete(&folder.join(STORE))?;
    let (store_sha256, store_bytes) = digest(&folder.join(STORE))?;
    let manifest = BackupManifest {
        format: FORMAT,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: windlass_views::time(crate::host::now()),
        store_sha256,
        store_bytes,
        artifacts: artifacts.count(),
        artifact_bytes: artifacts.bytes(),
    };
    write_synced(&folder.join(MANIFEST), &serde_json::to_vec_pretty(&manifest)?)?;
    sync_folder(folder)?;
    Ok(manifest)
}

/// Checks the digests of a backup, and copies it into a data folder without a store.
pub fn restore(from: &Path, data: &Path) -> anyhow::Result<BackupManifest> {
    let text = fs::read(from.join(MANIFEST))
        .with_context(|| format!("{} is not a backup: it has no {MANIFEST}", from.display()))?;
    let manifest: BackupManifest =
        serde_json::from_slice(&text).context("the manifest of the backup cannot be parsed")?;
    ensure!(
        manifest.format == FORMAT,
        "the backup has format {}, and this program reads format {FORMAT}",
        manifest.format
    );
    let (found, _) = digest(&from.join(STORE))?;
    if found != manifest.store_sha256 {
        bail!("the store in {} is damaged: its digest differs from the manifest", from.display());
    }
    let folder = Folder::hold(data, "windlass admin restore")?;
    let store = Folder::store(folder.path());
    ensure!(!store.exists(), "{} already has data; restore into another folder", data.display());
    let mut copying = Copying::new(&from.join(STORE), &store.with_file_name(ARTIFACTS));
    copying.copy()?;
    let artifacts = copying.count();
    ensure!(
        artifacts == manifest.artifacts,
        "the backup has {} of {} artifacts",
        artifacts,
        manifest.artifacts
    );
    let unfinished = store.with_extension("restoring");
    copy_synced(&from.join(STORE), &unfinished)?;
    fs::rename(&unfinished, &store)?;
    sync_folder(folder.path())?;
    Ok(manifest)
}

fn digest(path: &Path) -> anyhow::Result<(String, u64)> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut sha256, mut bytes, mut part) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut part)? {
            0 => break,
            read => {
                sha256.update(&part[..read]);
                bytes += read as u64;
            }
        }
    }
    let hex = sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((hex, bytes))
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)?;
    File::open(path)?.sync_all()
}

fn copy_synced(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy into {}", to.display()))?;
    // The copy inherits the mode of its original, which an earlier version may have made world-readable.
    fs::set_permissions(to, Permissions::from_mode(0o600))?;
    Ok(File::open(to)?.sync_all()?)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
