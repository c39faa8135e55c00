//! Advice about routes that follow the rules of the language and that an author seldom intends: a branch that
//! continues after a failure, and a step that runs once for each branch that reaches it.

use super::check::positions;
use super::model::{ArcDef, Playbook, StepDef, TaskDef};
use crate::diagnostic::Problems;
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::net::{FailureMode, RouterMode};
use windlass_protocol::{Action, OnUnmatched, Tool};

/// Maximum number of steps that are named.
const NAMED_MAX: usize = 5;

pub(super) fn advise(playbook: &Playbook, problems: &mut Problems) {
    if playbook.executor.failure != FailureMode::FailFast {
        after_failures(playbook, problems);
    }
    if playbook.steps.len() <= STEPS_MAX {
        reached_twice(playbook, problems);
    }
}

/// Steps of a playbook whose branches are compared. Larger ones are written by programs.
const STEPS_MAX: usize = 500;

/// Adds one piece of advice for the playbook, at the first such arc: most playbooks have many of them.
fn after_failures(playbook: &Playbook, problems: &mut Problems) {
    let arcs = playbook.steps.iter().filter(|step| can_fail(step));
    let mut arcs = arcs.filter_map(|step| Some((step, taken_after_failure(step)?)));
    let Some((step, arc)) = arcs.next() else { return };
    let (name, to) = (&step.name.text, &arc.to.text);
    let message =
        format!("if step `{name}` fails, `{to}` runs all the same, and the execution still ends failed");
    let line = match step.repeat.is_some() {
        true => "when: \"{{ event.payload.failed == 0 }}\"",
        false => "when: \"{{ event.name == 'step.done' }}\"",
    };
    let more = match arcs.count() {
        0 => String::new(),
        1 => "; 1 more step has such an arc".to_owned(),
        count => format!("; {count} more steps have such an arc"),
    };
    problems.add(
        "W0253",
        &arc.to.at,
        message,
        format!("write `{line}` to end the branch after a failure{more}"),
    );
}

fn can_fail(step: &StepDef) -> bool {
    step.tasks.iter().any(|task| task.task.kind != Tool::Noop.kind() && !continues(task))
}

/// Returns whether every outcome of the task continues.
fn continues(task: &TaskDef) -> bool {
    let rules = &task.task.rules;
    let all = rules.iter().all(|rule| matches!(rule.action, Action::Continue | Action::Break));
    let has_else = rules.last().is_some_and(|rule| rule.when.is_none());
    all && (has_else || task.task.on_unmatched == OnUnmatched::Continue)
}

/// Returns the first arc without a guard that a failure takes, unless an arc before it takes failures.
fn taken_after_failure(step: &StepDef) -> Option<&ArcDef> {
    let place = step.arcs.iter().position(|arc| arc.guard.is_none())?;
    let before = &step.arcs[..place];
    let handled = step.mode == RouterMode::Exclusive && before.iter().any(may_take_failure);
    (!handled).then(|| &step.arcs[place])
}

fn may_take_failure(arc: &ArcDef) -> bool {
    arc.guard
        .as_ref()
        .is_some_and(|guard| ["failed", "error"].iter().any(|word| guard.source().contains(word)))
}

/// Reports steps at which branches of one fan-out meet. Each token runs the step once unless the step joins them.
fn reached_twice(playbook: &Playbook, problems: &mut Problems) {
    let index = positions(playbook);
    let targets = |place: usize| -> Vec<usize> {
        playbook.steps[place].arcs.iter().filter_map(|arc| index.get(arc.to.text.as_str()).copied()).collect()
    };
    let last = playbook.executor.final_step.as_ref().and_then(|name| index.get(name.text.as_str()));
    let mut met: BTreeMap<usize, usize> = BTreeMap::new();
    for (place, step) in playbook.steps.iter().enumerate() {
        if step.mode != RouterMode::Inclusive || step.arcs.len() < 2 {
            continue;
        }
        let branches: Vec<BTreeSet<usize>> =
            targets(place).into_iter().map(|to| reach(to, place, &targets)).collect();
        let shared = |at: &usize| branches.iter().filter(|branch| branch.contains(at)).count() > 1;
        let all: BTreeSet<usize> = branches.iter().flatten().copied().filter(shared).collect();
        // Only steps where branches meet: later steps are reached as often for that reason.
        let later: BTreeSet<usize> = all.iter().flat_map(|from| targets(*from)).collect();
        let joins = |at: usize| playbook.steps[at].join_all.is_some();
        for at in all.difference(&later).filter(|at| Some(*at) != last && !joins(**at)) {
            met.entry(*at).or_insert(place);
        }
    }
    for (at, from) in met.into_iter().take(NAMED_MAX) {
        let (name, from) = (&playbook.steps[at].name, &playbook.steps[from].name.text);
        let message = format!("step `{}` runs once for each branch of `{from}` that reaches it", name.text);
        let hint =
            "write `spec: {join: all}` in the step to run it once, when all of them have arrived or ended";
        problems.add("W0255", &name.at, message, hint.to_owned());
    }
}

/// Returns the steps that a token at `start` may reach without passing `fork` again.
fn reach(start: usize, fork: usize, targets: &dyn Fn(usize) -> Vec<usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(place) = open.pop() {
        if place != fork {
            open.extend(targets(place).into_iter().filter(|to| found.insert(*to)));
        }
    }
    found.remove(&fork);
    found
}
