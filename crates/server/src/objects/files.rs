//! Files of artifacts: those that have no rows yet, and those that can be removed because there is a copy.

use super::{Uploader, write};
use crate::app::App;
use crate::database::DatabaseReader;
use crate::host::now;
use crate::problem::Problem;
use std::time::{Duration, SystemTime};
use windlass_store::{
    ArtifactFile, ObjectState, ObjectWrite, Objects as _, PutArtifact, StoreError, StoredObject,
};

/// Number of files that are compared with rows at a time.
const PAGE: usize = 256;
/// Minimum age of a file that is removed: a program may be about to open it.
const AGE_MIN: Duration = Duration::from_secs(600);
/// Files are listed again after this fraction of the bound was uploaded: one part of this many.
const LIST_PARTS: u64 = 8;

/// Writes rows for artifacts that have none: those of a folder that had no bucket before, and those of the last batch before a
/// crash.
pub(super) async fn put_found(app: &App) -> Result<(), Problem> {
    let artifacts = app.artifacts.clone();
    let files = app.run_blocking(move || artifacts.list()).await??;
    for page in files.chunks(PAGE) {
        let page = page.to_vec();
        let puts = app.followers.look(move |reader| find_new(reader, page)).await?;
        if !puts.is_empty() {
            write(app, puts).await?;
        }
    }
    Ok(())
}

fn find_new(reader: &mut DatabaseReader, files: Vec<ArtifactFile>) -> Result<Vec<ObjectWrite>, StoreError> {
    let mut puts = Vec::new();
    for ArtifactFile { tenant, key, bytes, .. } in files {
        let Some(tenant) = tenant else { continue };
        if reader.object(&tenant, &key)?.is_none() {
            puts.push(ObjectWrite::Put(PutArtifact { tenant, key, bytes, at: now() }));
        }
    }
    Ok(puts)
}

impl Uploader {
    /// Removes the oldest files with a copy while files have more bytes than the setting allows.
    pub(super) async fn remove_copied_files(&mut self) -> Result<(), Problem> {
        let Some(bound) = self.app.settings.artifact_cache else { return Ok(()) };
        if self.uploaded_bytes <= bound / LIST_PARTS {
            return Ok(());
        }
        self.uploaded_bytes = 0;
        let artifacts = self.app.artifacts.clone();
        let files = self.app.run_blocking(move || artifacts.list()).await??;
        let mut excess = files.iter().map(|file| file.bytes).sum::<u64>().saturating_sub(bound);
        for page in sort_removable(files).chunks(PAGE) {
            if excess == 0 {
                break;
            }
            let (page, artifacts) = (page.to_vec(), self.app.artifacts.clone());
            let copied = self.app.followers.look(move |reader| find_copied(reader, page)).await?;
            let remove = move || {
                for file in copied {
                    if excess > 0 {
                        excess = excess.saturating_sub(artifacts.remove_copied(&file)?.unwrap_or(0));
                    }
                }
                Ok::<u64, StoreError>(excess)
            };
            excess = self.app.run_blocking(remove).await??;
        }
        Ok(())
    }
}

/// Returns the files that are old enough, the oldest first.
fn sort_removable(mut files: Vec<ArtifactFile>) -> Vec<ArtifactFile> {
    let before = SystemTime::now().checked_sub(AGE_MIN);
    files.retain(|file| before.is_some_and(|before| file.put_at < before));
    files.sort_by_key(|file| file.put_at);
    files
}

fn find_copied(
    reader: &mut DatabaseReader,
    files: Vec<ArtifactFile>,
) -> Result<Vec<ArtifactFile>, StoreError> {
    let mut copied = Vec::new();
    for file in files {
        let Some(tenant) = &file.tenant else { continue };
        let object = reader.object(tenant, &file.key)?;
        if object.is_some_and(|StoredObject { state, .. }| state == ObjectState::Stored) {
            copied.push(file);
        }
    }
    Ok(copied)
}
