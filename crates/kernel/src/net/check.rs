//! Checks of `Net::new`. All later code relies on them, so `decide` checks nothing again.

use super::NetSpec;
use super::joins::JOIN_STEPS_MAX;
use super::policy::{Finish, Join, Recovery, Retry};
use super::step::{Body, Completion, LoopKind, Step, Work};
use crate::ids::StepId;
use std::collections::BTreeSet;
use std::fmt;

/// All problems of a spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the net cannot run: {}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))]
pub struct NetError {
    pub problems: Vec<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    Empty,
    DuplicateName { name: String },
    UnknownStep { at: String, id: u32 },
    Cycle { through: String },
    Unreachable { step: String },
    RegionCrossed { from: String, to: String },
    RegionNotALoop { step: String },
    RegionOfEach { step: String },
    RegionEmpty { step: String },
    OnDemandWithArcs { step: String },
    RestartWith { step: String, what: &'static str },
    Bound { step: String, what: &'static str },
    EntryInRegion { step: String },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Empty => write!(f, "the definition has no steps; add at least one"),
            Problem::DuplicateName { name } => write!(f, "step `{name}` is defined twice; rename one"),
            Problem::UnknownStep { at, id } => write!(f, "{at} names step {id}, which does not exist"),
            Problem::Cycle { through } => write!(
                f,
                "step `{through}` is part of a cycle; only playbooks may have one, elsewhere use a loop step"
            ),
            Problem::Unreachable { step } => {
                write!(f, "step `{step}` is in the body of a loop, but no arc of the body leads to it")
            }
            Problem::RegionCrossed { from, to } => write!(
                f,
                "the arc from `{from}` to `{to}` crosses the border of a loop's body; enter it through the loop step"
            ),
            Problem::RegionNotALoop { step } => {
                write!(f, "step `{step}` is in the body of a step that is not a loop over several steps")
            }
            Problem::RegionOfEach { step } => {
                write!(f, "step `{step}`: a loop over several steps needs joins that wait for all arcs")
            }
            Problem::RegionEmpty { step } => write!(f, "the loop `{step}` has no step in its body"),
            Problem::OnDemandWithArcs { step } => {
                write!(f, "step `{step}` is called by an agent, so it cannot have arcs")
            }
            Problem::RestartWith { step, what } => write!(
                f,
                "step `{step}` has {what}, which cannot be repeated when a lost worker restarts the execution"
            ),
            Problem::Bound { step, what } => write!(f, "step `{step}`: {what}"),
            Problem::EntryInRegion { step } => {
                write!(
                    f,
                    "step `{step}` is inside a loop or called by an agent and cannot be an entry or final step"
                )
            }
        }
    }
}

pub(super) fn check(spec: &NetSpec) -> Result<(), NetError> {
    let mut problems = Vec::new();
    if spec.steps.is_empty() {
        problems.push(Problem::Empty);
    }
    check_names(spec, &mut problems);
    check_references(spec, &mut problems);
    // The following checks walk the graph and need every id to exist.
    if problems.is_empty() {
        check_regions(spec, &mut problems);
        check_on_demand(spec, &mut problems);
        check_restart(spec, &mut problems);
        check_bounds(spec, &mut problems);
        check_joins(spec, &mut problems);
        if spec.policy.join != Join::Each {
            check_entry(spec, &mut problems);
            check_cycles(spec, &mut problems);
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(NetError { problems }) }
}

fn check_names(spec: &NetSpec, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for step in &spec.steps {
        if !seen.insert(step.name.as_str()) {
            problems.push(Problem::DuplicateName { name: step.name.clone() });
        }
    }
}

fn check_references(spec: &NetSpec, problems: &mut Vec<Problem>) {
    let mut check = |at: String, id: StepId| {
        if id.index() >= spec.steps.len() {
            problems.push(Problem::UnknownStep { at, id: id.0 });
        }
    };
    for step in &spec.steps {
        step.router.arcs.iter().for_each(|arc| check(format!("an arc of `{}`", step.name), arc.to));
        step.reads.iter().for_each(|id| check(format!("what `{}` reads", step.name), *id));
        step.region.iter().for_each(|id| check(format!("the loop around `{}`", step.name), *id));
        step.approves.iter().for_each(|id| check(format!("the approval `{}`", step.name), *id));
    }
    spec.policy.entry.iter().for_each(|id| check("the entry".into(), *id));
    if let Finish::Step(id) = spec.policy.finish {
        check("the final step".into(), id);
    }
    spec.policy.outputs.iter().for_each(|output| check(format!("the output `{}`", output.name), output.step));
}

fn is_region_loop(step: &Step) -> bool {
    step.repeat.as_ref().is_some_and(|repeat| repeat.body == Body::Region)
}

fn check_regions(spec: &NetSpec, problems: &mut Vec<Problem>) {
    let mut reached = BTreeSet::new();
    for (step, id) in spec.steps.iter().zip(0..) {
        for arc in &step.router.arcs {
            let target = &spec.steps[arc.to.index()];
            let enters = target.region == Some(StepId(id));
            if enters || target.region == step.region {
                reached.insert(arc.to);
            } else {
                problems.push(Problem::RegionCrossed { from: step.name.clone(), to: target.name.clone() });
            }
        }
        if let Some(region) = step.region
            && (!is_region_loop(&spec.steps[region.index()]) || encloses_itself(spec, id as usize))
        {
            problems.push(Problem::RegionNotALoop { step: step.name.clone() });
        }
        if is_region_loop(step) {
            if spec.policy.join == Join::Each {
                problems.push(Problem::RegionOfEach { step: step.name.clone() });
            }
            if !spec.steps.iter().any(|member| member.region == Some(StepId(id))) {
                problems.push(Problem::RegionEmpty { step: step.name.clone() });
            }
        }
    }
    for (step, id) in spec.steps.iter().zip(0..) {
        if step.region.is_some() && !reached.contains(&StepId(id)) && !step.on_demand {
            problems.push(Problem::Unreachable { step: step.name.clone() });
        }
    }
    let ends = match spec.policy.finish {
        Finish::Step(id) => Some(id),
        Finish::Nothing | Finish::Uploads => None,
    };
    for id in spec.policy.entry.into_iter().chain(ends) {
        let step = &spec.steps[id.index()];
        if step.region.is_some() || step.on_demand {
            problems.push(Problem::EntryInRegion { step: step.name.clone() });
        }
        if ends == Some(id) && is_region_loop(step) {
            let what = "a final step cannot be a loop over several steps";
            problems.push(Problem::Bound { step: step.name.clone(), what });
        }
    }
}

fn encloses_itself(spec: &NetSpec, id: usize) -> bool {
    loop_depth(spec, id) as usize > spec.steps.len()
}

/// Returns the number of loops around a step; more than the number of steps if loops enclose each other.
pub(super) fn loop_depth(spec: &NetSpec, id: usize) -> u32 {
    let mut depth = 0;
    let mut at = spec.steps[id].region;
    while let Some(region) = at
        && depth as usize <= spec.steps.len()
    {
        depth += 1;
        at = spec.steps[region.index()].region;
    }
    depth
}

fn check_on_demand(spec: &NetSpec, problems: &mut Vec<Problem>) {
    for step in &spec.steps {
        let called = step.router.arcs.iter().any(|arc| spec.steps[arc.to.index()].on_demand);
        if called || (step.on_demand && (!step.router.arcs.is_empty() || step.region.is_some())) {
            problems.push(Problem::OnDemandWithArcs { step: step.name.clone() });
        }
    }
}

/// Rejects steps that cannot run again from scratch: a person decided them, or a hook undoes them (R11).
fn check_restart(spec: &NetSpec, problems: &mut Vec<Problem>) {
    if spec.policy.recovery != Recovery::RestartExecution {
        return;
    }
    for step in &spec.steps {
        let found = [
            (step.completion != Completion::Auto, "manual completion"),
            (matches!(step.work, Work::Approval { .. }), "an approval"),
            (step.compensation.is_some(), "compensation"),
        ];
        for (_, what) in found.into_iter().filter(|(found, _)| *found) {
            problems.push(Problem::RestartWith { step: step.name.clone(), what });
        }
    }
}

/// Maximum number of iterations that are open at a time; each holds memory while it runs.
const LOOP_CAP_MAX: u32 = 10_000;

fn check_bounds(spec: &NetSpec, problems: &mut Vec<Problem>) {
    for step in &spec.steps {
        let hook = step.compensation.as_ref();
        let retries = std::iter::once(&step.retry).chain(hook.map(|hook| &hook.retry));
        let cap = step.repeat.as_ref().map(|repeat| repeat.cap);
        let found = [
            (
                retries.clone().any(|retry| retry.attempts_max == 0),
                "a retry policy needs at least one attempt",
            ),
            (
                !retries.into_iter().all(is_finite),
                "a retry policy's multiplier and jitter must be finite, not negative",
            ),
            (cap.is_some_and(|cap| cap == 0 || cap > LOOP_CAP_MAX), "a loop's cap must be from 1 to 10000"),
            (is_parallel_while(step), "a while loop is sequential; set its cap to 1"),
            (
                hook.is_some_and(|hook| !matches!(hook.work, Work::Task { .. })),
                "a compensation hook must be a task",
            ),
        ];
        for (_, what) in found.into_iter().filter(|(found, _)| *found) {
            problems.push(Problem::Bound { step: step.name.clone(), what });
        }
    }
    if spec.policy.max_parallel == Some(0) {
        let what = "max_parallel must be at least 1";
        problems.push(Problem::Bound { step: spec.steps[0].name.clone(), what });
    }
}

fn check_joins(spec: &NetSpec, problems: &mut Vec<Problem>) {
    let mut joins = spec.steps.iter().filter(|step| step.join_all);
    let found = match spec.policy.join {
        Join::Each => joins.nth(JOIN_STEPS_MAX).map(|step| (step, "a net can have at most 64 join steps")),
        Join::All | Join::AnyLive => {
            joins.next().map(|step| (step, "only a step that fires once per token can join branches"))
        }
    };
    if let Some((step, what)) = found {
        problems.push(Problem::Bound { step: step.name.clone(), what });
    }
}

fn is_finite(retry: &Retry) -> bool {
    [retry.multiplier, retry.jitter].iter().all(|factor| factor.is_finite() && *factor >= 0.0)
}

fn is_parallel_while(step: &Step) -> bool {
    step.repeat
        .as_ref()
        .is_some_and(|repeat| matches!(repeat.kind, LoopKind::While { .. }) && repeat.cap != 1)
}

/// Checks the entry. Outside playbooks it must be one of the steps without incoming arcs, at which tokens start.
fn check_entry(spec: &NetSpec, problems: &mut Vec<Problem>) {
    let Some(entry) = spec.policy.entry else { return };
    if spec.steps.iter().flat_map(|step| &step.router.arcs).any(|arc| arc.to == entry) {
        let what = "an entry cannot have incoming arcs";
        problems.push(Problem::Bound { step: spec.steps[entry.index()].name.clone(), what });
    }
}

/// Removes steps without open predecessors until none is left; the remaining steps are on a cycle.
fn check_cycles(spec: &NetSpec, problems: &mut Vec<Problem>) {
    let mut arcs_in = vec![0u32; spec.steps.len()];
    for arc in spec.steps.iter().flat_map(|step| &step.router.arcs) {
        arcs_in[arc.to.index()] += 1;
    }
    let mut free: Vec<usize> = (0..spec.steps.len()).filter(|id| arcs_in[*id] == 0).collect();
    let mut seen = 0;
    while let Some(id) = free.pop() {
        seen += 1;
        for arc in &spec.steps[id].router.arcs {
            arcs_in[arc.to.index()] -= 1;
            if arcs_in[arc.to.index()] == 0 {
                free.push(arc.to.index());
            }
        }
    }
    if seen < spec.steps.len()
        && let Some(id) = arcs_in.iter().position(|open| *open > 0)
    {
        problems.push(Problem::Cycle { through: spec.steps[id].name.clone() });
    }
}
