//! Copies of a data folder, made while it is in use, and put back.
//!
//! A copy has the store as it was at one moment, the artifacts that it names, and a manifest with digests. The master key is
//! not in it: whoever has only the copy cannot open its secrets.

mod copying;

use anyhow::{Context, bail, ensure};
use copying::Copying;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use windlass_engine::{Folder, make_private};
use windlass_store::sqlite::Sqlite;

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

/// Copies the data folder into a folder that is not there yet. It has its name only when it is whole.
pub fn backup(data: &Path, into: &Path) -> anyhow::Result<BackupManifest> {
    make_private();
    let store = Folder::store(data);
    ensure!(store.exists(), "there is no data in {}", data.display());
    ensure!(!into.exists(), "{} is there already: a backup is a new folder", into.display());
    let unfinished = unfinished(into)?;
    // Of an earlier process that had this number.
    remove(&unfinished)?;
    let made = make(&store, &unfinished).and_then(|manifest| {
        fs::rename(&unfinished, into).with_context(|| format!("cannot give {} its name", into.display()))?;
        Ok(manifest)
    });
    if made.is_err() {
        // The first error is the one to tell.
        let _ = remove(&unfinished);
    }
    let manifest = made?;
    sync_folder(into.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    Ok(manifest)
}

/// Beside the backup, under the whole of its name, and of this process alone.
fn unfinished(into: &Path) -> anyhow::Result<PathBuf> {
    let mut name = into.file_name().with_context(|| format!("{} has no name", into.display()))?.to_owned();
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

/// Artifacts are copied before the store and after it. What the store names at that moment is not swept before, and what
/// was put there while the first ones were copied is too fresh to be swept.
fn make(store: &Path, folder: &Path) -> anyhow::Result<BackupManifest> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut artifacts = Copying::new(store, &folder.join(ARTIFACTS));
    artifacts.copy()?;
    Sqlite::copy(store, &folder.join(STORE))?;
    artifacts.copy()?;
    artifacts.is_whole(&folder.join(STORE))?;
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

/// Puts a copy back into a data folder that has no store yet, after it was found to be what it was.
pub fn restore(from: &Path, data: &Path) -> anyhow::Result<BackupManifest> {
    let text = fs::read(from.join(MANIFEST))
        .with_context(|| format!("{} is no backup: it has no {MANIFEST}", from.display()))?;
    let manifest: BackupManifest =
        serde_json::from_slice(&text).context("the manifest of the backup cannot be read")?;
    ensure!(
        manifest.format == FORMAT,
        "the backup has format {}, this program knows {FORMAT}",
        manifest.format
    );
    let (found, _) = digest(&from.join(STORE))?;
    if found != manifest.store_sha256 {
        bail!("the store in {} is not the one that was saved: its digest differs", from.display());
    }
    let folder = Folder::hold(data, "windlass admin restore")?;
    let store = Folder::store(folder.path());
    ensure!(!store.exists(), "there is data in {}: restore into another folder", data.display());
    let mut copying = Copying::new(&from.join(STORE), &store.with_file_name(ARTIFACTS));
    copying.copy()?;
    let artifacts = copying.count();
    ensure!(artifacts == manifest.artifacts, "{} artifacts of {} are there", artifacts, manifest.artifacts);
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
    // The copy has the mode of its original, which an earlier version may have made for all to read.
    fs::set_permissions(to, Permissions::from_mode(0o600))?;
    Ok(File::open(to)?.sync_all()?)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
