//! Parts of a value that are searched for on their own.
//!
//! A part is searched for only if it is as hard to guess as a value has to be. Otherwise a value could be recovered
//! part by part by printing guesses.

use crate::rules::{is_guessable, is_public_field, strip_frame};
use crate::urls::url_form;
use serde_json::Value;
use std::collections::BTreeSet;

/// Minimum length of a line that is searched for on its own. With short lines, a key of 256 bits in lines of 8 digits
/// would be eight keys of 32 bits.
const LINE_MIN: usize = 16;

/// A text inside a JSON credential.
pub(crate) struct Leaf {
    /// Name of the nearest enclosing field.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Returns all texts that are searched for in order to find the value.
pub(crate) fn search_texts(value: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    match json_leaves(value) {
        None => add_text(value, &mut found),
        Some(leaves) => {
            leaves.iter().for_each(|leaf| add_text(&leaf.text, &mut found));
            // The names and public fields may be known, so the whole is as hard to guess as its hardest field.
            if !found.is_empty() {
                found.insert(value.to_owned());
            }
        }
    }
    found
}

fn add_text(text: &str, found: &mut BTreeSet<String>) {
    if is_guessable(&strip_frame(text)) {
        return;
    }
    found.insert(text.to_owned());
    found.extend(url_form(text.trim()));
    if text.trim().contains('\n') {
        let lines = text.lines().map(str::trim).filter(|line| !is_frame_line(line));
        let strong = lines.filter(|line| line.len() >= LINE_MIN && !is_guessable(line));
        found.extend(strong.map(str::to_owned));
    }
}

/// Returns whether this is the first or last line of a key file.
pub(crate) fn is_frame_line(line: &str) -> bool {
    line.trim_start().starts_with("-----")
}

/// Returns the secret texts and numbers of a JSON object or array; None for any other value.
pub(crate) fn json_leaves(value: &str) -> Option<Vec<Leaf>> {
    let tree = serde_json::from_str(value).ok().filter(|tree: &Value| tree.is_object() || tree.is_array())?;
    let mut leaves = Vec::new();
    collect_leaves("", &tree, &mut leaves);
    Some(leaves)
}

/// Collects the leaves of a tree, whose depth the parser bounds.
fn collect_leaves(name: &str, tree: &Value, leaves: &mut Vec<Leaf>) {
    let leaf = |text: String| Leaf { name: name.to_owned(), text };
    match tree {
        Value::String(text) => leaves.push(leaf(text.clone())),
        Value::Number(number) => leaves.push(leaf(number.to_string())),
        Value::Array(items) => items.iter().for_each(|item| collect_leaves(name, item, leaves)),
        Value::Object(fields) => {
            let secret = fields.iter().filter(|(key, _)| !is_public_field(key));
            secret.for_each(|(key, field)| collect_leaves(key, field, leaves));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(search_texts(value), expected, "{value}");
    }

    #[test]
    fn a_plain_value_is_searched_for_unless_it_can_be_guessed() {
        check("swordfish", &["swordfish"]);
        check("SwordFish", &["SwordFish", "swordfish"]);
        check("1234", &[]);
        check("31.12.2024", &[]);
    }

    #[test]
    fn long_lines_of_a_key_are_searched_for_and_its_frame_and_short_lines_are_not() {
        let key = "-----BEGIN KEY-----\nQUJDREVGR0hJSktM\nc2hvcnQ=\n-----END KEY-----\n";
        check(key, &[key, "QUJDREVGR0hJSktM"]);
        check("-----BEGIN PIN-----\n1234\n-----END PIN-----\n", &[]);
        let octets = "0f1e2d3c\n4b5a6978\n8796a5b4\nc3d2e1f0";
        check(octets, &[octets]);
    }

    #[test]
    fn fields_of_a_credential_are_searched_for_unless_they_are_public_or_can_be_guessed() {
        let credential = r#"{"user": "administrator", "password": "swordfish", "more": [{"key": "blue-marlin"}], "pin": "1234", "port": 5432}"#;
        check(credential, &[credential, "swordfish", "blue-marlin"]);
        check(r#"{"user": "administrator", "password": "1234"}"#, &[]);
        check(
            r#"{"account": 1234567890123456789}"#,
            &[r#"{"account": 1234567890123456789}"#, "1234567890123456789"],
        );
    }
}
