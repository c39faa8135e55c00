//! Policy rules of a task: which outcome leads to which action.

use super::present;
use super::writes::{self, Writes};
use crate::document::Node;
use crate::playbook::language::{
    ACTIONS, ATTEMPTS_MAX, BACKOFFS, Do, ON_UNMATCHED, POLICY_MODES, RULE, TASK_POLICY, THEN,
};
use crate::playbook::model::Name;
use crate::read::{Reader, Unknown, first_line};
use windlass_expr::Read;
use windlass_protocol::{Action, Backoff, OnUnmatched, Rule};

/// Content of a task's `policy`.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    pub(super) on_unmatched: OnUnmatched,
    pub(super) reads: Vec<Read>,
    pub(super) patch_reads: Vec<Read>,
    pub(super) jumps: Vec<Name>,
}

/// Number of tries of a rule without its own number.
pub(super) const ATTEMPTS: u32 = 3;
/// The first delay of a backoff that does not say.
pub(super) const DELAY_MS: u64 = 1_000;

pub(super) fn policy(node: &Node, reader: &mut Reader<'_, '_>) -> Rules {
    let mut found = Rules::default();
    let Some(entries) = reader.map(node, "`policy` of a task") else { return found };
    reader.known(entries, "`policy` of a task", TASK_POLICY, Unknown::Error);
    if let Some(mode) = present(node, "mode") {
        reader.choice(mode, "policy mode", &POLICY_MODES);
    }
    let unmatched =
        present(node, "on_unmatched").and_then(|node| reader.choice(node, "`on_unmatched`", &ON_UNMATCHED));
    found.on_unmatched = unmatched.unwrap_or_default();
    let Some(rules) = node.get("rules") else {
        reader.error(
            "E0109",
            &first_line(node),
            "`policy` of a task has no `rules`",
            "add `rules: [...]`".to_owned(),
        );
        return found;
    };
    let rules = reader.list(rules, "`rules` of a task").unwrap_or_default();
    for node in rules {
        let rule = rule(node, &mut found, reader);
        found.rules.extend(rule);
    }
    else_is_last(rules, reader);
    found
}

/// `{when, then}`, `{else: {then}}`, `{else: {…}}` or `{else:, then}`: the condition, if any, and the consequence.
pub(super) fn parts<'n>(
    node: &'n Node,
    example: &str,
    reader: &mut Reader<'_, '_>,
) -> Option<(Option<&'n Node>, &'n Node)> {
    let entries = reader.map(node, "a rule")?;
    reader.known(entries, "a rule", RULE, Unknown::Error);
    let when = node.get("when");
    let otherwise = node.get("else");
    let hint = format!("write `{{when: \"...\", {example}}}` or `{{else: {{{example}}}}}`");
    if when.is_some() == otherwise.is_some() {
        let message =
            if when.is_some() { "a rule has `when` or `else`, not both" } else { "a rule has no `when`" };
        reader.error("E0109", &first_line(node), message, hint);
        return None;
    }
    let inside = otherwise.filter(|node| !node.is_null());
    let then = inside.map(|inside| inside.get("then").unwrap_or(inside)).or_else(|| node.get("then"));
    match then.filter(|then| !then.is_null()) {
        Some(then) => Some((when, then)),
        None => {
            reader.error("E0109", &first_line(node), "a rule has no `then`", hint);
            None
        }
    }
}

pub(super) fn else_is_last(rules: &[Node], reader: &mut Reader<'_, '_>) {
    let last = rules.iter().position(|rule| rule.get("else").is_some());
    for rule in last.map_or(&[][..], |last| &rules[last + 1..]) {
        let hint = "move `else` to the end".to_owned();
        reader.error("W0204", &first_line(rule), "a rule after `else` is never evaluated", hint);
    }
}

fn rule(node: &Node, found: &mut Rules, reader: &mut Reader<'_, '_>) -> Option<Rule> {
    let (when, then) = parts(node, "then: {do: continue}", reader)?;
    let entries = reader.map(then, "`then` of a rule")?;
    reader.known(entries, "`then` of a rule", THEN, Unknown::Error);
    let condition = when.map(|when| reader.condition(when, "`when` of a rule"));
    let action = action(then, found, reader);
    let Writes { ctx: set_ctx, iter: set_iter } = writes::of_rule(then, reader);
    let when = match condition {
        Some(condition) => Some(condition?),
        None => None,
    };
    found.reads.extend(when.iter().flat_map(|when| when.reads().to_vec()));
    found.reads.extend(set_ctx.reads.iter().chain(&set_iter.reads).cloned());
    found.patch_reads.extend(set_ctx.reads);
    let when = when.map(|when| when.source().to_owned());
    Some(Rule { when, action: action?, set_ctx: set_ctx.fields, set_iter: set_iter.fields })
}

fn action(then: &Node, found: &mut Rules, reader: &mut Reader<'_, '_>) -> Option<Action> {
    let Some(word) = then.get("do") else {
        let hint = "add `do: continue`, `retry`, `jump`, `break` or `fail`".to_owned();
        reader.error("E0109", &first_line(then), "a rule has no `do`", hint);
        return None;
    };
    Some(match reader.choice(word, "action", &ACTIONS)? {
        Do::Continue => Action::Continue,
        Do::Break => Action::Break,
        Do::Fail => Action::Fail,
        Do::Retry => retry(then, reader)?,
        Do::Jump => jump(then, found, reader)?,
    })
}

fn retry(then: &Node, reader: &mut Reader<'_, '_>) -> Option<Action> {
    let attempts = present(then, "attempts").map(|node| reader.whole(node, "`attempts`", 1..=ATTEMPTS_MAX));
    let backoff = present(then, "backoff").map(|node| reader.choice(node, "backoff", &BACKOFFS));
    let delay_ms = present(then, "delay").map(|node| reader.duration_ms(node, "`delay`"));
    let backoff = backoff.unwrap_or(Some(Backoff::Constant))?;
    let default_ms = if backoff == Backoff::Constant { 0 } else { DELAY_MS };
    Some(Action::Retry {
        attempts: attempts.unwrap_or(Some(ATTEMPTS))?,
        backoff,
        delay_ms: delay_ms.unwrap_or(Some(default_ms))?,
    })
}

fn jump(then: &Node, found: &mut Rules, reader: &mut Reader<'_, '_>) -> Option<Action> {
    let Some(to) = then.get("to") else {
        let hint = "add `to:` and the label of a task of this step".to_owned();
        reader.error("E0109", &first_line(then), "a jump has no `to`", hint);
        return None;
    };
    let to = reader.name(to, "`to` of a jump")?;
    found.jumps.push(to.clone());
    Some(Action::Jump { to: to.text })
}
