//! Tokens become step-runs by admission, condition and firing; or they wait, are discarded, or skip the step.

use super::scope::{Evaluated, GuardEvent, NoValue, View};
use super::{Accepted, Draft, ending};
use crate::event::{Event, SkipReason, TokenValue};
use crate::execution::Token;
use crate::ids::{RunId, TokenId};
use crate::input::Rejected;
use crate::net::{Admit, Join, OnDeny};
use crate::step_run::{Args, Role};
use windlass_failure::Failure;

pub(super) fn fire_token(d: &mut Draft<'_>, id: TokenId) -> Accepted {
    let Some(token) = d.state.arrived.get(&id).cloned() else { return Err(Rejected::UnknownToken(id)) };
    d.firings += 1;
    let args = match &token.value {
        TokenValue::Live(args) => args.clone(),
        TokenValue::Dead => return skip_step(d, id, &token, SkipReason::NotTaken),
        TokenValue::Poisoned => return skip_step(d, id, &token, SkipReason::Upstream),
    };
    match judge_token(d, &token, &args) {
        Ok(TokenVerdict::Denied) => deny_token(d, id, &token),
        Ok(TokenVerdict::Skipped) => skip_step(d, id, &token, SkipReason::Condition),
        Ok(TokenVerdict::Fired) => consume_token(d, id, &token, args).map(drop),
        Err(NoValue::Rejected(rejected)) => Err(rejected),
        Err(NoValue::Failed(failure)) => fail(d, id, &token, args, *failure),
    }
}

enum TokenVerdict {
    Denied,
    Skipped,
    Fired,
}

/// Evaluates admission and condition. The condition is evaluated only after the gate has opened.
fn judge_token(d: &Draft<'_>, token: &Token, args: &Args) -> Evaluated<TokenVerdict> {
    if !is_admitted(d, token, args)? {
        return Ok(TokenVerdict::Denied);
    }
    Ok(if condition_holds(d, token, args)? { TokenVerdict::Fired } else { TokenVerdict::Skipped })
}

/// Creates a step-run that fails before its work begins.
pub(super) fn fail(d: &mut Draft<'_>, id: TokenId, token: &Token, args: Args, failure: Failure) -> Accepted {
    let run = consume_token(d, id, token, args)?;
    ending::fail(d, run, failure, ending::EndDetails::default())
}

fn consume_token(d: &mut Draft<'_>, id: TokenId, token: &Token, args: Args) -> Result<RunId, Rejected> {
    let run = d.next_run();
    let (step, path) = (token.step, token.path.clone());
    d.emit(Event::Fired { run, step, path, token: Some(id), role: Role::Routed, args })?;
    Ok(run)
}

fn skip_step(d: &mut Draft<'_>, id: TokenId, token: &Token, reason: SkipReason) -> Accepted {
    let run = d.next_run();
    let (step, path) = (token.step, token.path.clone());
    d.emit(Event::Skipped { run, token: id, step, path: path.clone(), reason })?;
    super::loops::settle_member(d, step, &path)
}

fn deny_token(d: &mut Draft<'_>, id: TokenId, token: &Token) -> Accepted {
    let Some(admit) = &d.net.step(token.step).admit else { return Ok(()) };
    match admit.on_deny {
        // With joins that wait for all arcs, a discarded token still has to be passed on.
        OnDeny::Discard if d.net.policy().join != Join::Each => skip_step(d, id, token, SkipReason::NotTaken),
        OnDeny::Discard => d.emit(Event::Discarded { token: id }),
        OnDeny::Wait => {
            let deadline = admit.deadline_ms.map(|ms| d.at.plus(ms));
            d.emit(Event::Denied { token: id, deadline })
        }
    }
}

fn is_admitted(d: &Draft<'_>, token: &Token, args: &Args) -> Evaluated<bool> {
    match &d.net.step(token.step).admit {
        Some(admit) if !token.admitted => is_allowed(d, admit, token, args),
        _ => Ok(true),
    }
}

/// Evaluates the rules of admission. The first match wins; without a match and without `else` the token is denied.
pub(super) fn is_allowed(d: &Draft<'_>, admit: &Admit, token: &Token, args: &Args) -> Evaluated<bool> {
    let view = View::of_token(d, token.step, &token.path, args).with_event(arrival_event(d, token));
    for rule in &admit.rules {
        let matches = match &rule.when {
            Some(when) => view.is_true(when)?,
            None => true,
        };
        if matches {
            return Ok(rule.allow);
        }
    }
    Ok(false)
}

/// Returns the event that sent the token here.
fn arrival_event<'d>(d: &'d Draft<'_>, token: &Token) -> GuardEvent<'d> {
    let step = token.from.map(|(step, _)| d.net.step(step).name.as_str());
    GuardEvent::Arrival { step, failed: token.from.is_some_and(|(_, failed)| failed) }
}

fn condition_holds(d: &Draft<'_>, token: &Token, args: &Args) -> Evaluated<bool> {
    match &d.net.step(token.step).condition {
        Some(condition) => View::of_token(d, token.step, &token.path, args).is_true(condition),
        None => Ok(true),
    }
}
