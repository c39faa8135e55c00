//! Regular expressions, with bounds on what one may cost.

use crate::limits::failed;
use minijinja::{Error, Value as Jinja};
use regex::RegexBuilder;

/// Of a pattern as it is written.
const PATTERN_MAX: usize = 1_000;

/// Of a text that is searched: together with the next bound, one search ends in a fraction of a second.
const TEXT_MAX: usize = 64 * 1024;

/// Of a pattern as it is run.
const PROGRAM_MAX: usize = 64 * 1024;

/// Whether the pattern is found anywhere in the text.
pub(crate) fn is_matching(text: &Jinja, pattern: &Jinja) -> Result<bool, Error> {
    let Some(text) = text.as_str() else { return Ok(false) };
    let Some(pattern) = pattern.as_str() else { return Err(failed("`matching` needs a pattern, a text")) };
    if pattern.len() > PATTERN_MAX {
        return Err(failed(format!(
            "a pattern may have {PATTERN_MAX} bytes, this one has {}",
            pattern.len()
        )));
    }
    if text.len() > TEXT_MAX {
        return Err(failed(format!("a pattern is looked for in {TEXT_MAX} bytes, not in {}", text.len())));
    }
    let built = RegexBuilder::new(pattern).size_limit(PROGRAM_MAX).dfa_size_limit(PROGRAM_MAX).build();
    let found = built.map_err(|error| failed(format!("`{pattern}` is no regular expression: {error}")))?;
    Ok(found.is_match(text))
}
