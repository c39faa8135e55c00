//! Reads typed values from a document's tree. A value that does not fit is reported and left out.

use crate::adapters::{Adapters, Outside};
use crate::diagnostic::Problems;
use crate::document::{Entry, Kind, Node};
use crate::names;
use serde_json::{Map, Value};
use std::ops::Range;
use windlass_expr::Read;
use windlass_protocol::DURATION_FORM;
pub(crate) use windlass_protocol::{ToolField as Key, field as key};
use windlass_secrets::Marks;

/// A name and its position.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) at: Range<usize>,
}

/// Fields with templates in them, and what those read.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tree {
    pub(crate) fields: Map<String, Value>,
    pub(crate) reads: Vec<Read>,
}

pub(crate) struct Reader<'s, 'p> {
    /// The text, to find the position of an error inside one of its blocks.
    pub(crate) source: &'s str,
    pub(crate) problems: &'p mut Problems,
    /// Secret for the names of literals; None: names follow from their positions.
    pub(crate) marks: Option<&'s Marks>,
    /// Bindings of the document itself.
    pub(crate) own: Adapters,
    /// Bindings outside of it.
    pub(crate) outside: Outside<'s>,
}

/// Severity of an unknown key.
#[derive(Clone, Copy)]
pub(crate) enum Unknown {
    Error,
    /// The key may be an extension of another program.
    Warning,
}

impl Reader<'_, '_> {
    pub(crate) fn error(
        &mut self,
        code: &'static str,
        at: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.problems.add(code, at, message, hint);
    }

    /// Returns the position of a part of a text, if the part is written as it is.
    pub(crate) fn spot(&self, node: &Node, part: &str) -> Range<usize> {
        let written = self.source.get(node.at.clone()).unwrap_or_default();
        match written.find(part) {
            Some(found) => node.at.start + found..node.at.start + found + part.len(),
            None => first_line(node),
        }
    }

    fn mismatch(&mut self, node: &Node, what: &str, wanted: &str) {
        let message = format!("{what} must be {wanted}, not {}", node.noun());
        self.problems.add("E0101", &first_line(node), message, type_hint(node, wanted));
    }

    pub(crate) fn map<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        match &node.kind {
            Kind::Map(entries) => Some(entries),
            _ => {
                self.mismatch(node, what, "a map");
                None
            }
        }
    }

    pub(crate) fn list<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        match &node.kind {
            Kind::List(items) => Some(items),
            _ => {
                self.mismatch(node, what, "a list");
                None
            }
        }
    }

    pub(crate) fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.kind {
            Kind::Text(text) if !text.trim().is_empty() => Some(text),
            Kind::Text(_) => {
                self.problems.add("E0101", &node.at, format!("{what} is empty"), None);
                None
            }
            _ => {
                self.mismatch(node, what, "a string");
                None
            }
        }
    }

    pub(crate) fn name(&mut self, node: &Node, what: &str) -> Option<Name> {
        let text = self.text(node, what)?.to_owned();
        Some(Name { text, at: node.at.clone() })
    }

    pub(crate) fn boolean(&mut self, node: &Node, what: &str) -> Option<bool> {
        match node.kind {
            Kind::Bool(value) => Some(value),
            _ => {
                self.mismatch(node, what, "true or false");
                None
            }
        }
    }

    /// Reads a number, or text that is one.
    pub(crate) fn number(&mut self, node: &Node, what: &str) -> Option<f64> {
        let found = match &node.kind {
            Kind::Number(number) => number.as_f64(),
            Kind::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        if found.is_none() {
            self.mismatch(node, what, "a number");
        }
        found.filter(|number| number.is_finite())
    }

    pub(crate) fn whole(
        &mut self,
        node: &Node,
        what: &str,
        allowed: std::ops::RangeInclusive<u32>,
    ) -> Option<u32> {
        let number = self.number(node, what)?;
        let fits = number.fract() == 0.0
            && (f64::from(*allowed.start())..=f64::from(*allowed.end())).contains(&number);
        if !fits {
            let message =
                format!("{what} must be a whole number from {} to {}", allowed.start(), allowed.end());
            self.problems.add("E0118", &node.at, message, None);
        }
        fits.then_some(number as u32)
    }

    /// Reads `30`, `"30s"`, `"500ms"`, `"2m"` or `"1h"`; a bare number is seconds.
    pub(crate) fn duration_ms(&mut self, node: &Node, what: &str) -> Option<u64> {
        let found = match &node.kind {
            Kind::Number(_) | Kind::Text(_) => windlass_protocol::duration_ms(&node.json()),
            _ => None,
        };
        if found.is_none() {
            let hint = Some(DURATION_FORM.to_owned());
            self.problems.add("E0101", &first_line(node), format!("{what} is not a duration"), hint);
        }
        found
    }

    /// Reads one of several words.
    pub(crate) fn choice<T: Copy>(&mut self, node: &Node, what: &str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, what)?;
        let found = choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
            let message = format!("{what} `{text}` does not exist");
            self.problems.add("E0108", &node.at, message, Some(format!("use {}", words.join(" or "))));
        }
        found
    }

    pub(crate) fn known<'n>(
        &mut self,
        entries: impl IntoIterator<Item = &'n Entry>,
        what: &str,
        keys: &[Key],
        unknown: Unknown,
    ) {
        for entry in entries {
            if self.problems.is_full() {
                return;
            }
            match keys.iter().find(|key| key.name == entry.key) {
                Some(Key { instead: None, .. }) => {}
                Some(Key { instead: Some(_), .. }) if entry.value.is_null() => {}
                Some(Key { instead: Some(instead), .. }) => {
                    let message = format!("`{}` of {what} has no effect here", entry.key);
                    self.problems.add("W0208", &entry.at, message, Some((*instead).to_owned()));
                }
                None => self.unknown(entry, what, keys, unknown),
            }
        }
    }

    fn unknown(&mut self, entry: &Entry, what: &str, keys: &[Key], unknown: Unknown) {
        let code = match unknown {
            Unknown::Error => "E0103",
            Unknown::Warning => "W0201",
        };
        let useful = keys.iter().filter(|key| key.instead.is_none()).map(|key| key.name);
        let hint = names::hint(&entry.key, useful);
        self.problems.add(code, &entry.at, format!("{what} has no key `{}`", entry.key), hint);
    }

    /// Refuses keys of other engines, with a hint at the equivalent here.
    pub(crate) fn elsewhere<'n>(
        &mut self,
        entries: &'n [Entry],
        what: &str,
        moved: &[(&str, &str)],
    ) -> Vec<&'n Entry> {
        let mut kept = Vec::with_capacity(entries.len());
        for entry in entries {
            match moved.iter().find(|(key, _)| *key == entry.key) {
                Some((key, hint)) => {
                    let message = format!("{what} has no `{key}`");
                    self.problems.add("E0106", &entry.at, message, Some((*hint).to_owned()));
                }
                None => kept.push(entry),
            }
        }
        kept
    }

    /// Returns a value that has several names.
    pub(crate) fn aliased<'n>(&mut self, node: &'n Node, keys: &[&str]) -> Option<&'n Node> {
        let mut found = node.entries().iter().filter(|entry| keys.contains(&entry.key.as_str()));
        let first = found.next()?;
        if let Some(second) = found.next() {
            let message = format!("`{}` is another name of `{}`", second.key, first.key);
            self.problems.add("E0103", &second.at, message, Some("keep one of them".to_owned()));
        }
        Some(&first.value)
    }
}

fn type_hint(node: &Node, wanted: &str) -> Option<String> {
    match (&node.kind, wanted) {
        (Kind::Bool(_) | Kind::Number(_), "a string") => Some("put it in quotes".to_owned()),
        (Kind::Text(text), "true or false") => {
            let word = if ["yes", "on", "1", "true"].contains(&text.as_str()) { "true" } else { "false" };
            Some(format!("write `{word}`, without quotes"))
        }
        (_, "a map") => Some("write `key: value`, one line each".to_owned()),
        (_, "a list") => Some("write `- item`, one line each, or `[...]`".to_owned()),
        (Kind::Text(_), "a number") => Some("write it in digits; it cannot be a template".to_owned()),
        _ => None,
    }
}

/// Returns the first line of a value: underlining all of a long one does not help.
pub(crate) fn first_line(node: &Node) -> Range<usize> {
    match node.kind {
        Kind::Map(_) | Kind::List(_) => node.at.start..node.at.start,
        _ => node.at.clone(),
    }
}
