//! Exit codes. They are all decided in this file.

use crate::api::ApiError;
use std::fmt;

pub const COMPLETED: u8 = 0;
pub const FAILED: u8 = 1;
/// Bad definition or usage.
pub const USAGE: u8 = 2;
pub const CANCELLED: u8 = 3;
pub const PARTIAL: u8 = 4;
/// Paused until a person answers.
pub const PAUSED: u8 = 5;

/// The command line names an object that does not exist, or requests something that is not possible.
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

/// Returns the code for the status of an execution that was waited for.
#[must_use]
pub fn of_status(status: &str) -> u8 {
    match status {
        "completed" => COMPLETED,
        "partial_success" => PARTIAL,
        "cancelled" => CANCELLED,
        "paused" => PAUSED,
        // A command leaves a running execution only because of an error.
        _ => FAILED,
    }
}

/// Returns the code of the worst of several executions.
#[must_use]
pub fn of_all<'s>(statuses: impl IntoIterator<Item = &'s str>) -> u8 {
    let worst_first = [FAILED, CANCELLED, PARTIAL, PAUSED];
    let codes: Vec<u8> = statuses.into_iter().map(of_status).collect();
    worst_first.into_iter().find(|code| codes.contains(code)).unwrap_or(COMPLETED)
}

#[must_use]
pub fn of_error(error: &anyhow::Error) -> u8 {
    let refused = error.downcast_ref::<ApiError>().is_some_and(ApiError::is_usage);
    if error.is::<Usage>() || refused { USAGE } else { FAILED }
}

/// Returns the exit code for a signal, in the convention of shells.
#[must_use]
pub fn of_signal(number: i32) -> u8 {
    128u8.saturating_add(u8::try_from(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(statuses: &[&str], expected: u8) {
        assert_eq!(of_all(statuses.iter().copied()), expected, "{statuses:?}");
    }

    #[test]
    fn the_worst_of_several_decides() {
        check(&[], 0);
        check(&["completed"], 0);
        check(&["completed", "paused"], 5);
        check(&["partial_success", "paused"], 4);
        check(&["cancelled", "partial_success"], 3);
        check(&["cancelled", "failed", "completed"], 1);
    }
}
