//! Copies of a data folder, made while it is in use, and put back.
//!
//! A copy has the store as it was at one moment, the artifacts that it names, and a note with digests. The master key is
//! not in it: whoever has only the copy cannot open its secrets.

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use windlass_engine::Folder;
use windlass_store::sqlite::Sqlite;

const STORE: &str = "windlass.db";
const ARTIFACTS: &str = "artifacts";
const NOTE: &str = "backup.json";
const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    pub format: u32,
    pub program_version: String,
    pub made_at: String,
    pub store_sha256: String,
    pub store_bytes: u64,
    pub artifacts: u64,
    pub artifact_bytes: u64,
}

/// Copies the data folder into a folder that is not there yet. It has its name only when it is whole.
pub fn backup(data: &Path, into: &Path) -> anyhow::Result<Note> {
    let store = Folder::store(data);
    ensure!(store.exists(), "there is no data in {}", data.display());
    ensure!(!into.exists(), "{} is there already: a backup is a new folder", into.display());
    let unfinished = into.with_extension("unfinished");
    fs::create_dir_all(&unfinished).with_context(|| format!("cannot make {}", unfinished.display()))?;
    Sqlite::copy(&store, &unfinished.join(STORE))?;
    let (artifacts, artifact_bytes) = copy_artifacts(&store, &unfinished.join(ARTIFACTS))?;
    let (store_sha256, store_bytes) = digest(&unfinished.join(STORE))?;
    let note = Note {
        format: FORMAT,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: windlass_dialects::view::time(crate::host::now()),
        store_sha256,
        store_bytes,
        artifacts,
        artifact_bytes,
    };
    write_synced(&unfinished.join(NOTE), &serde_json::to_vec_pretty(&note)?)?;
    fs::rename(&unfinished, into).with_context(|| format!("cannot give {} its name", into.display()))?;
    sync_folder(into.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    Ok(note)
}

/// Puts a copy back into a data folder that has no store yet, after it was found to be what it was.
pub fn restore(from: &Path, data: &Path) -> anyhow::Result<Note> {
    let text = fs::read(from.join(NOTE))
        .with_context(|| format!("{} is no backup: it has no {NOTE}", from.display()))?;
    let note: Note = serde_json::from_slice(&text).context("the note of the backup cannot be read")?;
    ensure!(note.format == FORMAT, "the backup has format {}, this program knows {FORMAT}", note.format);
    let (found, _) = digest(&from.join(STORE))?;
    if found != note.store_sha256 {
        bail!("the store in {} is not the one that was saved: its digest differs", from.display());
    }
    let folder = Folder::hold(data, "windlass admin restore")?;
    let store = Folder::store(folder.path());
    ensure!(!store.exists(), "there is data in {}: restore into another folder", data.display());
    let (artifacts, _) = copy_artifacts(&from.join(STORE), &store.with_file_name(ARTIFACTS))?;
    ensure!(artifacts == note.artifacts, "{} artifacts of {} are there", artifacts, note.artifacts);
    let unfinished = store.with_extension("restoring");
    copy_synced(&from.join(STORE), &unfinished)?;
    fs::rename(&unfinished, &store)?;
    sync_folder(folder.path())?;
    Ok(note)
}

/// Every artifact is its own digest, so a copy is checked while it is made.
fn copy_artifacts(store: &Path, into: &Path) -> anyhow::Result<(u64, u64)> {
    let from = Sqlite::artifacts_beside(store);
    let to = windlass_store::Artifacts::in_folder(into);
    let (mut count, mut bytes) = (0, 0);
    for lying in from.all()? {
        let key = lying.key;
        let Some(read) = from.read(&key)? else { bail!("artifact {key} is not what it was: run the check") };
        bytes += read.len() as u64;
        count += 1;
        to.keep(&windlass_artifact::Artifact { key, bytes: read })?;
    }
    Ok((count, bytes))
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
    Ok(File::open(to)?.sync_all()?)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
