//! Retries: whether another attempt is made, and when.

use super::ending::{self, EndDetails};
use super::{Accepted, Draft};
use crate::event::Event;
use crate::ids::RunId;
use crate::net::{Backoff, Retry, UnknownErrors};
use windlass_failure::Failure;

/// Handles a failed attempt: it schedules the next one, or fails the step-run.
pub(super) fn fail_attempt(d: &mut Draft<'_>, id: RunId, failure: Failure, details: EndDetails) -> Accepted {
    let run = d.run(id)?;
    let step = d.net.step(run.step);
    let policy = run.hook(step).map_or(&step.retry, |hook| &hook.retry);
    let attempt = run.attempts + 1;
    if attempt >= policy.attempts_max || !is_retryable(policy, &failure) {
        return ending::fail(d, id, failure, details);
    }
    let until = d.at.plus(delay_ms(policy, attempt, failure.retry_after_ms, d.given.random));
    let EndDetails { fence, patch, reported, cursor, .. } = details;
    // An attempt without a checkpoint of its own keeps that of the attempt before.
    let cursor = cursor.or_else(|| run.cursor.clone()).filter(|_| policy.resumes);
    let failure = Box::new(failure);
    d.emit(Event::RetryScheduled { run: id, fence, until, failure, reported, patch: patch.clone(), cursor })?;
    super::context::examine_gates(d, &patch)
}

/// Returns whether a failure is retried. Some classes are never retried, a list replaces the default set, and all
/// other errors follow the policy for unknown errors.
fn is_retryable(policy: &Retry, failure: &Failure) -> bool {
    let by_class = failure.class.retryable();
    if by_class == Some(false) {
        return false;
    }
    let unknown = by_class.is_none() && policy.unknown == UnknownErrors::Retry;
    match policy.on.lists(failure.class, &failure.code) {
        Some(listed) => listed || unknown,
        None => by_class.unwrap_or(unknown || failure.retryable == Some(true)),
    }
}

/// Returns the delay after the failed attempt number `attempt`, from 1. Jitter is added after the cap and rounded.
fn delay_ms(policy: &Retry, attempt: u32, retry_after_ms: Option<u64>, random: u64) -> u64 {
    let initial = policy.initial_ms as f64;
    let raw = match policy.backoff {
        Backoff::Fixed => initial,
        Backoff::Linear => initial * f64::from(attempt),
        Backoff::Exponential => (1..attempt).fold(initial, |delay, _| delay * policy.multiplier),
    };
    // A request to slow down is a lower bound of the delay, within the cap.
    let asked = retry_after_ms.unwrap_or(0) as f64;
    let capped = raw.max(asked).min(policy.max_ms as f64);
    let share = random as f64 / u64::MAX as f64 * 2.0 - 1.0;
    (capped + capped * policy.jitter * share).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::RetryOn;
    use windlass_failure::ErrorClass;

    fn policy(backoff: Backoff, jitter: f64) -> Retry {
        Retry {
            attempts_max: 9,
            backoff,
            initial_ms: 1000,
            multiplier: 2.0,
            max_ms: 60_000,
            jitter,
            ..Retry::default()
        }
    }

    #[test]
    fn wfl_15_delays_follow_the_documents_formula() {
        let check = |backoff, attempts: [u32; 4], expected: [u64; 4]| {
            let delays = attempts.map(|attempt| delay_ms(&policy(backoff, 0.0), attempt, None, 0));
            assert_eq!(delays, expected, "{backoff:?}");
        };
        check(Backoff::Fixed, [1, 2, 3, 9], [1000, 1000, 1000, 1000]);
        check(Backoff::Linear, [1, 2, 3, 90], [1000, 2000, 3000, 60_000]);
        check(Backoff::Exponential, [1, 2, 3, 9], [1000, 2000, 4000, 60_000]);
    }

    #[test]
    fn wfl_15_jitter_is_added_after_the_cap_and_rounded() {
        let policy = policy(Backoff::Exponential, 0.1);
        assert_eq!(delay_ms(&policy, 9, None, u64::MAX), 66_000);
        assert_eq!(delay_ms(&policy, 9, None, 0), 54_000);
        assert_eq!(delay_ms(&policy, 1, None, u64::MAX / 2), 1000);
    }

    #[test]
    fn a_request_to_slow_down_lengthens_the_delay_up_to_the_cap() {
        let policy = policy(Backoff::Exponential, 0.0);
        assert_eq!(delay_ms(&policy, 1, Some(5_000), 0), 5_000);
        assert_eq!(delay_ms(&policy, 3, Some(1), 0), 4_000);
        assert_eq!(delay_ms(&policy, 1, Some(999_999), 0), 60_000);
    }

    #[test]
    fn act_08_wfl_24_classes_and_flags_decide_what_is_retried() {
        let check = |on: RetryOn, unknown, class, flag, expected| {
            let policy = Retry { on: on.clone(), unknown, ..Retry::default() };
            let failure = Failure { retryable: flag, ..Failure::of_class(class, "SOME_CODE", "") };
            assert_eq!(is_retryable(&policy, &failure), expected, "{on:?} {unknown:?} {class:?} {flag:?}");
        };
        use UnknownErrors::{AsFlagged, Retry as Always};
        for class in
            [ErrorClass::Timeout, ErrorClass::RateLimit, ErrorClass::Transient5xx, ErrorClass::Transport]
        {
            check(RetryOn::Default, AsFlagged, class, Some(false), true);
            check(RetryOn::Only(vec!["other".into()]), AsFlagged, class, None, false);
            check(RetryOn::Only(vec![class.name().into()]), AsFlagged, class, None, true);
        }
        for class in [ErrorClass::Validation, ErrorClass::Policy, ErrorClass::Auth, ErrorClass::Conflict] {
            check(RetryOn::Default, Always, class, Some(true), false);
            check(RetryOn::Only(vec![class.name().into()]), Always, class, Some(true), false);
        }
        check(RetryOn::Default, AsFlagged, ErrorClass::Unknown, None, false);
        check(RetryOn::Default, AsFlagged, ErrorClass::Unknown, Some(true), true);
        check(RetryOn::Default, Always, ErrorClass::Unknown, None, true);
        check(RetryOn::Only(vec!["SOME_CODE".into()]), AsFlagged, ErrorClass::Unknown, None, true);
        check(RetryOn::Only(vec!["other".into()]), Always, ErrorClass::Unknown, None, true);
        check(RetryOn::Only(vec!["other".into()]), AsFlagged, ErrorClass::Unknown, Some(true), false);
    }
}
