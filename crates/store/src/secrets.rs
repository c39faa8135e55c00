//! The port to stored secrets: sealed values, which the store cannot open.

use crate::access::Audit;
use crate::store::{StoreError, StoreResult};
use windlass_kernel::Millis;

/// The tenant of secrets for which none is given.
pub const TENANT: &str = "default";

/// One stored secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    pub tenant: String,
    pub name: String,
    /// Number of the version, from 1. A new value is a new version.
    pub version: u32,
    /// Name of the master key that seals the value.
    pub key: String,
    pub sealed: Vec<u8>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

impl StoredSecret {
    /// Returns whether this is the version after the stored one: two writers never overwrite each other.
    #[must_use]
    pub fn follows(&self, stored: Option<&StoredSecret>) -> bool {
        stored.map_or(0, |stored| stored.version).checked_add(1) == Some(self.version)
    }
}

/// Result of a rotation for a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapped {
    pub key: String,
    pub sealed: Vec<u8>,
}

/// Secrets of all tenants. Other processes may write at the same time. Each call is one transaction: its change is on disk
/// before it returns, and an `Err` changes nothing.
pub trait Secrets: Send {
    /// Stores the first version, or the one after the stored version. Returns false, and writes nothing, when another
    /// version is stored. The audit entry is written in the same transaction.
    fn put(&mut self, secret: &StoredSecret, audit: Option<&Audit>) -> StoreResult<bool>;

    fn get(&mut self, tenant: &str, name: &str) -> StoreResult<Option<StoredSecret>>;

    /// Lists the secrets of one tenant or of all, in the order of tenants and names.
    fn all(&mut self, tenant: Option<&str>) -> StoreResult<Vec<StoredSecret>>;

    /// Returns whether the secret existed. If it did, the deletion is audited in the same transaction.
    fn delete(&mut self, tenant: &str, name: &str, audit: Option<&Audit>) -> StoreResult<bool>;

    /// Replaces every secret by the result of `change`, all of them or none. An error of `change` ends it. Returns the
    /// number of secrets.
    fn rewrap<E: From<StoreError>>(
        &mut self,
        change: impl FnMut(&StoredSecret) -> Result<Wrapped, E>,
    ) -> Result<usize, E>;
}
