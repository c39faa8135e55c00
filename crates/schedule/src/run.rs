//! The states of a run, which is one attempt at an occurrence.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Pending,
    Claimed,
    Running,
    Succeeded,
    Failed,
    RetryScheduled,
    DeadLettered,
    Cancelled,
    Skipped,
}

/// Change of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunSignal {
    /// A dispatcher takes it under a lease.
    Claim,
    /// The work of the run begins.
    Start,
    /// It was claimed, and its work will not begin under this lease.
    Release,
    Succeed,
    /// It failed, and another attempt follows.
    Fail,
    /// It failed, and no other attempt follows.
    GiveUp,
    Cancel,
    /// A newer occurrence takes its place.
    Supersede,
}

impl RunSignal {
    fn verb(self) -> &'static str {
        match self {
            RunSignal::Claim => "be claimed",
            RunSignal::Start => "start",
            RunSignal::Release => "be released",
            RunSignal::Succeed => "succeed",
            RunSignal::Fail => "fail and be retried",
            RunSignal::GiveUp => "fail for good",
            RunSignal::Cancel => "be cancelled",
            RunSignal::Supersede => "be superseded",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {} cannot {}", .status.name(), .signal.verb())]
pub struct IllegalRunSignal {
    pub status: RunStatus,
    pub signal: RunSignal,
}

impl RunStatus {
    pub const ALL: [RunStatus; 9] = [
        RunStatus::Pending,
        RunStatus::Claimed,
        RunStatus::Running,
        RunStatus::Succeeded,
        RunStatus::Failed,
        RunStatus::RetryScheduled,
        RunStatus::DeadLettered,
        RunStatus::Cancelled,
        RunStatus::Skipped,
    ];

    /// Statuses of runs that wait to be claimed.
    pub const WAITING: [RunStatus; 2] = [RunStatus::Pending, RunStatus::RetryScheduled];
    /// Statuses of runs that a worker or an execution holds.
    pub const ACTIVE: [RunStatus; 2] = [RunStatus::Claimed, RunStatus::Running];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Pending => "pending",
            RunStatus::Claimed => "claimed",
            RunStatus::Running => "running",
            RunStatus::Succeeded => "succeeded",
            RunStatus::Failed => "failed",
            RunStatus::RetryScheduled => "retry_scheduled",
            RunStatus::DeadLettered => "dead_lettered",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Skipped => "skipped",
        }
    }

    #[must_use]
    pub fn of_name(name: &str) -> Option<RunStatus> {
        RunStatus::ALL.into_iter().find(|status| status.name() == name)
    }

    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            RunStatus::Pending | RunStatus::Claimed | RunStatus::Running | RunStatus::RetryScheduled => false,
            RunStatus::Succeeded
            | RunStatus::Failed
            | RunStatus::DeadLettered
            | RunStatus::Cancelled
            | RunStatus::Skipped => true,
        }
    }

    /// Returns the status after a signal. A terminal status has none.
    pub fn after(self, signal: RunSignal) -> Result<RunStatus, IllegalRunSignal> {
        use RunSignal as Signal;
        use RunStatus as Status;
        Ok(match (self, signal) {
            (Status::Pending | Status::RetryScheduled, Signal::Claim) => Status::Claimed,
            (Status::Pending, Signal::Supersede) => Status::Skipped,
            (Status::Claimed, Signal::Start) => Status::Running,
            (Status::Claimed, Signal::Release) => Status::Pending,
            (Status::Running, Signal::Succeed) => Status::Succeeded,
            (Status::Running, Signal::Fail) => Status::Failed,
            (Status::Running, Signal::GiveUp) => Status::DeadLettered,
            (
                Status::Pending | Status::RetryScheduled | Status::Claimed | Status::Running,
                Signal::Cancel,
            ) => Status::Cancelled,
            (
                Status::Pending
                | Status::RetryScheduled
                | Status::Claimed
                | Status::Running
                | Status::Succeeded
                | Status::Failed
                | Status::DeadLettered
                | Status::Cancelled
                | Status::Skipped,
                _,
            ) => return Err(IllegalRunSignal { status: self, signal }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNALS: [RunSignal; 8] = [
        RunSignal::Claim,
        RunSignal::Start,
        RunSignal::Release,
        RunSignal::Succeed,
        RunSignal::Fail,
        RunSignal::GiveUp,
        RunSignal::Cancel,
        RunSignal::Supersede,
    ];

    /// The statuses that can follow a status, in the order of the signals.
    fn check(status: &str, expected: &str) {
        let status = RunStatus::of_name(status).unwrap();
        let next = SIGNALS.iter().filter_map(|signal| status.after(*signal).ok()).map(RunStatus::name);
        assert_eq!(next.collect::<Vec<_>>().join(" "), expected, "after {}", status.name());
    }

    #[test]
    fn sch_01_the_transitions_are_those_of_the_document() {
        check("pending", "claimed cancelled skipped");
        check("retry_scheduled", "claimed cancelled");
        check("claimed", "running pending cancelled");
        check("running", "succeeded failed dead_lettered cancelled");
    }

    #[test]
    fn sch_01_a_terminal_status_never_changes() {
        let terminal: Vec<&str> =
            RunStatus::ALL.into_iter().filter(|status| status.is_terminal()).map(RunStatus::name).collect();
        assert_eq!(terminal, ["succeeded", "failed", "dead_lettered", "cancelled", "skipped"]);
        terminal.into_iter().for_each(|status| check(status, ""));
    }

    #[test]
    fn a_run_that_has_not_ended_waits_or_is_active() {
        for status in RunStatus::ALL {
            let waits = status.after(RunSignal::Claim).is_ok();
            assert_eq!(RunStatus::WAITING.contains(&status), waits, "{status:?}");
            let is_active = !waits && !status.is_terminal();
            assert_eq!(RunStatus::ACTIVE.contains(&status), is_active, "{status:?}");
        }
    }

    #[test]
    fn a_refused_signal_is_named_in_words() {
        let refused = RunStatus::Skipped.after(RunSignal::Claim).unwrap_err();
        assert_eq!(refused.to_string(), "a run that is skipped cannot be claimed");
    }
}
