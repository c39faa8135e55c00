//! Output of a process: split into lines for the log, its end kept for the result. The memory does not grow with the
//! output.

use std::collections::VecDeque;
use std::mem;

/// Maximum length of a line; a longer one is split.
pub const LINE_MAX: usize = 64 * 1024;

/// Maximum bytes of a stream that are kept for the result; the log has all of it.
pub const TAIL_MAX: usize = 64 * 1024;

/// Splits bytes into lines of text. Bytes that are not UTF-8 are shown as the replacement character.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// Begin of a line whose end has not arrived.
    rest: Vec<u8>,
}

impl Splitter {
    pub(crate) fn push(&mut self, bytes: &[u8], lines: &mut Vec<String>) {
        let mut searched = self.rest.len();
        self.rest.extend_from_slice(bytes);
        let mut from = 0;
        loop {
            let until = self.rest.len().min(from + LINE_MAX + 1);
            let newline = self.rest[searched..until].iter().position(|byte| *byte == b'\n');
            let (end, next) = match newline {
                Some(at) => (searched + at, searched + at + 1),
                None if until - from > LINE_MAX => {
                    let cut = from + boundary(&self.rest[from..], LINE_MAX);
                    (cut, cut)
                }
                None => break,
            };
            add(&String::from_utf8_lossy(&self.rest[from..end]), lines);
            from = next;
            searched = if newline.is_some() { next } else { until };
        }
        self.rest.drain(..from);
    }

    /// Returns the last line if it has no end.
    pub(crate) fn end(&mut self, lines: &mut Vec<String>) {
        if !self.rest.is_empty() {
            add(&String::from_utf8_lossy(&mem::take(&mut self.rest)), lines);
        }
    }
}

/// Returns the last position up to `at` that is between characters. Bytes that are not text may be cut anywhere.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let continues = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    (at.saturating_sub(3)..=at).rev().find(|at| *at > 0 && !continues(*at)).unwrap_or(at)
}

/// Adds a line. Replacement characters take more room than the bytes, so the text is measured again.
fn add(mut text: &str, lines: &mut Vec<String>) {
    while text.len() > LINE_MAX {
        let (line, rest) = text.split_at(boundary(text.as_bytes(), LINE_MAX));
        lines.push(line.to_owned());
        text = rest;
    }
    lines.push(text.to_owned());
}

/// Keeps the end of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    cut: bool,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let excess = (self.bytes.len() + bytes.len()).saturating_sub(TAIL_MAX);
        self.cut |= excess > 0;
        self.bytes.drain(..excess.min(self.bytes.len()));
        self.bytes.extend(&bytes[bytes.len().saturating_sub(TAIL_MAX)..]);
    }

    /// Returns the last bytes, at most `max`. They begin with a whole character.
    pub(crate) fn last(&self, max: usize) -> Vec<u8> {
        let from = self.bytes.len().saturating_sub(max);
        let is_cut = self.cut || from > 0;
        let inside = |byte: &&u8| is_cut && **byte & 0xC0 == 0x80;
        let inside = self.bytes.range(from..).take(3).take_while(inside).count();
        self.bytes.range(from + inside..).copied().collect()
    }

    /// Returns at most `max` bytes of text, and whether anything before them is missing.
    pub(crate) fn text(&mut self, max: usize) -> (String, bool) {
        let bytes: &[u8] = self.bytes.make_contiguous();
        let start =
            if self.cut { (0..bytes.len().min(4)).find(|at| bytes[*at] & 0xC0 != 0x80) } else { None };
        let text = String::from_utf8_lossy(&bytes[start.unwrap_or(0)..]);
        let over = text.len().saturating_sub(max);
        let from = (over..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(over);
        (text[from..].to_owned(), self.cut || from > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that pieces of every size result in the same lines.
    fn check(bytes: &[u8], expected: &[&str]) {
        for size in [1, 2, 3, 7, 1000, 16 * 1024, bytes.len().max(1)] {
            let mut lines = Vec::new();
            let mut splitter = Splitter::default();
            bytes.chunks(size).for_each(|piece| splitter.push(piece, &mut lines));
            splitter.end(&mut lines);
            assert_eq!(lines, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn lines_end_at_newlines_and_at_the_end() {
        check(b"", &[]);
        check(b"\n\n", &["", ""]);
        check(b"one\ntwo", &["one", "two"]);
        check("käse\n".as_bytes(), &["käse"]);
    }

    #[test]
    fn what_is_no_utf8_is_replaced() {
        check(b"a\xff\xfeb\n\xc3\n", &["a\u{fffd}\u{fffd}b", "\u{fffd}"]);
    }

    #[test]
    fn a_long_line_is_split_between_characters() {
        let line = "x".repeat(LINE_MAX);
        check(format!("{line}\n").as_bytes(), &[&line]);
        check(format!("{line}yz\n").as_bytes(), &[&line, "yz"]);
        let odd = format!("x{}", "é".repeat(LINE_MAX / 2));
        check(format!("{odd}\nend").as_bytes(), &[&odd[..LINE_MAX - 1], "é", "end"]);
    }

    #[test]
    fn replaced_bytes_do_not_make_a_line_too_long() {
        let mut lines = Vec::new();
        Splitter::default().push(&[&[0xff; LINE_MAX][..], b"\n"].concat(), &mut lines);
        assert!(lines.iter().all(|line| line.len() <= LINE_MAX));
        assert_eq!(lines.concat(), "\u{fffd}".repeat(LINE_MAX));
    }

    #[test]
    fn a_tail_keeps_the_end_and_says_what_is_missing() {
        let mut tail = Tail::default();
        tail.push(b"begin ");
        assert_eq!(tail.text(TAIL_MAX), ("begin ".to_owned(), false));
        assert_eq!(tail.text(3), ("in ".to_owned(), true));
        (0..100_000).for_each(|_| tail.push(b"0123456789"));
        tail.push(b" end");
        let (text, cut) = tail.text(TAIL_MAX);
        assert!(cut && text.len() == TAIL_MAX && text.ends_with("89 end"));
    }

    #[test]
    fn the_last_bytes_begin_with_a_whole_character() {
        let mut tail = Tail::default();
        tail.push("aéb".as_bytes());
        for (max, expected) in [(9, "aéb"), (3, "éb"), (2, "b"), (1, "b"), (0, "")] {
            assert_eq!(tail.last(max), expected.as_bytes(), "{max}");
        }
    }

    #[test]
    fn a_tail_begins_with_a_whole_character_and_stays_within_its_bound() {
        let mut tail = Tail::default();
        tail.push(format!("{}x", "é".repeat(TAIL_MAX)).as_bytes());
        let (text, cut) = tail.text(TAIL_MAX);
        assert!(cut && text.starts_with('é') && text.len() <= TAIL_MAX);
        let mut tail = Tail::default();
        tail.push(&[0xff; TAIL_MAX]);
        let (text, cut) = tail.text(TAIL_MAX);
        assert!(cut && text.len() <= TAIL_MAX, "{}", text.len());
    }
}
