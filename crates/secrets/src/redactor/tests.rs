use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::json;

const VALUE: &str = "s3cret/with \"quotes\" & ümlaut?";

fn check(text: &str, expected: &str) {
    assert_eq!(Redactor::new([VALUE, "hunter22"]).text(text), expected, "{text}");
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
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
    check(&STANDARD_NO_PAD.encode(VALUE), "[redacted]");
    check(&URL_SAFE.encode("hunter22"), "[redacted]");
    check(&STANDARD.encode(VALUE).replace('+', "%2B"), "[redacted]");
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
    assert_eq!(redactor.text(&json!(wrapped.join("\n")).to_string()), "\"[redacted]\"");
}

#[test]
fn a_value_is_found_inside_longer_base64_and_hex() {
    for before in ["", "u", "us", "user:"] {
        for after in ["", "1", "12", "123"] {
            let whole = format!("{before}hunter22{after}");
            for text in [STANDARD.encode(&whole), format!("x{}", STANDARD.encode(&whole)), hex(&whole)] {
                let redacted = Redactor::new(["hunter22"]).text(&text).into_owned();
                assert!(redacted.contains(REPLACEMENT), "{before}:{after} {text} {redacted}");
            }
        }
    }
}

#[test]
fn overlapping_values_are_replaced_as_one() {
    let redactor = Redactor::new(["abcdefghij", "ghijklmnop", "efghijkl", "cdefghij"]);
    assert_eq!(redactor.text("-abcdefghijklmnop-"), "-[redacted]-");
    assert_eq!(redactor.text("-cdefghij-"), "-[redacted]-");
    let longest_first = Redactor::new(["defghijk", "cdefghijk", "bcdefghijk", "abcdefghijk"]);
    assert_eq!(longest_first.text("-abcdefghijk-"), "-[redacted]-");
}

#[test]
fn values_keys_and_numbers_are_redacted_in_json() {
    let redactor = Redactor::new(["hunter22", "1234567890123456789"]);
    let mut value = json!({ "a hunter22": [1_234_567_890_123_456_789_u64, 1, "x hunter22"], "b": { "c": true, "d": null } });
    redactor.value(&mut value);
    let expected =
        json!({ "a [redacted]": ["[redacted]", 1, "x [redacted]"], "b": { "c": true, "d": null } });
    assert_eq!(value, expected);
}

#[test]
fn a_redactor_without_values_changes_nothing() {
    let redactor = Redactor::new([]);
    assert!(redactor.is_empty() && redactor.text("anything") == "anything");
    assert!(!format!("{:?}", Redactor::new(["hunter22"])).contains("hunter"));
}

#[test]
fn a_cut_never_leaves_a_part_of_a_value() {
    let redactor = Redactor::new(["hunter22"]);
    let text = "key hunter22 and more";
    for max in 0..=text.len() {
        let beginning = redactor.beginning(text, max);
        assert!(!beginning.contains('h') && beginning.len() <= max + REPLACEMENT.len(), "{max}: {beginning}");
        let ending = redactor.ending(text, max);
        assert!(!ending.contains('2') && ending.len() <= max + REPLACEMENT.len(), "{max}: {ending}");
    }
    assert_eq!(redactor.beginning(text, 6), "key [redacted]");
    assert_eq!(redactor.beginning(text, 4), "key [redacted]");
    assert_eq!(redactor.beginning(text, 3), "key");
    assert_eq!(redactor.ending(text, 11), "[redacted] and more");
    assert_eq!(redactor.beginning("é", 1), "");
    assert_eq!(redactor.ending("é", 1), "");
    // Without values only the cut remains.
    assert_eq!(
        (Redactor::default().beginning("abc", 2), Redactor::default().ending("abc", 2)),
        ("ab".into(), "bc".into())
    );
}

/// An attacker who can print any text next to a value learns whether a guess is the whole value, and nothing else.
#[test]
fn no_part_of_a_value_is_confirmed_by_an_echo() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nZ2hpamts\n-----END KEY-----";
    let json = r#"{"user": "admin", "pin": "4711", "password": "correct-horse-battery"}"#;
    let plain = "Tr0ub4dor-und-Dreizehn";
    let redactor = Redactor::new([plain, key, json, "4711"]);
    let unchanged = |text: &str| assert_eq!(redactor.text(text), text);
    // Guesses are prefixes, suffixes and pieces, in all forms, with and without the mark of a cut.
    for whole in [plain, "correct-horse-battery", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"] {
        for from in 0..whole.len() {
            for to in from..whole.len() + usize::from(from > 0) {
                let piece = &whole[from..to];
                for text in [piece.to_owned(), hex(piece), STANDARD.encode(piece), json!(piece).to_string()] {
                    unchanged(&text);
                    unchanged(&format!("{text}…"));
                    unchanged(&format!("{text}\n"));
                }
            }
        }
        // Guesses in base64 lack the digits at their edges, in all three shifts.
        for before in ["", "a", "ab"] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}{whole}"));
            let first = (before.len() * 8).div_ceil(6);
            for missing in 1..4 {
                unchanged(&encoded[first + missing..]);
                unchanged(&encoded[..encoded.len() - missing]);
            }
        }
    }
    // Guesses are short lines and short fields.
    for part in ["Z2hpamts", "4711", "admin", "\"pin\": \"4711\"", "-----BEGIN KEY-----"] {
        unchanged(part);
    }
    let all_pins: String = (0..10_000).map(|pin| format!("{pin:04}\n")).collect();
    unchanged(&all_pins);
}

#[test]
fn texts_made_of_marks_are_searched_in_linear_time() {
    let value = format!("{}!", "abcd".repeat(VALUE_MAX / 4 - 1));
    let nested: Vec<String> = (2..60).map(|count| "abcd".repeat(count)).collect();
    let redactor = Redactor::new(nested.iter().map(String::as_str).chain([value.as_str()]));
    for text in ["…", "%", "%25", "\\", "\\\\u0061", "\n", "abcd", "61626364", "YWJj", "%61%62"] {
        let long = text.repeat(100_000 / text.len());
        // The test only has to end: a search that is not linear takes hours.
        let _ = redactor.text(&long);
    }
}
