//! Excerpts of long texts in failures. A text is cut after secrets were removed from it, because the beginning of a
//! value could not be recognised and must not be shown. Tools therefore only mark the cut, and [`settle`] makes it
//! where the values of the unit are known.

use serde_json::Value;
use windlass_secrets::{LOOKAHEAD, Redactor};

// Private characters that do not occur in texts by chance. A text that has them is cut, without other effects.
const OPEN: char = '\u{F8F0}';
const SIZE_END: char = '\u{F8F1}';
const CLOSE: char = '\u{F8F2}';

/// Marks the end of a text whose rest is cut.
const CUT: &str = "…";

/// Marks a text of which only the first `max` bytes are to be shown.
pub(crate) fn head(text: &str, max: usize) -> String {
    let window =
        (0..=text.len().min(max.saturating_add(LOOKAHEAD))).rev().find(|at| text.is_char_boundary(*at));
    marked('h', text, &text[..window.unwrap_or(0)], max)
}

/// Marks a text of which only the last `max` bytes are to be shown.
pub(crate) fn tail(text: &str, max: usize) -> String {
    let from = text.len().saturating_sub(max.saturating_add(LOOKAHEAD));
    let window = (from..=text.len()).find(|at| text.is_char_boundary(*at));
    marked('t', text, &text[window.unwrap_or(0)..], max)
}

fn marked(side: char, text: &str, window: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{OPEN}{side}{max}{SIZE_END}{}{CLOSE}", window.replace([OPEN, SIZE_END, CLOSE], ""))
}

/// Removes values from the text, then makes the marked cut.
pub(crate) fn settle(redactor: &Redactor, text: &mut String) {
    if !text.contains(OPEN) {
        if let std::borrow::Cow::Owned(redacted) = redactor.text(text) {
            *text = redacted;
        }
        return;
    }
    let mut settled = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (inside, next) = after.split_once(CLOSE).unwrap_or((after, ""));
        settled.push_str(&redactor.text(before));
        settled.push_str(&excerpt(redactor, inside));
        rest = next;
    }
    settled.push_str(&redactor.text(rest));
    *text = settled;
}

fn excerpt(redactor: &Redactor, marked: &str) -> String {
    let (how, text) = marked.split_once(SIZE_END).unwrap_or(("", marked));
    let max = how.get(1..).and_then(|size| size.parse().ok()).unwrap_or(0);
    match how.chars().next() {
        Some('t') => redactor.ending(text, max),
        _ => format!("{}{CUT}", redactor.beginning(text, max)),
    }
}

/// Does the same for all texts of a value.
pub(crate) fn settle_value(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::String(text) => settle(redactor, text),
        Value::Array(items) => items.iter_mut().for_each(|item| settle_value(redactor, item)),
        Value::Object(fields) => fields.values_mut().for_each(|field| settle_value(redactor, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    redactor.value(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settled(text: &str) -> String {
        let mut text = text.to_owned();
        settle(&Redactor::new(["hunter22"]), &mut text);
        text
    }

    #[test]
    fn a_text_is_cut_after_values_are_taken_out() {
        assert_eq!(settled(&format!("not `{}`", head("GET", 10))), "not `GET`");
        assert_eq!(settled(&format!("not `{}`", head("key hunter22", 6))), "not `key [redacted]…`");
        assert_eq!(settled(&format!("not `{}`", head("key hunter22", 3))), "not `key…`");
        assert_eq!(settled(&tail("hunter22 is bad", 10)), "[redacted] is bad");
        assert_eq!(settled(&format!("{} and {}", head("abcdef", 2), tail("abcdef", 2))), "ab… and ef");
        let mut value = json!({ "body": head("key hunter22", 6), "hunter22": ["hunter22"] });
        settle_value(&Redactor::new(["hunter22"]), &mut value);
        assert_eq!(value, json!({ "body": "key [redacted]…", "[redacted]": ["[redacted]"] }));
        settle_value(&Redactor::default(), &mut value);
    }

    #[test]
    fn marks_in_a_text_itself_do_no_harm() {
        for text in
            [format!("a{OPEN}b"), format!("{OPEN}h9{SIZE_END}hunter22"), format!("{CLOSE}{OPEN}{SIZE_END}x")]
        {
            assert!(!settled(&text).contains("hunter2"), "{text}");
        }
        assert_eq!(settled(&head(&format!("ab{CLOSE}hunter22"), 4)), "ab[redacted]…");
    }
}
