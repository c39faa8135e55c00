//! Where large values are kept.

use crate::failure::failure;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use windlass_artifact::Artifact;
use windlass_protocol::Failure;

/// May block: it is called beside the pool's thread.
pub trait Artifacts: fmt::Debug + Send + Sync + 'static {
    /// After `Ok` a crash does not lose it.
    fn keep(&self, artifact: &Artifact) -> io::Result<()>;
    /// None when it is not there, or not what it was.
    fn read(&self, key: &str) -> io::Result<Option<Vec<u8>>>;
}

pub(crate) type SharedArtifacts = Arc<dyn Artifacts>;

/// What is behind each key.
pub(crate) async fn load(
    artifacts: &SharedArtifacts,
    keys: Vec<String>,
) -> Result<Vec<(String, Option<Vec<u8>>)>, Box<Failure>> {
    let artifacts = Arc::clone(artifacts);
    let read = move || keys.into_iter().map(|key| Ok((key.clone(), artifacts.read(&key)?))).collect();
    beside(read).await.map_err(|error| trouble("ARTIFACT_NOT_READ", "read", &error))
}

/// Nothing may refer to what is not kept.
pub(crate) async fn keep(artifacts: &SharedArtifacts, made: Vec<Artifact>) -> Result<(), Box<Failure>> {
    let artifacts = Arc::clone(artifacts);
    let keep = move || made.iter().try_for_each(|artifact| artifacts.keep(artifact));
    beside(keep).await.map_err(|error| trouble("ARTIFACT_NOT_KEPT", "kept", &error))
}

fn trouble(code: &str, done: &str, error: &io::Error) -> Box<Failure> {
    failure("transport", code, format!("a large value cannot be {done}: {error}"))
}

async fn beside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}
