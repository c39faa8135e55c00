//! Step-runs while they are live. Functions in the past tense apply the event of the same name.

use super::{Applied, branches, takeover, tokens};
use crate::any_of;
use crate::event::{AgentDecision, Delegated, TokenValue};
use crate::execution::{Execution, Finale, ParkedIteration, Scope};
use crate::ids::{ExecutionId, Fence, Millis, Path, RunId, StepId, TokenId};
use crate::net::{Finish, Net, Work};
use crate::step_run::{Args, Kind, LoopState, Patch, Role, RunState, Signal, StepRun};
use serde_json::Value;
use std::sync::Arc;

#[expect(clippy::too_many_arguments, reason = "they are the event's fields")]
pub(super) fn fired(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    step: StepId,
    path: &Path,
    token: Option<TokenId>,
    role: &Role,
    args: &Args,
) -> Applied {
    if !takeover::is_next(state, &id, &state.head.next_run) || !net.knows(step) {
        return Err(format!("step-run {id} is not the next firing"));
    }
    if takeover::is_taking_over(state) && *role == Role::Routed {
        takeover::mark_taken(state, net, step, path);
    }
    if let Some(token) = token {
        let taken = tokens::take_token(state, token)?;
        if taken.step != step || taken.path != *path || !matches!(taken.value, TokenValue::Live(_)) {
            return Err(
                "a step is fired by a token of another step or path, or by one that is not live".into()
            );
        }
    } else if *role == Role::Routed {
        branches::enter(state, net, step);
    }
    if let Role::Iteration { of, index } = role {
        open_iteration(state, *of, *index)?;
        update_hungry(state, net, *of);
    }
    if let Role::Hook { of } = role {
        settle_compensation(state, *of)?;
    }
    if *role == Role::Final || net.policy().finish == Finish::Step(step) {
        state.head.finale = Finale::Ran;
    }
    state.head.next_run = id.next();
    state.head.counts.firings += 1;
    let run = StepRun::new(step, path.clone(), role.clone(), args.clone());
    state.ready.insert(ready_key(net, id, &run), ());
    state.head.census.ready += 1;
    state.runs.insert(id, Box::new(run));
    Ok(())
}

/// Removes the compensation that a hook performs; hooks run in reverse order of completion.
fn settle_compensation(state: &mut Execution<'_>, of: RunId) -> Applied {
    let newest = state.owed.first().filter(|(_, run)| run.0 == of).map(|(number, _)| *number);
    let number = newest.ok_or_else(|| format!("step-run {of} is not the next to be undone"))?;
    state.owed.remove(&number);
    Ok(())
}

/// Returns the sort key of a ready step-run: work without a slot is first, then (order, id) decides (R17).
pub(super) fn ready_key(net: &Net, id: RunId, run: &StepRun) -> (bool, u32, RunId) {
    let step = net.step(run.step);
    let whole = !matches!(run.role, Role::Iteration { .. } | Role::Hook { .. });
    let waits = step.wait_for.is_some() && whole && matches!(run.state, RunState::Ready { waited: false });
    let loops = step.repeat.is_some() && whole;
    let work = matches!(Execution::work_of(net, run), Work::Task { .. } | Work::Child { .. });
    (work && !waits && !loops, step.order, id)
}

/// Moves a step-run by the table and updates the census and the ready list.
pub(super) fn move_run(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    signal: Signal,
    change: impl FnOnce(&mut StepRun) -> Result<RunState, String>,
) -> Applied {
    let run = state.runs.get_mut(&id).ok_or_else(|| format!("step-run {id} is not live"))?;
    let before = run.state.kind();
    let after = before
        .after(signal)
        .flatten()
        .ok_or_else(|| format!("step-run {id} is {before:?}: no {signal:?} (K2)"))?;
    if before == Kind::Ready {
        state.ready.remove(&ready_key(net, id, run));
    }
    run.state = change(run)?;
    if run.state.kind() != after {
        return Err(format!("step-run {id} should be {after:?}"));
    }
    if after == Kind::Ready {
        let key = ready_key(net, id, run);
        state.ready.insert(key, ());
    }
    *state.head.census.count_mut(before) -= 1;
    *state.head.census.count_mut(after) += 1;
    Ok(())
}

pub(super) fn waiting(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    target: &Arc<Value>,
    until: Millis,
) -> Applied {
    move_run(state, net, id, Signal::Wait, |_| Ok(RunState::Waiting { target: target.clone(), until }))
}

pub(super) fn woken(state: &mut Execution<'_>, net: &Net, id: RunId) -> Applied {
    move_run(state, net, id, Signal::Wake, |_| Ok(RunState::Ready { waited: true }))
}

pub(super) fn delayed(state: &mut Execution<'_>, net: &Net, id: RunId, until: Millis) -> Applied {
    move_run(state, net, id, Signal::Delay, |_| Ok(RunState::Delayed { until }))
}

/// Checks that a fence is the next one and counts it, because every offer has a higher fence than those before (K3).
fn take_fence(state: &mut Execution<'_>, fence: Fence) -> Applied {
    if !takeover::is_next(state, &fence, &state.head.next_fence) {
        return Err(format!("fence {fence} is not the next fence (K3)"));
    }
    state.head.next_fence = fence.next();
    Ok(())
}

pub(super) fn offered(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Fence,
    attempt: u32,
    reads: &[(StepId, RunId)],
    at: Millis,
) -> Applied {
    take_fence(state, fence)?;
    move_run(state, net, id, Signal::Offer, |run| {
        mark_dispatched(run, fence, attempt)?;
        // An attempt that continues after a lost lease keeps its time.
        if net.step(run.step).clock && run.decided.is_none_or(|(of, _)| of != attempt) {
            run.decided = Some((attempt, at));
        }
        run.reads = reads.to_vec();
        Ok(RunState::Offered { fence })
    })
}

/// Marks a step-run as dispatched. It sees one context from then on (R13): `merge_patch` saves the old one for it.
fn mark_dispatched(run: &mut StepRun, fence: Fence, attempt: u32) -> Applied {
    if attempt != run.attempts + 1 {
        return Err(format!("attempt {attempt} follows {}", run.attempts));
    }
    run.fence = Some(fence);
    Ok(())
}

pub(super) fn lost(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Fence,
    started: bool,
    cursor: &Option<Arc<Value>>,
) -> Applied {
    move_run(state, net, id, Signal::Lose, |run| {
        check_fence(run, Some(fence))?;
        run.losses += u32::from(started);
        if cursor.is_some() {
            run.cursor.clone_from(cursor);
        }
        Ok(RunState::Ready { waited: true })
    })
}

/// Reopens an offer or a child of the execution that this one forked from.
pub(super) fn reopened(state: &mut Execution<'_>, net: &Net, id: RunId) -> Applied {
    move_run(state, net, id, Signal::Reopen, |run| {
        if let RunState::Child { child, .. } = run.state {
            run.continues = Some(child);
        }
        Ok(RunState::Ready { waited: true })
    })
}

/// Checks that the answer is under the fence of the open offer (K3).
pub(super) fn check_fence(run: &StepRun, fence: Option<Fence>) -> Applied {
    let open = match &run.state {
        RunState::Offered { fence } | RunState::Manual { fence, .. } | RunState::Child { fence, .. } => {
            Some(*fence)
        }
        any_of![RunState: Ready Waiting Delayed Backoff Looping] => None,
    };
    if open == fence { Ok(()) } else { Err("the fence is not the open one (K3)".into()) }
}

pub(super) fn retry_scheduled(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Option<Fence>,
    until: Millis,
    patch: &Patch,
    cursor: &Option<Arc<Value>>,
) -> Applied {
    move_run(state, net, id, Signal::Retry, |run| {
        check_fence(run, fence)?;
        run.attempts += 1;
        run.cursor.clone_from(cursor);
        Ok(RunState::Backoff { until })
    })?;
    tokens::merge_patch(state, patch);
    Ok(())
}

pub(super) fn yielded(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Fence,
    until: Millis,
    cursor: &Option<Arc<Value>>,
    patch: &Patch,
) -> Applied {
    move_run(state, net, id, Signal::Retry, |run| {
        check_fence(run, Some(fence))?;
        run.cursor.clone_from(cursor);
        Ok(RunState::Backoff { until })
    })?;
    tokens::merge_patch(state, patch);
    Ok(())
}

pub(super) fn awaiting_manual(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    (fence, answered): (Fence, Option<Fence>),
    output: &Arc<Value>,
    patch: &Patch,
    deadline: Option<Millis>,
) -> Applied {
    take_fence(state, fence)?;
    move_run(state, net, id, Signal::AwaitManual, |run| {
        check_fence(run, answered)?;
        run.fence = Some(fence);
        Ok(RunState::Manual { fence, output: output.clone(), deadline })
    })?;
    tokens::merge_patch(state, patch);
    if let Some(Role::Iteration { of, .. }) = state.run(id).map(|run| run.role.clone()) {
        super::ends::record_write(state, of, patch);
    }
    Ok(())
}

pub(super) fn completed_manually(state: &mut Execution<'_>, id: RunId, fence: Fence) -> Applied {
    let run = state.run(id).ok_or("a step-run is completed that is not live")?;
    if run.state.kind() != Kind::Manual {
        return Err("a step-run is completed by hand that does not wait for it".into());
    }
    check_fence(run, Some(fence))
}

#[expect(clippy::too_many_arguments, reason = "they are the event's fields")]
pub(super) fn child_started(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Fence,
    attempt: u32,
    child: ExecutionId,
    until: Option<Millis>,
    delegated: Option<&Delegated>,
) -> Applied {
    take_fence(state, fence)?;
    move_run(state, net, id, Signal::Spawn, |run| {
        check_fence(run, delegated.map(|delegated| delegated.fence))?;
        mark_dispatched(run, fence, attempt)?;
        run.continues = None;
        if let Some(delegated) = delegated {
            run.cursor.clone_from(&delegated.cursor);
        }
        Ok(RunState::Child { fence, child, until, paused: false })
    })?;
    if let Some(delegated) = delegated {
        tokens::merge_patch(state, &delegated.patch);
    }
    Ok(())
}

pub(super) fn child_paused(state: &mut Execution<'_>, net: &Net, id: RunId, pause: bool) -> Applied {
    let signal = if pause { Signal::PauseChild } else { Signal::ResumeChild };
    move_run(state, net, id, signal, |run| match &run.state {
        RunState::Child { fence, child, until, .. } => {
            Ok(RunState::Child { fence: *fence, child: *child, until: *until, paused: pause })
        }
        any_of![RunState: Ready Waiting Delayed Offered Backoff Manual Looping] => {
            Err(format!("step-run {id} has no child"))
        }
    })
}

pub(super) fn returned(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    fence: Fence,
    cursor: &Arc<Value>,
) -> Applied {
    move_run(state, net, id, Signal::Return, |run| {
        check_fence(run, Some(fence))?;
        run.cursor = Some(cursor.clone());
        Ok(RunState::Ready { waited: true })
    })
}

pub(super) fn loop_started(state: &mut Execution<'_>, net: &Net, id: RunId, total: Option<u32>) -> Applied {
    move_run(state, net, id, Signal::Loop, |_| {
        Ok(RunState::Looping(LoopState { total, ..LoopState::default() }))
    })?;
    let run = state.run(id).ok_or("a loop that is not live")?;
    let key = (run.step, run.path.clone());
    state.regions.insert(key, id);
    update_hungry(state, net, id);
    Ok(())
}

pub(super) fn loop_state<'s>(state: &'s mut Execution<'_>, id: RunId) -> Result<&'s mut LoopState, String> {
    if let Some(RunState::Looping(repeat)) = state.runs.get_mut(&id).map(|run| &mut run.state) {
        Ok(repeat)
    } else {
        Err(format!("step-run {id} is not an open loop"))
    }
}

/// Opens an iteration. Returns what it runs if it was parked.
fn open_iteration(
    state: &mut Execution<'_>,
    of: RunId,
    index: u32,
) -> Result<Option<Box<ParkedIteration>>, String> {
    if let Some(parked) = takeover::unpark(state, of, index) {
        return Ok(Some(parked));
    }
    if takeover::is_taking_over(state) {
        takeover::park_left_out(state, of, index)?;
    }
    let repeat = loop_state(state, of)?;
    if index != repeat.next || !repeat.has_more() {
        return Err(format!("iteration {index} is not the next of step-run {of}"));
    }
    repeat.next += 1;
    repeat.open += 1;
    Ok(None)
}

/// Updates the list of loops that may open another iteration.
pub(super) fn update_hungry(state: &mut Execution<'_>, net: &Net, id: RunId) {
    let hungry = state.run(id).is_some_and(|run| {
        let open = net.step(run.step).repeat.as_ref().zip(run.state.as_loop());
        open.is_some_and(|(spec, repeat)| repeat.open < spec.cap && repeat.has_more())
    });
    if hungry {
        state.hungry.insert(id, ());
    } else {
        state.hungry.remove(&id);
    }
}

pub(super) fn iteration_started(state: &mut Execution<'_>, net: &Net, id: RunId, index: u32) -> Applied {
    let parked = open_iteration(state, id, index)?;
    update_hungry(state, net, id);
    if let Some(parked) = parked {
        takeover::resume_parked(state, net, *parked);
        return Ok(());
    }
    let run = state.run(id).ok_or("a loop that is not live")?;
    let (step, path) = (run.step, run.path.child(index));
    let open = u32::try_from(net.members(step).len()).unwrap_or(u32::MAX);
    state.scopes.insert((id, index), Scope { open, failed: false });
    for (arc, number) in net.step(step).router.arcs.iter().zip(0..) {
        if net.is_body_arc(step, arc) {
            let slot = net.slot(step, number);
            tokens::deliver(state, net, arc.to, &path, slot, TokenValue::Live(None), Some((step, false)))?;
        }
    }
    Ok(())
}

pub(super) fn iteration_ended(
    state: &mut Execution<'_>,
    net: &Net,
    id: RunId,
    index: u32,
    failed: bool,
    stop: bool,
) -> Applied {
    if let Some(scope) = state.scopes.remove(&(id, index)) {
        if scope.open > 0 && !takeover::is_taking_over(state) {
            return Err("an iteration ends before its steps".into());
        }
        let run = state.run(id).ok_or("a loop that is not live")?;
        let (step, path) = (run.step, run.path.child(index));
        if scope.open > 0 {
            takeover::drop_added_steps(state, net, step, &path);
        }
        for member in net.members(step) {
            state.latest.remove(&(*member, path.clone()));
            if state.head.imported.contains(member) {
                state.joins.remove(&(*member, path.clone()));
            }
        }
    }
    let repeat = loop_state(state, id)?;
    if repeat.open == 0 {
        return Err(format!("iteration {index} of step-run {id} ends twice"));
    }
    repeat.open -= 1;
    repeat.stopped |= stop;
    *(if failed { &mut repeat.failed } else { &mut repeat.succeeded }) += 1;
    update_hungry(state, net, id);
    Ok(())
}

pub(super) fn agent_decided(
    state: &mut Execution<'_>,
    id: RunId,
    call: &str,
    decision: &AgentDecision,
) -> Applied {
    let run = state.runs.get_mut(&id).ok_or("an agent decides that is not live")?;
    let tool = match decision {
        AgentDecision::Execute { tool, .. } => *tool,
        AgentDecision::Skip { .. } | AgentDecision::Pause { .. } | AgentDecision::Fail { .. } => id,
    };
    if run.calls.insert(call.to_owned(), tool).is_some() {
        return Err(format!("call `{call}` is decided twice"));
    }
    if let AgentDecision::Skip { step, .. } = decision {
        Arc::make_mut(&mut state.head.ruled_out).insert(*step);
    }
    Ok(())
}
