//! Problems of a definition, worded for its author: what is wrong, where, and how to repair it.

use crate::document::Node;
use crate::graph::text::columns;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

/// Maximum number of problems that are kept for one document.
pub const DIAGNOSTICS_MAX: usize = 100;

/// Maximum number of characters of a message or hint.
const MESSAGE_MAX: usize = 400;

/// Maximum number of characters of a source line that are shown.
const SHOWN_MAX: usize = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Stable: `E0107`, `W0202`.
    pub code: Cow<'static, str>,
    pub message: String,
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Path in the document: `workflow[2].next.arcs[0].step`.
    pub path: String,
    /// Characters to underline.
    #[serde(skip)]
    length: usize,
}

impl Diagnostic {
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Formats the problem with the source line it is on.
    #[must_use]
    pub fn render(&self, source: &str, file: &str) -> String {
        let severity = if self.is_error() { "error" } else { "warning" };
        let gutter = " ".repeat(self.line.to_string().len());
        let mut out = format!("{severity}[{}]: {}\n", self.code, self.message);
        let _ = writeln!(out, "{gutter}--> {file}:{}:{}", self.line, self.column);
        if let Some(line) = source.lines().nth(self.line - 1) {
            let (shown, before) = excerpt(line, self.column - 1);
            let under = "^".repeat(self.length.clamp(1, shown.chars().count().saturating_sub(before).max(1)));
            let _ = writeln!(out, "{gutter} |");
            let _ = writeln!(out, "{} | {}", self.line, shown.trim_end());
            let indent: String = shown.chars().take(before).collect();
            let _ = writeln!(out, "{gutter} | {}{under}", " ".repeat(columns(&indent)));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "{gutter} = hint: {hint}");
        }
        out
    }
}

/// Returns the part of a line around a column, and the number of shown characters before it.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let from = if column < SHOWN_MAX { 0 } else { column - SHOWN_MAX / 2 };
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    (line.chars().skip(from).take(SHOWN_MAX).map(plain).collect(), column - from)
}

/// Collects problems while a document is read; each has a range of bytes.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<Found>,
}

#[derive(Debug)]
struct Found {
    severity: Severity,
    code: &'static str,
    message: String,
    at: Range<usize>,
    hint: Option<String>,
}

impl Problems {
    /// Returns whether further problems are dropped, so that wording them would be wasted.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= DIAGNOSTICS_MAX
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.found.iter().any(|found| found.severity == Severity::Error)
    }

    /// Adds a problem. The first letter of the code is its severity.
    pub(crate) fn add(
        &mut self,
        code: &'static str,
        at: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        let severity = if code.starts_with('W') { Severity::Warning } else { Severity::Error };
        // Warnings never displace an error: whether a definition is valid must not depend on their number.
        if !self.is_full() || (severity == Severity::Error && !self.has_errors()) {
            let (message, hint) = (legible(&message.into()), hint.into().map(|hint| legible(&hint)));
            self.found.push(Found { severity, code, message, at: at.clone(), hint });
        }
    }

    /// Returns the problems sorted by position.
    pub(crate) fn into_diagnostics(mut self, source: &str, root: Option<&Node>) -> Vec<Diagnostic> {
        self.found.sort_by(|a, b| (a.at.start, a.severity, a.code).cmp(&(b.at.start, b.severity, b.code)));
        let mut lines = Lines::of(source);
        let mut diagnostics: Vec<Diagnostic> =
            self.found.into_iter().map(|found| diagnostic(found, &mut lines, root)).collect();
        diagnostics.dedup();
        diagnostics
    }
}

/// An error about a position, before its line is known.
#[derive(Debug)]
pub(crate) struct ErrorAt {
    pub(crate) at: Range<usize>,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Returns a diagnostic for each error, in their order. Lines are counted in one pass over the text for all of them.
pub(crate) fn place_errors(
    code: &'static str,
    errors: Vec<ErrorAt>,
    source: &str,
    root: &Node,
) -> Vec<Diagnostic> {
    let mut ordered: Vec<(usize, ErrorAt)> = errors.into_iter().enumerate().collect();
    ordered.sort_by_key(|(_, error)| error.at.start);
    let mut lines = Lines::of(source);
    let mut placed: Vec<(usize, Diagnostic)> = Vec::with_capacity(ordered.len());
    for (place, ErrorAt { at, message, hint }) in ordered {
        let (message, hint) = (legible(&message), Some(legible(&hint)));
        let found = Found { severity: Severity::Error, code, message, at, hint };
        placed.push((place, diagnostic(found, &mut lines, Some(root))));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, diagnostic)| diagnostic).collect()
}

/// Makes a message safe to print: names in it come from the author, and must neither control a terminal nor flood it.
fn legible(message: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut shown: String = message.chars().take(MESSAGE_MAX).map(plain).collect();
    if message.chars().nth(MESSAGE_MAX).is_some() {
        shown.push('…');
    }
    shown
}

fn diagnostic(found: Found, lines: &mut Lines<'_>, root: Option<&Node>) -> Diagnostic {
    let start = floor(lines.source, found.at.start);
    let (line, column) = lines.place(start);
    let text = lines.source.get(start..floor(lines.source, found.at.end)).unwrap_or_default();
    let length = text.lines().next().map_or(1, |first| first.chars().count());
    Diagnostic {
        severity: found.severity,
        code: Cow::Borrowed(found.code),
        message: found.message,
        line,
        column,
        hint: found.hint,
        path: root.map(|root| root.path_to(&found.at)).unwrap_or_default(),
        length,
    }
}

fn floor(source: &str, at: usize) -> usize {
    (0..=at.min(source.len())).rev().find(|at| source.is_char_boundary(*at)).unwrap_or(0)
}

/// Finds lines and columns of positions in rising order, in one pass over the text.
pub(crate) struct Lines<'s> {
    source: &'s str,
    at: usize,
    line: usize,
    /// Characters of the line before the position.
    column: usize,
}

impl<'s> Lines<'s> {
    pub(crate) fn of(source: &'s str) -> Lines<'s> {
        Lines { source, at: 0, line: 1, column: 0 }
    }

    pub(crate) fn place(&mut self, to: usize) -> (usize, usize) {
        let passed = &self.source[self.at..to];
        self.line += passed.matches('\n').count();
        // Documents that programs write may be one long line: each of its characters is counted once.
        let of_line = match passed.rfind('\n') {
            Some(newline) => {
                self.column = 0;
                &passed[newline + 1..]
            }
            None => passed,
        };
        self.column += of_line.chars().count();
        self.at = to;
        (self.line, self.column + 1)
    }
}
