//! Hooks: which workflow has the claim on a path.

use crate::commit::{Applied, WorkflowId};

/// Returns whether a claim is written. The first one on a method and path stays: two triggers of one definition may name the
/// same path, and of workflows that were stored before there were claims the oldest one has it. Other claims that are taken
/// are refused with their definition.
#[must_use]
pub fn may_claim_hook(owner: Option<WorkflowId>) -> bool {
    owner.is_none()
}

/// Decides whether the hooks of a workflow that was stored before there were claims are written. `is_unread` is None if the
/// tenant has no workflow of that id.
#[must_use]
pub fn judge_hooks_read(is_unread: Option<bool>) -> Applied {
    match is_unread {
        Some(true) => Applied::Done,
        Some(false) | None => Applied::Duplicate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_claim_on_a_path_stays() {
        assert!(may_claim_hook(None));
        assert!(!may_claim_hook(Some(WorkflowId(1))));
    }

    #[test]
    fn the_hooks_of_an_older_workflow_are_read_once() {
        for (is_unread, expected) in
            [(None, Applied::Duplicate), (Some(false), Applied::Duplicate), (Some(true), Applied::Done)]
        {
            assert_eq!(judge_hooks_read(is_unread), expected, "{is_unread:?}");
        }
    }
}
