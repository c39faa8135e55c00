//! Workflows: changes of their status, and their deletion.

use crate::commit::Applied;

/// Decides whether a workflow is changed or deleted. `is_deleted` is None if the tenant has no workflow of that id.
#[must_use]
pub fn judge_workflow_change(is_deleted: Option<bool>) -> Applied {
    match is_deleted {
        Some(false) => Applied::Done,
        Some(true) | None => Applied::Duplicate,
    }
}

/// Part of the deletion of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowDeletion {
    /// Frees its hooks for other workflows of the tenant.
    ReleaseHooks,
    /// Removes it from the workflows whose hooks were never read.
    SkipUnreadHooks,
    /// Replaces the schedules of its triggers by none.
    ReplaceSchedules,
    /// Omits it from lists and starts.
    Hide,
}

/// Everything that is written when a workflow is deleted. Its versions stay, because executions refer to them.
pub const WORKFLOW_DELETION: [WorkflowDeletion; 4] = [
    WorkflowDeletion::ReleaseHooks,
    WorkflowDeletion::SkipUnreadHooks,
    WorkflowDeletion::ReplaceSchedules,
    WorkflowDeletion::Hide,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_workflow_that_is_not_deleted_changes() {
        for (is_deleted, expected) in
            [(None, Applied::Duplicate), (Some(true), Applied::Duplicate), (Some(false), Applied::Done)]
        {
            assert_eq!(judge_workflow_change(is_deleted), expected, "{is_deleted:?}");
        }
    }
}
