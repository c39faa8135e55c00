//! Slots for streams, which outlive their request: WebSockets and streams of events. Only authenticated callers take
//! them.

use crate::cache::lock;
use crate::problem::Problem;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_store::Tenant;

#[derive(Debug)]
pub(crate) struct Streams {
    all: Arc<Semaphore>,
    max: usize,
    by_tenant: Arc<Mutex<HashMap<Tenant, usize>>>,
}

/// A slot, which is free again when it is dropped.
#[derive(Debug)]
pub struct StreamSlot {
    _permit: OwnedSemaphorePermit,
    tenant: Tenant,
    by_tenant: Arc<Mutex<HashMap<Tenant, usize>>>,
}

impl Streams {
    pub(crate) fn new(max: usize) -> Streams {
        Streams { all: Arc::new(Semaphore::new(max)), max, by_tenant: Arc::default() }
    }

    /// Takes a slot for a tenant, which has at most `limit` of them.
    pub(crate) fn take(&self, tenant: &Tenant, limit: Option<usize>) -> Result<StreamSlot, Problem> {
        let full = |_| {
            let max = self.max;
            Problem::unavailable(format!(
                "{max} streams are open, the maximum of the server; close some, or raise `max-streams`"
            ))
        };
        let permit = self.all.clone().try_acquire_owned().map_err(full)?;
        let mut counts = lock(&self.by_tenant);
        let count = counts.entry(tenant.clone()).or_default();
        if let Some(limit) = limit.filter(|limit| *count >= *limit) {
            let message = format!(
                "the tenant has {limit} streams open, its maximum; close some, or raise its limit `streams`"
            );
            return Err(Problem::too_many(message, 1));
        }
        *count += 1;
        Ok(StreamSlot { _permit: permit, tenant: tenant.clone(), by_tenant: self.by_tenant.clone() })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut counts = lock(&self.by_tenant);
        if let Some(count) = counts.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_its_limit_and_all_have_that_of_the_server() {
        let streams = Streams::new(3);
        let take = |tenant: &str| streams.take(&Tenant::new(tenant), Some(2));
        let status = |taken: Result<StreamSlot, Problem>| taken.expect_err("it is refused").status().as_u16();
        let first = take("a").unwrap();
        let _second = take("a").unwrap();
        assert_eq!(status(take("a")), 429);
        let _third = take("b").unwrap();
        assert_eq!(status(take("b")), 503);
        drop(first);
        assert!(take("a").is_ok());
    }
}
