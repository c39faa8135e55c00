//! Functions with a predicate: `all(list, {# > 1})`. A predicate is translated to an expression for each item, which reads
//! the item and the names that are passed to it.

use super::super::lexer::TokenKind;
use super::{Parsed, Parser};
use crate::each::{EACH, ITEM, NESTING_MAX, not_a_list, not_a_verdict};
use crate::exprlang::{BoundName, Translated, ValueKind};
use std::collections::{BTreeMap, BTreeSet};

/// Prefix of the names that are passed to an expression for each item, so that none is a word of the language.
const PREFIX: &str = "n_";

/// Predicates that enclose a part of an expression.
#[derive(Debug, Default)]
pub(super) struct Predicates {
    /// Names that each of them reads, outermost first.
    open: Vec<BTreeSet<String>>,
    /// Replacements of the names, which the outermost one passes on.
    bound: BTreeMap<String, BoundName>,
}

impl Predicates {
    pub(super) fn is_inside(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the replacement of a name. Inside of predicates, it is the name by which its value is passed, because the
    /// value is the same for all items and may be long.
    pub(super) fn bind(
        &mut self,
        name: &str,
        bind: &dyn Fn(&str) -> Result<BoundName, String>,
    ) -> Result<BoundName, String> {
        if !self.is_inside() {
            return bind(name);
        }
        let kind = match self.bound.get(name) {
            Some(bound) => bound.kind,
            None => self.bound.entry(name.to_owned()).or_insert(bind(name)?).kind,
        };
        self.open.iter_mut().for_each(|names| names.extend([name.to_owned()]));
        Ok(BoundName { source: format!("{PREFIX}{name}"), kind })
    }

    /// Leaves the innermost predicate and returns the arguments that pass its names.
    fn leave(&mut self) -> String {
        let names = self.open.pop().unwrap_or_default();
        let source = |name: &str| match self.is_inside() {
            true => format!("{PREFIX}{name}"),
            false => self.bound.get(name).map(|bound| bound.source.clone()).unwrap_or_default(),
        };
        let passed: String = names.iter().map(|name| format!(",{PREFIX}{name}={}", source(name))).collect();
        if !self.is_inside() {
            self.bound.clear();
        }
        passed
    }
}

impl Parser<'_> {
    /// Parses the arguments of a function with a predicate.
    pub(super) fn predicate_call(&mut self, function: &str, kind: ValueKind, at: usize) -> Parsed {
        if self.predicates.open.len() == NESTING_MAX {
            return Err((format!("`{function}` is nested in more than {NESTING_MAX} predicates"), at));
        }
        self.expect("(")?;
        let list = self.expression()?;
        if !list.kind.overlaps(ValueKind::List) {
            return Err((not_a_list(function, list.kind.noun()), at));
        }
        // Without a predicate, the items themselves are counted that are true.
        if function == "count" && self.takes(")") {
            return Ok(Translated::new(format!("({}|{EACH}(\"count\",{ITEM}))", list.source), kind));
        }
        self.expect(",")?;
        let predicate_at = self.at();
        self.predicates.open.push(BTreeSet::new());
        let each = self.predicate()?;
        let passed = self.predicates.leave();
        self.expect(")")?;
        if function != "map" && !each.kind.overlaps(ValueKind::Boolean) {
            return Err((not_a_verdict(function, each.kind.noun()), predicate_at));
        }
        let source = format!("({}|{EACH}(\"{function}\",{}{passed}))", list.source, each.source);
        Ok(Translated::new(source, kind))
    }

    /// Parses a predicate, in braces or without.
    fn predicate(&mut self) -> Parsed {
        if !self.takes("{") {
            return self.expression();
        }
        let each = self.expression()?;
        self.expect("}")?;
        Ok(each)
    }

    /// Returns the item of the innermost predicate, after its `#`.
    pub(super) fn item(&mut self, at: usize) -> Parsed {
        if !self.predicates.is_inside() {
            let message = "`#` is the item of a predicate, as in `all(list, {# > 1})`";
            return Err((message.to_owned(), at));
        }
        match self.peek() {
            TokenKind::Name(name) if self.at() == at + 1 => {
                Err((format!("`#{name}` is not supported in a condition; use `#`"), at))
            }
            _ => Ok(Translated::new(ITEM.to_owned(), ValueKind::Unknown)),
        }
    }
}
