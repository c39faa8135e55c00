//! How much of the server one tenant may use: requests per second, as a bucket that fills by itself.

use crate::problem::Problem;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use windlass_store::Tenant;

/// Buckets that are full are forgotten when there are more than this.
const BUCKETS_MAX: usize = 10_000;

/// Requests per second, and how many may come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub per_second: u32,
    pub burst: u32,
}

impl Rate {
    /// No burst means as many as come in a second.
    #[must_use]
    pub fn new(per_second: u32, burst: Option<u32>) -> Rate {
        Rate { per_second, burst: burst.unwrap_or(per_second).max(1) }
    }
}

#[derive(Debug, Default)]
pub struct RateLimits {
    buckets: Mutex<HashMap<Tenant, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Requests that may still come.
    left: f64,
    at: Instant,
}

impl RateLimits {
    /// Takes one request of the tenant, or says when the next one may come.
    pub fn take(&self, tenant: &Tenant, rate: Rate, now: Instant) -> Result<(), Problem> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > BUCKETS_MAX {
            buckets.retain(|_, bucket| bucket.left + refilled(bucket, rate, now) < f64::from(rate.burst));
        }
        let full = Bucket { left: f64::from(rate.burst), at: now };
        let bucket = buckets.entry(tenant.clone()).or_insert(full);
        bucket.left = (bucket.left + refilled(bucket, rate, now)).min(f64::from(rate.burst));
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let wait = ((1.0 - bucket.left) / f64::from(rate.per_second)).ceil().max(1.0);
        let message = format!("the tenant may send {} requests a second", rate.per_second);
        Err(Problem::too_many(message, wait as u64))
    }
}

fn refilled(bucket: &Bucket, rate: Rate, now: Instant) -> f64 {
    now.saturating_duration_since(bucket.at).as_secs_f64() * f64::from(rate.per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_is_let_through_and_then_the_rate() {
        let (limits, tenant, start) = (RateLimits::default(), Tenant::default(), Instant::now());
        let rate = Rate::new(10, Some(3));
        let take = |ms: u64| limits.take(&tenant, rate, start + Duration::from_millis(ms));
        assert!((0..3).all(|_| take(0).is_ok()));
        let refused = take(0).expect_err("the burst is over");
        assert_eq!((refused.status.as_u16(), refused.retry_after_seconds), (429, Some(1)));
        assert!(take(50).is_err());
        assert!(take(100).is_ok());
        assert!(take(100).is_err());
        assert!((0..3).all(|_| take(10_000).is_ok()), "it never holds more than the burst");
        assert!(take(10_000).is_err());
    }

    #[test]
    fn one_tenant_does_not_use_up_anothers() {
        let (limits, now) = (RateLimits::default(), Instant::now());
        let rate = Rate::new(1, None);
        assert!(limits.take(&Tenant::new("a"), rate, now).is_ok());
        assert!(limits.take(&Tenant::new("a"), rate, now).is_err());
        assert!(limits.take(&Tenant::new("b"), rate, now).is_ok());
    }

    #[test]
    fn a_slow_rate_says_how_long_to_wait() {
        let (limits, now) = (RateLimits::default(), Instant::now());
        let rate = Rate { per_second: 1, burst: 1 };
        assert!(limits.take(&Tenant::default(), rate, now).is_ok());
        let refused = limits.take(&Tenant::default(), rate, now).expect_err("it is refused");
        assert_eq!(refused.retry_after_seconds, Some(1));
    }
}
