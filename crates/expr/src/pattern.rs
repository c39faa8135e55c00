//! Regular expressions with limits on their cost.

use crate::limits::failed;
use minijinja::{Error, Value as Jinja};
use regex::{Regex, RegexBuilder};

/// Maximum length of a pattern as it is written.
const PATTERN_MAX: usize = 1_000;

/// Maximum length of a text that is searched. Together with the next limit, one search ends in a fraction of a
/// second.
const TEXT_MAX: usize = 64 * 1024;

/// Maximum size of a compiled pattern.
const PROGRAM_MAX: usize = 64 * 1024;

/// Returns whether the pattern matches anywhere in the text.
pub(crate) fn is_matching(text: &Jinja, pattern: &Jinja) -> Result<bool, Error> {
    let Some(text) = text.as_str() else { return Ok(false) };
    let Some(pattern) = pattern.as_str() else { return Err(failed("`matching` needs a text pattern")) };
    Ok(find_regex(text, pattern)?.is_match(text))
}

/// Returns the compiled pattern for a text that is not too long for it.
pub(crate) fn find_regex(text: &str, pattern: &str) -> Result<Regex, Error> {
    if text.len() > TEXT_MAX {
        return Err(failed(format!("a pattern searches at most {TEXT_MAX} bytes, not {}", text.len())));
    }
    build_regex(pattern).map_err(failed)
}

/// Checks a pattern before it is used.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    build_regex(pattern).map(drop)
}

fn build_regex(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_MAX {
        return Err(format!("a pattern has at most {PATTERN_MAX} bytes, not {}", pattern.len()));
    }
    let built = RegexBuilder::new(pattern).size_limit(PROGRAM_MAX).dfa_size_limit(PROGRAM_MAX).build();
    built.map_err(|error| format!("`{pattern}` is not a regular expression: {error}"))
}
