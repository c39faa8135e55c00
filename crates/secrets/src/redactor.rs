//! Redacts known values in texts and JSON.
//!
//! Only whole values are found, never a part of one: a redacted text confirms a value, and nothing shorter.
//! docs/secrets.md describes the guarantees.

use crate::decode::{
    BACKSLASH, Byte, Decoding, Digits, Fold, PERCENT, Unescaped, fold_text, read_plain, skip_folds,
};
use crate::parts::search_texts;
use crate::rules::VALUE_MAX;
use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use zeroize::{Zeroize as _, Zeroizing};

/// Text that replaces a value.
pub const REPLACEMENT: &str = "[redacted]";

/// Maximum number of bytes that encode one byte of a value: `%25XX`, or `\\u00XX` with its backslash escaped.
const WRITTEN_MAX: usize = 8;

/// Number of bytes after a cut that must be searched with the text before it, so that no value is cut in two.
pub const LOOKAHEAD: usize = VALUE_MAX * WRITTEN_MAX;

/// Redactor of a set of values; without any values it changes nothing.
#[derive(Default)]
pub struct Redactor(Option<Search>);

/// Search automaton. It takes about 12 bytes for each byte of the values; a DFA would be faster and take up to a
/// kilobyte.
struct Search {
    automaton: NFA,
    start: StateID,
    shortest: usize,
    longest: usize,
}

/// Ranges of a text, sorted and disjoint.
pub(crate) type Spans = Vec<(usize, usize)>;

impl Redactor {
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Redactor {
        let mut patterns = BTreeSet::new();
        for mut text in values.into_iter().flat_map(search_texts) {
            let pattern = fold_text(text.as_bytes());
            if pattern.contains(&b' ') {
                // Web forms encode a space as `+`.
                patterns
                    .insert(pattern.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect());
            }
            patterns.insert(pattern);
            text.zeroize();
        }
        let patterns: Vec<Zeroizing<Vec<u8>>> = patterns.into_iter().map(Zeroizing::new).collect();
        Redactor(Search::new(&patterns))
    }

    /// Returns whether there are no values to redact.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut bytes = Vec::with_capacity(text.len());
        replace_spans(text.as_bytes(), &found, &mut bytes);
        // Matches begin and end between characters; otherwise only a character would be lost.
        Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the first `max` bytes, redacted; a value across the cut is replaced as a whole. At most [`LOOKAHEAD`]
    /// bytes after the cut matter.
    #[must_use]
    pub fn beginning(&self, text: &str, max: usize) -> String {
        let text = &text[..floor(text, max.saturating_add(LOOKAHEAD))];
        let found = self.find(text.as_bytes());
        let cut = floor(text, max);
        let crossing = found.iter().find(|(start, end)| (*start..*end).contains(&cut));
        let end = crossing.map_or(cut, |(_, end)| *end);
        self.text(&text[..floor(text, end)]).into_owned()
    }

    /// Returns the last `max` bytes, redacted; a value across the cut is replaced as a whole. At most [`LOOKAHEAD`]
    /// bytes before the cut matter.
    #[must_use]
    pub fn ending(&self, text: &str, max: usize) -> String {
        let text = &text[ceiling(text, text.len().saturating_sub(max.saturating_add(LOOKAHEAD)))..];
        let found = self.find(text.as_bytes());
        let cut = ceiling(text, text.len().saturating_sub(max));
        let crossing = found.iter().find(|(start, end)| *start < cut && cut < *end);
        let start = crossing.map_or(cut, |(start, _)| *start);
        self.text(&text[ceiling(text, start)..]).into_owned()
    }

    /// Redacts texts, keys and numbers.
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

    /// Returns the ranges of values in a text, in linear time.
    pub(crate) fn find(&self, text: &[u8]) -> Spans {
        self.0.as_ref().map_or_else(Vec::new, |search| search.find(text))
    }
}

impl Search {
    fn new(patterns: &[Zeroizing<Vec<u8>>]) -> Option<Search> {
        let lengths = patterns.iter().map(|pattern| pattern.len());
        let (shortest, longest) = (lengths.clone().min()?, lengths.max()?);
        let automaton = NFA::new(patterns.iter().map(|pattern| pattern.as_slice()))
            .expect("values are far too few and short to overflow its states");
        let start = automaton.start_state(Anchored::No).expect("it was built for unanchored searches");
        Some(Search { automaton, start, shortest, longest })
    }

    fn find(&self, text: &[u8]) -> Spans {
        if text.len() < self.shortest {
            return Vec::new();
        }
        let mut found = Vec::new();
        self.search_reading(read_plain(text), text, &mut found);
        for escape in [PERCENT, BACKSLASH] {
            if text.contains(&escape.mark) {
                let once = || Unescaped::new(read_plain(text), escape);
                self.search_reading(once(), text, &mut found);
                // Escapes can be nested, as in JSON that contains JSON.
                if once().any(|read| read.byte == escape.mark) {
                    self.search_reading(Unescaped::new(once(), escape), text, &mut found);
                }
            }
        }
        merge_spans(found)
    }

    /// Searches one reading of the text, and the bytes that its hex and base64 digits encode.
    fn search_reading(&self, reading: impl Iterator<Item = Byte>, text: &[u8], found: &mut Spans) {
        let reading = skip_folds(reading);
        let mut direct = Track::new(self, text.len());
        let mut encoded = Digits::ALL.map(|digits| (digits, Track::new(self, text.len())));
        for read in reading {
            direct.push(read);
            for (digits, track) in &mut encoded {
                match digits.push(read) {
                    Decoding::Broken => track.reset(read),
                    Decoding::Incomplete => {}
                    Decoding::Byte(decoded) => track.push(decoded),
                }
            }
        }
        found.extend(direct.found);
        encoded.into_iter().for_each(|(_, track)| found.extend(track.found));
    }

    /// Returns the length of the longest value that ends in this state.
    fn longest_match(&self, state: StateID) -> Option<usize> {
        // A state lists its own pattern before the patterns that are suffixes of it.
        let is_match = self.automaton.is_match(state);
        is_match.then(|| self.automaton.pattern_len(self.automaton.match_pattern(state, 0)))
    }
}

/// State of the search in one sequence of bytes.
struct Track<'s> {
    search: &'s Search,
    state: StateID,
    /// Ring of the start positions of the last bytes, as many as the longest value has.
    starts: Vec<usize>,
    count: usize,
    fold: Fold,
    found: Spans,
}

impl<'s> Track<'s> {
    fn new(search: &'s Search, text_length: usize) -> Track<'s> {
        let capacity = search.longest.min(text_length).max(1).next_power_of_two();
        let (starts, fold, found) = (vec![0; capacity], Fold::default(), Vec::new());
        Track { search, state: search.start, starts, count: 0, fold, found }
    }

    fn push(&mut self, read: Byte) {
        if !self.fold.keeps(read.byte) {
            return;
        }
        let mask = self.starts.len() - 1;
        self.starts[self.count & mask] = read.start;
        self.count += 1;
        self.state = self.search.automaton.next_state(Anchored::No, self.state, read.byte);
        if let Some(length) = self.search.longest_match(self.state) {
            let start = self.starts[(self.count - length) & mask];
            add_span(&mut self.found, start, read.end);
        }
    }

    /// Starts again after an interrupted sequence. The padding of base64 belongs to the digits before it.
    fn reset(&mut self, read: Byte) {
        self.state = self.search.start;
        self.fold = Fold::default();
        if let Some(last) = self.found.last_mut().filter(|last| read.byte == b'=' && last.1 == read.start) {
            last.1 = read.end;
        }
    }
}

/// Adds a range that ends at or after all others, and merges overlapping ranges.
fn add_span(found: &mut Spans, mut start: usize, end: usize) {
    while let Some(last) = found.pop_if(|last| start <= last.1) {
        start = start.min(last.0);
    }
    found.push((start, end));
}

fn merge_spans(mut found: Spans) -> Spans {
    found.sort_unstable_by_key(|(_, end)| *end);
    let mut merged = Vec::new();
    found.into_iter().for_each(|(start, end)| add_span(&mut merged, start, end));
    merged
}

pub(crate) fn replace_spans(text: &[u8], found: &[(usize, usize)], out: &mut Vec<u8>) {
    let mut at = 0;
    for (start, end) in found {
        out.extend_from_slice(&text[at..*start]);
        out.extend_from_slice(REPLACEMENT.as_bytes());
        at = *end;
    }
    out.extend_from_slice(&text[at..]);
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceiling(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.as_ref().map_or(0, |search| search.automaton.patterns_len());
        write!(f, "Redactor({count} texts)")
    }
}

#[cfg(test)]
#[path = "redactor/tests.rs"]
mod tests;
