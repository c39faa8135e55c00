//! Nets that somebody holds, shared by all who follow executions of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use windlass_kernel::{Net, NetDigest};
use windlass_store::{Reader, StoreError};

/// Entries whose nets nobody holds any more are swept out when there are more than this.
const SWEPT_AT: usize = 1_000;

#[derive(Debug, Default)]
pub struct Nets {
    held: Mutex<HashMap<NetDigest, Weak<Net>>>,
}

impl Nets {
    /// None: the store does not have it.
    pub fn net(&self, reader: &mut impl Reader, digest: NetDigest) -> Result<Option<Arc<Net>>, StoreError> {
        let held = || self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(net) = held().get(&digest).and_then(Weak::upgrade) {
            return Ok(Some(net));
        }
        let Some(net) = reader.net(digest)?.map(Arc::new) else { return Ok(None) };
        let mut held = held();
        if held.len() >= SWEPT_AT {
            held.retain(|_, net| net.strong_count() > 0);
        }
        held.insert(digest, Arc::downgrade(&net));
        Ok(Some(net))
    }
}
