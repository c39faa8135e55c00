//! Consequence of a failed run: another attempt at the occurrence, or a dead letter.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    None,
    Exponential,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Attempts at an occurrence, the first one included; 0 and 1 mean that there is no retry.
    pub max_attempts: u32,
    pub strategy: Strategy,
    pub initial_delay_seconds: u32,
    pub max_delay_seconds: u32,
}

/// Consequence of a failed run, stored in the same commit (K10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    Retry { attempt: u32, available_at: Timestamp },
    DeadLetter,
}

/// Decides what follows the failure of an attempt that ended at a given time. Attempts count from 1.
#[must_use]
pub fn decide_after_failure(policy: RetryPolicy, attempt: u32, finished_at: Timestamp) -> AfterFailure {
    if policy.strategy == Strategy::None || attempt >= policy.max_attempts {
        return AfterFailure::DeadLetter;
    }
    let delay = SignedDuration::from_secs(i64::from(policy.delay_seconds(attempt)));
    // An instant beyond the calendar cannot be waited for.
    match finished_at.checked_add(delay) {
        Ok(available_at) => AfterFailure::Retry { attempt: attempt + 1, available_at },
        Err(_) => AfterFailure::DeadLetter,
    }
}

impl RetryPolicy {
    /// Returns the delay after an attempt: it doubles with every attempt, up to the largest delay.
    #[must_use]
    pub fn delay_seconds(self, attempt: u32) -> u32 {
        let doublings = attempt.saturating_sub(1).min(32);
        let delay = u64::from(self.initial_delay_seconds) << doublings;
        delay.min(u64::from(self.max_delay_seconds)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        max_attempts: 4,
        strategy: Strategy::Exponential,
        initial_delay_seconds: 30,
        max_delay_seconds: 45,
    };

    fn check(policy: RetryPolicy, attempt: u32, expected: Option<&str>) {
        let found = decide_after_failure(policy, attempt, "2026-01-01T00:00:00Z".parse().unwrap());
        let expected = match expected {
            Some(at) => AfterFailure::Retry { attempt: attempt + 1, available_at: at.parse().unwrap() },
            None => AfterFailure::DeadLetter,
        };
        assert_eq!(found, expected, "{policy:?} after attempt {attempt}");
    }

    #[test]
    fn sch_20_delays_double_up_to_the_largest() {
        check(POLICY, 1, Some("2026-01-01T00:00:30Z"));
        check(POLICY, 2, Some("2026-01-01T00:00:45Z"));
        check(POLICY, 3, Some("2026-01-01T00:00:45Z"));
        let long = RetryPolicy { max_attempts: u32::MAX, max_delay_seconds: u32::MAX, ..POLICY };
        assert_eq!([1, 2, 3, 4].map(|attempt| long.delay_seconds(attempt)), [30, 60, 120, 240]);
        assert_eq!(long.delay_seconds(1_000), u32::MAX);
    }

    #[test]
    fn sch_09_the_last_attempt_is_a_dead_letter() {
        check(POLICY, 4, None);
        for max_attempts in [0, 1] {
            check(RetryPolicy { max_attempts, ..POLICY }, 1, None);
        }
        check(RetryPolicy { strategy: Strategy::None, ..POLICY }, 1, None);
    }
}
