//! Slots for streams, which outlive their request: WebSockets and streams of events. Only authenticated callers take
//! them.

use crate::problem::Problem;
use crate::tenant_counts::{TenantCounts, TenantShare};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_store::Tenant;

#[derive(Debug)]
pub(crate) struct Streams {
    all: Arc<Semaphore>,
    max: usize,
    by_tenant: TenantCounts,
}

/// A slot, which is free again when it is dropped.
#[derive(Debug)]
pub struct StreamSlot {
    _permit: OwnedSemaphorePermit,
    _share: TenantShare,
}

impl Streams {
    pub(crate) fn new(max: usize) -> Streams {
        Streams { all: Arc::new(Semaphore::new(max)), max, by_tenant: TenantCounts::default() }
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
        let limit = limit.unwrap_or(self.max);
        let share = self.by_tenant.take(tenant, 1, limit).ok_or_else(|| {
            let message = format!(
                "the tenant has {limit} streams open, its maximum; close some, or raise its limit `streams`"
            );
            Problem::too_many(message, 1)
        })?;
        Ok(StreamSlot { _permit: permit, _share: share })
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
