//! Redacts known values in output that arrives in pieces.
//!
//! Neither the amount nor the duration of buffering depends on the values: an observer of the timing would otherwise
//! learn that a line begins like a value. Output is buffered until the caller releases whole lines, and a line
//! without an end is released in pieces, with enough of it kept to find a value across the border.

use crate::redactor::{LOOKAHEAD, Redactor, replace_spans};
use std::sync::Arc;

/// Maximum number of buffered bytes. Half of it is more than any value takes, so a value in one line is found however
/// long the line is.
const HELD_MAX: usize = 2 * LOOKAHEAD;

#[derive(Debug)]
pub struct Stream {
    redactor: Arc<Redactor>,
    held: Vec<u8>,
}

impl Stream {
    #[must_use]
    pub fn new(redactor: Arc<Redactor>) -> Stream {
        Stream { redactor, held: Vec::new() }
    }

    /// Adds output and returns what can be passed on at once: everything if there are no values to search for,
    /// otherwise nothing.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.redactor.is_empty() {
            return bytes.to_vec();
        }
        self.held.extend_from_slice(bytes);
        Vec::new()
    }

    /// Returns the number of buffered bytes. Any method that returns some of them searches all of them.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns whether the buffer is full, so that [`Stream::spill`] should be called.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.held.len() > HELD_MAX
    }

    /// Returns all output except what a value at the end could need, whether the line has ended or not.
    pub fn spill(&mut self) -> Vec<u8> {
        self.take_until(self.held.len().saturating_sub(LOOKAHEAD))
    }

    /// Returns whether there are whole lines to release.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.held.contains(&b'\n')
    }

    /// Returns all whole lines. A value that is wrapped over lines is found if all of them are held at that time.
    pub fn release(&mut self) -> Vec<u8> {
        let lines = self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.take_until(lines)
    }

    /// Ends the output and returns the rest. The beginning of a value without its rest is not a value and is returned
    /// unchanged.
    pub fn end(&mut self) -> Vec<u8> {
        self.take_until(self.held.len())
    }

    fn take_until(&mut self, until: usize) -> Vec<u8> {
        if until == 0 {
            return Vec::new();
        }
        let mut found = self.redactor.find(&self.held);
        let crossing = found.iter().find(|(start, end)| *start < until && until < *end);
        let cut = crossing.map_or(until, |(start, _)| *start);
        found.retain(|(_, end)| *end <= cut);
        let mut given = Vec::with_capacity(cut);
        replace_spans(&self.held[..cut], &found, &mut given);
        self.held.drain(..cut);
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redactor::REPLACEMENT;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    const KEY: &str = "-----BEGIN KEY-----\nQUJDREVGR0hJSktM\nTU5PUFFSU1RVVldY\n-----END KEY-----";

    fn piped(redactor: &Arc<Redactor>, text: &[u8], size: usize, releases: bool) -> String {
        let mut stream = Stream::new(Arc::clone(redactor));
        let mut out = Vec::new();
        for piece in text.chunks(size) {
            out.extend(stream.push(piece));
            if releases {
                out.extend(stream.release());
            }
        }
        out.extend(stream.end());
        String::from_utf8_lossy(&out).into_owned()
    }

    fn check(text: &str, expected: &str, released: &str) {
        let redactor = Arc::new(Redactor::new([KEY, "hunter22", "swordfish/and chips"]));
        for size in [1, 2, 3, 5, 7, 16, 1000] {
            assert_eq!(piped(&redactor, text.as_bytes(), size, false), expected, "in pieces of {size}");
        }
        assert_eq!(piped(&redactor, text.as_bytes(), 1, true), released, "line by line");
    }

    #[test]
    fn a_value_is_found_across_pieces() {
        let same = |text: &str, expected: &str| check(text, expected, expected);
        same("hunter22", "[redacted]");
        same("begin hunter22 end\nhunter2", "begin [redacted] end\nhunter2");
        same(&format!("{KEY:?}\n"), "\"[redacted]\"\n");
        same("swordfish%2Fand%20chips, swordfish\\/and\\u0020chips", "[redacted], [redacted]");
        same("50%\nhunt\nhunter23\n", "50%\nhunt\nhunter23\n");
    }

    #[test]
    fn lines_of_a_key_are_found_one_by_one_and_wrapped_values_while_all_lines_are_held() {
        let lines = "-----BEGIN KEY-----\n[redacted]\n[redacted]\n-----END KEY-----\n";
        check(&format!("{KEY}\n"), "[redacted]\n", lines);
        check("hunt\n  er22\n", "[redacted]\n", "hunt\n  er22\n");
    }

    /// Neither the output nor its timing depends on the beginning of a value.
    #[test]
    fn the_beginning_of_a_value_is_treated_like_any_other_text() {
        let flow = |text: &str| {
            let mut stream = Stream::new(Arc::new(Redactor::new(["hunter22"])));
            let mut given: Vec<usize> = Vec::new();
            for piece in text.as_bytes().chunks(3) {
                given.push(stream.push(piece).len());
                given.push(stream.release().len());
            }
            let end = stream.end();
            (given, end.len())
        };
        for (guess, other) in [("hunter2", "xyzxyzx"), ("hunt\n", "xyzx\n"), ("a hunter2\nb", "a xyzxyzx\nb")]
        {
            assert_eq!(flow(guess), flow(other));
        }
    }

    #[test]
    fn a_line_without_an_end_is_released_in_pieces_without_losing_a_value() {
        let redactor = Arc::new(Redactor::new(["hunter22"]));
        let line = format!("{}hunter22{}", "x".repeat(HELD_MAX - LOOKAHEAD - 4), "y".repeat(HELD_MAX));
        let mut stream = Stream::new(Arc::clone(&redactor));
        let mut out = Vec::new();
        for piece in line.as_bytes().chunks(16 * 1024) {
            out.extend(stream.push(piece));
            if stream.is_full() {
                out.extend(stream.spill());
            }
            assert!(stream.held() <= HELD_MAX);
        }
        assert!(!out.is_empty());
        out.extend(stream.end());
        assert_eq!(String::from_utf8_lossy(&out), redactor.text(&line));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// Redacts the value in every encoding and split, and keeps the text around it.
        #[test]
        fn no_value_comes_through(
            value in "[a-zA-Z0-9]{3}[a-zA-Z0-9/+ \"\\\\%é\n]{5,60}",
            before in "[ -~\n]{0,20}", after in "[ -~\n]{0,20}",
            form in 0_usize..6, size in 1_usize..40,
        ) {
            prop_assume!(!crate::is_guessable(&value));
            let written = match form {
                0 => value.clone(),
                1 => serde_json::to_string(&value).unwrap(),
                2 => value.bytes().map(|byte| format!("%{byte:02X}")).collect(),
                3 => STANDARD.encode(&value),
                4 => STANDARD.encode(format!("{before}{value}")),
                _ => value.bytes().map(|byte| format!("{byte:02x}")).collect(),
            };
            let redactor = Arc::new(Redactor::new([value.as_str()]));
            let text = format!("{before}<{written}>{after}");
            let out = piped(&redactor, text.as_bytes(), size, false);
            prop_assert!(out.contains(REPLACEMENT), "{text:?} -> {out:?}");
            prop_assert!(!out.contains(&written));
            prop_assert!(redactor.text(&text).contains(REPLACEMENT));
        }
    }
}
