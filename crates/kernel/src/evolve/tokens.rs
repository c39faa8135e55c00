//! Tokens: their arrival, waiting and consumption (K4). Functions in the past tense apply the event of the same name.

use super::{Applied, branches, takeover};
use crate::event::{BranchEnd, Emission, SkipReason, TokenValue};
use crate::execution::{Execution, Gate, JoinState, Token};
use crate::ids::{Millis, Path, RunId, StepId, TokenId};
use crate::net::{Join, Net};
use crate::step_run::{Args, Patch, StepRun};
use serde_json::{Map, Value};
use std::sync::Arc;

pub(super) fn routed(
    state: &mut Execution<'_>,
    net: &Net,
    run: RunId,
    step: StepId,
    path: &Path,
    emitted: &[Emission],
    end: BranchEnd,
) -> Applied {
    let failed = state.head.last_failed == Some(run);
    if run >= state.head.next_run || state.runs.contains(&run) || !net.knows(step) {
        return Err(format!("step-run {run} is routed but has not ended"));
    }
    match end {
        BranchEnd::GoesOn => {}
        BranchEnd::Well => state.head.counts.branches_well += 1,
        BranchEnd::Failed => state.head.counts.branches_failed += 1,
        BranchEnd::DeadEnd => {
            state.head.counts.branches_failed += 1;
            state.head.counts.unhandled += 1;
        }
    }
    emit_tokens(state, net, step, path, emitted, failed)
}

pub(super) fn emit_tokens(
    state: &mut Execution<'_>,
    net: &Net,
    step: StepId,
    path: &Path,
    emitted: &[Emission],
    failed: bool,
) -> Applied {
    for emission in emitted {
        let arc =
            net.step(step).router.arcs.get(emission.arc as usize).ok_or("an arc that does not exist")?;
        let slot = net.slot(step, emission.arc as usize);
        deliver(state, net, arc.to, path, slot, emission.token.clone(), Some((step, failed)))?;
    }
    Ok(())
}

/// Delivers a token to a step. It is enabled at once, or together with the last token of its join.
pub(super) fn deliver(
    state: &mut Execution<'_>,
    net: &Net,
    step: StepId,
    path: &Path,
    slot: u32,
    value: TokenValue,
    from: Option<(StepId, bool)>,
) -> Applied {
    if takeover::absorbs(state, net, step, path) {
        return Ok(());
    }
    let arcs_in = net.arcs_in(step);
    if net.policy().join == Join::Each || arcs_in <= 1 {
        let token = Token { step, path: path.clone(), value, admitted: false, from };
        match net.join_number(step) {
            Some(number) => branches::wait(state, net, number, token),
            None => enable_token(state, net, token),
        }
        return Ok(());
    }
    let key = (step, path.clone());
    if !state.joins.contains(&key) {
        state.joins.insert(key.clone(), Box::default());
    }
    let join = state.joins.get_mut(&key).ok_or("a join that does not exist")?;
    join_token(join, slot, value)?;
    if join.arrived == arcs_in {
        let join = state.joins.remove(&key).unwrap_or_default();
        let value = resolve_join(net.policy().join, *join);
        enable_token(state, net, Token { step, path: path.clone(), value, admitted: false, from });
    }
    Ok(())
}

pub(super) fn enable_token(state: &mut Execution<'_>, net: &Net, token: Token) {
    branches::enter(state, net, token.step);
    let id = state.head.next_token;
    state.head.next_token = id.next();
    state.arrived.insert(id, token);
}

fn join_token(join: &mut JoinState, slot: u32, value: TokenValue) -> Applied {
    let (word, bit) = (slot as usize / 64, 1u64 << (slot % 64));
    if join.slots.len() <= word {
        join.slots.resize(word + 1, 0);
    }
    if join.slots[word] & bit != 0 {
        return Err("an arc carries a second token (K4)".into());
    }
    join.slots[word] |= bit;
    join.arrived += 1;
    match value {
        TokenValue::Live(args) => {
            join.live = true;
            join.args.extend(args.map(|args| (slot, args)));
        }
        TokenValue::Dead => join.dead = true,
        TokenValue::Poisoned => join.poisoned = true,
    }
    Ok(())
}

/// Merges the tokens of a join. This table is the whole difference between the dialects.
fn resolve_join(join: Join, state: JoinState) -> TokenValue {
    match (join, state.poisoned, state.live, state.dead) {
        (Join::All | Join::AnyLive, true, _, _) => TokenValue::Poisoned,
        (Join::All, false, true, false) | (Join::AnyLive, false, true, _) => {
            TokenValue::Live(merge_args(state.args))
        }
        (Join::All, false, _, _) | (Join::AnyLive, false, false, _) => TokenValue::Dead,
        // `each` waits at join steps only, where other rules apply: a single live token passes unchanged.
        (Join::Each, _, _, _) => TokenValue::Live(merge_args(state.args)),
    }
}

/// Merges the arguments of several live tokens in the order of the arcs, independent of their arrival (R17).
fn merge_args(mut args: Vec<(u32, Arc<Value>)>) -> Args {
    args.sort_by_key(|(slot, _)| *slot);
    if args.len() <= 1 {
        return args.pop().map(|(_, args)| args);
    }
    let mut merged = Map::new();
    for (_, args) in &args {
        if let Value::Object(args) = &**args {
            merged.extend(args.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
    }
    Some(Arc::new(Value::Object(merged)))
}

pub(super) fn denied(state: &mut Execution<'_>, id: TokenId, deadline: Option<Millis>) -> Applied {
    let token = state.arrived.remove(&id).ok_or("a token is denied that is not enabled")?;
    state.gated.insert((token.step, id), Box::new(Gate { token, deadline }));
    Ok(())
}

pub(super) fn admitted(state: &mut Execution<'_>, tokens: &[(StepId, TokenId)]) -> Applied {
    for key in tokens {
        let gate = state.gated.remove(key).ok_or("a token is admitted that is not at a gate")?;
        state.arrived.insert(key.1, Token { admitted: true, ..gate.token });
    }
    Ok(())
}

pub(super) fn discarded(state: &mut Execution<'_>, net: &Net, id: TokenId) -> Applied {
    let token = take_token(state, id)?;
    branches::leave(state, net, token.step)
}

/// Removes an enabled token, which is consumed exactly once (K4).
pub(super) fn take_token(state: &mut Execution<'_>, id: TokenId) -> Result<Token, String> {
    state.arrived.remove(&id).ok_or_else(|| format!("token {id} is consumed but not enabled (K4)"))
}

pub(super) fn skipped(
    state: &mut Execution<'_>,
    net: &Net,
    run: RunId,
    token: TokenId,
    step: StepId,
    path: &Path,
    reason: SkipReason,
) -> Applied {
    let is_taken_over = takeover::is_taking_over(state);
    if !takeover::is_next(state, &run, &state.head.next_run) {
        return Err(format!("step-run {run} is not the next firing"));
    }
    if is_taken_over && net.policy().join != Join::Each {
        takeover::mark_taken(state, net, step, path);
    } else {
        let taken = take_token(state, token)?;
        if taken.step != step || taken.path != *path {
            return Err("a step is skipped by a token of another step or path".into());
        }
        branches::leave(state, net, step)?;
    }
    state.head.next_run = run.next();
    state.head.counts.firings += 1;
    state.head.counts.skipped += 1;
    super::ends::resolve_member(state, net, step, path, false)?;
    if net.policy().join == Join::Each {
        state.head.counts.branches_well += 1;
        return Ok(());
    }
    let value = if reason == SkipReason::Upstream { TokenValue::Poisoned } else { TokenValue::Dead };
    for (arc, number) in net.step(step).router.arcs.iter().zip(0..) {
        if !net.is_body_arc(step, arc) {
            let slot = net.slot(step, number);
            deliver(state, net, arc.to, path, slot, value.clone(), Some((step, false)))?;
        }
    }
    Ok(())
}

/// Merges a patch into the context by top-level key; the last commit wins (R13).
pub(super) fn merge_patch(state: &mut Execution<'_>, patch: &Patch) {
    if !patch.is_empty() {
        save_seen_context(state);
        Arc::make_mut(&mut state.head.ctx).merge(patch);
    }
}

/// Saves the current context for dispatched step-runs, which keep seeing it (R13).
fn save_seen_context(state: &mut Execution<'_>) {
    let sees = |run: &StepRun| run.fence.is_some() && run.ctx.is_none();
    let seeing: Vec<RunId> = state.runs.iter().filter(|(_, run)| sees(run)).map(|(id, _)| *id).collect();
    for id in seeing {
        if let Some(run) = state.runs.get_mut(&id) {
            run.ctx = Some(state.head.ctx.clone());
        }
    }
}
