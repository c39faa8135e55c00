//! Expressions and templates of a playbook, compiled where they stand.

use super::model::Tree;
use super::read::Reader;
use crate::document::{Entry, Kind, Node, json_map};
use serde_json::Value;
use std::ops::Range;
use windlass_expr::{CompileError, Expr, Read, Template};

/// Events go by these names in older playbooks.
const EVENT_NAMES: [(&str, &str); 2] = [("call.done", "step.done"), ("call.error", "step.failed")];

impl Reader<'_, '_> {
    /// A condition: text, or a boolean for one that is settled.
    pub(super) fn condition(&mut self, node: &Node, what: &str) -> Option<Expr> {
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

    /// The fields of a map whose values may hold templates.
    pub(super) fn tree(&mut self, node: &Node, what: &str) -> Tree {
        match self.map(node, what) {
            Some(entries) => self.fields(entries),
            None => Tree::default(),
        }
    }

    pub(super) fn fields(&mut self, entries: &[Entry]) -> Tree {
        let mut reads = Vec::new();
        entries.iter().for_each(|entry| self.templates(&entry.value, &mut reads));
        Tree { fields: json_map(entries), reads }
    }

    /// Any value as one template.
    pub(super) fn template(&mut self, node: &Node) -> Option<Template> {
        self.templates(node, &mut Vec::new());
        Template::compile(&node.json()).ok()
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

    fn bad_expression(&mut self, node: &Node, error: &CompileError) {
        let at = self.place(node, error);
        let hint = "an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`".to_owned();
        self.problems.add("E0114", &at, format!("bad expression: {}", error.message), Some(hint));
    }

    /// The text up to the error is looked for in what was written: quotes, block indents and folds move it. First
    /// its whole line is tried, then its tag alone.
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

/// Only a condition that asks about the event can mean the event's name.
fn renamed(expr: Expr) -> Expr {
    if !expr.reads().iter().any(|read| read.root == "event") {
        return expr;
    }
    let mut source = expr.source().to_owned();
    for (old, new) in EVENT_NAMES {
        for quote in ['\'', '"'] {
            source = source.replace(&format!("{quote}{old}{quote}"), &format!("{quote}{new}{quote}"));
        }
    }
    Expr::compile(&source).unwrap_or(expr)
}
