//! A text read in several ways at once: as it stands, with percent signs undone, with backslashes undone. Every byte
//! that is read knows which bytes of the text it stands for, so that what is found can be cut out there.
//!
//! Line breaks and the indent after them count for nothing: encoders wrap lines, and printers indent them.

/// A reading of a text.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) bytes: Vec<u8>,
    /// Begin and end in the text of each byte.
    spans: Vec<(usize, usize)>,
}

impl Reading {
    fn plain(text: &[u8]) -> Reading {
        let spans = (0..text.len()).map(|at| (at, at + 1)).collect();
        Reading { bytes: text.to_vec(), spans }
    }

    /// The bytes of the text that these bytes stand for.
    pub(crate) fn span(&self, from: usize, to: usize) -> (usize, usize) {
        (self.spans[from].0, self.spans[to - 1].1)
    }

    /// Reads on: `step` looks at the rest and says how many bytes of it stand for which bytes.
    fn through(&self, step: impl Fn(&[u8]) -> (usize, Decoded)) -> Reading {
        let mut read = Reading::default();
        let mut at = 0;
        while at < self.bytes.len() {
            let (taken, decoded) = step(&self.bytes[at..]);
            let span = self.span(at, at + taken);
            for byte in decoded.bytes() {
                read.bytes.push(*byte);
                read.spans.push(span);
            }
            at += taken;
        }
        read
    }

    fn folded(&self) -> Reading {
        let mut read = Reading::default();
        let mut in_indent = false;
        for (byte, span) in self.bytes.iter().zip(&self.spans) {
            match byte {
                b'\n' | b'\r' => in_indent = true,
                b' ' | b'\t' if in_indent => {}
                _ => {
                    in_indent = false;
                    read.bytes.push(*byte);
                    read.spans.push(*span);
                }
            }
        }
        read
    }
}

/// What one place of a text stands for: at most the four bytes of a character.
struct Decoded {
    bytes: [u8; 4],
    length: usize,
}

impl Decoded {
    fn byte(byte: u8) -> Decoded {
        Decoded { bytes: [byte, 0, 0, 0], length: 1 }
    }

    fn character(character: char) -> Decoded {
        let mut bytes = [0; 4];
        let length = character.encode_utf8(&mut bytes).len();
        Decoded { bytes, length }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Without its line breaks and indents.
pub(crate) fn folded(text: &[u8]) -> Vec<u8> {
    Reading::plain(text).folded().bytes
}

/// All readings of a text that differ from each other. Texts in texts are read two levels deep.
pub(crate) fn readings(text: &[u8]) -> Vec<Reading> {
    let plain = Reading::plain(text);
    let mut all = Vec::new();
    for (mark, step) in [(b'%', percent as Step), (b'\\', backslash as Step)] {
        if text.contains(&mark) {
            let once = plain.through(step);
            if once.bytes.contains(&mark) {
                all.push(once.through(step).folded());
            }
            all.push(once.folded());
        }
    }
    all.push(plain.folded());
    all
}

type Step = fn(&[u8]) -> (usize, Decoded);

fn percent(rest: &[u8]) -> (usize, Decoded) {
    match rest {
        [b'%', high, low, ..] => match (digit(*high), digit(*low)) {
            (Some(high), Some(low)) => (3, Decoded::byte((high * 16 + low) as u8)),
            _ => (1, Decoded::byte(b'%')),
        },
        [byte, ..] => (1, Decoded::byte(*byte)),
        [] => (1, Decoded { bytes: [0; 4], length: 0 }),
    }
}

fn backslash(rest: &[u8]) -> (usize, Decoded) {
    let [b'\\', kind, after @ ..] = rest else { return (1, Decoded::byte(rest[0])) };
    let byte = match kind {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'"' | b'\\' | b'/' | b'\'' => *kind,
        b'u' => return unicode(after).unwrap_or((1, Decoded::byte(b'\\'))),
        b'x' => match number(after, 2) {
            Some(value) => return (4, Decoded::byte(value as u8)),
            None => return (1, Decoded::byte(b'\\')),
        },
        _ => return (1, Decoded::byte(b'\\')),
    };
    (2, Decoded::byte(byte))
}

/// `XXXX` after `\u`, with its other half when it is one.
fn unicode(after: &[u8]) -> Option<(usize, Decoded)> {
    let first = number(after, 4)?;
    if let Some(character) = char::from_u32(first) {
        return Some((6, Decoded::character(character)));
    }
    let [b'\\', b'u', second @ ..] = &after[4..] else { return None };
    let second = number(second, 4)?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    let code = 0x1_0000 + ((first - 0xD800) << 10) + second;
    Some((12, Decoded::character(char::from_u32(code)?)))
}

fn number(digits: &[u8], length: usize) -> Option<u32> {
    digits.get(..length)?.iter().try_fold(0, |number, byte| Some(number * 16 + digit(*byte)?))
}

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// The longest thing that backslashes or percent signs write as one: both halves of a character, escaped twice.
const ESCAPE_MAX: usize = 16;

/// Where a text ends inside something that may yet become one character.
pub(crate) fn unfinished(text: &[u8]) -> Option<usize> {
    let from = text.len().saturating_sub(ESCAPE_MAX);
    let last = text[from..].iter().rposition(|byte| matches!(byte, b'%' | b'\\')).map(|at| from + at)?;
    let mark = text[last];
    let rest = &text[last + 1..];
    let is_open = match (mark, rest) {
        (b'%', []) => true,
        (b'%', b"2" | b"25") => true,
        (b'%', [one]) => digit(*one).is_some(),
        (b'%', _) => false,
        (_, []) => true,
        (_, [b'x', rest @ ..]) => rest.len() < 2 && rest.iter().all(|byte| digit(*byte).is_some()),
        (_, [b'u', rest @ ..]) => {
            let is_half =
                rest.len() == 4 && number(rest, 4).is_some_and(|code| (0xD800..0xDC00).contains(&code));
            is_half || (rest.len() < 4 && rest.iter().all(|byte| digit(*byte).is_some()))
        }
        _ => false,
    };
    // What stands before it may belong to it: `%25`, `\\`, the first half of a pair.
    let begins = |at: usize| {
        let before = &text[..at];
        before.ends_with(b"%25") || before.ends_with(b"\\") || is_first_half(before)
    };
    let mut start = last;
    while is_open && start > 0 && begins(start) {
        start -= match &text[..start] {
            before if before.ends_with(b"\\") => 1,
            before if before.ends_with(b"%25") => 3,
            _ => 6,
        };
    }
    is_open.then_some(start)
}

fn is_first_half(before: &[u8]) -> bool {
    let Some(from) = before.len().checked_sub(6) else { return false };
    before[from..].starts_with(b"\\u")
        && number(&before[from + 2..], 4).is_some_and(|code| (0xD800..0xDC00).contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut found: Vec<String> = readings(text.as_bytes())
            .iter()
            .map(|reading| String::from_utf8_lossy(&reading.bytes).into_owned())
            .collect();
        found.sort();
        found.dedup();
        let mut expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
        expected.sort();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_text_is_read_in_every_way() {
        check("plain", &["plain"]);
        check("a%2Fb", &["a%2Fb", "a/b"]);
        check("a%252fb", &["a%252fb", "a%2fb", "a/b"]);
        check(
            r#"\"a\\b\/\u00e9\ud83d\ude00\x41"#,
            &[r#"\"a\\b\/\u00e9\ud83d\ude00\x41"#, "\"a\\b/é😀A", "\"a\u{8}/é😀A"],
        );
        check("one\r\n   two", &["onetwo"]);
        check(r"one\n  two", &["onetwo", r"one\n  two"]);
        check("100%", &["100%"]);
        check(r"\q\u12", &[r"\q\u12"]);
    }

    #[test]
    fn what_was_read_is_found_again() {
        let text = b"x%41\n  y";
        let all = readings(text);
        let decoded = &all[0];
        assert_eq!(decoded.bytes, b"xAy");
        assert_eq!(decoded.span(1, 2), (1, 4));
        assert_eq!(decoded.span(1, 3), (1, 8));
    }

    #[test]
    fn an_open_end_is_seen() {
        for (text, expected) in [
            ("abc", None),
            ("50%\n", None),
            ("ab%", Some(2)),
            ("ab%4", Some(2)),
            ("ab%41", None),
            ("ab%2541", None),
            ("ab%25", Some(2)),
            ("ab%254", None),
            ("ab\\", Some(2)),
            ("ab\\\\", Some(2)),
            ("ab\\n", None),
            ("ab\\u00e", Some(2)),
            ("ab\\u00e9", None),
            ("ab\\ud83d", Some(2)),
            ("ab\\ud83d\\ude0", Some(2)),
            ("ab\\x4", Some(2)),
        ] {
            assert_eq!(unfinished(text.as_bytes()), expected, "{text}");
        }
    }
}
