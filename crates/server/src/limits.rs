//! Rate limits of tenants, of hooks, and of clients without a token: token buckets in memory, which a restart resets.

use crate::problem::Problem;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use windlass_store::Tenant;

/// Maximum number of buckets. Beyond it, new keys share one bucket, so that a client with very many addresses cannot fill the
/// memory.
const BUCKETS_MAX: usize = 50_000;
/// Minimum time between two evictions of full buckets, each of which visits all buckets.
const EVICT_EVERY: Duration = Duration::from_secs(1);
/// Default rate of a tenant. The server handles about 10,000 requests per second on small machines, so ten busy tenants share
/// it. The tenant `default`, whose owners operate the server, has no limit by default.
pub(crate) const TENANT_RATE: Rate = Rate { per_second: 1_000, burst: 2_000 };

/// Requests per second, and the maximum burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub per_second: u32,
    pub burst: u32,
}

impl Rate {
    /// Returns a rate. By default, the burst is the number of requests of one second.
    #[must_use]
    pub fn new(per_second: u32, burst: Option<u32>) -> Rate {
        Rate { per_second, burst: burst.unwrap_or(per_second).max(1) }
    }
}

/// The key of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RateKey {
    /// Requests with a token of the tenant.
    Requests(Tenant),
    /// Requests without a token to all hooks of the tenant, so that they do not use up the rate of its users.
    Hooks(Tenant),
    /// Requests without a token to one hook of the tenant.
    Hook(Tenant, String),
    /// Requests without a valid token from one address.
    Anonymous(IpAddr),
    /// All keys beyond the maximum number of buckets.
    Overflow,
}

impl RateKey {
    fn refused(&self, rate: Rate) -> String {
        let count = rate.per_second;
        match self {
            RateKey::Requests(_) => format!("the tenant exceeds its limit of {count} requests per second"),
            RateKey::Hooks(_) => {
                format!("the hooks of the tenant accept {count} requests per second without a token")
            }
            RateKey::Hook(..) => format!("the hook accepts {count} requests per second without a token"),
            RateKey::Anonymous(_) | RateKey::Overflow => {
                format!("the address exceeds its limit of {count} requests per second without a valid token")
            }
        }
    }
}

#[derive(Debug, Default)]
pub struct RateLimits {
    buckets: Mutex<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    all: HashMap<RateKey, Bucket>,
    evicted_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    rate: Rate,
    /// Number of requests that may still be made.
    left: f64,
    at: Instant,
}

impl RateLimits {
    /// Counts one request, or refuses it with the time of the next retry.
    pub fn take(&self, key: RateKey, rate: Rate, now: Instant) -> Result<(), Problem> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.of(key.clone(), rate, now);
        // A changed limit applies at once.
        bucket.rate = rate;
        bucket.left = bucket.refilled(now).min(f64::from(rate.burst));
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let wait = ((1.0 - bucket.left) / f64::from(rate.per_second)).ceil().max(1.0);
        Err(Problem::too_many(key.refused(rate), wait as u64))
    }
}

impl Buckets {
    fn of(&mut self, key: RateKey, rate: Rate, now: Instant) -> &mut Bucket {
        let is_full = self.all.len() >= BUCKETS_MAX && !self.all.contains_key(&key);
        let evicts = self.evicted_at.is_none_or(|at| now.saturating_duration_since(at) >= EVICT_EVERY);
        if is_full && evicts {
            self.evicted_at = Some(now);
            self.all.retain(|_, bucket| bucket.refilled(now) < f64::from(bucket.rate.burst));
        }
        let fits = !is_full || self.all.len() < BUCKETS_MAX;
        let key = if fits { key } else { RateKey::Overflow };
        self.all.entry(key).or_insert(Bucket { rate, left: f64::from(rate.burst), at: now })
    }
}

impl Bucket {
    fn refilled(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.left + since * f64::from(self.rate.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn requests(tenant: &str) -> RateKey {
        RateKey::Requests(Tenant::new(tenant))
    }

    #[test]
    fn a_burst_is_accepted_and_then_the_rate_applies() {
        let (limits, start) = (RateLimits::default(), Instant::now());
        let rate = Rate::new(10, Some(3));
        let take = |ms: u64| limits.take(requests("a"), rate, start + Duration::from_millis(ms));
        assert!((0..3).all(|_| take(0).is_ok()));
        let refused = take(0).expect_err("the burst is over");
        assert_eq!((refused.status().as_u16(), refused.retry_after_seconds), (429, Some(1)));
        assert!(take(50).is_err());
        assert!(take(100).is_ok());
        assert!(take(100).is_err());
        assert!((0..3).all(|_| take(10_000).is_ok()), "a bucket never has more than the burst");
        assert!(take(10_000).is_err());
    }

    #[test]
    fn tenants_and_hooks_have_separate_buckets() {
        let (limits, now) = (RateLimits::default(), Instant::now());
        let rate = Rate::new(1, None);
        assert!(limits.take(RateKey::Hooks(Tenant::new("a")), rate, now).is_ok());
        assert!(limits.take(RateKey::Hooks(Tenant::new("a")), rate, now).is_err());
        assert!(limits.take(requests("a"), rate, now).is_ok());
        assert!(limits.take(requests("a"), rate, now).is_err());
        assert!(limits.take(requests("b"), rate, now).is_ok());
    }

    #[test]
    fn a_refusal_has_the_time_to_wait() {
        let (limits, now) = (RateLimits::default(), Instant::now());
        let rate = Rate { per_second: 1, burst: 1 };
        assert!(limits.take(requests("a"), rate, now).is_ok());
        let refused = limits.take(requests("a"), rate, now).expect_err("it is refused");
        assert_eq!(refused.retry_after_seconds, Some(1));
    }

    #[test]
    fn addresses_beyond_the_maximum_share_a_bucket_until_others_are_evicted() {
        let (limits, now) = (RateLimits::default(), Instant::now());
        let rate = Rate::new(1, None);
        let from = |number: u32| RateKey::Anonymous(IpAddr::V4(Ipv4Addr::from(number)));
        let many = u32::try_from(BUCKETS_MAX).unwrap();
        assert!((0..many).all(|number| limits.take(from(number), rate, now).is_ok()));
        assert!(limits.take(from(many), rate, now).is_ok());
        assert!(limits.take(from(many + 1), rate, now).is_err(), "they share one");
        let later = now + EVICT_EVERY;
        assert!((0..2).all(|number| limits.take(from(many + number), rate, later).is_ok()));
        assert!(limits.buckets.lock().unwrap().all.len() < 10);
    }
}
