//! Where large values are kept.

use crate::failure::failure;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use windlass_artifact::Artifact;
use windlass_protocol::{ErrorClass, Failure};

/// Artifacts by tenant: a key finds what the same tenant kept, and nothing else. May block: it is called on another
/// thread than the pool's.
pub trait Artifacts: fmt::Debug + Send + Sync + 'static {
    /// After `Ok` a crash does not lose it.
    fn keep(&self, tenant: &str, artifact: &Artifact) -> io::Result<()>;
    /// None when the tenant has no such artifact, or it is not what it was.
    fn read(&self, tenant: &str, key: &str) -> io::Result<Option<Vec<u8>>>;

    /// Why nothing more is kept for the tenant now; None while there is room. Does not block.
    fn no_room(&self, tenant: &str) -> Option<NoRoom> {
        let _ = tenant;
        None
    }
}

/// Why there is no room for what a tenant wants to keep, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRoom {
    /// The tenant has used up its own.
    Quota(String),
    /// The disk has no more than its reserve.
    Disk(String),
}

impl NoRoom {
    pub(crate) fn message(&self) -> &str {
        match self {
            NoRoom::Quota(message) | NoRoom::Disk(message) => message,
        }
    }

    pub(crate) fn failure(&self) -> Box<Failure> {
        match self {
            NoRoom::Quota(message) => failure(ErrorClass::Policy, "QUOTA_EXCEEDED", message.clone()),
            NoRoom::Disk(message) => failure(ErrorClass::Transport, "DISK_FULL", message.clone()),
        }
    }
}

/// The artifacts of one tenant.
#[derive(Debug, Clone)]
pub(crate) struct TenantArtifacts {
    tenant: Arc<str>,
    of_all: Arc<dyn Artifacts>,
}

impl TenantArtifacts {
    pub(crate) fn new(tenant: &str, of_all: Arc<dyn Artifacts>) -> TenantArtifacts {
        TenantArtifacts { tenant: tenant.into(), of_all }
    }

    pub(crate) fn no_room(&self) -> Option<NoRoom> {
        self.of_all.no_room(&self.tenant)
    }
}

/// What is behind each key.
pub(crate) async fn load(
    artifacts: &TenantArtifacts,
    keys: Vec<String>,
) -> Result<Vec<(String, Option<Vec<u8>>)>, Box<Failure>> {
    let TenantArtifacts { tenant, of_all } = artifacts.clone();
    let read = move || keys.into_iter().map(|key| Ok((key.clone(), of_all.read(&tenant, &key)?))).collect();
    beside(read).await.map_err(|error| trouble("ARTIFACT_NOT_READ", "read", &error))
}

/// Nothing may refer to what is not kept.
pub(crate) async fn keep(artifacts: &TenantArtifacts, made: Vec<Artifact>) -> Result<(), Box<Failure>> {
    if made.is_empty() {
        return Ok(());
    }
    if let Some(no_room) = artifacts.no_room() {
        return Err(no_room.failure());
    }
    let TenantArtifacts { tenant, of_all } = artifacts.clone();
    let keep = move || made.iter().try_for_each(|artifact| of_all.keep(&tenant, artifact));
    beside(keep).await.map_err(|error| trouble("ARTIFACT_NOT_KEPT", "kept", &error))
}

fn trouble(code: &str, done: &str, error: &io::Error) -> Box<Failure> {
    failure(ErrorClass::Transport, code, format!("a large value cannot be {done}: {error}"))
}

async fn beside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}
