//! The execution as a whole: creation, phases, clearing, restart, fork. Functions in the past tense apply the event
//! of the same name.

use super::{Applied, branches, ends, runs, takeover, tokens};
use crate::event::{Cause, Cleared, Created, Fork, Import, StartWhen, TokenValue};
use crate::execution::{Clock, Counts, Decided, Execution, Finale, Head, Token};
use crate::ids::{Fence, Millis, Path, RunId, TokenId};
use crate::net::{Affinity, Net};
use crate::phase::{Move, Outcome, Phase};
use crate::step_run::Ctx;
use std::sync::Arc;
use windlass_failure::Failure;

pub(super) fn move_phase(state: &mut Execution<'_>, step: Move) -> Applied {
    let phase = state.head.phase;
    state.head.phase = phase.after(step).ok_or_else(|| format!("no {step:?} in {}", phase.name()))?;
    Ok(())
}

pub(super) fn created(state: &mut Execution<'_>, net: &Net, created: &Created) -> Applied {
    move_phase(state, Move::Create)?;
    if created.net != net.digest() {
        return Err("the journal belongs to another net".into());
    }
    let head = &mut state.head;
    let create = &created.create;
    head.id = create.id;
    head.net = created.net;
    head.inputs = create.inputs.clone();
    head.timeout_ms = create.timeout_ms;
    head.start = create.start;
    head.parent = create.parent.clone().map(Arc::new);
    head.depth = create.depth;
    branches::reset(state, net);
    import_steps(state, net, &create.imports)
}

/// Takes over completed steps of an earlier execution: they are counted, may be compensated, and their tokens are
/// delivered.
fn import_steps(state: &mut Execution<'_>, net: &Net, imports: &[Import]) -> Applied {
    if imports.iter().any(|import| !net.knows(import.step)) {
        return Err("an import of a step that does not exist".into());
    }
    state.head.imported = Arc::new(imports.iter().map(|import| import.step).collect());
    for import in imports {
        let id = state.head.next_run;
        state.head.next_run = id.next();
        state.head.counts.completed += 1;
        state.head.counts.completed_without_triggers += u64::from(!net.step(import.step).trigger);
        if net.is_tracked(import.step) {
            state.latest.insert((import.step, Path::default()), id);
        }
        ends::owe_compensation(state, net, import.step, id);
        let emitted = import.emitted.as_deref().unwrap_or_default();
        tokens::emit_tokens(state, net, import.step, &Path::default(), emitted, false)?;
    }
    Ok(())
}

pub(super) fn assigned(state: &mut Execution<'_>, deadline: Option<Millis>) -> Applied {
    move_phase(state, Move::Assign)?;
    if let Some(until) = deadline {
        state.head.clock = Clock::Until(until);
    }
    Ok(())
}

pub(super) fn time_came(state: &mut Execution<'_>) -> Applied {
    if state.head.phase != Phase::Queued {
        return Err("the start time comes after the start".into());
    }
    state.head.start = StartWhen::Now;
    Ok(())
}

pub(super) fn started(state: &mut Execution<'_>, net: &Net, deadline: Option<Millis>) -> Applied {
    move_phase(state, Move::Start)?;
    state.head.clock = deadline.map_or(Clock::None, Clock::Until);
    for step in net.entries() {
        if state.head.imported.contains(step) {
            continue;
        }
        let chosen = net.policy().entry.is_none_or(|entry| entry == *step);
        let value = if chosen { TokenValue::Live(None) } else { TokenValue::Dead };
        tokens::enable_token(
            state,
            net,
            Token { step: *step, path: Path::default(), value, admitted: false, from: None },
        );
    }
    Ok(())
}

pub(super) fn set_held(state: &mut Execution<'_>, on: bool) -> Applied {
    if state.head.held == on {
        return Err("held or released twice".into());
    }
    if !matches!(state.head.phase, Phase::Running | Phase::Paused) {
        return Err(format!("no hold while {}", state.head.phase.name()));
    }
    state.head.held = on;
    Ok(())
}

pub(super) fn paused(state: &mut Execution<'_>, remaining_ms: Option<u64>) -> Applied {
    move_phase(state, Move::Pause)?;
    state.head.clock = remaining_ms.map_or(Clock::None, Clock::Left);
    Ok(())
}

pub(super) fn resumed(state: &mut Execution<'_>, deadline: Option<Millis>) -> Applied {
    move_phase(state, Move::Resume)?;
    state.head.clock = deadline.map_or(Clock::None, Clock::Until);
    Ok(())
}

pub(super) fn draining(
    state: &mut Execution<'_>,
    outcome: Outcome,
    cause: Cause,
    failure: Option<&Failure>,
    compensate: bool,
) -> Applied {
    move_phase(state, Move::Drain)?;
    if state.head.decided.is_some() {
        return Err("the outcome is decided twice (R6)".into());
    }
    state.head.decided = Some(Decided { outcome, cause, compensate });
    state.head.drained_by = failure.cloned().map(Arc::new);
    state.head.held = false;
    state.head.clock = Clock::None;
    Ok(())
}

/// Discards all tokens and removes the named step-runs. Step-runs in flight that are not named are still awaited.
pub(super) fn cleared(state: &mut Execution<'_>, net: &Net, cleared: &Cleared) -> Applied {
    takeover::discard_parked(state);
    if cleared.tokens.len() != state.arrived.len() + state.gated.len() + state.joining.len() {
        return Err("a clearing leaves tokens behind (K4)".into());
    }
    for (run, fence, how) in &cleared.dropped {
        ends::dropped(state, net, *run, *fence, *how)?;
    }
    state.arrived.clear();
    state.gated.clear();
    state.joins.clear();
    state.joining.clear();
    // Work in flight still ends, but it no longer reaches a join step.
    state.head.branches.clear();
    state.scopes.clear();
    state.hungry.clear();
    state.regions.clear();
    Ok(())
}

pub(super) fn ended(state: &mut Execution<'_>, outcome: Outcome) -> Applied {
    move_phase(state, Move::End(outcome))?;
    let tokens = state.arrived.len() + state.gated.len() + state.joining.len();
    if !state.runs.is_empty() || tokens > 0 {
        return Err("the execution ends but is not quiet (K5)".into());
    }
    // The rest is needed only while the execution is live.
    state.joins.clear();
    state.latest.clear();
    state.owed.clear();
    Ok(())
}

/// Starts a new generation from scratch (R11). The caller has cleared the old generation.
pub(super) fn restarted(
    state: &mut Execution<'_>,
    net: &Net,
    generation: u32,
    remaining_ms: Option<u64>,
    started: bool,
) -> Applied {
    let queued = net.policy().affinity == Affinity::OneWorker;
    move_phase(state, Move::Restart { queued })?;
    if generation != state.head.generation + 1 || !state.runs.is_empty() {
        return Err("a restart needs a cleared state and the next generation".into());
    }
    state.latest.clear();
    state.owed.clear();
    branches::reset(state, net);
    let head = &mut state.head;
    head.clock = remaining_ms.map_or(Clock::None, Clock::Left);
    head.restarts += 1;
    head.losses += u32::from(started);
    restart_numbering(head, generation);
    head.held = false;
    head.ctx = Ctx::default();
    // A restart runs all steps, including those of an earlier execution.
    head.imported = Arc::default();
    head.decided = None;
    head.drained_by = None;
    head.finale = Finale::NotRun;
    head.counts = Counts::default();
    head.failures = Arc::default();
    head.ruled_out = Arc::default();
    Ok(())
}

/// Continues the state of another execution; its open offers and children belong to the old one (R12).
pub(super) fn forked(state: &mut Execution<'_>, net: &Net, fork: &Fork) -> Applied {
    if fork.taken_over {
        return takeover::forked(state, net, fork);
    }
    if fork.generation != state.head.generation + 1 || state.head.phase.is_ended() {
        return Err("a fork needs a live state and the next generation".into());
    }
    let open: Vec<RunId> =
        state.runs.iter().filter(|(_, run)| run.state.kind().in_flight()).map(|(id, _)| *id).collect();
    for run in open {
        runs::reopened(state, net, run)?;
    }
    let head = &mut state.head;
    head.id = fork.id;
    head.parent = None;
    head.held = false;
    if let Some(inputs) = &fork.inputs {
        head.inputs = inputs.clone();
    }
    head.clock = match head.timeout_ms.filter(|_| head.phase == Phase::Paused) {
        Some(left) => Clock::Left(left),
        None => fork.deadline.map_or(Clock::None, Clock::Until),
    };
    restart_numbering(head, fork.generation);
    Ok(())
}

pub(super) fn restart_numbering(head: &mut Head, generation: u32) {
    head.generation = generation;
    head.next_run = RunId::first(generation);
    head.next_fence = Fence::first(generation);
    head.next_token = TokenId::first(generation);
}

pub(super) fn not_compensated(state: &mut Execution<'_>, runs: &[RunId]) -> Applied {
    if runs.len() != state.owed.len() {
        return Err("compensation that is owed is neither run nor given up".into());
    }
    state.head.counts.compensation_not_run += u32::try_from(runs.len()).unwrap_or(u32::MAX);
    state.owed.clear();
    Ok(())
}
