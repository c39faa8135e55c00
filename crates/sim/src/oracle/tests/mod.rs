//! Handwritten traces in short words: right ones are accepted, and each broken one is rejected by the rule it breaks.

mod broken;
mod definitions;
mod right;
mod words;

use super::Oracle;
use crate::scenario::Scenario;

/// `expected` is `ok` or the name of the rule that the last observation breaks.
fn check(scenario: &Scenario, trace: &str, expected: &str) {
    let mut oracle = Oracle::new(scenario);
    let seen = words::read(trace);
    let count = seen.len();
    for (index, seen) in seen.iter().enumerate() {
        if let Err(violation) = oracle.see(seen) {
            assert_eq!(violation.rule, expected, "{trace}\nat {index} {:?}: {}", seen.what, violation.what);
            assert_eq!(index + 1, count, "rejected too early: {trace}");
            return;
        }
    }
    assert_eq!("ok", expected, "accepted: {trace}");
    assert!(!oracle.gave_up());
}
