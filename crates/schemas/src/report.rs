//! Errors of the validator with bounded length.

use crate::limits::{MESSAGE_MAX, POINTER_MAX};
use crate::{Misfit, SchemaProblem};
use jsonschema::ValidationError;
use std::fmt::{self, Display, Write};

pub(crate) fn to_misfit(error: &ValidationError<'_>) -> Misfit {
    Misfit { pointer: shorten_pointer(&error.instance_path().to_string()), message: describe_error(error) }
}

/// Converts the error for a schema that the validator rejects.
pub(crate) fn to_problem(error: &ValidationError<'_>) -> SchemaProblem {
    SchemaProblem::new(error.instance_path().to_string(), describe_error(error))
}

/// Returns the reason of an error. The validator quotes the value first; a long value is left out, so that the reason
/// is not truncated.
fn describe_error(error: &ValidationError<'_>) -> String {
    let quoted = format_bounded(error, MESSAGE_MAX);
    if quoted.ends_with('…') { format_bounded(&error.masked(), MESSAGE_MAX) } else { quoted }
}

pub(crate) fn shorten_pointer(pointer: &str) -> String {
    format_bounded(&pointer, POINTER_MAX)
}

/// Formats a value and truncates it; characters beyond the limit are never created.
fn format_bounded(shown: &dyn Display, max: usize) -> String {
    let mut text = Bounded { text: String::new(), left: max };
    // The error means that the limit was reached.
    if write!(text, "{shown}").is_err() {
        text.text.push('…');
    }
    text.text
}

struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for c in part.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}
