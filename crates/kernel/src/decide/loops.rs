//! Loops: for-each, count and while, over the step's own work or over a body of several steps. The run of the loop
//! holds only counters and ends once, after its last iteration (R18).

use super::scope::{Evaluated, NoValue, View};
use super::{Accepted, Draft, ending};
use crate::event::Event;
use crate::execution::{ParkedIteration, Scope};
use crate::ids::{Path, RunId, StepId};
use crate::input::{IterationEnds, IterationFailure, Need, Rejected};
use crate::net::{Body, LoopKind, LoopSpec};
use crate::phase::Phase;
use crate::step_run::{LoopState, Patch, Role};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_expr::Template;
use windlass_failure::{Failure, codes};

/// Number of failed iterations that the result of a loop lists; `failed` counts all of them.
const ERRORS_LISTED_MAX: usize = 1_000;

/// Number of iterations up to which a failed loop has its results even if no expression reads them. A larger loop
/// would load a large part of the journal for nothing.
const UNREAD_RESULTS_MAX: u32 = 1_000;

pub(super) fn start_loop(d: &mut Draft<'_>, id: RunId) -> Evaluated<()> {
    let run = d.run(id)?;
    let Some(spec) = &d.net.step(run.step).repeat else { return Ok(()) };
    let view = View::of_run(d, run);
    let (total, items) = match &spec.kind {
        LoopKind::ForEach { items } => {
            let items = expect_list(view.render(items)?)?;
            (Some(items.as_array().map_or(0, Vec::len)), Some(Arc::new(items)))
        }
        LoopKind::Count { times } => (Some(eval_count(&view, times)?), None),
        LoopKind::While { condition, check_first, .. } => {
            let none = *check_first && !view.before_iteration(id, 0).is_true(condition)?;
            (none.then_some(0), None)
        }
    };
    let total = total.map(|total| u32::try_from(total).unwrap_or(u32::MAX));
    d.emit(Event::LoopStarted { run: id, total, items })?;
    Ok(end_if_over(d, id)?)
}

fn invalid_loop(message: String) -> NoValue {
    NoValue::failed(Failure::new(codes::EXPRESSION_ERROR, message))
}

fn expect_list(items: Value) -> Evaluated<Value> {
    if items.is_array() { Ok(items) } else { Err(invalid_loop(format!("a loop needs a list, not {items}"))) }
}

fn eval_count(view: &View<'_, '_>, times: &Template) -> Evaluated<usize> {
    let value = view.render(times)?;
    let times = value.as_u64().and_then(|times| usize::try_from(times).ok());
    times.ok_or_else(|| invalid_loop(format!("a loop needs a number of iterations, not {value}")))
}

fn open_loop<'d>(d: &'d Draft<'_>, id: RunId) -> Option<(&'d LoopSpec, &'d LoopState, StepId)> {
    let run = d.state.run(id)?;
    Some((d.net.step(run.step).repeat.as_ref()?, run.state.as_loop()?, run.step))
}

/// Opens the next iteration of a loop that has room for one, or ends a loop that was taken over without its end.
pub(super) fn open_next(d: &mut Draft<'_>, id: RunId) -> Accepted {
    let Some((spec, repeat, step)) = open_loop(d, id) else { return Err(Rejected::UnknownRun(id)) };
    let (next, body, is_over) = (repeat.next, spec.body, !repeat.has_more());
    d.firings += 1;
    if is_over {
        return end_if_over(d, id);
    }
    let parked = d.state.parked.range((id, 0)..=(id, u32::MAX)).next();
    let (index, is_begun) = match parked {
        Some(((_, index), parked)) => (*index, **parked != ParkedIteration::default()),
        None => (next, false),
    };
    match body {
        Body::Region => {
            d.emit(Event::IterationStarted { run: id, index })?;
            end_if_settled(d, id, index)
        }
        Body::Own if is_begun => d.emit(Event::IterationStarted { run: id, index }),
        Body::Own => {
            let run = d.run(id)?;
            let (path, args) = (run.path.child(index), run.args.clone());
            let role = Role::Iteration { of: id, index };
            d.emit(Event::Fired { run: d.next_run(), step, path, token: None, role, args })
        }
    }
}

/// Returns a key that another parallel iteration has set to a different value.
pub(super) fn find_conflict(d: &Draft<'_>, of: RunId, patch: &Patch) -> Option<String> {
    let (spec, repeat, _) = open_loop(d, of)?;
    let differs = |(key, value): &(&String, &Arc<Value>)| {
        repeat.writes.get(*key).is_some_and(|written| *written != **value)
    };
    if spec.cap == 1 { None } else { patch.iter().find(differs).map(|(key, _)| key.clone()) }
}

/// Ends an iteration whose steps a retry took over all.
fn end_if_settled(d: &mut Draft<'_>, of: RunId, index: u32) -> Accepted {
    match d.state.scopes.get(&(of, index)) {
        Some(Scope { open: 0, failed }) => {
            let failed = *failed;
            end_iteration(d, of, index, failed)
        }
        _ => Ok(()),
    }
}

/// Counts an iteration whose work a retry took over and that its loop had not counted.
pub(crate) fn end_taken_iteration(d: &mut Draft<'_>, of: RunId, index: u32) -> Accepted {
    end_iteration(d, of, index, false)
}

/// Handles a settled step of a loop's body; the last one of an iteration ends the iteration.
pub(super) fn settle_member(d: &mut Draft<'_>, step: StepId, path: &Path) -> Accepted {
    let Some(region) = d.net.step(step).region else { return Ok(()) };
    let (Some(loop_run), Some(index)) =
        (d.state.regions.get(&(region, path.parent())).copied(), path.index())
    else {
        return Ok(());
    };
    end_if_settled(d, loop_run, index)
}

pub(super) fn end_iteration(d: &mut Draft<'_>, of: RunId, index: u32, failed: bool) -> Accepted {
    // A drained loop has been removed: its iterations are not counted, and it emits no loop.done.
    if open_loop(d, of).is_none() || !(d.is_open() || d.phase() == Phase::Finalizing) {
        return Ok(());
    }
    match stops_after(d, of, index).and_then(|stop| Ok((stop, gather_outputs(d, of, index, failed)?))) {
        Ok((stop, output)) => {
            d.emit(Event::IterationEnded { run: of, index, failed, stop, output })?;
        }
        Err(NoValue::Rejected(rejected)) => return Err(rejected),
        Err(NoValue::Failed(failure)) => {
            let output = None;
            d.emit(Event::IterationEnded { run: of, index, failed: true, stop: true, output })?;
            // Iterations that a retry has yet to finish end first.
            if open_loop(d, of).is_some_and(|(_, repeat, _)| repeat.open + repeat.parked == 0) {
                return ending::fail(d, of, *failure, ending::EndDetails::default());
            }
        }
    }
    end_if_over(d, of)
}

/// Returns whether no further iteration starts.
fn stops_after(d: &Draft<'_>, of: RunId, index: u32) -> Evaluated<bool> {
    let Some((spec, repeat, step)) = open_loop(d, of) else { return Ok(true) };
    let view = View::of_run(d, d.run(of)?).in_iteration(of, index);
    let broken = spec.break_when.as_ref().map_or(Ok(false), |when| view.is_true(when))?;
    let LoopKind::While { condition, max, .. } = &spec.kind else { return Ok(broken) };
    if broken || !view.before_iteration(of, index + 1).is_true(condition)? {
        return Ok(true);
    }
    if repeat.next < *max {
        return Ok(false);
    }
    let message = format!("the loop `{}` exceeded its limit of {max} iterations", d.net.step(step).name);
    Err(NoValue::failed(Failure::new(codes::LIMIT_EXCEEDED, message)))
}

/// Returns the result of a body with several steps, by the rule for executions: the output of the only completed
/// leaf, or several outputs by name.
fn gather_outputs(d: &Draft<'_>, of: RunId, index: u32, failed: bool) -> Result<Option<Arc<Value>>, NoValue> {
    let Some((spec, _, step)) = open_loop(d, of) else { return Ok(None) };
    if failed || spec.body != Body::Region || !d.net.step(step).collect {
        return Ok(None);
    }
    let view = View::of_run(d, d.run(of)?).in_iteration(of, index);
    let mut given = view.latest(d.net.leaves(step))?;
    Ok(match given.len() {
        0 => None,
        1 => given.pop().map(|(_, output)| Arc::new(output)),
        _ => Some(Arc::new(Value::Object(given.into_iter().collect()))),
    })
}

/// Returns the ends of all iterations: those in the journal, and those of this decision.
fn load_ends(d: &Draft<'_>, id: RunId) -> Result<IterationEnds, Rejected> {
    let Some(earlier) = d.given.values.results.get(&id) else {
        return Err(Rejected::Needs(vec![Need::Results(id)]));
    };
    let mut ends = earlier.clone();
    d.records.iter().for_each(|record| ends.note(id, record));
    Ok(ends)
}

/// Returns the outputs of the iterations in order, with null for an iteration without one.
fn list_results(ends: &IterationEnds, count: u32) -> Value {
    let output = |index| ends.outputs.get(&index).map_or(Value::Null, |output| (**output).clone());
    (0..count).map(output).collect()
}

/// Returns the first failure of each failed iteration in order, as `{index, error}`.
fn list_errors(d: &Draft<'_>, step: StepId, path: &Path, ends: &IterationEnds) -> Value {
    let is_inside = |failed: &&IterationFailure| {
        let of_loop = failed.step == step || d.net.step(failed.step).region == Some(step);
        of_loop && failed.path.parent() == *path
    };
    let mut errors = BTreeMap::new();
    for failed in ends.failures.iter().filter(is_inside) {
        let error = || d.net.step(failed.step).describe_failure(&failed.failure, failed.attempt);
        let index = failed.path.index().unwrap_or_default();
        errors.entry(index).or_insert_with(|| json!({ "index": index, "error": error() }));
    }
    errors.into_values().take(ERRORS_LISTED_MAX).collect()
}

fn end_if_over(d: &mut Draft<'_>, id: RunId) -> Accepted {
    let Some((spec, repeat, step)) = open_loop(d, id) else { return Ok(()) };
    if repeat.open > 0 || repeat.has_more() {
        return Ok(());
    }
    let (total, success, failed) = (repeat.succeeded + repeat.failed, repeat.succeeded, repeat.failed);
    let stats = json!({ "total": total, "success": success, "failed": failed });
    let mut counts = json!({ "iterations": total, "succeeded": success, "failed": failed, "stats": stats });
    let collect = d.net.step(step).collect;
    if failed == 0 {
        if collect && total > 0 {
            counts["results"] = list_results(&load_ends(d, id)?, total);
        } else if collect {
            counts["results"] = json!([]);
        }
        return ending::complete(d, id, Arc::new(counts), ending::EndDetails::default());
    }
    let noun = if failed == 1 { "iteration" } else { "iterations" };
    let message = format!("{failed} {noun} of `{}` failed", d.net.step(step).name);
    let failure = Failure::new(codes::ITERATION_FAILED, message);
    let failure = Failure { details: counts.clone(), ..failure };
    let ends = load_ends(d, id)?;
    if collect || (spec.body == Body::Own && total <= UNREAD_RESULTS_MAX) {
        counts["results"] = list_results(&ends, total);
    }
    counts["errors"] = list_errors(d, step, &d.run(id)?.path, &ends);
    let output = Some(Arc::new(counts));
    ending::fail(d, id, failure, ending::EndDetails { output, partial: true, ..Default::default() })
}
