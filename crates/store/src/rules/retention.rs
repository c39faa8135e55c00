//! Retention: which ended executions may be deleted.

use windlass_kernel::{Millis, Phase};

/// Facts about an execution that could be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedFacts {
    pub phase: Phase,
    /// Time of its newest event.
    pub at: Millis,
    /// Phase of its parent, if that exists.
    pub parent: Option<Phase>,
    /// There is mail for it or for its parent that is not decided yet.
    pub has_open_mail: bool,
    /// Time of the newest mail for it or for its parent whose answer was not fetched.
    pub newest_answer: Option<Millis>,
    /// Events of it may still have to be delivered.
    pub has_deliveries: bool,
    /// Large values of its sub-executions belong to it, and one of those exists.
    pub owns_values_of_children: bool,
}

/// Returns whether an execution that ended before a time may be deleted. An answer that was not fetched for as long
/// protects nothing: the process that requested it has ended.
#[must_use]
pub fn may_forget(facts: &EndedFacts, ended_before: Millis) -> bool {
    facts.phase.is_ended()
        && facts.at < ended_before
        && facts.parent.is_none_or(Phase::is_ended)
        && !facts.has_open_mail
        && facts.newest_answer.is_none_or(|at| at < ended_before)
        && !facts.has_deliveries
        && !facts.owns_values_of_children
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_kernel::Outcome;

    #[test]
    fn only_an_execution_that_nothing_needs_may_be_forgotten() {
        let ended = Phase::Ended(Outcome::Completed);
        let old = EndedFacts {
            phase: ended,
            at: Millis(99),
            parent: None,
            has_open_mail: false,
            newest_answer: None,
            has_deliveries: false,
            owns_values_of_children: false,
        };
        let cases = [
            (old, true),
            (EndedFacts { phase: Phase::Running, ..old }, false),
            (EndedFacts { at: Millis(100), ..old }, false),
            (EndedFacts { parent: Some(ended), ..old }, true),
            (EndedFacts { parent: Some(Phase::Paused), ..old }, false),
            (EndedFacts { has_open_mail: true, ..old }, false),
            (EndedFacts { newest_answer: Some(Millis(99)), ..old }, true),
            (EndedFacts { newest_answer: Some(Millis(100)), ..old }, false),
            (EndedFacts { has_deliveries: true, ..old }, false),
            (EndedFacts { owns_values_of_children: true, ..old }, false),
        ];
        for (facts, may) in cases {
            assert_eq!(may_forget(&facts, Millis(100)), may, "{facts:?}");
        }
    }
}
