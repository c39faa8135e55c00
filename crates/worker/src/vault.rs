//! Where secrets are opened.

use std::fmt;
use windlass_secrets::Zeroizing;

/// The worker's way to stored secrets. Calls are short: a file beside the worker, not a network.
pub trait Vault: fmt::Debug + Send + Sync + 'static {
    /// A secret of that tenant; another tenant's of the same name is not it.
    fn open(&self, tenant: &str, name: &str) -> Result<Zeroizing<String>, VaultError>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("there is no secret `{0}`: store it with `windlass secrets set {0}`")]
    Missing(String),
    /// Why, and what to do.
    #[error("{0}")]
    Unusable(String),
}

/// Of a worker without secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoVault;

impl Vault for NoVault {
    fn open(&self, _: &str, name: &str) -> Result<Zeroizing<String>, VaultError> {
        Err(VaultError::Missing(name.to_owned()))
    }
}
