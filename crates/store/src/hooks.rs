//! Requests that start workflows. A path belongs to a tenant, and within the tenant to one workflow: the claim is a row,
//! written by the transaction that stores the definition.

use crate::commit::WorkflowId;
use crate::origin::Tenant;
use crate::store::{Reader, StoreResult};

/// A request under `/hooks` that starts a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookClaim {
    /// Method in capitals.
    pub method: String,
    /// Path without surrounding slashes.
    pub path: String,
    /// Whether a token is required.
    pub require_auth: bool,
}

/// A claim of a workflow on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHook {
    pub workflow: WorkflowId,
    pub claim: HookClaim,
}

/// The newest definition of a workflow that was stored before claims were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadHooks {
    pub tenant: Tenant,
    pub workflow: WorkflowId,
    /// JSON, see [`StoredManifest`](crate::StoredManifest).
    pub manifest: String,
}

/// Reads claims; always of one tenant, except for those that were not read yet.
pub trait HookReader: Reader {
    /// Returns the claims on a path, at most one for each method.
    fn hooks(&mut self, tenant: &Tenant, path: &str) -> StoreResult<Vec<StoredHook>>;

    /// Returns definitions whose hooks were never read, the oldest workflow first.
    fn unread_hooks(&mut self, limit: usize) -> StoreResult<Vec<UnreadHooks>>;
}
