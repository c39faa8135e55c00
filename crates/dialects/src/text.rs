//! Compiles expressions and templates of a definition; errors have their position in the text.

use crate::document::{Entry, Kind, Node, json_map};
use crate::names;
use crate::read::{Reader, Tree};
use serde_json::Value;
use std::ops::Range;
use windlass_expr::{CompileError, Expr, Read, Template};

/// Names of events in older playbooks, and the current names.
const EVENT_NAMES: [(&str, &str); 2] = [("call.done", "step.done"), ("call.error", "step.failed")];

impl Reader<'_, '_> {
    /// Reads a condition: text, or a boolean for a constant one.
    pub(crate) fn condition(&mut self, node: &Node, what: &str) -> Option<Expr> {
        let source = match &node.kind {
            Kind::Bool(value) => value.to_string(),
            _ => self.text(node, what)?.to_owned(),
        };
        match Expr::compile(&source) {
            Ok(expr) => Some(renamed(expr)),
            Err(error) => {
                self.bad_expression(node, &error);
                None
            }
        }
    }

    /// Reads the fields of a map whose values may have templates.
    pub(crate) fn tree(&mut self, node: &Node, what: &str) -> Tree {
        match self.map(node, what) {
            Some(entries) => self.fields(entries),
            None => Tree::default(),
        }
    }

    pub(crate) fn fields(&mut self, entries: &[Entry]) -> Tree {
        let mut reads = Vec::new();
        entries.iter().for_each(|entry| self.templates(&entry.value, &mut reads));
        Tree { fields: json_map(entries), reads }
    }

    /// Compiles any value as one template.
    pub(crate) fn template(&mut self, node: &Node) -> Option<Template> {
        self.templates(node, &mut Vec::new());
        let template = Template::compile(&node.json()).ok()?;
        if !template.reads().iter().any(|read| read.root == "event") {
            return Some(template);
        }
        Template::compile(&renamed_texts(template.source())).ok()
    }

    /// Compiles every text of a tree on its own, so that an error has its place.
    fn templates(&mut self, node: &Node, reads: &mut Vec<Read>) {
        if let Kind::Text(text) = &node.kind {
            match Template::compile(&Value::String(text.clone())) {
                Ok(template) => reads.extend_from_slice(template.reads()),
                Err(error) => self.bad_expression(node, &error),
            }
        }
        node.items().iter().for_each(|item| self.templates(item, reads));
        node.entries().iter().for_each(|entry| self.templates(&entry.value, reads));
    }

    pub(crate) fn bad_expression(&mut self, node: &Node, error: &CompileError) {
        // Positions are searched only if they are kept.
        if self.problems.is_full() && self.problems.has_errors() {
            return;
        }
        let at = self.place(node, error);
        self.problems.add("E0114", &at, format!("bad expression: {}", error.message), repair(error));
    }

    /// Finds the text up to the error in the source, where quotes, block indents and folds move it. First its whole
    /// line is tried, then its tag alone.
    fn place(&self, node: &Node, error: &CompileError) -> Range<usize> {
        let text = node.text().unwrap_or_default();
        let written = self.source.get(node.at.clone()).unwrap_or_default();
        let line = text.lines().nth(error.line - 1).unwrap_or_default();
        let head: String = line.chars().take(error.column - 1).collect();
        let tag = head.rfind("{{").or_else(|| head.rfind("{%")).map(|opener| &head[opener..]);
        let same_before: usize = text.lines().take(error.line - 1).map(|line| line.trim().len()).sum();
        let from = (0..=same_before.min(written.len())).rev().find(|at| written.is_char_boundary(*at));
        let rest = written.get(from.unwrap_or(0)..).unwrap_or_default();
        let whole = rest.find(line.trim()).filter(|_| !line.trim().is_empty());
        let found = match (whole, tag) {
            (Some(found), _) => Some(found + head.trim_start().len()),
            (None, Some(tag)) => rest.find(tag).map(|found| found + tag.len()),
            (None, None) => None,
        };
        let Some(found) = found else { return node.at.clone() };
        let start = node.at.start + from.unwrap_or(0) + found;
        start..(start + 1).min(node.at.end.max(start))
    }
}

/// Returns the hint for an expression, by its error and by common mistakes.
fn repair(error: &CompileError) -> Option<String> {
    let unknown = |what: &str| {
        let rest = error.message.strip_prefix(what)?.strip_prefix(" `")?;
        rest.strip_suffix("` is unknown")
    };
    let listed = || Some("docs/playbooks.md lists the filters and tests".to_owned());
    if let Some(name) = unknown("filter") {
        return names::hint(name, windlass_expr::filter_names()).or_else(listed);
    }
    if let Some(name) = unknown("test") {
        return names::hint(name, windlass_expr::test_names()).or_else(listed);
    }
    let line = error.source_text.lines().nth(error.line - 1).unwrap_or_default();
    // A missing filter name is reported at the second of two bars.
    let before = error.column.saturating_sub(2);
    let bars = error.column > 1 && line.chars().skip(before).take(2).eq(['|', '|']);
    let rest: String = line.chars().skip(if bars { before } else { error.column - 1 }).collect();
    let slips = [
        ("=", "compare with `==`"),
        ("&", "write `and`"),
        ("||", "write `or`"),
        ("!", "write `not`, or `!=` to compare"),
        ("?", "write `a if condition else b`"),
        ("${#", "`{{ '${#' }}name}` means the same"),
    ];
    let slip = slips.iter().find(|(sign, _)| rest.starts_with(sign)).map(|(_, hint)| *hint);
    Some(slip.unwrap_or("an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`").to_owned())
}

/// Replaces old names of events, in conditions that read the event.
fn renamed(expr: Expr) -> Expr {
    if !expr.reads().iter().any(|read| read.root == "event") {
        return expr;
    }
    Expr::compile(&renamed_text(expr.source())).unwrap_or(expr)
}

fn renamed_text(source: &str) -> String {
    let mut source = source.to_owned();
    for (old, new) in EVENT_NAMES {
        for quote in ['\'', '"'] {
            source = source.replace(&format!("{quote}{old}{quote}"), &format!("{quote}{new}{quote}"));
        }
    }
    source
}

fn renamed_texts(tree: &Value) -> Value {
    match tree {
        Value::String(text) if text.contains("event") => Value::String(renamed_text(text)),
        Value::Array(items) => items.iter().map(renamed_texts).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), renamed_texts(value))).collect())
        }
        other => other.clone(),
    }
}
