//! Bytes of batches of calls that are received or made at a time.

use crate::problem::Problem;
use crate::tenant_counts::{TenantCounts, TenantShare};
use windlass_store::Tenant;

/// Maximum bytes of the calls of one tenant: two requests of the maximum size, or hundreds of usual ones.
const TENANT_BYTES_MAX: usize = 192 << 20;

/// Counts bytes of calls, by tenant.
#[derive(Debug, Default)]
pub(crate) struct CallBytes(TenantCounts);

impl CallBytes {
    /// Takes bytes for a request of a tenant, or refuses it; the worker repeats it.
    pub(crate) fn take(&self, tenant: &Tenant, bytes: usize) -> Result<TenantShare, Problem> {
        self.0.take(tenant, bytes, TENANT_BYTES_MAX).ok_or_else(|| {
            let message =
                "workers of the tenant send too many bytes at a time; retry after the time in Retry-After";
            Problem::too_many(message, 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_tenant_take_bounded_bytes() {
        let bytes = CallBytes::default();
        let take = |tenant: &str| bytes.take(&Tenant::new(tenant), TENANT_BYTES_MAX / 2);
        let _held = [take("a").unwrap(), take("a").unwrap()];
        assert_eq!(take("a").expect_err("it is refused").status().as_u16(), 429);
        assert!(take("b").is_ok(), "another tenant");
    }
}
