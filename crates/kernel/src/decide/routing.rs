//! Routing after a step-run. In `each` nets only matching arcs emit; in all others every arc carries a token, so that
//! every join resolves.

use super::scope::{Evaluated, GuardEvent, NoValue, RunEnd, View};
use super::{Accepted, Draft};
use crate::event::{BranchEnd, Emission, Event, TokenValue};
use crate::ids::{Path, RunId, StepId};
use crate::input::Rejected;
use crate::net::{FailureMode, Join, JoinArc, On, RouterMode, Step};
use crate::step_run::{Args, Ctx, Patch, Role, StepRun};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_failure::{Failure, FailureCode, codes};

/// Tokens that one end of a step-run emits.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) emitted: Vec<Emission>,
    pub(super) end: BranchEnd,
    /// True if an arc handles the failure.
    pub(super) handled: bool,
}

pub(super) fn choose_route(d: &Draft<'_>, run: &StepRun, end: RunEnd<'_>, patch: &Patch) -> Evaluated<Route> {
    let step = d.net.step(run.step);
    if step.router.arcs.is_empty() {
        return Ok(end_branch(end));
    }
    match d.net.policy().join {
        Join::Each => route_by_match(d, run, end, patch),
        Join::All | Join::AnyLive => route_by_join(d, run, end, patch),
    }
}

fn end_branch(end: RunEnd<'_>) -> Route {
    let end = if matches!(end, RunEnd::Done(_)) { BranchEnd::Well } else { BranchEnd::Failed };
    Route { emitted: Vec::new(), end, handled: false }
}

/// Routes a completed firing that a retry takes over without its tokens. Guards that cannot be evaluated make it a dead
/// end.
pub(crate) fn route_taken(
    d: &mut Draft<'_>,
    (step, path, args): (StepId, &Path, Args),
    id: RunId,
    output: &Arc<Value>,
) -> Accepted {
    let run = StepRun::new(step, path.clone(), Role::Routed, args);
    let route = match choose_route(d, &run, RunEnd::Done(output), &Patch::new()) {
        Ok(route) => route,
        Err(NoValue::Rejected(rejected)) => return Err(rejected),
        Err(NoValue::Failed(_)) => Route { end: BranchEnd::DeadEnd, ..poison_arcs(d, step) },
    };
    let path = path.clone();
    d.emit(Event::Routed { run: id, step, path, emitted: route.emitted, end: route.end })
}

/// Routes a failed step-run. If its guards cannot be evaluated, the branch ends.
pub(super) fn route_failure(
    d: &Draft<'_>,
    run: &StepRun,
    end: RunEnd<'_>,
    patch: &Patch,
) -> Result<Route, Rejected> {
    match choose_route(d, run, end, patch) {
        Ok(route) => Ok(route),
        Err(NoValue::Rejected(rejected)) => Err(rejected),
        Err(NoValue::Failed(_)) => Ok(poison_arcs(d, run.step)),
    }
}

fn poison_arcs(d: &Draft<'_>, step: StepId) -> Route {
    let emitted = match d.net.policy().join {
        Join::Each => Vec::new(),
        Join::All | Join::AnyLive => {
            outgoing_arcs(d, step).map(|(arc, _)| emission(arc, TokenValue::Poisoned)).collect()
        }
    };
    Route { emitted, end: BranchEnd::Failed, handled: false }
}

fn emission(arc: u32, token: TokenValue) -> Emission {
    Emission { arc, token }
}

/// Returns the arcs that leave the step; arcs into its own loop body are fired by iterations.
fn outgoing_arcs<'d>(d: &'d Draft<'_>, step: StepId) -> impl Iterator<Item = (u32, &'d JoinArc)> {
    (0..).zip(&d.net.step(step).router.arcs).filter(move |(_, arc)| !d.net.is_body_arc(step, arc))
}

/// Evaluator of the guards and arguments of arcs for the end of a step-run.
struct ArcEvaluator<'q, 'a> {
    d: &'q Draft<'a>,
    run: &'q StepRun,
    end: RunEnd<'q>,
    patch: &'q Patch,
    /// Created for the first expression, because most arcs have none.
    view: Option<View<'q, 'a>>,
}

impl<'q, 'a> ArcEvaluator<'q, 'a> {
    fn new(d: &'q Draft<'a>, run: &'q StepRun, end: RunEnd<'q>, patch: &'q Patch) -> ArcEvaluator<'q, 'a> {
        ArcEvaluator { d, run, end, patch, view: None }
    }

    fn view(&mut self) -> &View<'q, 'a> {
        let step = self.d.net.step(self.run.step);
        let (d, run, patch) = (self.d, self.run, self.patch);
        let event = GuardEvent::End { step, attempt: run.attempts + 1, end: self.end };
        self.view.get_or_insert_with(|| View::of_run(d, run).with_event(event).with_ctx(patch_ctx(d, patch)))
    }

    fn matches(&mut self, arc: &JoinArc) -> Evaluated<bool> {
        match &arc.guard {
            _ if arc.on == On::Error && matches!(self.end, RunEnd::Done(_)) => Ok(false),
            None => Ok(true),
            Some(guard) => self.view().is_true(guard),
        }
    }

    fn args(&mut self, arc: &JoinArc) -> Evaluated<Args> {
        match &arc.args {
            None => Ok(None),
            // Arguments that render to null are the same as no arguments, in memory and on disk.
            Some(template) => {
                Ok(Some(self.view().render(template)?).filter(|args| !args.is_null()).map(Arc::new))
            }
        }
    }
}

/// Returns the context with the patch that the step-run just wrote, which guards see.
fn patch_ctx(d: &Draft<'_>, patch: &Patch) -> Ctx {
    let mut ctx = d.head().ctx.clone();
    if !patch.is_empty() {
        Arc::make_mut(&mut ctx).merge(patch);
    }
    ctx
}

/// Routes in playbooks: exclusive takes the first match, inclusive every match.
fn route_by_match(d: &Draft<'_>, run: &StepRun, end: RunEnd<'_>, patch: &Patch) -> Evaluated<Route> {
    let router = &d.net.step(run.step).router;
    let (failed, refused) = match end {
        RunEnd::Done(_) => (false, false),
        RunEnd::Failed { failure, .. } => (true, is_refusal(d, run.step, failure)),
    };
    let mut evaluator = ArcEvaluator::new(d, run, end, patch);
    let (mut emitted, mut handled) = (Vec::new(), false);
    for (arc, number) in router.arcs.iter().zip(0..) {
        if !evaluator.matches(arc)? {
            continue;
        }
        let handles = failed && handles_failure(d, run, end, patch, arc)?;
        if refused && !handles {
            continue;
        }
        emitted.push(emission(number, TokenValue::Live(evaluator.args(arc)?)));
        handled |= handles;
        if router.mode == RouterMode::Exclusive {
            break;
        }
    }
    let dead_end = emitted.is_empty() && d.net.policy().no_next_is_error;
    let end = match (emitted.is_empty(), failed || dead_end) {
        (false, _) => BranchEnd::GoesOn,
        (true, false) => BranchEnd::Well,
        (true, true) if dead_end && !failed => BranchEnd::DeadEnd,
        (true, true) => BranchEnd::Failed,
    };
    Ok(Route { emitted, end, handled })
}

/// Returns whether an arc that matches a failure handles it: its guard would be false if the same step-run had ended
/// well. A guard that cannot be evaluated then counts as false.
fn handles_failure(
    d: &Draft<'_>,
    run: &StepRun,
    end: RunEnd<'_>,
    patch: &Patch,
    arc: &JoinArc,
) -> Result<bool, Rejected> {
    let Some(guard) = arc.guard.as_ref().filter(|_| arc.on == On::End) else {
        return Ok(arc.on == On::Error);
    };
    let success = result_as_success(d.net.step(run.step), end);
    match ArcEvaluator::new(d, run, RunEnd::Done(&success), patch).view().is_true(guard) {
        Ok(matches_success) => Ok(!matches_success),
        Err(NoValue::Failed(_)) => Ok(true),
        Err(NoValue::Rejected(rejected)) => Err(rejected),
    }
}

/// Returns the result that the step-run would have had as a success, as far as it is known: of a loop, the same
/// iterations without failures.
fn result_as_success(step: &Step, end: RunEnd<'_>) -> Value {
    let (RunEnd::Done(result) | RunEnd::Failed { partial: Some(result), .. }) = end else {
        return Value::Null;
    };
    let mut result = result.clone();
    if step.repeat.is_some() {
        let total = result["iterations"].clone();
        result["stats"] = json!({ "total": total, "success": total, "failed": 0 });
        (result["succeeded"], result["failed"], result["errors"]) = (total, json!(0), json!([]));
    }
    result
}

/// Routes in all other dialects: every arc gets a token.
fn route_by_join(d: &Draft<'_>, run: &StepRun, end: RunEnd<'_>, patch: &Patch) -> Evaluated<Route> {
    let (emitted, handled) = match end {
        RunEnd::Done(_) => (taken_tokens(d, run, end, patch)?, false),
        RunEnd::Failed { failure, .. } => failure_tokens(d, run, failure),
    };
    let failed = matches!(end, RunEnd::Failed { .. }) && !handled;
    let end = if failed { BranchEnd::Failed } else { BranchEnd::GoesOn };
    Ok(Route { emitted, end, handled })
}

fn taken_tokens(d: &Draft<'_>, run: &StepRun, end: RunEnd<'_>, patch: &Patch) -> Evaluated<Vec<Emission>> {
    let exclusive = d.net.step(run.step).router.mode == RouterMode::Exclusive;
    let mut evaluator = ArcEvaluator::new(d, run, end, patch);
    let mut emitted = Vec::new();
    let mut found = false;
    for (number, arc) in outgoing_arcs(d, run.step) {
        let live = !(exclusive && found) && evaluator.matches(arc)?;
        found |= live;
        let token = if live { TokenValue::Live(evaluator.args(arc)?) } else { TokenValue::Dead };
        emitted.push(emission(number, token));
    }
    Ok(emitted)
}

/// Codes of failures that mean a refusal.
const REFUSALS: [FailureCode; 3] = [codes::REJECTED, codes::MANUAL_TIMEOUT, codes::GATE_TIMEOUT];

/// Returns whether a person refused or did not answer in time: in this step, in the loop's body or in a
/// sub-execution. In every failure mode, only an arc that handles the failure may then continue control.
fn is_refusal(d: &Draft<'_>, step: StepId, failure: &Failure) -> bool {
    d.net.asks_people(step) || REFUSALS.iter().any(|code| failure.has_code(*code))
}

/// Returns the tokens that a failed step emits, and whether an arc handles the failure (R2).
fn failure_tokens(d: &Draft<'_>, run: &StepRun, failure: &Failure) -> (Vec<Emission>, bool) {
    let step = run.step;
    let described = || d.net.step(step).describe_failure(failure, run.attempts + 1);
    let error = || Some(Arc::new(json!({ "error": described() })));
    let handled = outgoing_arcs(d, step).any(|(_, arc)| arc.on == On::Error);
    let closes = d.net.step(step).router.conditional || is_refusal(d, step, failure);
    let collect = d.net.policy().failure == FailureMode::Collect && !closes;
    let token = |arc: &JoinArc| match (handled, arc.on, collect, &arc.guard) {
        (true, On::Error, _, _) | (false, _, true, None) => TokenValue::Live(error()),
        (true, On::End, _, _) | (false, _, true, Some(_)) => TokenValue::Dead,
        (false, _, false, _) => TokenValue::Poisoned,
    };
    (outgoing_arcs(d, step).map(|(number, arc)| emission(number, token(arc))).collect(), handled)
}
