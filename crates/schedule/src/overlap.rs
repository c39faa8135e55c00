//! Runs of one schedule at the same time.

use serde::{Deserialize, Serialize};

/// Behaviour when an occurrence is due while an earlier one is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Up to `max_concurrency` runs are active at once; others wait.
    Allow,
    /// One run at a time; others wait, and all of them run.
    Forbid,
    /// One run at a time; only the newest of those that wait runs.
    QueueLatest,
    /// Like `queue_latest`, but the active run is cancelled.
    Replace,
}

/// The answer to a dispatcher that wants to claim a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimVerdict {
    Claim,
    /// The run waits until an active one has ended.
    Wait,
    /// The active runs are cancelled; the run waits until they have ended.
    CancelActive,
}

/// Decides whether a run may be claimed while `active` other runs of its schedule are claimed or running.
#[must_use]
pub fn judge_claim(overlap: Overlap, max_concurrency: u32, active: u32) -> ClaimVerdict {
    match overlap {
        _ if active == 0 => ClaimVerdict::Claim,
        Overlap::Allow if active < max_concurrency => ClaimVerdict::Claim,
        Overlap::Replace => ClaimVerdict::CancelActive,
        Overlap::Allow | Overlap::Forbid | Overlap::QueueLatest => ClaimVerdict::Wait,
    }
}

impl Overlap {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Overlap::Allow => "allow",
            Overlap::Forbid => "forbid",
            Overlap::QueueLatest => "queue_latest",
            Overlap::Replace => "replace",
        }
    }

    /// Returns whether a newer occurrence supersedes those that wait.
    #[must_use]
    pub fn supersedes(self) -> bool {
        matches!(self, Overlap::QueueLatest | Overlap::Replace)
    }
}

/// Returns the runs that a newer one supersedes, out of those of one schedule that wait for their first attempt, the
/// oldest first. Retries are no part of them: an occurrence that has begun is carried to its end.
#[must_use]
pub fn find_superseded<Run>(overlap: Overlap, waiting: &[Run]) -> &[Run] {
    match overlap.supersedes() {
        true => &waiting[..waiting.len().saturating_sub(1)],
        false => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClaimVerdict::{CancelActive, Claim, Wait};

    #[test]
    fn sch_17_overlap_and_concurrency_decide_which_runs_begin() {
        let table = [
            (Overlap::Allow, 2, [Claim, Claim, Wait]),
            (Overlap::Allow, 1, [Claim, Wait, Wait]),
            (Overlap::Forbid, 3, [Claim, Wait, Wait]),
            (Overlap::QueueLatest, 3, [Claim, Wait, Wait]),
            (Overlap::Replace, 1, [Claim, CancelActive, CancelActive]),
            (Overlap::Replace, 3, [Claim, CancelActive, CancelActive]),
        ];
        for (overlap, max_concurrency, expected) in table {
            let found = [0, 1, 2].map(|active| judge_claim(overlap, max_concurrency, active));
            assert_eq!(found, expected, "{overlap:?} with {max_concurrency}");
        }
    }

    #[test]
    fn sch_23_only_two_policies_supersede_runs_that_wait() {
        let none: [u8; 0] = [];
        for (overlap, expected) in [
            (Overlap::Allow, none.as_slice()),
            (Overlap::Forbid, none.as_slice()),
            (Overlap::QueueLatest, [1, 2].as_slice()),
            (Overlap::Replace, [1, 2].as_slice()),
        ] {
            assert_eq!(find_superseded(overlap, &[1, 2, 3]), expected, "{overlap:?}");
            assert_eq!(find_superseded(overlap, &none), none);
        }
    }
}
