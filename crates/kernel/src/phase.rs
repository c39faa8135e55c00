//! The life cycle of an execution as one state machine in one table (R6).

use crate::any_of;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The state before the first event.
    #[default]
    Blank,
    Queued,
    Starting,
    Running,
    Paused,
    Draining,
    Compensating,
    Finalizing,
    Ended(Outcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Partial,
    Failed,
    Cancelled,
}

impl Outcome {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Partial => "partial",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
        }
    }
}

/// Transition of an execution from one phase to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    Create,
    Assign,
    Start,
    Pause,
    Resume,
    Drain,
    Compensate,
    Finalize,
    Restart { queued: bool },
    End(Outcome),
}

impl Phase {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Blank => "blank",
            Phase::Queued => "queued",
            Phase::Starting => "starting",
            Phase::Running => "running",
            Phase::Paused => "paused",
            Phase::Draining => "draining",
            Phase::Compensating => "compensating",
            Phase::Finalizing => "finalizing",
            Phase::Ended(outcome) => outcome.name(),
        }
    }

    #[must_use]
    pub fn is_ended(self) -> bool {
        matches!(self, Phase::Ended(_))
    }

    /// Returns whether the outcome is decided but not yet reached.
    #[must_use]
    pub fn is_ending(self) -> bool {
        matches!(self, Phase::Draining | Phase::Compensating | Phase::Finalizing)
    }

    /// Returns the phase after a move; `None` if the move is illegal in this phase.
    #[must_use]
    pub fn after(self, step: Move) -> Option<Phase> {
        use Phase::{Blank, Compensating, Draining, Ended, Finalizing, Paused, Queued, Running, Starting};
        Some(match (self, step) {
            (Blank, Move::Create) => Queued,
            (Queued, Move::Assign) => Starting,
            (Queued | Starting, Move::Start) => Running,
            (Running, Move::Pause) => Paused,
            (Paused, Move::Resume) => Running,
            (Queued | Starting | Running | Paused, Move::Drain) => Draining,
            (Draining, Move::Compensate) => Compensating,
            (Draining | Compensating, Move::Finalize) => Finalizing,
            (Draining | Compensating | Finalizing, Move::End(outcome)) => Ended(outcome),
            (Starting | Running | Paused | Finalizing, Move::Restart { queued: true }) => Queued,
            (Starting | Running | Paused | Finalizing, Move::Restart { queued: false }) => Starting,
            (
                Blank | Queued | Starting | Running | Paused | Draining | Compensating | Finalizing
                | Ended(_),
                any_of![Move: Create Assign Start Pause Resume Drain Compensate Finalize Restart End],
            ) => return None,
        })
    }
}
