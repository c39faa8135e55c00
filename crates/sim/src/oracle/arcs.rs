//! Arcs that carry control after a step ended. Pure: the truth of guards follows from the event, the flags and the argument.

use super::run::End;
use crate::scenario::{Failure, Step, When};
use std::collections::BTreeSet;

/// Values that a guard can read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight<'a> {
    pub(super) event: Option<End>,
    pub(super) flags: &'a BTreeSet<usize>,
    pub(super) arg: Option<i64>,
}

/// A guard that cannot be evaluated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Live(Option<i64>),
    Dead,
    Poisoned,
}

pub(super) fn truth(when: When, sight: Sight<'_>) -> Result<bool, Unreadable> {
    Ok(match (when, sight.event) {
        (When::Always, _) => true,
        (When::Never, _) => false,
        (When::Broken, _) => return Err(Unreadable),
        (When::Done, event) => matches!(event, Some(End::Done(_))),
        (When::Failed, event) => event == Some(End::Failed),
        (When::Ended, event) => matches!(event, Some(End::Done(_) | End::Failed)),
        (When::AtLeast(least), Some(End::Done(Some(n)))) => n >= least,
        (When::AtLeast(_), _) => false,
        (When::Flag(flag), _) => sight.flags.contains(&flag),
        (When::ArgAtLeast(least), _) => sight.arg.is_some_and(|arg| arg >= least),
    })
}

/// Playbooks: the arcs that match, in order. After a refusal an arc must handle the failure.
pub(super) fn matching(step: &Step, sight: Sight<'_>, refused: bool) -> Result<Vec<usize>, Unreadable> {
    let mut matched = Vec::new();
    for (index, arc) in step.arcs.iter().enumerate() {
        if truth(arc.when, sight)? && (!refused || handles(arc.when)) {
            matched.push(index);
        }
        if step.exclusive && !matched.is_empty() {
            break;
        }
    }
    Ok(matched)
}

/// Returns whether the guard handles failures: of the guards that are true after a failure, only this one is false
/// after a success.
pub(super) fn handles(when: When) -> bool {
    when == When::Failed
}

/// Joins, after an end that is well: every arc gets a token.
pub(super) fn after_done(step: &Step, sight: Sight<'_>) -> Result<Vec<Token>, Unreadable> {
    let mut tokens = Vec::new();
    let mut taken = false;
    for arc in &step.arcs {
        let passed_by = arc.on_error || (step.exclusive && taken);
        let live = !passed_by && truth(arc.when, sight)?;
        taken |= live;
        tokens.push(if live { Token::Live(arc.args) } else { Token::Dead });
    }
    Ok(tokens)
}

pub(super) fn handles_failure(step: &Step) -> bool {
    step.arcs.iter().any(|arc| arc.on_error)
}

/// Joins, after a failure: no guard is asked. A refusal is handed on to error handles only.
pub(super) fn after_failure(step: &Step, failure: Failure, refused: bool) -> Vec<Token> {
    let closes = step.conditional || refused;
    let live_if = |live, args| if live { Token::Live(args) } else { Token::Dead };
    let of_arc = |arc: &crate::scenario::Arc| match (handles_failure(step), failure, closes) {
        (true, _, _) => live_if(arc.on_error, arc.args),
        (false, Failure::Collect, false) => live_if(arc.when == When::Always, arc.args),
        (false, Failure::Collect | Failure::Continue | Failure::FailFast, _) => Token::Poisoned,
    };
    step.arcs.iter().map(of_arc).collect()
}
