//! Routing after a step-run. In `each` nets only matching arcs emit; in all others every arc carries a token, so that
//! every join resolves.

use super::Draft;
use super::scope::{Boundary, End, Trouble, View};
use crate::event::{BranchEnd, Emission, Import, TokenValue};
use crate::ids::{Path, StepId};
use crate::input::Rejected;
use crate::net::{FailureMode, Join, JoinArc, On, RouterMode};
use crate::step_run::{Args, Ctx, Patch, Role, StepRun};
use serde_json::json;
use std::sync::Arc;
use windlass_failure::{Failure, codes};

/// Tokens that one end of a step-run emits.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) emitted: Vec<Emission>,
    pub(super) end: BranchEnd,
    /// True if an arc handles the failure.
    pub(super) handled: bool,
}

pub(super) fn choose(d: &Draft<'_>, run: &StepRun, end: End<'_>, patch: &Patch) -> Result<Route, Trouble> {
    let step = d.net.step(run.step);
    if step.router.arcs.is_empty() {
        return Ok(leaf(end));
    }
    match d.net.policy().join {
        Join::Each => by_match(d, run, end, patch),
        Join::All | Join::AnyLive => by_join(d, run, end, patch),
    }
}

fn leaf(end: End<'_>) -> Route {
    let end = if matches!(end, End::Done(_)) { BranchEnd::Well } else { BranchEnd::Failed };
    Route { emitted: Vec::new(), end, handled: false }
}

/// Routes an imported step that was never routed. Guards that cannot be evaluated make it a dead end.
pub(super) fn of_import(d: &Draft<'_>, import: &Import) -> Result<Route, Rejected> {
    let run = StepRun::new(import.step, Path::default(), Role::Routed, None);
    match choose(d, &run, End::Done(&import.output), &Patch::new()) {
        Ok(route) => Ok(route),
        Err(Trouble::Rejected(rejected)) => Err(rejected),
        Err(Trouble::Failed(_)) => Ok(Route { end: BranchEnd::DeadEnd, ..unroutable(d, import.step) }),
    }
}

/// Routes a failed step-run. If its guards cannot be evaluated, the branch ends.
pub(super) fn after_failure(
    d: &Draft<'_>,
    run: &StepRun,
    failure: &Failure,
    patch: &Patch,
) -> Result<Route, Rejected> {
    match choose(d, run, End::Failed(failure), patch) {
        Ok(route) => Ok(route),
        Err(Trouble::Rejected(rejected)) => Err(rejected),
        Err(Trouble::Failed(_)) => Ok(unroutable(d, run.step)),
    }
}

fn unroutable(d: &Draft<'_>, step: StepId) -> Route {
    let emitted = match d.net.policy().join {
        Join::Each => Vec::new(),
        Join::All | Join::AnyLive => {
            onward(d, step).map(|(arc, _)| emission(arc, TokenValue::Poisoned)).collect()
        }
    };
    Route { emitted, end: BranchEnd::Failed, handled: false }
}

fn emission(arc: u32, token: TokenValue) -> Emission {
    Emission { arc, token }
}

/// Returns the arcs that leave the step; arcs into its own loop body are fired by iterations.
fn onward<'d>(d: &'d Draft<'_>, step: StepId) -> impl Iterator<Item = (u32, &'d JoinArc)> {
    (0..).zip(&d.net.step(step).router.arcs).filter(move |(_, arc)| !d.net.is_body_arc(step, arc))
}

/// Evaluator of the guards and arguments of arcs for the end of a step-run.
struct Question<'q, 'a> {
    d: &'q Draft<'a>,
    run: &'q StepRun,
    end: End<'q>,
    patch: &'q Patch,
    /// Created for the first expression, because most arcs have none.
    view: Option<View<'q, 'a>>,
}

impl<'q, 'a> Question<'q, 'a> {
    fn new(d: &'q Draft<'a>, run: &'q StepRun, end: End<'q>, patch: &'q Patch) -> Question<'q, 'a> {
        Question { d, run, end, patch, view: None }
    }

    fn view(&mut self) -> &View<'q, 'a> {
        let step = self.d.net.step(self.run.step);
        let boundary = Boundary::End { step: &step.name, looped: step.repeat.is_some(), end: self.end };
        let (d, run, patch) = (self.d, self.run, self.patch);
        self.view.get_or_insert_with(|| View::of_run(d, run).with_event(boundary).with_ctx(patched(d, patch)))
    }

    fn matches(&mut self, arc: &JoinArc) -> Result<bool, Trouble> {
        match &arc.guard {
            _ if arc.on == On::Error && matches!(self.end, End::Done(_)) => Ok(false),
            None => Ok(true),
            Some(guard) => self.view().truth(guard),
        }
    }

    fn args(&mut self, arc: &JoinArc) -> Result<Args, Trouble> {
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
fn patched(d: &Draft<'_>, patch: &Patch) -> Ctx {
    let mut ctx = d.head().ctx.clone();
    if !patch.is_empty() {
        Arc::make_mut(&mut ctx).merge(patch);
    }
    ctx
}

/// Routes in playbooks: exclusive takes the first match, inclusive every match.
fn by_match(d: &Draft<'_>, run: &StepRun, end: End<'_>, patch: &Patch) -> Result<Route, Trouble> {
    let router = &d.net.step(run.step).router;
    let (failed, refused) = match end {
        End::Done(_) => (false, false),
        End::Failed(failure) => (true, is_refusal(d, run.step, failure)),
    };
    let mut question = Question::new(d, run, end, patch);
    let (mut emitted, mut handled) = (Vec::new(), false);
    for (arc, number) in router.arcs.iter().zip(0..) {
        if (refused && !reads_event(arc)) || !question.matches(arc)? {
            continue;
        }
        emitted.push(emission(number, TokenValue::Live(question.args(arc)?)));
        handled |= failed && reads_event(arc);
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

/// Returns whether an arc reads the event; only such an arc handles a failure.
fn reads_event(arc: &JoinArc) -> bool {
    arc.on == On::Error
        || arc.guard.as_ref().is_some_and(|guard| {
            guard.reads().iter().any(|read| read.root == "event" || read.root == "error")
        })
}

/// Routes in all other dialects: every arc gets a token.
fn by_join(d: &Draft<'_>, run: &StepRun, end: End<'_>, patch: &Patch) -> Result<Route, Trouble> {
    let (emitted, handled) = match end {
        End::Done(_) => (taken(d, run, end, patch)?, false),
        End::Failed(failure) => after_join_failure(d, run.step, failure),
    };
    let failed = matches!(end, End::Failed(_)) && !handled;
    let end = if failed { BranchEnd::Failed } else { BranchEnd::GoesOn };
    Ok(Route { emitted, end, handled })
}

fn taken(d: &Draft<'_>, run: &StepRun, end: End<'_>, patch: &Patch) -> Result<Vec<Emission>, Trouble> {
    let exclusive = d.net.step(run.step).router.mode == RouterMode::Exclusive;
    let mut question = Question::new(d, run, end, patch);
    let mut emitted = Vec::new();
    let mut found = false;
    for (number, arc) in onward(d, run.step) {
        let live = !(exclusive && found) && question.matches(arc)?;
        found |= live;
        let token = if live { TokenValue::Live(question.args(arc)?) } else { TokenValue::Dead };
        emitted.push(emission(number, token));
    }
    Ok(emitted)
}

/// Codes of failures that mean a refusal.
const REFUSALS: [&str; 3] = [codes::REJECTED, codes::MANUAL_TIMEOUT, codes::GATE_TIMEOUT];

/// Returns whether a person refused or did not answer in time: in this step, in the loop's body or in a
/// sub-execution. In every failure mode, only an arc that handles the failure may then continue control.
fn is_refusal(d: &Draft<'_>, step: StepId, failure: &Failure) -> bool {
    d.net.asks_people(step) || REFUSALS.contains(&failure.code.as_str())
}

/// Returns the tokens that a failed step emits, and whether an arc handles the failure (R2).
fn after_join_failure(d: &Draft<'_>, step: StepId, failure: &Failure) -> (Vec<Emission>, bool) {
    let error = || Some(Arc::new(json!({ "error": failure })));
    let handled = onward(d, step).any(|(_, arc)| arc.on == On::Error);
    let closes = d.net.step(step).router.conditional || is_refusal(d, step, failure);
    let collect = d.net.policy().failure == FailureMode::Collect && !closes;
    let token = |arc: &JoinArc| match (handled, arc.on, collect, &arc.guard) {
        (true, On::Error, _, _) | (false, _, true, None) => TokenValue::Live(error()),
        (true, On::End, _, _) | (false, _, true, Some(_)) => TokenValue::Dead,
        (false, _, false, _) => TokenValue::Poisoned,
    };
    (onward(d, step).map(|(number, arc)| emission(number, token(arc))).collect(), handled)
}
