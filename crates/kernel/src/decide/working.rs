//! Ready step-runs begin: they wait for a route, open a loop, are offered, start a child, sleep, ask a person, or are
//! computed at once.

use super::scope::{Evaluated, NoValue, View};
use super::{Accepted, Draft, children, ending, hold, joining, loops, manual};
use crate::event::Event;
use crate::execution::Execution;
use crate::ids::{RunId, StepId};
use crate::input::Rejected;
use crate::net::{PatchEntry, Work};
use crate::phase::Phase;
use crate::step_run::{Kind, Patch, Role, RunState};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_expr::Template;
use windlass_failure::{Failure, codes};

/// Begins step-runs in the order (slot needed, order, id).
pub(super) fn begin_ready(d: &mut Draft<'_>) -> Accepted {
    while !d.head().held && !d.is_full() && can_begin(d) {
        let Some((_, _, run)) = d.state.ready.first().map(|(key, ())| *key) else { break };
        if d.phase() == Phase::Paused {
            hold::leave_pause(d)?;
        }
        d.begun += 1;
        begin_run(d, run)?;
        // A step-run that began may have routed or ended, which the caller handles first.
        let has_branch = !d.state.arrived.is_empty() || joining::find_complete(d).is_some();
        if has_branch || !d.state.hungry.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Returns whether the first ready step-run needs no slot or finds a free one.
pub(super) fn can_begin(d: &Draft<'_>) -> bool {
    match d.state.ready.first() {
        Some(((needs_slot, _, _), ())) => !needs_slot || has_slot(d),
        None => false,
    }
}

/// Returns whether a slot is free. Hooks and the final step are exempt from the limit on parallel work (R8).
fn has_slot(d: &Draft<'_>) -> bool {
    match d.net.policy().max_parallel {
        Some(max) if d.is_open() => {
            let in_flight = d.head().census.in_flight();
            in_flight < max || in_flight - count_waiting_agents(d) < max
        }
        _ => true,
    }
}

/// Counts agents that wait for a tool. They hold no slot, because the tool may need it.
fn count_waiting_agents(d: &Draft<'_>) -> u32 {
    if !d.net.has_tools() {
        return 0;
    }
    let mut waiting = BTreeSet::new();
    for (_, run) in d.state.runs.iter() {
        if let Role::Tool { agent, .. } = run.role
            && d.state.run(agent).is_some_and(|agent| agent.state.kind().in_flight())
        {
            waiting.insert(agent);
        }
    }
    u32::try_from(waiting.len()).unwrap_or(u32::MAX)
}

fn begin_run(d: &mut Draft<'_>, id: RunId) -> Accepted {
    match try_begin_run(d, id) {
        Ok(()) => Ok(()),
        Err(NoValue::Rejected(rejected)) => Err(rejected),
        Err(NoValue::Failed(failure)) => ending::fail(d, id, *failure, ending::EndDetails::default()),
    }
}

fn try_begin_run(d: &mut Draft<'_>, id: RunId) -> Evaluated<()> {
    let run = d.run(id)?;
    let step = d.net.step(run.step);
    let waited = matches!(run.state, RunState::Ready { waited: true });
    let whole = !matches!(run.role, Role::Iteration { .. } | Role::Hook { .. });
    if let (Some(wait), true, false) = (&step.wait_for, whole, waited) {
        let target = Arc::new(View::of_run(d, run).render(&wait.target)?);
        let until = d.at.plus(wait.timeout_ms);
        return Ok(d.emit(Event::Waiting { run: id, target, until })?);
    }
    if step.repeat.is_some() && whole {
        return loops::start_loop(d, id);
    }
    match Execution::work_of(d.net, run) {
        Work::Task { .. } if run.continues.is_some() => Ok(children::continue_child(d, id)?),
        Work::Task { .. } => Ok(offer_run(d, id)?),
        Work::Pure { output, patch } => run_pure(d, id, output.as_ref(), patch),
        Work::Child { definition, inputs } => children::start_child(d, id, definition, inputs),
        Work::Approval { deadline_ms, asks } => {
            let asked = asks.as_ref().map(|asks| View::of_run(d, run).render(asks)).transpose()?;
            let asked = Arc::new(asked.unwrap_or_default());
            Ok(manual::ask_person(d, id, asked, ending::EndDetails::default(), *deadline_ms)?)
        }
        Work::Delay { ms } => start_delay(d, id, ms),
    }
}

pub(super) fn offer_run(d: &mut Draft<'_>, id: RunId) -> Accepted {
    let run = d.run(id)?;
    let attempt = run.attempts + 1;
    let path = &run.path;
    let seen = |step: &StepId| Some((*step, d.state.latest_run(d.net, *step, path)?));
    let reads = d.net.step(run.step).reads.iter().filter_map(seen).collect();
    d.emit(Event::Offered { run: id, fence: d.next_fence(), attempt, reads })
}

fn run_pure(
    d: &mut Draft<'_>,
    id: RunId,
    output: Option<&Template>,
    entries: &[PatchEntry],
) -> Evaluated<()> {
    let view = View::of_run(d, d.run(id)?);
    let output = match output {
        Some(output) => view.render(output)?,
        None => Value::Null,
    };
    let mut patch = Patch::new();
    for entry in entries {
        patch.insert(entry.key.clone(), Arc::new(view.render(&entry.value)?));
    }
    if let Some(failure) = super::context::patch_failure(d, &patch) {
        return Err(NoValue::failed(failure));
    }
    let details = ending::EndDetails { patch, ..ending::EndDetails::default() };
    Ok(ending::succeed(d, id, Arc::new(output), details)?)
}

fn start_delay(d: &mut Draft<'_>, id: RunId, ms: &Template) -> Evaluated<()> {
    let value = View::of_run(d, d.run(id)?).render(ms)?;
    let Some(ms) = value.as_u64().or_else(|| value.as_f64().filter(|ms| *ms >= 0.0).map(|ms| ms as u64))
    else {
        let message = format!("a delay must be a number of milliseconds, not {value}");
        return Err(NoValue::failed(Failure::new(codes::EXPRESSION_ERROR, message)));
    };
    Ok(d.emit(Event::Delayed { run: id, until: d.at.plus(ms) })?)
}

/// Ends a step-run whose delay is over.
pub(super) fn end_delay(d: &mut Draft<'_>, id: RunId) -> Accepted {
    ending::succeed(d, id, Arc::new(json!({})), ending::EndDetails::default())
}

pub(super) fn wake_waiting(d: &mut Draft<'_>, id: RunId) -> Accepted {
    if d.state.run(id).is_none_or(|run| run.state.kind() != Kind::Waiting) {
        return Err(Rejected::NotWaiting { run: id, why: "no route is awaited" });
    }
    d.emit(Event::Woken { run: id })
}
