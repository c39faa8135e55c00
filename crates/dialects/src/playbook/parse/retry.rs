//! A tool's own `retry`: a short form of one rule of the task.

use super::present;
use super::rule::{ATTEMPTS, DELAY_MS, Rules};
use crate::document::{Kind, Node};
use crate::playbook::language::{ATTEMPTS_MAX, BACKOFFS, RETRY};
use crate::read::{Reader, Unknown, first_line};
use windlass_expr::Expr;
use windlass_protocol::{Action, Backoff, Rule};

const FAILED: &str = "outcome.status == 'error'";

/// Adds the rule after those of the task, which decide first.
pub(super) fn add(node: &Node, rules: &mut Rules, reader: &mut Reader<'_, '_>) {
    let Some(rule) = rule(node, reader) else { return };
    if rules.rules.iter().any(|rule| rule.when.is_none()) {
        let message = "`retry` is never used: a rule of the task matches always";
        reader.error("W0204", &first_line(node), message, "remove `else`, or `retry`".to_owned());
    }
    let when = rule.when.as_deref().and_then(|when| Expr::compile(when).ok());
    rules.reads.extend(when.iter().flat_map(|when| when.reads().to_vec()));
    rules.rules.push(rule);
}

fn rule(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Rule> {
    let action = match &node.kind {
        Kind::Bool(false) => return None,
        Kind::Bool(true) => constant(ATTEMPTS),
        Kind::Number(_) => constant(reader.whole(node, "`retry`", 1..=ATTEMPTS_MAX)?),
        _ => policy(node, reader)?,
    };
    let when = when(node, reader)?;
    Some(Rule { when: Some(when), action, set_ctx: Default::default(), set_iter: Default::default() })
}

fn constant(attempts: u32) -> Action {
    Action::Retry { attempts, backoff: Backoff::Constant, delay_ms: DELAY_MS }
}

fn policy(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Action> {
    let entries = reader.map(node, "`retry`")?;
    reader.known(entries, "`retry`", RETRY, Unknown::Error);
    let attempts = reader.aliased(node, &["max_attempts", "attempts"]).filter(|node| !node.is_null());
    let attempts = attempts.map(|node| reader.whole(node, "`max_attempts`", 1..=ATTEMPTS_MAX));
    let delay_ms = reader.aliased(node, &["initial_delay", "delay"]).filter(|node| !node.is_null());
    let delay_ms = delay_ms.map(|node| reader.duration_ms(node, "`initial_delay`"));
    Some(Action::Retry {
        attempts: attempts.unwrap_or(Some(ATTEMPTS))?,
        backoff: backoff(node, reader)?,
        delay_ms: delay_ms.unwrap_or(Some(DELAY_MS))?,
    })
}

fn backoff(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Backoff> {
    if let Some(word) = present(node, "backoff") {
        return reader.choice(word, "backoff", &BACKOFFS);
    }
    let Some(multiplier) = present(node, "backoff_multiplier") else { return Some(Backoff::Constant) };
    let number = reader.number(multiplier, "`backoff_multiplier`")?;
    if number != 1.0 && number != 2.0 {
        let message = format!("`backoff_multiplier` is {number}, but the delay always doubles");
        let hint = "write `backoff: exponential`, or `backoff: constant`".to_owned();
        reader.error("W0208", &multiplier.at, message, hint);
    }
    Some(if number == 1.0 { Backoff::Constant } else { Backoff::Exponential })
}

/// Returns the condition of the rule: the task failed, and the conditions of the policy.
fn when(node: &Node, reader: &mut Reader<'_, '_>) -> Option<String> {
    let mut parts = vec![FAILED.to_owned()];
    for (key, prefix) in [("retry_when", ""), ("stop_when", "not ")] {
        let Some(node) = node.get(key).filter(|node| !node.is_null()) else { continue };
        let source = reader.condition(node, &format!("`{key}` of `retry`"))?.source().to_owned();
        let bare = bare(&source)?;
        parts.push(format!("{prefix}({bare})"));
    }
    Some(parts.join(" and "))
}

/// Returns the expression of a condition without the tags around it.
fn bare(source: &str) -> Option<&str> {
    let source = source.trim();
    let inner = source.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let bare = inner.unwrap_or(source).trim();
    (!bare.contains("{{") && !bare.contains("{%")).then_some(bare)
}
