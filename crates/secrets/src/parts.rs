//! Parts of a value that are searched for on their own.
//!
//! A part is searched for only if it is as hard to guess as a value has to be. Otherwise a value could be recovered
//! part by part by printing guesses.

use crate::rules::{is_guessable, is_public_field, strip_frame};
use serde_json::Value;
use std::collections::BTreeSet;
use url::Url;

/// Minimum length of a line that is searched for on its own. With short lines, a key of 256 bits in lines of 8 digits
/// would be eight keys of 32 bits.
const LINE_MIN: usize = 16;

/// Maximum length of a host name.
const HOST_MAX: usize = 253;

/// Maximum length of a URL; servers refuse longer ones.
const URL_MAX: usize = 8 * 1024;

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

/// Returns the value as a URL, or as the host of a URL or a part of it; `None` if that is the value itself or can be
/// guessed. A client writes hosts in lower case and names in other alphabets in punycode, and reports and sends the URL in
/// that form.
fn url_form(value: &str) -> Option<String> {
    let form = normalize_url(value).or_else(|| normalize_host(value))?;
    (form != value && !is_guessable(&form)).then_some(form)
}

fn normalize_url(value: &str) -> Option<String> {
    if value.len() > URL_MAX {
        return None;
    }
    let url = Url::parse(value).ok().filter(Url::has_host)?;
    let mut form = url.to_string();
    // A path may follow.
    if url.path() == "/" && form.ends_with('/') {
        form.pop();
    }
    Some(form)
}

fn normalize_host(value: &str) -> Option<String> {
    // These characters end the host or are left out of it, and the rest would be only a part of the value.
    if value.len() > HOST_MAX
        || value.chars().any(|letter| letter.is_whitespace() || "/\\?#@:".contains(letter))
    {
        return None;
    }
    Url::parse(&format!("http://{value}/")).ok()?.host_str().map(str::to_owned)
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

    fn check_url(value: &str, expected: Option<&str>) {
        assert_eq!(url_form(value).as_deref(), expected, "{value}");
    }

    #[test]
    fn a_host_is_in_lower_case() {
        check_url("Tr0ub4dor-Und", Some("tr0ub4dor-und"));
        check_url("Grüße-aus-Köln", Some("xn--gre-aus-kln-w6a02arc"));
        check_url("tr0ub4dor-und", None);
        check_url("Zebra%41%42c-1", Some("zebraabc-1"));
    }

    #[test]
    fn a_url_is_normalised() {
        check_url("https://Hooks.Example/T0/Abc", Some("https://hooks.example/T0/Abc"));
        check_url("https://Hooks.Example", Some("https://hooks.example"));
        check_url("https://hooks.example:443/a/../Key", Some("https://hooks.example/Key"));
    }

    #[test]
    fn only_hosts_have_a_url_form_and_guessable_forms_are_not_searched_for() {
        for value in ["Pass/Word-and-more", "User:Password-1", "two Words-Here", "a@B-c-d-e-f", "0xC0A80101"]
        {
            check_url(value, None);
        }
    }
}
