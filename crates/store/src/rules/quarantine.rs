//! Executions in quarantine whose rows cannot be read: how one of them is ended.

use windlass_kernel::{Millis, Outcome, Phase};

/// The head of an execution that was abandoned, as far as it changes: its state stays as it is for a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbandonedHead {
    pub phase: Phase,
    pub at: Millis,
    pub held: bool,
    pub due: Option<Millis>,
    pub goes_on: bool,
}

/// Rows that lead to work on an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkRows {
    StepRuns,
    Stops,
    /// Mail to the execution that is not decided yet.
    OpenMail,
    /// The mark of its quarantine.
    Mark,
}

/// Rows that are deleted with the end of an execution that is abandoned. All others are kept for a repair.
pub const ABANDONED_ROWS: [WorkRows; 4] =
    [WorkRows::StepRuns, WorkRows::Stops, WorkRows::OpenMail, WorkRows::Mark];

/// Returns the head of an execution that is abandoned; None if it has ended. It is listed as cancelled, and its head leads
/// to no work. [`ABANDONED_ROWS`], which do, are deleted with this.
#[must_use]
pub fn abandon_head(has_ended: bool, at: Millis) -> Option<AbandonedHead> {
    let phase = Phase::Ended(Outcome::Cancelled);
    (!has_ended).then_some(AbandonedHead { phase, at, held: false, due: None, goes_on: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{TimerTable, table_fires};

    #[test]
    fn an_abandoned_execution_has_ended_and_leads_to_no_work() {
        assert_eq!(abandon_head(true, Millis(9)), None);
        let head = abandon_head(false, Millis(9)).expect("it has not ended");
        assert_eq!((head.phase, head.at), (Phase::Ended(Outcome::Cancelled), Millis(9)));
        assert_eq!((head.due, head.goes_on, head.held), (None, false, false));
        assert!(!table_fires(TimerTable::Runs, head.held, head.phase));
    }
}
