//! Every token the server knows, in memory. This process is the only one that writes them, so memory is never behind.

use super::{Digest, Role};
use crate::limits::Rate;
use crate::settings::Settings;
use crate::tenant::Tenant;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use windlass_kernel::Millis;

/// What is known about the holder of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// `user_` and 32 hexadecimal digits.
    pub id: String,
    pub tenant: Tenant,
    pub role: Role,
    pub expires_at: Option<Millis>,
}

#[derive(Debug, Default)]
pub struct Directory {
    by_digest: RwLock<HashMap<Digest, Arc<Known>>>,
}

impl Directory {
    pub fn add(&self, digest: Digest, known: Known) {
        let mut tokens = self.by_digest.write().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(digest, Arc::new(known));
    }

    #[must_use]
    pub fn has(&self, tenant: &Tenant) -> bool {
        *tenant == Tenant::default()
    }

    /// How many requests of the tenant are taken; None: as many as come.
    #[must_use]
    pub fn rate(&self, _tenant: &Tenant, settings: &Settings) -> Option<Rate> {
        settings.rate_limit.map(|per_second| Rate::new(per_second, settings.rate_burst))
    }

    /// Whoever holds a token with this digest; a stale one is no token.
    #[must_use]
    pub fn holder(&self, digest: &Digest, now: Millis) -> Option<Arc<Known>> {
        let tokens = self.by_digest.read().unwrap_or_else(PoisonError::into_inner);
        let known = tokens.get(digest)?;
        known.expires_at.is_none_or(|end| now < end).then(|| known.clone())
    }
}
