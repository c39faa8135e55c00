//! Exit codes, decided here and nowhere else.

use crate::place::ServerError;
use std::fmt;
use windlass_kernel::{Outcome, Phase};

pub const COMPLETED: u8 = 0;
pub const FAILED: u8 = 1;
/// Bad definition or usage.
pub const USAGE: u8 = 2;
pub const CANCELLED: u8 = 3;
pub const PARTIAL: u8 = 4;
/// Paused, and only people can move it.
pub const PAUSED: u8 = 5;

/// The command line names something that is not there, or asks for something it cannot have.
#[derive(Debug)]
pub struct Usage {
    what: String,
    hint: Option<String>,
}

impl Usage {
    pub fn new(what: impl Into<String>) -> Usage {
        Usage { what: what.into(), hint: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Usage {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Usage {}

/// Of an execution that was waited for.
#[must_use]
pub fn of_phase(phase: Phase) -> u8 {
    match phase {
        Phase::Ended(Outcome::Completed) => COMPLETED,
        Phase::Ended(Outcome::Partial) => PARTIAL,
        Phase::Ended(Outcome::Failed) => FAILED,
        Phase::Ended(Outcome::Cancelled) => CANCELLED,
        Phase::Paused => PAUSED,
        // Nobody waits no longer for these, except because of an error.
        Phase::Blank
        | Phase::Queued
        | Phase::Starting
        | Phase::Running
        | Phase::Draining
        | Phase::Compensating
        | Phase::Finalizing => FAILED,
    }
}

/// Of several executions: the code of the one that went worst.
#[must_use]
pub fn of_all(phases: impl IntoIterator<Item = Phase>) -> u8 {
    let worst_first = [FAILED, CANCELLED, PARTIAL, PAUSED];
    let codes: Vec<u8> = phases.into_iter().map(of_phase).collect();
    worst_first.into_iter().find(|code| codes.contains(code)).unwrap_or(COMPLETED)
}

#[must_use]
pub fn of_error(error: &anyhow::Error) -> u8 {
    let refused = error.downcast_ref::<ServerError>().is_some_and(ServerError::is_usage);
    if error.is::<Usage>() || refused { USAGE } else { FAILED }
}

/// Ended by a signal, as shells count it.
#[must_use]
pub fn of_signal(number: i32) -> u8 {
    128u8.saturating_add(u8::try_from(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(phases: &[Phase], expected: u8) {
        assert_eq!(of_all(phases.iter().copied()), expected, "{phases:?}");
    }

    #[test]
    fn the_worst_of_several_decides() {
        let ended = Phase::Ended;
        check(&[], 0);
        check(&[ended(Outcome::Completed)], 0);
        check(&[ended(Outcome::Completed), Phase::Paused], 5);
        check(&[ended(Outcome::Partial), Phase::Paused], 4);
        check(&[ended(Outcome::Cancelled), ended(Outcome::Partial)], 3);
        check(&[ended(Outcome::Cancelled), ended(Outcome::Failed), ended(Outcome::Completed)], 1);
    }
}
