//! Readings of a text: unchanged, with percent-encoding decoded, with backslash escapes decoded. Every byte of a
//! reading knows its position in the text, so that a match can be cut out there.
//!
//! Readings are iterators: a text of any length is read in constant memory and linear time.
//!
//! Line breaks and the indents after them are skipped, because encoders wrap lines and printers indent them.

use std::collections::VecDeque;

/// One byte of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Byte {
    pub(crate) byte: u8,
    /// Start and end of its encoding in the text.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Reads the text unchanged.
pub(crate) fn read_plain(text: &[u8]) -> impl Iterator<Item = Byte> + '_ {
    text.iter().enumerate().map(|(at, byte)| Byte { byte: *byte, start: at, end: at + 1 })
}

/// Skips line breaks and indents.
pub(crate) fn skip_folds(bytes: impl Iterator<Item = Byte>) -> impl Iterator<Item = Byte> {
    let mut fold = Fold::default();
    bytes.filter(move |read| fold.keeps(read.byte))
}

/// State that skips line breaks and the indents after them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fold {
    in_indent: bool,
}

impl Fold {
    pub(crate) fn keeps(&mut self, byte: u8) -> bool {
        match byte {
            b'\n' | b'\r' => self.in_indent = true,
            b' ' | b'\t' if self.in_indent => {}
            _ => self.in_indent = false,
        }
        !self.in_indent
    }
}

/// Returns a text without its line breaks and indents.
pub(crate) fn fold_text(text: &[u8]) -> Vec<u8> {
    skip_folds(read_plain(text)).map(|read| read.byte).collect()
}

/// Length of the longest escape of one character: both halves of a `\uXXXX` pair.
const ESCAPE_MAX: usize = 12;

/// Decoder of one kind of escapes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Escape {
    /// First byte of every escape.
    pub(crate) mark: u8,
    /// Decodes bytes that begin with the mark, and returns the number of bytes consumed.
    step: fn(&[u8]) -> (usize, Decoded),
}

pub(crate) const PERCENT: Escape = Escape { mark: b'%', step: decode_percent };
pub(crate) const BACKSLASH: Escape = Escape { mark: b'\\', step: decode_backslash };

/// Reading with one kind of escapes decoded.
pub(crate) struct Unescaped<I> {
    inner: I,
    escape: Escape,
    /// Bytes that were read ahead.
    ahead: VecDeque<Byte>,
    /// Remaining bytes of a decoded character.
    decoded: VecDeque<Byte>,
}

impl<I: Iterator<Item = Byte>> Unescaped<I> {
    pub(crate) fn new(inner: I, escape: Escape) -> Unescaped<I> {
        Unescaped { inner, escape, ahead: VecDeque::new(), decoded: VecDeque::new() }
    }

    fn unescape(&mut self, mark: Byte) -> Byte {
        let missing = (ESCAPE_MAX - 1).saturating_sub(self.ahead.len());
        self.ahead.extend(self.inner.by_ref().take(missing));
        let mut bytes = [mark.byte; ESCAPE_MAX];
        let length = 1 + self.ahead.len();
        bytes[1..length].iter_mut().zip(&self.ahead).for_each(|(byte, read)| *byte = read.byte);
        let (taken, decoded) = (self.escape.step)(&bytes[..length]);
        let end = self.ahead.drain(..taken - 1).next_back().map_or(mark.end, |last| last.end);
        let mut written = decoded.bytes().iter().map(|byte| Byte { byte: *byte, start: mark.start, end });
        let first = written.next().unwrap_or(mark);
        self.decoded.extend(written);
        first
    }
}

impl<I: Iterator<Item = Byte>> Iterator for Unescaped<I> {
    type Item = Byte;

    fn next(&mut self) -> Option<Byte> {
        if let Some(rest) = self.decoded.pop_front() {
            return Some(rest);
        }
        let read = self.ahead.pop_front().or_else(|| self.inner.next())?;
        Some(if read.byte == self.escape.mark { self.unescape(read) } else { read })
    }
}

/// The one to four bytes that an escape decodes to.
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

fn decode_percent(bytes: &[u8]) -> (usize, Decoded) {
    let decoded = match bytes {
        [_, high, low, ..] => hex_digit(*high).zip(hex_digit(*low)),
        _ => None,
    };
    decoded.map_or((1, Decoded::byte(b'%')), |(high, low)| (3, Decoded::byte((high * 16 + low) as u8)))
}

fn decode_backslash(bytes: &[u8]) -> (usize, Decoded) {
    let unchanged = (1, Decoded::byte(b'\\'));
    let [_, kind, after @ ..] = bytes else { return unchanged };
    let byte = match kind {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'"' | b'\\' | b'/' | b'\'' => *kind,
        b'u' => return decode_unicode(after).unwrap_or(unchanged),
        b'x' => {
            return parse_hex(after, 2).map_or(unchanged, |value| (4, Decoded::byte(value as u8)));
        }
        _ => return unchanged,
    };
    (2, Decoded::byte(byte))
}

/// Decodes `XXXX` after `\u`, with the second half if it is a surrogate.
fn decode_unicode(after: &[u8]) -> Option<(usize, Decoded)> {
    let first = parse_hex(after, 4)?;
    if let Some(character) = char::from_u32(first) {
        return Some((6, Decoded::character(character)));
    }
    let [b'\\', b'u', second @ ..] = &after[4..] else { return None };
    let second = parse_hex(second, 4)?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    let code = 0x1_0000 + (first.checked_sub(0xD800)? << 10) + second;
    Some((12, Decoded::character(char::from_u32(code)?)))
}

fn parse_hex(digits: &[u8], length: usize) -> Option<u32> {
    digits.get(..length)?.iter().try_fold(0, |number, byte| Some(number * 16 + hex_digit(*byte)?))
}

fn hex_digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// Decoder of hex and base64 digits to bytes. The digit at which the first byte begins is unknown, so there is one
/// decoder for every offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digits {
    alphabet: Alphabet,
    /// Number of digits that are skipped at the start of a run.
    offset: usize,
    /// True inside a run of digits.
    is_open: bool,
    /// Number of digits of the run so far, up to the offset.
    run: usize,
    bits: u32,
    bit_count: u32,
    /// Position of the digit before.
    before: usize,
}

/// Result of decoding one more byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoding {
    /// The run of digits ended, so the following bytes do not continue the previous ones.
    Broken,
    Incomplete,
    Byte(Byte),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    Hex,
    /// The standard and the URL-safe alphabet, also mixed.
    Base64,
}

impl Alphabet {
    fn bits(self) -> u32 {
        match self {
            Alphabet::Hex => 4,
            Alphabet::Base64 => 6,
        }
    }

    /// Returns the digit value of every byte.
    fn values(self) -> &'static [u8; 256] {
        match self {
            Alphabet::Hex => &HEX,
            Alphabet::Base64 => &BASE64,
        }
    }
}

const NO_DIGIT: u8 = 255;
const HEX: [u8; 256] = digit_values(b"0123456789abcdef", b"ABCDEF", 10);
const BASE64: [u8; 256] =
    digit_values(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", b"-_", 62);

/// Returns digit values: `digits` count from 0, and `others` are alternatives that count from `from`.
const fn digit_values(digits: &[u8], others: &[u8], from: u8) -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut at = 0;
    while at < digits.len() {
        values[digits[at] as usize] = at as u8;
        at += 1;
    }
    let mut other = 0;
    while other < others.len() {
        values[others[other] as usize] = from + other as u8;
        other += 1;
    }
    values
}

impl Digits {
    /// Decoders for every offset of every alphabet.
    pub(crate) const ALL: [Digits; 6] = [
        Digits::at(Alphabet::Hex, 0),
        Digits::at(Alphabet::Hex, 1),
        Digits::at(Alphabet::Base64, 0),
        Digits::at(Alphabet::Base64, 1),
        Digits::at(Alphabet::Base64, 2),
        Digits::at(Alphabet::Base64, 3),
    ];

    const fn at(alphabet: Alphabet, offset: usize) -> Digits {
        Digits { alphabet, offset, is_open: false, run: 0, bits: 0, bit_count: 0, before: 0 }
    }

    pub(crate) fn push(&mut self, read: Byte) -> Decoding {
        let digit = u32::from(self.alphabet.values()[usize::from(read.byte)]);
        if digit == u32::from(NO_DIGIT) {
            // Padding is not a digit but belongs to the digits before it.
            if !self.is_open && read.byte != b'=' {
                return Decoding::Incomplete;
            }
            *self = Digits::at(self.alphabet, self.offset);
            return Decoding::Broken;
        }
        self.is_open = true;
        if self.run < self.offset {
            self.run += 1;
            return Decoding::Incomplete;
        }
        // A digit has fewer than eight bits, so a byte begins in the digit before.
        let start = std::mem::replace(&mut self.before, read.start);
        self.bits = (self.bits << self.alphabet.bits() | digit) & 0xFFFF;
        self.bit_count += self.alphabet.bits();
        if self.bit_count < 8 {
            return Decoding::Incomplete;
        }
        self.bit_count -= 8;
        Decoding::Byte(Byte { byte: (self.bits >> self.bit_count) as u8, start, end: read.end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(escape: Escape, levels: usize, text: &str) -> String {
        let once = Unescaped::new(read_plain(text.as_bytes()), escape);
        let bytes: Vec<u8> = match levels {
            1 => skip_folds(once).map(|read| read.byte).collect(),
            _ => skip_folds(Unescaped::new(once, escape)).map(|read| read.byte).collect(),
        };
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn escapes_are_decoded_once_and_twice() {
        for (text, once, twice) in [
            ("plain", "plain", "plain"),
            ("a%2Fb", "a/b", "a/b"),
            ("a%252fb", "a%2fb", "a/b"),
            ("100%", "100%", "100%"),
            ("%%41", "%A", "%A"),
            ("%4", "%4", "%4"),
        ] {
            assert_eq!((read(PERCENT, 1, text), read(PERCENT, 2, text)), (once.to_owned(), twice.to_owned()));
        }
        for (text, once, twice) in [
            (r#"\"a\\b\/\u00e9\ud83d\ude00\x41"#, "\"a\\b/é😀A", "\"a\u{8}/é😀A"),
            (r"one\n  two", "onetwo", "onetwo"),
            (r"\q\u12", r"\q\u12", r"\q\u12"),
            (r"\ud83dx\udc00", r"\ud83dx\udc00", r"\ud83dx\udc00"),
            ("\\", "\\", "\\"),
        ] {
            assert_eq!(
                (read(BACKSLASH, 1, text), read(BACKSLASH, 2, text)),
                (once.to_owned(), twice.to_owned())
            );
        }
        assert_eq!(fold_text(b"one\r\n   two"), b"onetwo");
    }

    #[test]
    fn a_byte_knows_its_position_in_the_text() {
        let read: Vec<Byte> = skip_folds(Unescaped::new(read_plain(b"x%41\n  y"), PERCENT)).collect();
        let expected = [(b'x', 0, 1), (b'A', 1, 4), (b'y', 7, 8)];
        assert_eq!(read, expected.map(|(byte, start, end)| Byte { byte, start, end }));
    }

    fn decoded(index: usize, text: &str) -> String {
        let mut digits = Digits::ALL[index];
        let bytes = read_plain(text.as_bytes()).filter_map(|read| match digits.push(read) {
            Decoding::Byte(read) => Some(read.byte),
            Decoding::Broken | Decoding::Incomplete => None,
        });
        String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
    }

    #[test]
    fn digits_are_decoded_from_every_offset() {
        assert_eq!(decoded(0, "68656C6c6f"), "hello");
        assert_eq!(decoded(1, "f68656C6c6f"), "hello");
        assert_eq!(decoded(2, "aGVsbG8="), "hello");
        assert_eq!(decoded(3, "xaGVsbG8="), "hello");
        assert_eq!(decoded(4, "xyaGVsbG8"), "hello");
        assert_eq!(decoded(5, "xyzaGVsbG8"), "hello");
        assert_eq!(decoded(2, "Pz8_Pz8/"), "??????");
        assert_eq!(decoded(0, "68 65-6c"), "hel");
    }
}
