//! Filters for text: shortened, searched with regular expressions, hashed.

use minijinja::value::Kwargs;
use minijinja::{Error, Value as Jinja};
use sha2::{Digest, Sha256, Sha512};

use crate::limits::{charge, failed};
use crate::pattern::find_regex;

/// Characters that `truncate` keeps if it is not asked for another number.
const KEPT: usize = 255;

/// Shortens text to a number of characters, the mark at its end included. Words stay whole unless `killwords` is true.
pub(crate) fn truncate(value: &Jinja, length: Option<usize>, options: Kwargs) -> Result<String, Error> {
    let text = text(value, "truncate")?;
    let length: usize = match length {
        Some(length) => length,
        None => options.get::<Option<usize>>("length")?.unwrap_or(KEPT),
    };
    let end: String = options.get::<Option<String>>("end")?.unwrap_or_else(|| "...".to_owned());
    let cuts_words: bool = options.get::<Option<bool>>("killwords")?.unwrap_or(false);
    options.assert_all_used()?;
    if text.chars().count() <= length {
        return Ok(text.to_owned());
    }
    let kept: String = text.chars().take(length.saturating_sub(end.chars().count())).collect();
    let kept = match kept.rfind(char::is_whitespace) {
        Some(space) if !cuts_words => kept[..space].trim_end(),
        _ => kept.as_str(),
    };
    charge(kept.len() + end.len())?;
    Ok(format!("{kept}{end}"))
}

/// Returns the first match, or its first group if the pattern has one; null without a match.
pub(crate) fn regex_search(value: &Jinja, pattern: &str) -> Result<Jinja, Error> {
    let text = text(value, "regex_search")?;
    let regex = find_regex(text, pattern)?;
    let found = regex.captures(text);
    let found =
        found.and_then(|found| found.get(1).or_else(|| found.get(0)).map(|part| part.as_str().to_owned()));
    Ok(found.map_or(Jinja::from(()), Jinja::from))
}

/// Returns all matches, or their first groups if the pattern has one.
pub(crate) fn regex_findall(value: &Jinja, pattern: &str) -> Result<Vec<String>, Error> {
    let text = text(value, "regex_findall")?;
    let regex = find_regex(text, pattern)?;
    let mut found = Vec::new();
    for captures in regex.captures_iter(text) {
        let part = captures.get(1).or_else(|| captures.get(0)).map_or("", |part| part.as_str());
        charge(part.len() + 48)?;
        found.push(part.to_owned());
    }
    Ok(found)
}

/// Replaces all matches; `\1` and `$1` in the replacement are the first group.
pub(crate) fn regex_replace(
    value: &Jinja,
    pattern: &str,
    replacement: Option<&str>,
) -> Result<String, Error> {
    let text = text(value, "regex_replace")?;
    let regex = find_regex(text, pattern)?;
    let replacement = with_dollars(replacement.unwrap_or_default());
    let mut out = String::new();
    let mut last = 0;
    for captures in regex.captures_iter(text) {
        let Some(whole) = captures.get(0) else { continue };
        let mut put = String::new();
        captures.expand(&replacement, &mut put);
        charge(whole.start() - last + put.len())?;
        out.push_str(&text[last..whole.start()]);
        out.push_str(&put);
        last = whole.end();
    }
    charge(text.len() - last)?;
    out.push_str(&text[last..]);
    Ok(out)
}

/// `\1` as Python writes it.
fn with_dollars(replacement: &str) -> String {
    let mut out = String::new();
    let mut letters = replacement.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                out.push_str(&format!("${{{digit}}}"));
                letters.next();
            }
            ('\\', Some('\\')) => {
                out.push('\\');
                letters.next();
            }
            (other, _) => out.push(other),
        }
    }
    out
}

pub(crate) fn sha256(value: &Jinja) -> Result<String, Error> {
    Ok(hex(&Sha256::digest(text(value, "sha256")?.as_bytes())))
}

pub(crate) fn sha512(value: &Jinja) -> Result<String, Error> {
    Ok(hex(&Sha512::digest(text(value, "sha512")?.as_bytes())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text<'v>(value: &'v Jinja, filter: &str) -> Result<&'v str, Error> {
    value.as_str().ok_or_else(|| failed(format!("`{filter}` needs text, not a {}", value.kind())))
}
