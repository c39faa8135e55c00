//! Takes known values out of output that comes in pieces.

use crate::redactor::{Redactor, replace};
use std::sync::Arc;

/// What may be the beginning of a value is held back until it is known not to be one; never more than the longest form
/// is long, as it is written.
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

    /// Gives what can be given of all that came so far.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.redactor.is_empty() {
            return bytes.to_vec();
        }
        self.held.extend_from_slice(bytes);
        let open = self.redactor.open_end(&self.held);
        self.give(open)
    }

    /// Gives the rest: nothing follows any more.
    pub fn end(&mut self) -> Vec<u8> {
        self.give(self.held.len())
    }

    fn give(&mut self, until: usize) -> Vec<u8> {
        let mut found = self.redactor.find(&self.held);
        // A value at the end may still be the beginning of a longer one.
        let cut = found.iter().find(|(_, end)| *end > until).map_or(until, |(start, _)| until.min(*start));
        found.retain(|(_, end)| *end <= cut);
        let mut given = Vec::with_capacity(cut);
        replace(&self.held[..cut], &found, &mut given);
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

    fn piped(redactor: &Arc<Redactor>, text: &[u8], size: usize) -> String {
        let mut stream = Stream::new(Arc::clone(redactor));
        let mut out: Vec<u8> = text.chunks(size).flat_map(|piece| stream.push(piece)).collect();
        out.extend(stream.end());
        String::from_utf8_lossy(&out).into_owned()
    }

    fn check(text: &str, expected: &str) {
        let redactor = Arc::new(Redactor::new([KEY, "hunter22", "swordfish/and chips"]));
        for size in [1, 2, 3, 5, 7, 16, 1000] {
            assert_eq!(piped(&redactor, text.as_bytes(), size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_value_is_found_across_pieces_and_lines() {
        check("hunter22", "[redacted]");
        check("begin hunter22 end\nhunter2", "begin [redacted] end\nhunter2");
        check(&format!("{KEY}\n"), "[redacted]\n");
        check(&format!("  a\n    {}\n", KEY.replace('\n', "\n    ")), "  a\n    [redacted]\n");
        check(&format!("{KEY:?}\n"), "\"[redacted]\"\n");
        check("swordfish%2Fand%20chips, swordfish\\/and\\u0020chips", "[redacted], [redacted]");
        check("50%\nhunt\nhunter23\n", "50%\nhunt\nhunter23\n");
    }

    #[test]
    fn a_line_is_not_held_back_for_nothing() {
        let mut stream = Stream::new(Arc::new(Redactor::new(["hunter22"])));
        assert_eq!(stream.push(b"tea with\n"), b"tea with\n");
        assert_eq!(stream.push(b"progress 50%\n"), b"progress 50%\n");
        assert_eq!(stream.push(b"hunte"), b"");
        assert_eq!(stream.push(b"d\n"), b"hunted\n");
        assert_eq!(stream.end(), b"");
    }

    #[test]
    fn a_value_at_the_end_waits_for_a_longer_one() {
        let mut stream = Stream::new(Arc::new(Redactor::new(["abcdef", "abcdefghij"])));
        let mut out = stream.push(b"x abcdef");
        out.extend(stream.push(b"ghij y"));
        out.extend(stream.end());
        assert_eq!(out, b"x [redacted] y");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// However it is written and cut, the value does not come through, and what surrounds it does.
        #[test]
        fn no_value_comes_through(
            value in "[a-zA-Z0-9]{3}[a-zA-Z0-9/+ \"\\\\%é\n]{5,60}",
            before in "[ -~\n]{0,20}", after in "[ -~\n]{0,20}",
            form in 0_usize..6, size in 1_usize..40,
        ) {
            prop_assume!(crate::check_value(&value).is_ok());
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
            let out = piped(&redactor, text.as_bytes(), size);
            prop_assert!(out.contains(REPLACEMENT), "{text:?} -> {out:?}");
            prop_assert!(!out.contains(&written));
            prop_assert!(redactor.text(&text).contains(REPLACEMENT));
        }
    }
}
