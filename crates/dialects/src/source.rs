//! The text of a definition without its secrets.

use crate::manifest::Manifest;
use crate::playbook::keychain::plain;
use serde_json::json;
use std::fmt;
use std::ops::Range;
use windlass_artifact::SECRET;
use windlass_secrets::{Marks, Redactor, Zeroizing};

/// A secret that was written into a definition, and the name it is stored under.
#[derive(Clone, PartialEq, Eq)]
pub struct Literal {
    pub secret: String,
    pub value: Zeroizing<String>,
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Literal").field(&self.secret).finish()
    }
}

/// A value that was written into the definition.
#[derive(Debug)]
pub(crate) struct Written {
    /// Its position in the text.
    pub(crate) at: Range<usize>,
    pub(crate) secret: String,
    pub(crate) value: String,
}

/// Returns the name that a value in that place is stored under. With marks no other value has that name: another
/// definition of the same name, and another version of this one, have their own.
pub(crate) fn named(marks: Option<&Marks>, place: &str, value: &str) -> String {
    let place = plain(place);
    match marks {
        Some(marks) => format!("{place}/{}", marks.of(&place, value)),
        None => place,
    }
}

pub(crate) fn literals(written: Vec<Written>) -> Vec<Literal> {
    written
        .into_iter()
        .map(|Written { secret, value, .. }| Literal { secret, value: Zeroizing::new(value) })
        .collect()
}

/// Returns the text with a handle in place of each value. Where a value occurs elsewhere, in a comment for example, it is
/// redacted.
pub(crate) fn stored(text: &str, written: &[Written]) -> String {
    if written.is_empty() {
        return text.to_owned();
    }
    let kept = replaced(text, written, |found, _| json!({ SECRET: found.secret }).to_string());
    Redactor::new(written.iter().map(|found| found.value.as_str())).text(&kept).into_owned()
}

/// Redacts the manifest, which is stored as well and may quote the text.
pub(crate) fn redact(manifest: &mut Manifest, written: &[Written]) {
    if written.is_empty() {
        return;
    }
    let redactor = Redactor::new(written.iter().map(|found| found.value.as_str()));
    manifest.inputs_schema.iter_mut().for_each(|schema| redactor.value(schema));
    let nowhere = manifest.children.iter_mut().map(|child| &mut child.nowhere);
    for diagnostic in manifest.warnings.iter_mut().chain(nowhere) {
        for text in std::iter::once(&mut diagnostic.message).chain(&mut diagnostic.hint) {
            *text = redactor.text(text).into_owned();
        }
    }
}

/// Returns the text with stars in place of each value. Lines are shown as a whole, so comments are masked as well.
pub(crate) fn shown(text: &str, written: &[Written]) -> String {
    let masked = replaced(text, written, |_, value| stars(value));
    written.iter().fold(masked, |masked, found| masked.replace(&found.value, &stars(&found.value)))
}

fn stars(value: &str) -> String {
    value.chars().map(|c| if c == '\n' || c == '\r' { c } else { '*' }).collect()
}

fn replaced(text: &str, written: &[Written], with: impl Fn(&Written, &str) -> String) -> String {
    let mut ordered: Vec<&Written> = written.iter().collect();
    ordered.sort_by_key(|found| found.at.start);
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for found in ordered {
        // An alias has the position of its anchor, which is replaced once.
        let Some(value) = text.get(found.at.clone()).filter(|_| found.at.start >= at) else { continue };
        kept.push_str(&text[at..found.at.start]);
        kept.push_str(&with(found, value));
        at = found.at.end;
    }
    kept.push_str(&text[at..]);
    kept
}
