//! Decides whether and when a failed attempt is retried.

use crate::scenario::{Backoff, Dialect, Retry};
use crate::seen::Class;

pub(super) fn retryable(dialect: Dialect, class: Class) -> bool {
    match (class, dialect) {
        (Class::Transient, _) | (Class::Unknown, Dialect::Actions) => true,
        (Class::Permanent, _) => false,
        (Class::Unknown, Dialect::Plan | Dialect::Playbook | Dialect::Workflow) => false,
    }
}

/// The delay after attempt `failed` (counted from 1). A fraction of a millisecond is the engine's own affair, so it is
/// rounded down here.
pub(super) fn delay_ms(retry: Retry, failed: u32) -> i64 {
    let initial = retry.initial_ms as f64;
    let wanted = match retry.backoff {
        Backoff::Fixed => initial,
        Backoff::Linear => initial * f64::from(failed),
        Backoff::Exponential => initial * retry.multiplier.powi(failed.saturating_sub(1).cast_signed()),
    };
    wanted.min(retry.max_ms as f64) as i64
}
