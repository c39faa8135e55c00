//! Records that a retry takes over from an ended execution. They come before the execution starts: firings take their
//! tokens by step, and numbers may be left out with the firings that are run again (R12).

use super::{Applied, runs, tokens};
use crate::event::Fork;
use crate::execution::{Clock, Execution, JoinState, ParkedIteration, Token};
use crate::ids::{Path, RunId, StepId, TokenId};
use crate::net::{Join, Net};
use crate::phase::Phase;
use crate::step_run::Kind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of newest tokens among which a token is searched first: as many as a parallel loop usually emits at a time.
const RECENT_TOKENS: u64 = 64;

/// Returns whether records are taken over: no record of a firing comes before the start otherwise.
pub(super) fn is_taking_over(state: &Execution<'_>) -> bool {
    state.head.phase == Phase::Queued
}

/// Checks that a number is the next one, or a later one among records that were taken over.
pub(super) fn is_next<N: Ord>(state: &Execution<'_>, number: &N, next: &N) -> bool {
    number == next || is_taking_over(state) && number > next
}

/// Marks a step as run. In nets with joins it takes the tokens that are there and those that still come.
pub(super) fn mark_taken(state: &mut Execution<'_>, net: &Net, step: StepId, path: &Path) {
    Arc::make_mut(&mut state.head.imported).insert(step);
    if net.policy().join == Join::Each {
        return;
    }
    let is_here = |(_, token): &(&TokenId, &Token)| token.step == step && token.path == *path;
    // Most tokens are taken soon after they were emitted, so the newest are examined first.
    let recent = TokenId(state.head.next_token.0.saturating_sub(RECENT_TOKENS));
    let found = state.arrived.from(recent).find(is_here).or_else(|| state.arrived.iter().find(is_here));
    if let Some(token) = found.map(|(token, _)| *token) {
        state.arrived.remove(&token);
    }
    // Outside loops the list of steps is enough.
    state.joins.remove(&(step, path.clone()));
    if !path.0.is_empty() {
        let taken = JoinState { taken: true, ..JoinState::default() };
        state.joins.insert((step, path.clone()), Box::new(taken));
    }
}

/// Returns whether a token arrives at a step that has run already.
pub(super) fn absorbs(state: &Execution<'_>, net: &Net, step: StepId, path: &Path) -> bool {
    state.head.imported.contains(&step)
        && net.policy().join != Join::Each
        && (path.0.is_empty() || state.joins.get(&(step, path.clone())).is_some_and(|join| join.taken))
}

/// Sets the name and the numbers of the execution. Children of the ended execution become new ones, and iterations that
/// are run again wait until their loop has room.
pub(super) fn forked(state: &mut Execution<'_>, net: &Net, fork: &Fork) -> Applied {
    if fork.generation <= state.head.generation || !is_taking_over(state) {
        return Err("a retry needs a later generation and an execution that has not started".into());
    }
    let open: Vec<RunId> =
        state.runs.iter().filter(|(_, run)| run.state.kind().in_flight()).map(|(id, _)| *id).collect();
    for run in open {
        runs::reopened(state, net, run)?;
    }
    park_iterations(state, net)?;
    let head = &mut state.head;
    head.id = fork.id;
    head.parent = fork.child_of.clone().map(Arc::new);
    head.held = false;
    head.clock = Clock::None;
    if let Some(inputs) = &fork.inputs {
        head.inputs = inputs.clone();
    }
    super::life::restart_numbering(head, fork.generation);
    Ok(())
}

/// Takes what could run inside open iterations out of the lists of runnable work.
fn park_iterations(state: &mut Execution<'_>, net: &Net) -> Applied {
    let mut parked: BTreeMap<(RunId, u32), ParkedIteration> = BTreeMap::new();
    for (key, _) in state.scopes.iter().filter(|(key, _)| !state.parked.contains(key)) {
        parked.insert(*key, ParkedIteration::default());
    }
    let tokens = state
        .arrived
        .iter()
        .filter_map(|(id, token)| Some((*id, state.enclosing_iteration(net, token.step, &token.path)?)));
    for (id, key) in tokens.collect::<Vec<_>>() {
        parked.entry(key).or_default().tokens.extend(state.arrived.remove(&id));
    }
    let ready = state.ready.keys().filter_map(|key| Some((*key, state.run(key.2)?)));
    let ready = ready.filter_map(|(key, run)| Some((key, state.iteration_of(net, run)?)));
    for (key, iteration) in ready.collect::<Vec<_>>() {
        state.ready.remove(&key);
        state.head.census.ready -= 1;
        parked.entry(iteration).or_default().ready.push(key.2);
    }
    for (of, _) in parked.keys() {
        let repeat = runs::loop_state(state, *of)?;
        repeat.open -= 1;
        repeat.parked += 1;
        runs::update_hungry(state, net, *of);
    }
    let looping = state.runs.iter().filter(|(_, run)| run.state.kind() == Kind::Looping);
    for id in looping.map(|(id, _)| *id).collect::<Vec<_>>() {
        wake_loop(state, net, id);
    }
    let loops = state.hungry.keys().filter_map(|id| Some((*id, state.iteration_of(net, state.run(*id)?)?)));
    for (id, iteration) in loops.collect::<Vec<_>>() {
        state.hungry.remove(&id);
        parked.entry(iteration).or_default().loops.push(id);
    }
    for (key, iteration) in parked {
        state.parked.insert(key, Box::new(iteration));
    }
    Ok(())
}

/// Lists a loop that may open an iteration, or that has to end because all its iterations were taken over.
fn wake_loop(state: &mut Execution<'_>, net: &Net, id: RunId) {
    runs::update_hungry(state, net, id);
    if runs::loop_state(state, id).is_ok_and(|repeat| repeat.open == 0 && !repeat.has_more()) {
        state.hungry.insert(id, ());
    }
}

/// Parks the iterations before `index` that were left out.
pub(super) fn park_left_out(state: &mut Execution<'_>, of: RunId, index: u32) -> Applied {
    let left_out = runs::loop_state(state, of)?.next..index;
    for left in left_out {
        let repeat = runs::loop_state(state, of)?;
        repeat.next += 1;
        repeat.parked += 1;
        state.parked.insert((of, left), Box::default());
    }
    Ok(())
}

/// Removes what waits for steps that a changed definition has in addition, in an iteration that is taken over as a whole.
pub(super) fn drop_added_steps(state: &mut Execution<'_>, net: &Net, of: StepId, path: &Path) {
    let is_added = |token: &Token| net.step(token.step).region == Some(of) && token.path == *path;
    let tokens = state.arrived.iter().filter(|(_, token)| is_added(token)).map(|(id, _)| *id);
    for token in tokens.collect::<Vec<_>>() {
        state.arrived.remove(&token);
    }
    for member in net.members(of) {
        state.joins.remove(&(*member, path.clone()));
    }
}

/// Opens a parked iteration. Returns what it runs, or `None` if the iteration is not parked.
pub(super) fn unpark(state: &mut Execution<'_>, of: RunId, index: u32) -> Option<Box<ParkedIteration>> {
    let parked = state.parked.remove(&(of, index))?;
    if let Ok(repeat) = runs::loop_state(state, of) {
        repeat.parked -= 1;
        repeat.open += 1;
    }
    Some(parked)
}

pub(super) fn resume_parked(state: &mut Execution<'_>, net: &Net, parked: ParkedIteration) {
    parked.tokens.into_iter().for_each(|token| tokens::enable_token(state, net, token));
    for id in parked.ready {
        let Some(run) = state.run(id).filter(|run| run.state.kind() == Kind::Ready) else { continue };
        let key = runs::ready_key(net, id, run);
        state.ready.insert(key, ());
        state.head.census.ready += 1;
    }
    parked.loops.into_iter().for_each(|id| wake_loop(state, net, id));
}

/// Counts parked step-runs again before they are removed with everything else.
pub(super) fn discard_parked(state: &mut Execution<'_>) {
    let parked: usize = state.parked.values().map(|parked| parked.ready.len()).sum();
    state.head.census.ready += u32::try_from(parked).unwrap_or(u32::MAX);
    state.parked.clear();
}
