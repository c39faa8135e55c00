//! The forms a value is looked for in. What is undone by [`crate::decode`] needs no form of its own.

use crate::decode::folded;
use crate::rules::{SHORT_BYTES, VALUE_MIN, is_public_field};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;
use std::collections::BTreeSet;

/// An encoded form this long is known by its rest, too: a line may break after its first characters.
const KNOWN_BY_REST: usize = 16;
/// How many characters may be missing then.
const MISSING_MAX: usize = 2;

/// What is searched for, for one value.
pub(crate) fn forms(value: &str) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    for text in parts(value) {
        found.extend(encodings(text.as_bytes()));
    }
    // A key is often handled line by line. Its frame is the same for every key.
    let lines = value.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
    if value.trim().contains('\n') {
        found.extend(lines.filter(|line| line.len() >= SHORT_BYTES).map(|line| line.as_bytes().to_vec()));
    }
    let mut found: BTreeSet<Vec<u8>> = found.iter().map(|form| folded(form)).collect();
    found.retain(|form| form.len() >= VALUE_MIN);
    found
}

/// The value, and what can be read out of it when it is JSON.
fn parts(value: &str) -> Vec<String> {
    let mut parts = vec![value.to_owned()];
    if let Ok(tree @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(value) {
        leaves(&tree, &mut parts);
    }
    parts
}

fn leaves(tree: &Value, parts: &mut Vec<String>) {
    match tree {
        Value::String(text) => parts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, parts)),
        Value::Object(fields) => {
            let secret = fields.iter().filter(|(key, _)| !is_public_field(key));
            secret.for_each(|(_, field)| leaves(field, parts));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn encodings(value: &[u8]) -> Vec<Vec<u8>> {
    let mut found = vec![value.to_vec(), hex(value, "0123456789abcdef"), hex(value, "0123456789ABCDEF")];
    if value.contains(&b' ') {
        // As forms write it.
        found.push(value.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect());
    }
    for alphabet in [&STANDARD, &URL_SAFE] {
        for before in 0..3 {
            base64(value, before, |bytes| alphabet.encode(bytes), &mut found);
        }
    }
    found
}

fn hex(value: &[u8], digits: &str) -> Vec<u8> {
    let digits = digits.as_bytes();
    value.iter().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]).collect()
}

/// The characters that the value decides alone when `before` bytes of something else stand before it in its group of
/// three; and, when nothing follows it, the rest of them.
fn base64(value: &[u8], before: usize, encode: impl Fn(&[u8]) -> String, found: &mut Vec<Vec<u8>>) {
    let shifted = [&[0; 2][..before], value].concat();
    let whole = encode(&shifted).into_bytes();
    let first = (before * 8).div_ceil(6);
    let decided = shifted.len() * 8 / 6;
    let core = &whole[first..decided];
    let known_by_rest = if core.len() >= KNOWN_BY_REST { MISSING_MAX } else { 0 };
    found.extend((0..=known_by_rest).map(|missing| core[missing..].to_vec()));
    found.push(whole[first..].to_vec());
    let unpadded = whole.iter().position(|byte| *byte == b'=').unwrap_or(whole.len());
    found.push(whole[first..unpadded].to_vec());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(value: &str, form: &str) -> bool {
        forms(value).contains(form.as_bytes())
    }

    #[test]
    fn a_value_has_its_encodings() {
        assert!(has("swordfish", "swordfish"));
        assert!(has("swordfish", "73776f726466697368") && has("swordfish", "73776F726466697368"));
        assert!(has("sword fish", "sword+fish"));
        assert!(has("swordfish?>", &STANDARD.encode("swordfish?>")));
        assert!(has("swordfish?>", &URL_SAFE.encode("swordfish?>")));
    }

    #[test]
    fn inside_longer_data_the_middle_is_known() {
        for before in ["", "x", "yz", "user:"] {
            for after in ["", "1", "22", "333"] {
                let text = STANDARD.encode(format!("{before}swordfish{after}"));
                let known = forms("swordfish");
                assert!(known.iter().any(|form| text.contains(&*String::from_utf8_lossy(form))), "{text}");
            }
        }
    }

    #[test]
    fn lines_of_a_key_are_known_and_its_frame_is_not() {
        let key = "-----BEGIN KEY-----\nQUJDREVGR0hJSktM\nshort\n-----END KEY-----\n";
        assert!(has(key, "QUJDREVGR0hJSktM") && !has(key, "short") && !has(key, "-----BEGIN KEY-----"));
    }

    #[test]
    fn fields_of_a_credential_are_known_unless_they_are_public() {
        let credential =
            r#"{"user": "admin", "password": "swordfish", "more": [{"key": "marlin"}], "port": 5432}"#;
        assert!(has(credential, "swordfish") && has(credential, "marlin"));
        assert!(!has(credential, "admin") && !has(credential, "5432"));
    }
}
