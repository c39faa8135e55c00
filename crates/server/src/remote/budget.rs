//! Bytes of batches of calls that are received or made at a time.

use crate::cache::lock;
use crate::problem::Problem;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use windlass_store::Tenant;

/// Maximum bytes of the calls of one tenant: two requests of the maximum size, or hundreds of usual ones.
const TENANT_BYTES_MAX: usize = 192 << 20;

/// Counts bytes of calls, by tenant.
#[derive(Debug, Default)]
pub(crate) struct CallBytes(Arc<Mutex<HashMap<Tenant, usize>>>);

/// Bytes of one request, which are free again when it is dropped.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    tenant: Tenant,
    bytes: usize,
    counts: Arc<Mutex<HashMap<Tenant, usize>>>,
}

impl CallBytes {
    /// Takes bytes for a request of a tenant, or refuses it; the worker repeats it.
    pub(crate) fn take(&self, tenant: &Tenant, bytes: usize) -> Result<ByteBudget, Problem> {
        let mut counts = lock(&self.0);
        let count = counts.entry(tenant.clone()).or_default();
        if count.saturating_add(bytes) > TENANT_BYTES_MAX {
            let message =
                "workers of the tenant send too many bytes at a time; retry after the time in Retry-After";
            return Err(Problem::too_many(message, 1));
        }
        *count += bytes;
        Ok(ByteBudget { tenant: tenant.clone(), bytes, counts: self.0.clone() })
    }
}

impl Drop for ByteBudget {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&self.tenant) {
            *count = count.saturating_sub(self.bytes);
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
    fn calls_of_a_tenant_take_bounded_bytes() {
        let bytes = CallBytes::default();
        let take = |tenant: &str| bytes.take(&Tenant::new(tenant), TENANT_BYTES_MAX / 2);
        let first = take("a").unwrap();
        let _second = take("a").unwrap();
        assert_eq!(take("a").expect_err("it is refused").status().as_u16(), 429);
        assert!(take("b").is_ok(), "another tenant");
        drop(first);
        assert!(take("a").is_ok());
        assert_eq!(lock(&bytes.0).len(), 1, "nothing of the other tenant is left");
    }
}
