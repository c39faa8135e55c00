//! Tokens become step-runs by admission, condition and firing; or they wait, are discarded, or skip the step.

use super::scope::{Boundary, Trouble, View};
use super::{Draft, ending};
use crate::event::{Event, SkipReason, TokenValue};
use crate::execution::Token;
use crate::ids::{RunId, TokenId};
use crate::input::Rejected;
use crate::net::{Admit, Join, OnDeny};
use crate::step_run::{Args, Role};
use windlass_failure::Failure;

pub(super) fn fire(d: &mut Draft<'_>, id: TokenId) -> Result<(), Rejected> {
    let Some(token) = d.state.arrived.get(&id).cloned() else { return Err(Rejected::UnknownToken(id)) };
    d.firings += 1;
    let args = match &token.value {
        TokenValue::Live(args) => args.clone(),
        TokenValue::Dead => return skip(d, id, &token, SkipReason::NotTaken),
        TokenValue::Poisoned => return skip(d, id, &token, SkipReason::Upstream),
    };
    match verdict(d, &token, &args) {
        Ok(Verdict::Denied) => deny(d, id, &token),
        Ok(Verdict::Skipped) => skip(d, id, &token, SkipReason::Condition),
        Ok(Verdict::Fired) => consume(d, id, &token, args).map(drop),
        Err(Trouble::Rejected(rejected)) => Err(rejected),
        Err(Trouble::Failed(failure)) => fail(d, id, &token, args, *failure),
    }
}

enum Verdict {
    Denied,
    Skipped,
    Fired,
}

/// Evaluates admission and condition. The condition is evaluated only after the gate has opened.
fn verdict(d: &Draft<'_>, token: &Token, args: &Args) -> Result<Verdict, Trouble> {
    if !admission(d, token, args)? {
        return Ok(Verdict::Denied);
    }
    Ok(if condition(d, token, args)? { Verdict::Fired } else { Verdict::Skipped })
}

/// Creates a step-run that fails before its work begins.
pub(super) fn fail(
    d: &mut Draft<'_>,
    id: TokenId,
    token: &Token,
    args: Args,
    failure: Failure,
) -> Result<(), Rejected> {
    let run = consume(d, id, token, args)?;
    ending::fail(d, run, failure, ending::Told::default())
}

fn consume(d: &mut Draft<'_>, id: TokenId, token: &Token, args: Args) -> Result<RunId, Rejected> {
    let run = d.next_run();
    let (step, path) = (token.step, token.path.clone());
    d.emit(Event::Fired { run, step, path, token: Some(id), role: Role::Routed, args })?;
    Ok(run)
}

fn skip(d: &mut Draft<'_>, id: TokenId, token: &Token, reason: SkipReason) -> Result<(), Rejected> {
    let run = d.next_run();
    let (step, path) = (token.step, token.path.clone());
    d.emit(Event::Skipped { run, token: id, step, path: path.clone(), reason })?;
    super::loops::member_settled(d, step, &path)
}

fn deny(d: &mut Draft<'_>, id: TokenId, token: &Token) -> Result<(), Rejected> {
    let Some(admit) = &d.net.step(token.step).admit else { return Ok(()) };
    match admit.on_deny {
        // With joins that wait for all arcs, a discarded token still has to be passed on.
        OnDeny::Discard if d.net.policy().join != Join::Each => skip(d, id, token, SkipReason::NotTaken),
        OnDeny::Discard => d.emit(Event::Discarded { token: id }),
        OnDeny::Wait => {
            let deadline = admit.deadline_ms.map(|ms| d.at.plus(ms));
            d.emit(Event::Denied { token: id, deadline })
        }
    }
}

fn admission(d: &Draft<'_>, token: &Token, args: &Args) -> Result<bool, Trouble> {
    match &d.net.step(token.step).admit {
        Some(admit) if !token.admitted => allowed(d, admit, token, args),
        _ => Ok(true),
    }
}

/// Evaluates the rules of admission. The first match wins; without a match and without `else` the token is denied.
pub(super) fn allowed(d: &Draft<'_>, admit: &Admit, token: &Token, args: &Args) -> Result<bool, Trouble> {
    let view = View::of_token(d, token.step, &token.path, args).with_event(boundary(d, token));
    for rule in &admit.rules {
        let matches = match &rule.when {
            Some(when) => view.truth(when)?,
            None => true,
        };
        if matches {
            return Ok(rule.allow);
        }
    }
    Ok(false)
}

/// Returns the event that sent the token here.
fn boundary<'d>(d: &'d Draft<'_>, token: &Token) -> Boundary<'d> {
    let step = token.from.map(|(step, _)| d.net.step(step).name.as_str());
    Boundary::Arrival { step, failed: token.from.is_some_and(|(_, failed)| failed) }
}

fn condition(d: &Draft<'_>, token: &Token, args: &Args) -> Result<bool, Trouble> {
    match &d.net.step(token.step).condition {
        Some(condition) => View::of_token(d, token.step, &token.path, args).truth(condition),
        None => Ok(true),
    }
}
