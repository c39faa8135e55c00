//! Retry policies in the document's words.

use super::language::{BACKOFFS, RETRY};
use crate::bounded::{CODE_MAX, DELAY_MAX_MS, never_retried};
use crate::document::Node;
use crate::read::{Reader, Unknown};
use serde::Deserialize;
use windlass_kernel::net::{Backoff, Retry, RetryOn, UnknownErrors};

/// Tries after the first one that a policy may ask for.
const RETRIES_MAX: u32 = 1_000;

/// Returns the policy of nodes without one: three retries, after about 1, 2 and 4 seconds.
#[must_use]
pub(crate) fn usual() -> Retry {
    Retry {
        attempts_max: 4,
        backoff: Backoff::Exponential,
        initial_ms: 1_000,
        multiplier: 2.0,
        max_ms: 60_000,
        jitter: 0.1,
        on: RetryOn::Default,
        unknown: UnknownErrors::AsFlagged,
        resumes: false,
    }
}

pub(super) fn policy(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<Retry> {
    let entries = reader.map(node, what)?;
    reader.known(entries, what, RETRY, Unknown::Error);
    let mut retry = usual();
    let given = |key: &str| node.get(key).filter(|node| !node.is_null());
    if let Some(node) = given("maxRetries") {
        retry.attempts_max = reader.whole(node, "`maxRetries`", 0..=RETRIES_MAX)? + 1;
    }
    if let Some(node) = given("backoffStrategy") {
        retry.backoff = reader.choice(node, "backoffStrategy", &BACKOFFS)?;
    }
    if let Some(node) = given("initialDelayMs") {
        retry.initial_ms = reader.whole(node, "`initialDelayMs`", 0..=DELAY_MAX_MS)?.into();
    }
    if let Some(node) = given("maxDelayMs") {
        retry.max_ms = reader.whole(node, "`maxDelayMs`", 0..=DELAY_MAX_MS)?.into();
    }
    if let Some(node) = given("backoffMultiplier") {
        retry.multiplier = reader.number_between(node, "`backoffMultiplier`", 1.0, 1_000.0)?;
    }
    if let Some(node) = given("jitterFactor") {
        retry.jitter = reader.number_between(node, "`jitterFactor`", 0.0, 1.0)?;
    }
    if let Some(node) = given("retryableErrors") {
        let items = reader.list(node, "`retryableErrors`")?;
        let mut codes = Vec::new();
        for item in items {
            let Some(code) = reader.limited(item, "an error code", CODE_MAX) else { continue };
            if let Some(why) = never_retried(&code) {
                reader.error("E0118", &item.at, why, Some("remove it".to_owned()));
            }
            codes.push(code);
        }
        retry.on = RetryOn::Only(codes);
    }
    Some(retry)
}

/// `options.retryPolicy` of a start: the document's RetryPolicy, every field with its default.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RetryPolicy {
    pub max_retries: u32,
    /// `fixed`, `linear` or `exponential`.
    pub backoff_strategy: String,
    pub initial_delay_ms: u64,
    pub max_delay_ms: u64,
    pub backoff_multiplier: f64,
    pub jitter_factor: f64,
    pub retryable_errors: Option<Vec<String>>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let usual = usual();
        RetryPolicy {
            max_retries: usual.attempts_max - 1,
            backoff_strategy: "exponential".to_owned(),
            initial_delay_ms: usual.initial_ms,
            max_delay_ms: usual.max_ms,
            backoff_multiplier: usual.multiplier,
            jitter_factor: usual.jitter,
            retryable_errors: None,
        }
    }
}

impl RetryPolicy {
    /// Converts it to the policy of the kernel; the error names the field.
    pub fn retry(&self) -> Result<Retry, (String, String)> {
        let known = BACKOFFS.iter().find(|(word, _)| *word == self.backoff_strategy);
        let Some((_, backoff)) = known else {
            return Err(wrong("backoffStrategy", "use `fixed`, `linear` or `exponential`"));
        };
        let most = |field, max: u64| wrong(field, format!("must be at most {max}"));
        if self.max_retries > RETRIES_MAX {
            return Err(most("maxRetries", RETRIES_MAX.into()));
        }
        for (field, delay_ms) in
            [("initialDelayMs", self.initial_delay_ms), ("maxDelayMs", self.max_delay_ms)]
        {
            if delay_ms > DELAY_MAX_MS.into() {
                return Err(most(field, DELAY_MAX_MS.into()));
            }
        }
        if !(1.0..=1_000.0).contains(&self.backoff_multiplier) {
            return Err(wrong("backoffMultiplier", "must be a number from 1 to 1000"));
        }
        if !(0.0..=1.0).contains(&self.jitter_factor) {
            return Err(wrong("jitterFactor", "must be a number from 0 to 1"));
        }
        let bad = |code: &String| !(1..=CODE_MAX).contains(&code.chars().count());
        if let Some(place) = self.retryable_errors.iter().flatten().position(bad) {
            let field = format!("retryableErrors[{place}]");
            return Err(wrong(field, format!("a code has 1 to {CODE_MAX} characters")));
        }
        let final_code = |(place, code): (usize, &String)| Some((place, never_retried(code)?));
        if let Some((place, why)) = self.retryable_errors.iter().flatten().enumerate().find_map(final_code) {
            return Err(wrong(format!("retryableErrors[{place}]"), why));
        }
        Ok(Retry {
            attempts_max: self.max_retries + 1,
            backoff: *backoff,
            initial_ms: self.initial_delay_ms,
            multiplier: self.backoff_multiplier,
            max_ms: self.max_delay_ms,
            jitter: self.jitter_factor,
            on: self.retryable_errors.clone().map_or(RetryOn::Default, RetryOn::Only),
            unknown: UnknownErrors::AsFlagged,
            resumes: false,
        })
    }
}

fn wrong(field: impl Into<String>, message: impl Into<String>) -> (String, String) {
    (field.into(), message.into())
}
