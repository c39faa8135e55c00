//! Join steps of `each` nets: a step fires once for the tokens that wait at it, when no other branch can reach it.

use super::scope::{Evaluated, NoValue, View};
use super::{Accepted, Draft, firing};
use crate::event::Event;
use crate::execution::Token;
use crate::ids::{Path, StepId, TokenId};
use crate::input::Rejected;
use crate::step_run::Args;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_artifact::json_bytes;
use windlass_failure::{Failure, codes};

/// Maximum size of the arguments of all branches together, as JSON. They become one value in memory.
const JOINED_BYTES_MAX: usize = 1 << 20;

/// Maximum number of arrivals that the arguments list; all of them are merged.
const ARRIVALS_LISTED_MAX: usize = 1_000;

/// Argument that lists the arrivals.
const ARRIVED: &str = "arrived";

/// Returns the first join step with waiting tokens that no other branch can reach.
pub(super) fn find_complete(d: &Draft<'_>) -> Option<StepId> {
    let branches = &d.head().branches;
    let number = branches.iter().position(|branches| branches.waiting > 0 && branches.coming == 0)?;
    Some(d.net.join_steps()[number])
}

/// Returns the join step that fires when nothing else is left to do: gates that may stay closed no longer hold it back,
/// and of join steps that wait for each other the first one fires.
pub(super) fn find_last(d: &Draft<'_>) -> Option<StepId> {
    let steps = d.net.join_steps().iter().zip(&d.head().branches);
    let waiting: Vec<StepId> =
        steps.filter(|(_, branches)| branches.waiting > 0).map(|(step, _)| *step).collect();
    let is_behind = |step: &StepId| {
        let number = d.net.join_number(*step).unwrap_or_default();
        waiting.iter().any(|other| other != step && d.net.joins_behind(*other) >> number & 1 == 1)
    };
    waiting.iter().find(|step| !is_behind(step)).or(waiting.first()).copied()
}

/// Replaces the tokens that wait at a join step by one.
pub(super) fn join_branches(d: &mut Draft<'_>, step: StepId) -> Accepted {
    d.firings += 1;
    let waiting = d.state.joining.range((step, TokenId(0))..=(step, TokenId(u64::MAX)));
    let waiting: Vec<(TokenId, Token)> = waiting.map(|((_, id), token)| (*id, token.clone())).collect();
    let (args, failure) = match merge_args(d, &waiting) {
        Ok(args) => (args, None),
        Err(NoValue::Rejected(rejected)) => return Err(rejected),
        Err(NoValue::Failed(failure)) => (None, Some(*failure)),
    };
    let tokens = waiting.iter().map(|(id, _)| *id).collect();
    let token = d.head().next_token;
    d.emit(Event::Joined { step, tokens, token, args })?;
    match failure {
        None => Ok(()),
        Some(failure) => fail_joined(d, token, failure),
    }
}

fn fail_joined(d: &mut Draft<'_>, id: TokenId, failure: Failure) -> Accepted {
    let Some(token) = d.state.arrived.get(&id).cloned() else { return Err(Rejected::UnknownToken(id)) };
    firing::fail(d, id, &token, None, failure)
}

/// Merges the arguments of the branches and lists the arrivals, in the order of the arcs in the definition, so that
/// neither depends on the branches' speed.
fn merge_args(d: &Draft<'_>, waiting: &[(TokenId, Token)]) -> Evaluated<Args> {
    let mut arrivals: Vec<(&Token, Args)> =
        waiting.iter().map(|(_, token)| (token, super::context::token_args(token))).collect();
    arrivals.sort_by_key(|(token, _)| token.from.map(|(step, _)| step));
    check_size(d, &arrivals)?;
    let nothing = Value::Null;
    let values = arrivals.iter().map(|(_, args)| args.as_deref().unwrap_or(&nothing));
    let values = View::new(d, &Path::default(), &None).resolve_all(values)?;
    let (mut merged, mut listed) = (Map::new(), Vec::new());
    for ((token, _), args) in arrivals.iter().zip(values) {
        if let Value::Object(args) = &args {
            merged.extend(args.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        if listed.len() < ARRIVALS_LISTED_MAX {
            let from = token.from.map(|(step, _)| &d.net.step(step).name);
            let failed = token.from.is_some_and(|(_, failed)| failed);
            listed.push(json!({ "step": from, "failed": failed, "args": args }));
        }
    }
    merged.insert(ARRIVED.to_owned(), Value::Array(listed));
    Ok(Some(Arc::new(Value::Object(merged))))
}

/// Refuses arguments that are too large before any of them is loaded.
fn check_size(d: &Draft<'_>, arrivals: &[(&Token, Args)]) -> Evaluated<()> {
    let size = |args: &Args| args.as_deref().map_or(0, stored_bytes);
    let bytes: usize = arrivals.iter().map(|(_, args)| size(args)).sum();
    if bytes <= JOINED_BYTES_MAX {
        return Ok(());
    }
    let step = arrivals.first().map_or("", |(token, _)| d.net.step(token.step).name.as_str());
    let message = format!(
        "the branches that join at `{step}` carry {bytes} bytes of arguments, more than {JOINED_BYTES_MAX}; read large \
         values from the results of their steps instead"
    );
    Err(NoValue::failed(Failure::new(codes::LIMIT_EXCEEDED, message)))
}

/// Returns the size of a value, or of the value that a reference names.
fn stored_bytes(args: &Value) -> usize {
    let referred = windlass_artifact::key(args).and_then(|_| args["bytes"].as_u64());
    referred.map_or_else(|| json_bytes(args), |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}
