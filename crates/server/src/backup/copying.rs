//! Copies of artifacts, while the folder may be swept.

use crate::database::Database;
use anyhow::{bail, ensure};
use std::collections::BTreeSet;
use std::path::Path;
use windlass_store::{ArtifactFile, Artifacts, ObjectState, Objects as _, Retention as _, Tenant};

/// Tenant and key of an artifact. The tenant is None for artifacts of an earlier version, which all tenants shared.
type Name = (Option<Tenant>, String);

/// A copy of artifacts from one folder to another.
#[derive(Debug)]
pub(crate) struct Copying {
    from: Artifacts,
    to: Artifacts,
    copied: BTreeSet<Name>,
    bytes: u64,
    /// Artifacts that were listed and swept before they could be read.
    gone: BTreeSet<Name>,
}

impl Copying {
    pub(crate) fn new(store: &Path, to: &Path) -> Copying {
        let (from, to) = (Database::artifacts_of_store(store), Artifacts::in_folder(to));
        Copying { from, to, copied: BTreeSet::new(), bytes: 0, gone: BTreeSet::new() }
    }

    pub(crate) fn count(&self) -> u64 {
        self.copied.len() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies all artifacts that are not copied yet.
    pub(crate) fn copy(&mut self) -> anyhow::Result<()> {
        self.from.list()?.into_iter().try_for_each(|file| self.copy_one(&file))
    }

    /// Copies one artifact. Its name is its digest, so the content is checked.
    fn copy_one(&mut self, file: &ArtifactFile) -> anyhow::Result<()> {
        let name = (file.tenant.clone(), file.key.clone());
        if self.copied.contains(&name) {
            return Ok(());
        }
        match self.from.read_listed(file)? {
            Some(bytes) => {
                self.bytes += bytes.len() as u64;
                self.copied.insert(name);
                self.to.keep_listed(file, &bytes)?;
            }
            None if file.path.exists() => {
                bail!("artifact {} is damaged; run `windlass admin check`", file.key)
            }
            None => drop(self.gone.insert(name)),
        }
        Ok(())
    }

    /// Checks that no swept artifact is referenced by the copy of the store.
    pub(crate) fn check_complete(&self, store: &Path) -> anyhow::Result<()> {
        let mut gone = self.gone.difference(&self.copied).peekable();
        if gone.peek().is_none() {
            return Ok(());
        }
        let mut reader = Database::read_only(store)?;
        let named = reader.referenced()?;
        let is_named = |(tenant, key): &&Name| {
            let keys = tenant.as_ref().and_then(|tenant| named.get(tenant));
            keys.is_some_and(|keys| keys.contains(key))
        };
        for (tenant, key) in gone.filter(is_named) {
            let object = tenant.as_ref().map(|tenant| reader.object(tenant, key)).transpose()?.flatten();
            // The file was removed because there is a copy in a bucket.
            let is_copied = object.is_some_and(|object| object.state == ObjectState::Stored);
            ensure!(is_copied, "artifact {key} was deleted during the backup; retry");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;
    use std::sync::Arc;
    use tempfile::TempDir;
    use windlass_artifact::{Artifact, key_of};
    use windlass_kernel::Millis;
    use windlass_store::{Definition, Store as _, StoredManifest, Target, WorkflowId, Write};

    const NAMED: &[u8] = b"\"named by the store\"";

    /// Returns a store that references an artifact, and a copy of its artifacts.
    fn copying() -> (TempDir, Copying) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windlass.db");
        let mut store = Database::open(&path).unwrap();
        let compiled =
            windlass_dialects::compile("metadata: {name: a}\nworkflow:\n- {step: a, tool: {kind: noop}}\n");
        let definition = Definition {
            tenant: Tenant::default(),
            target: Target::New(WorkflowId(1)),
            name: "a".to_owned(),
            dialect: "playbook".to_owned(),
            source: compiled.source,
            workload: json!({ "large": { "$artifact": key_of(NAMED) } }),
            manifest: StoredManifest::default(),
            net: Arc::new(compiled.net.unwrap()),
            hooks: Vec::new(),
            schedules: Vec::new(),
            at: Millis(1),
            status: None,
            author: None,
        };
        store.write(&[Write::Define(Box::new(definition))]).unwrap();
        let copying = Copying::new(&path, &folder.path().join("copy"));
        put(&copying, NAMED);
        (folder, copying)
    }

    fn put(copying: &Copying, bytes: &[u8]) {
        let artifact = Artifact { key: key_of(bytes), bytes: bytes.to_vec() };
        copying.from.keep(&Tenant::default(), &artifact).unwrap();
    }

    /// Lists an artifact, and sweeps it before it is copied.
    fn sweep_before_copy(copying: &mut Copying, bytes: &[u8]) -> anyhow::Result<()> {
        let file = copying.from.list().unwrap().into_iter().find(|file| file.key == key_of(bytes)).unwrap();
        fs::remove_file(&file.path).unwrap();
        copying.copy_one(&file)
    }

    fn check_complete(folder: &TempDir, copying: &Copying) -> anyhow::Result<()> {
        copying.check_complete(&folder.path().join("windlass.db"))
    }

    #[test]
    fn artifacts_swept_after_the_copy_and_added_later_are_in_the_copy() {
        let (folder, mut copying) = copying();
        copying.copy().unwrap();
        sweep_before_copy(&mut copying, NAMED).unwrap();
        put(&copying, b"later");
        copying.copy().unwrap();
        check_complete(&folder, &copying).unwrap();
        assert_eq!((copying.count(), copying.bytes()), (2, (NAMED.len() + b"later".len()) as u64));
        assert_eq!(copying.to.read(&Tenant::default(), &key_of(NAMED)).unwrap().as_deref(), Some(NAMED));
        assert_eq!(
            copying.to.read(&Tenant::default(), &key_of(b"later")).unwrap().as_deref(),
            Some(&b"later"[..])
        );
    }

    #[test]
    fn artifacts_without_references_may_be_swept_meanwhile() {
        let (folder, mut copying) = copying();
        put(&copying, b"forgotten");
        sweep_before_copy(&mut copying, b"forgotten").unwrap();
        copying.copy().unwrap();
        check_complete(&folder, &copying).unwrap();
        assert_eq!(copying.count(), 1);
    }

    #[test]
    fn a_copy_without_a_referenced_artifact_is_refused() {
        let (folder, mut copying) = copying();
        sweep_before_copy(&mut copying, NAMED).unwrap();
        copying.copy().unwrap();
        let refused = check_complete(&folder, &copying).unwrap_err().to_string();
        assert!(refused.contains(&key_of(NAMED)) && refused.contains("retry"), "{refused}");
    }

    #[test]
    fn a_damaged_artifact_is_reported() {
        let (_folder, mut copying) = copying();
        let file = copying.from.list().unwrap().remove(0);
        fs::write(file.path, "something else").unwrap();
        assert!(copying.copy().unwrap_err().to_string().contains("is damaged"));
    }
}
