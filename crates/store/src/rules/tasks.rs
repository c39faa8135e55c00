//! Step-runs that wait for people.

use crate::rows::{Class, RunRow};

/// Returns whether a step-run begins to wait for a person with this commit. The time of the commit becomes the time of its
/// question; later commits keep it.
#[must_use]
pub fn is_newly_asked(row: &RunRow) -> bool {
    let is_asked = row.after.as_ref().is_some_and(|after| after.class == Class::Asked);
    is_asked && row.before != Some(Class::Asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::LiveRun;
    use windlass_kernel::RunId;

    #[test]
    fn a_question_has_the_time_of_its_first_row() {
        for (before, after, expected) in [
            (None, Some(Class::Asked), true),
            (Some(Class::Other), Some(Class::Asked), true),
            (Some(Class::Asked), Some(Class::Asked), false),
            (Some(Class::Asked), Some(Class::Offered), false),
            (Some(Class::Asked), None, false),
            (None, None, false),
        ] {
            let live = |class| LiveRun { class, fence: None, due: None, state: Vec::new() };
            let row = RunRow { run: RunId(1), before, after: after.map(live) };
            assert_eq!(is_newly_asked(&row), expected, "{before:?} {after:?}");
        }
    }
}
