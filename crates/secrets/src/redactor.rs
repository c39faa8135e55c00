//! Takes known values out of texts and JSON.

use crate::decode::{Reading, readings};
use crate::forms::forms;
use aho_corasick::AhoCorasick;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use zeroize::Zeroize as _;

/// What stands where a value was.
pub const REPLACEMENT: &str = "[redacted]";

/// Knows some values in all their forms. Made once for a set of values; without any it changes nothing.
#[derive(Default)]
pub struct Redactor {
    search: Option<AhoCorasick>,
    /// Sorted.
    patterns: Vec<Vec<u8>>,
    longest: usize,
}

impl Redactor {
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Redactor {
        let patterns: BTreeSet<Vec<u8>> = values.into_iter().flat_map(forms).collect();
        if patterns.is_empty() {
            return Redactor::default();
        }
        let search =
            AhoCorasick::new(&patterns).expect("values are far too few and short to overflow its states");
        let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
        Redactor { search: Some(search), patterns: patterns.into_iter().collect(), longest }
    }

    /// Whether it knows nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.search.is_none()
    }

    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut bytes = Vec::with_capacity(text.len());
        replace(text.as_bytes(), &found, &mut bytes);
        // What is found begins and ends between characters; if it ever did not, nothing is lost but a character.
        Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Texts, keys and numbers in it.
    pub fn value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if !self.find(number.to_string().as_bytes()).is_empty() {
                    *value = Value::String(REPLACEMENT.to_owned());
                }
            }
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    text.zeroize();
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => self.fields(fields),
        }
    }

    pub fn fields(&self, fields: &mut Map<String, Value>) {
        if self.is_empty() {
            return;
        }
        if fields.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
            let taken = std::mem::take(fields);
            fields.extend(taken.into_iter().map(|(key, value)| (self.text(&key).into_owned(), value)));
        }
        fields.values_mut().for_each(|field| self.value(field));
    }

    /// Where values stand in a text: sorted, apart from each other.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let Some(search) = &self.search else { return Vec::new() };
        let mut found = Vec::new();
        if text.iter().any(|byte| matches!(byte, b'\n' | b'\r' | b'%' | b'\\')) {
            for reading in readings(text) {
                let matches = search.find_overlapping_iter(&reading.bytes);
                found.extend(matches.map(|found| reading.span(found.start(), found.end())));
            }
        } else {
            found.extend(search.find_overlapping_iter(text).map(|found| (found.start(), found.end())));
        }
        found.extend(self.cut_off(text));
        merged(found)
    }

    /// What stands before the mark of a cut and is the beginning of a value: whoever made a text shorter did not know
    /// what he cut through.
    fn cut_off(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let marks = text.windows(CUT.len()).enumerate().filter(|(_, bytes)| *bytes == CUT.as_bytes());
        let begun = marks.filter_map(|(end, _)| {
            let from = end.saturating_sub(self.longest.saturating_mul(WRITTEN_MAX));
            let readings = readings(&text[from..end]);
            let start = readings.iter().filter_map(|reading| self.begun(reading, CUT_MIN)).min()?;
            Some((from + start, end))
        });
        begun.collect()
    }

    /// Where a text ends in what may be the beginning of a value. Lines that merely end in a character or two that some
    /// form begins with are let through: else every last line would wait for the next.
    pub(crate) fn open_end(&self, text: &[u8]) -> usize {
        if self.is_empty() {
            return text.len();
        }
        // Anything that can still become a value, written as long as it can be, and its line breaks.
        let from = text.len().saturating_sub(self.longest.saturating_mul(WRITTEN_MAX));
        let end = crate::decode::unfinished(text).unwrap_or(text.len());
        let begun = readings(&text[from..end.max(from)]);
        let at_line_end = matches!(text.last(), Some(b'\n' | b'\r' | b' ' | b'\t'));
        let least = if end == text.len() && at_line_end { BEGUN_MIN } else { 1 };
        let starts = begun.iter().filter_map(|reading| self.begun(reading, least));
        starts.map(|start| from + start).min().unwrap_or(end)
    }

    /// Where the longest end of a reading begins that some pattern begins with.
    fn begun(&self, reading: &Reading, least: usize) -> Option<usize> {
        let bytes = &reading.bytes;
        let from = bytes.len().saturating_sub(self.longest - 1);
        let until = (bytes.len() + 1).saturating_sub(least);
        let start = (from..until).find(|at| self.begins(&bytes[*at..]))?;
        Some(reading.span(start, start + 1).0)
    }

    fn begins(&self, end: &[u8]) -> bool {
        let place = self.patterns.partition_point(|pattern| pattern.as_slice() < end);
        self.patterns.get(place).is_some_and(|pattern| pattern.starts_with(end))
    }
}

/// Stands at the end of a text that was made shorter.
const CUT: &str = "…";
/// So many bytes of a value are worth hiding.
const CUT_MIN: usize = 4;

/// Bytes that write one byte at most: `\\u0041`.
const WRITTEN_MAX: usize = 8;

/// Characters that must fit before a line end is held back.
const BEGUN_MIN: usize = MISSING + 1;
/// As many as an encoded form may lack at its beginning.
const MISSING: usize = 2;

impl Drop for Redactor {
    fn drop(&mut self) {
        self.patterns.iter_mut().for_each(|pattern| pattern.zeroize());
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.patterns.len())
    }
}

fn merged(mut found: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    found.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (start, end) in found {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

pub(crate) fn replace(text: &[u8], found: &[(usize, usize)], out: &mut Vec<u8>) {
    let mut at = 0;
    for (start, end) in found {
        out.extend_from_slice(&text[at..*start]);
        out.extend_from_slice(REPLACEMENT.as_bytes());
        at = *end;
    }
    out.extend_from_slice(&text[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use serde_json::json;

    const VALUE: &str = "s3cret/with \"quotes\" & ümlaut?";

    fn check(text: &str, expected: &str) {
        assert_eq!(Redactor::new([VALUE, "hunter22"]).text(text), expected, "{text}");
    }

    #[test]
    fn half_a_value_before_a_cut_is_replaced_too() {
        check("bad key hunter2…", "bad key [redacted]…");
        check("bad key hunt… and more", "bad key [redacted]… and more");
        check("q=s3cret%2Fwith%20%22quo…", "q=[redacted]…");
        check("the hunt goes on…", "the hunt goes on…");
        check("hun…", "hun…");
    }

    #[test]
    fn a_value_is_replaced_in_every_form() {
        check("nothing here", "nothing here");
        check(&format!("a {VALUE} b hunter22"), "a [redacted] b [redacted]");
        check(&format!("x={}", json!(VALUE)), "x=\"[redacted]\"");
        check(&format!("x={}", json!(json!(VALUE).to_string())), "x=\"\\\"[redacted]\\\"\"");
        check("q=s3cret%2Fwith%20%22quotes%22%20%26%20%C3%BCmlaut%3F&r=1", "q=[redacted]&r=1");
        check("q=s3cret/with+%22quotes%22+%26+%c3%bcmlaut%3f&r=1", "q=[redacted]&r=1");
        check("q=hunter2%32", "q=[redacted]");
        check("\\u0068unter22", "[redacted]");
        check("68756e7465723232 68756E7465723232", "[redacted] [redacted]");
        check(&URL_SAFE_NO_PAD.encode(VALUE), "[redacted]");
        check(&STANDARD.encode(VALUE), "[redacted]");
    }

    #[test]
    fn wrapped_and_indented_lines_are_found() {
        check("hun\n   ter22 and hunter\r\n22.", "[redacted] and [redacted].");
        let long = "k".repeat(20) + &"abcdefghij".repeat(20);
        let encoded = STANDARD.encode(&long);
        let wrapped: Vec<String> =
            encoded.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        let redactor = Redactor::new([long.as_str()]);
        assert_eq!(redactor.text(&format!("key: {}\n", wrapped.join("\n"))), "key: [redacted]\n");
    }

    #[test]
    fn inside_longer_base64_only_the_edges_stay() {
        for before in ["", "u", "us", "user:"] {
            for after in ["", "1", "12", "123"] {
                let text = STANDARD.encode(format!("{before}hunter22{after}"));
                let redacted = Redactor::new(["hunter22"]).text(&text).into_owned();
                assert!(redacted.contains(REPLACEMENT), "{before}:{after} {text} {redacted}");
            }
        }
    }

    #[test]
    fn overlapping_values_go_as_one() {
        let redactor = Redactor::new(["abcdef", "defghi", "cdef"]);
        assert_eq!(redactor.text("-abcdefghi-"), "-[redacted]-");
    }

    #[test]
    fn json_loses_values_keys_and_numbers() {
        let redactor = Redactor::new(["hunter22", "12345678"]);
        let mut value = json!({ "a hunter22": [12_345_678, 1, "x hunter22"], "b": { "c": true, "d": null } });
        redactor.value(&mut value);
        let expected =
            json!({ "a [redacted]": ["[redacted]", 1, "x [redacted]"], "b": { "c": true, "d": null } });
        assert_eq!(value, expected);
    }

    #[test]
    fn knowing_nothing_changes_nothing() {
        let redactor = Redactor::new([]);
        assert!(redactor.is_empty() && redactor.text("anything") == "anything");
        assert!(!format!("{:?}", Redactor::new(["hunter22"])).contains("hunter"));
    }
}
