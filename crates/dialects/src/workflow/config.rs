//! A node's `config`, checked against the table of its type, field by field.

use super::language::{Field, Shape};
use super::model::Seen;
use crate::document::{Kind, Node};
use crate::read::{Key, Reader, Unknown, first_line, key};
use windlass_expr::{Expr, Read, Template};

/// Fields that every type of node may have.
const EVERYWHERE: [&str; 3] = ["retryPolicy", "retry", "timeoutMs"];

/// Returns a field with a value: editors write empty fields, too.
pub(super) fn given<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    node.get(name).filter(|value| !value.is_null() && value.text() != Some(""))
}

pub(super) struct Checked<'c, 's, 'p> {
    pub(super) reader: &'c mut Reader<'s, 'p>,
    pub(super) seen: &'c mut Vec<Seen>,
    /// Name in messages: `node `a``.
    pub(super) what: &'c str,
}

impl Checked<'_, '_, '_> {
    pub(super) fn config(&mut self, node: &Node, fields: &[Field]) {
        let Some(entries) = self.reader.map(node, &format!("`config` of {}", self.what)) else { return };
        let own = entries.iter().filter(|entry| !EVERYWHERE.contains(&entry.key.as_str()));
        self.reader.known(own, &format!("`config` of {}", self.what), &keys(fields), Unknown::Error);
        self.fields(node, fields);
    }

    fn object(&mut self, node: &Node, fields: &[Field], label: &str) {
        let Some(entries) = self.reader.map(node, label) else { return };
        self.reader.known(entries, label, &keys(fields), Unknown::Error);
        self.fields(node, fields);
    }

    fn fields(&mut self, node: &Node, fields: &[Field]) {
        for field in fields {
            match given(node, field.name) {
                Some(value) => self.field(value, field),
                None if field.needed => {
                    let message = format!("{} has no `{}`", self.what, field.name);
                    let hint = format!("add `{}`: {}", field.name, field.about);
                    self.reader.error("E0102", &first_line(node), message, hint);
                }
                None => {}
            }
        }
    }

    fn field(&mut self, node: &Node, field: &Field) {
        let label = format!("`{}` of {}", field.name, self.what);
        match field.shape {
            Shape::Any => self.templates(node),
            Shape::Text | Shape::Secret => {
                // A handle takes the place of a secret in a stored text.
                if !(matches!(field.shape, Shape::Secret) && node.is_map()) {
                    self.reader.text(node, &label);
                }
                self.templates(node);
            }
            Shape::Code => drop(self.reader.text(node, &label)),
            Shape::Expression => drop(self.expression(node, &label)),
            Shape::Values => match &node.kind {
                Kind::Text(_) => drop(self.expression(node, &label)),
                Kind::List(_) | Kind::Number(_) => self.templates(node),
                _ => drop(self.reader.list(node, &label)),
            },
            Shape::Whole(from, to) => drop(self.reader.whole(node, &label, from..=to)),
            Shape::Number(from, to) => drop(self.reader.number_between(node, &label, from, to)),
            Shape::Flag => drop(self.reader.boolean(node, &label)),
            Shape::Duration => drop(self.reader.duration_ms(node, &label)),
            Shape::Choice(words) => {
                let choices: Vec<(&str, ())> = words.iter().map(|word| (*word, ())).collect();
                self.reader.choice(node, field.name, &choices);
            }
            Shape::Pairs => self.pairs(node, &label),
            Shape::Map => {
                self.reader.map(node, &label);
                self.templates(node);
            }
            Shape::Texts => self.texts(node, &label),
            Shape::Variables => self.variables(node, &label),
            Shape::Schema => drop(self.reader.json_schema(node, &label)),
            Shape::Object(fields) => self.object(node, fields, &label),
            Shape::Items(fields) => {
                for item in self.reader.list(node, &label).unwrap_or_default() {
                    self.object(item, fields, &format!("an entry of {label}"));
                }
            }
        }
    }

    fn pairs(&mut self, node: &Node, label: &str) {
        if let Kind::List(items) = &node.kind {
            for item in items {
                let Some(entries) = self.reader.map(item, &format!("an entry of {label}")) else { continue };
                let known = [key("key", ""), key("value", ""), key("enabled", ""), key("id", "")];
                self.reader.known(entries, &format!("an entry of {label}"), &known, Unknown::Error);
                if given(item, "key").is_none() && given(item, "value").is_some() {
                    let message = format!("an entry of {label} has no `key`");
                    self.reader.error("E0102", &first_line(item), message, None);
                }
            }
        } else {
            self.reader.map(node, label);
        }
        self.templates(node);
    }

    fn texts(&mut self, node: &Node, label: &str) {
        for item in self.reader.list(node, label).unwrap_or_default() {
            self.reader.text(item, &format!("an entry of {label}"));
        }
        self.templates(node);
    }

    /// Names of variables, each with a value of its own or the one that an expression of that name has.
    fn variables(&mut self, node: &Node, label: &str) {
        let Kind::List(items) = &node.kind else {
            self.reader.map(node, label);
            return self.templates(node);
        };
        for item in items {
            match &item.kind {
                Kind::Map(_) => {
                    if given(item, "name").is_none() {
                        let message = format!("an entry of {label} has no `name`");
                        self.reader.error("E0102", &first_line(item), message, None);
                    }
                    self.templates(item);
                }
                _ => drop(self.expression(item, &format!("an entry of {label}"))),
            }
        }
    }

    /// Compiles every string of a tree.
    pub(super) fn templates(&mut self, node: &Node) {
        if let Kind::Text(text) = &node.kind {
            match Template::compile(&serde_json::Value::String(text.clone())) {
                Ok(template) => self.note(node, template.reads()),
                Err(error) => self.reader.bad_expression(node, &error),
            }
        }
        node.items().iter().for_each(|item| self.templates(item));
        node.entries().iter().for_each(|entry| self.templates(&entry.value));
    }

    /// Reads one expression, with or without surrounding braces.
    pub(super) fn expression(&mut self, node: &Node, label: &str) -> Option<String> {
        let source = match &node.kind {
            Kind::Bool(value) => value.to_string(),
            _ => bare(self.reader.text(node, label)?).to_owned(),
        };
        if source.contains("{{") || source.contains("{%") {
            let message = format!("{label} must be one expression, not a text that contains expressions");
            let hint = "write it without braces: `inputs.name ~ '!'`".to_owned();
            self.reader.error("E0114", &first_line(node), message, hint);
            return None;
        }
        match Expr::compile(&source) {
            Ok(expr) => {
                self.note(node, expr.reads());
                Some(source)
            }
            Err(error) => {
                self.reader.bad_expression(node, &error);
                None
            }
        }
    }

    fn note(&mut self, node: &Node, reads: &[Read]) {
        let seen = |read: &Read| Seen { read: read.clone(), at: node.at.clone() };
        self.seen.extend(reads.iter().map(seen));
    }
}

/// Returns an expression without the braces around it.
pub(super) fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let inner = inner.map(|inner| inner.trim_start_matches('-').trim_end_matches('-').trim());
    inner.filter(|inner| !inner.contains("{{") && !inner.contains("}}")).unwrap_or(text)
}

fn keys(fields: &[Field]) -> Vec<Key> {
    fields.iter().map(|field| key(field.name, field.about)).collect()
}
