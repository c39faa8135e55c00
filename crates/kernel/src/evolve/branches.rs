//! Branches that can still reach the join steps of an `each` net, and the tokens that wait there. Nets without join steps
//! count nothing.

use super::{Applied, tokens};
use crate::event::TokenValue;
use crate::execution::{Branches, Execution, Token};
use crate::ids::{Path, StepId, TokenId};
use crate::net::Net;
use crate::step_run::Args;

/// Starts to count; nothing is live yet.
pub(super) fn reset(state: &mut Execution<'_>, net: &Net) {
    state.head.branches = vec![Branches::default(); net.join_steps().len()];
}

/// Counts a token or a step-run at a step.
pub(super) fn enter(state: &mut Execution<'_>, net: &Net, step: StepId) {
    add(state, net.joins_behind(step));
}

/// Counts a token or a step-run at a step no longer.
pub(super) fn leave(state: &mut Execution<'_>, net: &Net, step: StepId) -> Applied {
    remove(state, net.joins_behind(step))
}

fn add(state: &mut Execution<'_>, joins: u64) {
    for number in numbers(joins) {
        if let Some(branches) = state.head.branches.get_mut(number) {
            branches.coming += 1;
        }
    }
}

fn remove(state: &mut Execution<'_>, joins: u64) -> Applied {
    for number in numbers(joins) {
        if let Some(branches) = state.head.branches.get_mut(number) {
            branches.coming =
                branches.coming.checked_sub(1).ok_or("a branch ends that was not counted (K4)")?;
        }
    }
    Ok(())
}

/// Returns the numbers of the join steps in a set.
fn numbers(mut joins: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = joins.trailing_zeros();
        joins &= joins.wrapping_sub(1);
        (number < u64::BITS).then_some(number as usize)
    })
}

/// Returns the join steps that a token reaches by way of the one at which it waits. It does not keep its own from firing.
fn beyond(net: &Net, step: StepId, number: usize) -> u64 {
    net.joins_behind(step) & !(1 << number)
}

/// Lets a token wait at a join step.
pub(super) fn wait(state: &mut Execution<'_>, net: &Net, number: usize, token: Token) {
    let id = state.head.next_token;
    state.head.next_token = id.next();
    if let Some(branches) = state.head.branches.get_mut(number) {
        branches.waiting += 1;
        if branches.waiting == 1 {
            add(state, beyond(net, token.step, number));
        }
    }
    state.joining.insert((token.step, id), token);
}

/// Applies the event of the same name.
pub(super) fn joined(
    state: &mut Execution<'_>,
    net: &Net,
    step: StepId,
    joined: &[TokenId],
    token: TokenId,
    args: &Args,
) -> Applied {
    let number = net.join_number(step).ok_or("a step joins that is not a join step")?;
    let branches = state.head.branches.get_mut(number).ok_or("a step joins after a clearing")?;
    if token != state.head.next_token || std::mem::take(&mut branches.waiting) as usize != joined.len() {
        return Err("a join leaves tokens behind (K4)".into());
    }
    let mut from = None;
    for id in joined {
        let taken = state.joining.remove(&(step, *id)).ok_or("a token is joined that does not wait (K4)")?;
        from = taken.from;
    }
    remove(state, beyond(net, step, number))?;
    let value = TokenValue::Live(args.clone());
    tokens::enable_token(state, net, Token { step, path: Path::default(), value, admitted: false, from });
    Ok(())
}
