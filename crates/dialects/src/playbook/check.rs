//! Checks of the whole playbook: unknown names, unreachable steps, endless cycles.

use super::language::PREVIOUS;
use super::model::{ArcDef, Name, Playbook, StepDef};
use crate::diagnostic::Problems;
use crate::names;
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::net::{JOIN_STEPS_MAX, RouterMode};

/// Steps named in a message.
const NAMED_MAX: usize = 5;

pub(super) fn check(playbook: &Playbook, problems: &mut Problems) {
    let index = index(playbook, problems);
    let arcs = playbook.steps.iter().flat_map(|step| &step.arcs).map(|arc| &arc.to);
    let ends = playbook.executor.entry_step.iter().chain(&playbook.executor.final_step);
    for name in arcs.chain(ends).filter(|name| !index.contains_key(name.text.as_str())) {
        undefined(name, &index, problems);
    }
    for step in &playbook.steps {
        jumps(step, problems);
    }
    if !playbook.steps.is_empty() && !problems.has_errors() {
        unreachable(playbook, &index, problems);
        joins(playbook, problems);
        width(playbook, problems);
        endless(playbook, &index, problems);
    }
}

type Index<'p> = BTreeMap<&'p str, usize>;

pub(super) fn positions(playbook: &Playbook) -> Index<'_> {
    playbook.steps.iter().enumerate().map(|(index, step)| (step.name.text.as_str(), index)).collect()
}

fn index<'p>(playbook: &'p Playbook, problems: &mut Problems) -> Index<'p> {
    let mut seen = BTreeSet::new();
    for step in &playbook.steps {
        if !seen.insert(step.name.text.as_str()) {
            let message = format!("step `{}` is defined twice", step.name.text);
            problems.add("E0105", &step.name.at, message, Some("rename one of them".to_owned()));
        }
    }
    positions(playbook)
}

fn undefined(name: &Name, index: &Index<'_>, problems: &mut Problems) {
    if !problems.is_full() {
        let hint = names::hint(&name.text, index.keys().copied());
        problems.add("E0107", &name.at, format!("step `{}` is not defined", name.text), hint);
    }
}

fn jumps(step: &StepDef, problems: &mut Problems) {
    let labels: Vec<&str> = step.tasks.iter().map(|task| task.task.label.as_str()).collect();
    for (place, task) in step.tasks.iter().enumerate() {
        for to in task.jumps.iter().filter(|to| target(&to.text, &labels, place).is_none()) {
            let message = format!("step `{}` has no task `{}` to jump to", step.name.text, to.text);
            let hint = if problems.is_full() { None } else { names::hint(&to.text, labels.iter().copied()) };
            problems.add("E0113", &to.at, message, hint);
        }
    }
}

/// Returns the label that a jump from the task at `place` refers to.
pub(super) fn target<'l>(to: &str, labels: &[&'l str], place: usize) -> Option<&'l str> {
    let named = labels.iter().find(|label| **label == to).copied();
    let previous = || PREVIOUS.contains(&to).then(|| labels.get(place.checked_sub(1)?).copied()).flatten();
    named.or_else(previous)
}

fn unreachable(playbook: &Playbook, index: &Index<'_>, problems: &mut Problems) {
    let start = playbook.executor.entry_step.as_ref().map_or(0, |name| index[name.text.as_str()]);
    let last = playbook.executor.final_step.as_ref().map(|name| index[name.text.as_str()]);
    let mut reached: BTreeSet<usize> = last.into_iter().chain([start]).collect();
    let mut open = vec![start];
    while let Some(step) = open.pop() {
        for arc in &playbook.steps[step].arcs {
            let to = index[arc.to.text.as_str()];
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    for (_, step) in playbook.steps.iter().enumerate().filter(|(place, _)| !reached.contains(place)) {
        let message = format!("no arc leads to step `{}`", step.name.text);
        let hint = "add an arc to it, or remove it".to_owned();
        problems.add("W0202", &step.name.at, message, Some(hint));
    }
}

/// Names in the lists of all steps that read the whole of `steps`: each such step has one in the net.
const LISTED_MAX: usize = 1_000_000;

fn width(playbook: &Playbook, problems: &mut Problems) {
    let reads_all = |step: &&StepDef| step.reads().any(|read| read.root == "steps" && read.key.is_none());
    let most = LISTED_MAX / playbook.steps.len();
    if let Some(step) = playbook.steps.iter().filter(reads_all).nth(most) {
        let message = format!(
            "more than {most} of {} steps read the results of all steps: `{{{{ steps }}}}`",
            playbook.steps.len()
        );
        let hint = "read single steps: `{{ NAME }}` or `{{ steps.NAME }}`".to_owned();
        problems.add("E0122", &step.name.at, message, Some(hint));
    }
}

fn joins(playbook: &Playbook, problems: &mut Problems) {
    let joins: Vec<_> = playbook.steps.iter().filter_map(|step| step.join_all.as_ref()).collect();
    if let Some(at) = joins.get(JOIN_STEPS_MAX) {
        let message = format!("the playbook has {} joins, more than {JOIN_STEPS_MAX}", joins.len());
        problems.add("E0121", at, message, Some("put parts of it into playbooks of their own".to_owned()));
    }
}

/// Returns arcs that are taken unconditionally.
fn certain(step: &StepDef) -> &[ArcDef] {
    match step.mode {
        RouterMode::Exclusive => &step.arcs[..step.arcs.len().min(1)],
        RouterMode::Inclusive => &step.arcs,
    }
}

fn endless(playbook: &Playbook, index: &Index<'_>, problems: &mut Problems) {
    let mut arcs = Vec::new();
    for (from, step) in playbook.steps.iter().enumerate() {
        for arc in certain(step).iter().filter(|arc| arc.guard.is_none()) {
            let to = index[arc.to.text.as_str()];
            if playbook.steps[to].admit.is_none() {
                arcs.push((from, to));
            }
        }
    }
    // Steps that cannot be entered again are removed; then, with reversed arcs, those that cannot be left.
    let entered = cyclic(&arcs, playbook.steps.len());
    let mut turned = arcs;
    turned.retain(|(from, to)| entered.contains(from) && entered.contains(to));
    turned.iter_mut().for_each(|(from, to)| std::mem::swap(from, to));
    let left = cyclic(&turned, playbook.steps.len());
    let left: Vec<&Name> = left.intersection(&entered).map(|step| &playbook.steps[*step].name).collect();
    let Some(first) = left.first() else { return };
    let shown: Vec<String> = left.iter().take(NAMED_MAX).map(|name| format!("`{}`", name.text)).collect();
    let more = if left.len() > NAMED_MAX { ", …" } else { "" };
    let message = format!("the cycle through {}{more} has no exit", shown.join(", "));
    let hint = "add `when` to an arc of the cycle".to_owned();
    problems.add("W0203", &first.at, message, Some(hint));
}

/// Returns the steps that remain when steps without incoming arcs are removed repeatedly.
fn cyclic(arcs: &[(usize, usize)], steps: usize) -> BTreeSet<usize> {
    let mut onward = vec![Vec::new(); steps];
    let mut into = vec![0_usize; steps];
    for (from, to) in arcs {
        onward[*from].push(*to);
        into[*to] += 1;
    }
    let mut left: BTreeSet<usize> = (0..steps).collect();
    let mut free: Vec<usize> = (0..steps).filter(|step| into[*step] == 0).collect();
    while let Some(step) = free.pop() {
        left.remove(&step);
        for to in &onward[step] {
            into[*to] -= 1;
            if into[*to] == 0 {
                free.push(*to);
            }
        }
    }
    left
}
