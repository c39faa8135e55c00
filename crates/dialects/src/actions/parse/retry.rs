//! Retry policies of actions and of compensation hooks.

use super::given;
use crate::actions::language::RETRY;
use crate::bounded::{CODE_MAX, DELAY_MAX_MS, never_retried};
use crate::document::Node;
use crate::names;
use crate::read::{Reader, Unknown, first_line};
use windlass_kernel::net::{Backoff, Retry, RetryOn, UnknownErrors};

const ATTEMPTS_MAX: u32 = 10;

/// Returns the policy of an action without one: three attempts, after 1 and 2 seconds. It has no jitter, so that equal
/// runs make equal decisions.
pub(super) fn usual() -> Retry {
    Retry {
        attempts_max: 3,
        backoff: Backoff::Exponential,
        initial_ms: 1_000,
        multiplier: 2.0,
        max_ms: 30_000,
        jitter: 0.0,
        on: RetryOn::Default,
        unknown: UnknownErrors::Retry,
        resumes: false,
    }
}

/// Returns the policy of a compensation hook without one.
pub(super) fn usual_of_hook() -> Retry {
    Retry { attempts_max: 2, max_ms: 10_000, ..usual() }
}

pub(super) fn policy(node: &Node, what: &str, usual: Retry, reader: &mut Reader<'_, '_>) -> Option<Retry> {
    let label = |key: &str| format!("`{key}` of {what}");
    let entries = reader.map(node, &label("retryPolicy"))?;
    reader.known(entries, &label("retryPolicy"), RETRY, Unknown::Error);
    let mut retry = usual;
    if let Some(node) = given(node, "maxAttempts")
        && let Some(attempts) = reader.whole(node, &label("maxAttempts"), 1..=ATTEMPTS_MAX)
    {
        retry.attempts_max = attempts;
    }
    if let Some(node) = given(node, "initialBackoffMs")
        && let Some(ms) = reader.whole(node, &label("initialBackoffMs"), 0..=DELAY_MAX_MS)
    {
        retry.initial_ms = ms.into();
    }
    if let Some(node) = given(node, "maxBackoffMs")
        && let Some(ms) = reader.whole(node, &label("maxBackoffMs"), 0..=DELAY_MAX_MS)
    {
        retry.max_ms = ms.into();
    }
    if let Some(node) = given(node, "backoffMultiplier")
        && let Some(factor) = reader.number_between(node, &label("backoffMultiplier"), 1.0, 1_000.0)
    {
        retry.multiplier = factor;
    }
    if let Some(node) = given(node, "retryableErrors") {
        retry.on = RetryOn::Only(retryable_errors(node, &label("retryableErrors"), reader));
    }
    Some(retry)
}

/// Maximum number of entries of one list.
const ERRORS_MAX: usize = 100;

/// Classes that are retried by default, or that `retryableErrors` can add, with their second names.
const CLASSES: [(&str, &str); 6] = [
    ("timeout", "timeout"),
    ("rate_limit", "rate_limit"),
    ("transient_5xx", "transient_5xx"),
    ("5xx", "transient_5xx"),
    ("transport", "transport"),
    ("unknown", "unknown"),
];

/// Second names of classes that are never retried.
const FINAL_CLASSES: [(&str, &str); 3] =
    [("policy_deny", "policy"), ("auth_deny", "auth"), ("business_conflict", "conflict")];

fn retryable_errors(node: &Node, label: &str, reader: &mut Reader<'_, '_>) -> Vec<String> {
    let items = reader.list(node, label).unwrap_or_default();
    if items.len() > ERRORS_MAX {
        let message = format!("{label} has {} entries, more than {ERRORS_MAX}", items.len());
        reader.error("E0143", &first_line(node), message, None);
        return Vec::new();
    }
    let mut found = Vec::new();
    for item in items {
        let Some(word) = reader.limited(item, &format!("an entry of {label}"), CODE_MAX) else { continue };
        let class = FINAL_CLASSES.iter().find(|(name, _)| *name == word).map_or(&*word, |(_, class)| class);
        if never_retried(class).is_some() {
            let message = format!("{label}: errors of the class or code `{word}` can never be retried");
            reader.error("E0118", &item.at, message, "remove it".to_owned());
            continue;
        }
        match CLASSES.iter().find(|(name, _)| *name == word) {
            Some((_, class)) => found.push((*class).to_owned()),
            None if is_code(&word) => found.push(word),
            None => {
                let hint = names::hint(&word, CLASSES.iter().map(|(name, _)| *name));
                let message = format!("{label}: there is no class of errors `{word}`");
                reader.error("E0108", &item.at, message, hint);
            }
        }
    }
    found
}

/// Returns whether a word is a code: codes are in capitals, and anything else is the name of a class.
fn is_code(word: &str) -> bool {
    word.chars().all(|sign| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == '_')
}
