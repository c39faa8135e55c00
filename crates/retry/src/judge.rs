//! Decides which firings of an ended execution a retry takes over, and which it runs again (R12).

use crate::past::{Firing, FiringEnd, Past};
use crate::{RefusedStep, RepeatReason};
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::net::Join;
use windlass_kernel::{ExecutionId, Net, Role, RunId, StepId};

/// Treatment of one firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Taken over with its result and its tokens.
    Kept,
    /// A loop that continues: its succeeded iterations are taken over.
    Resumed,
    /// A firing whose failed child continues as a retry of that child.
    Continued(ExecutionId, usize),
    Again(RepeatReason),
    /// A compensation hook or the final step of the old execution, which has no meaning in a new one.
    Dropped,
}

pub(crate) struct Judge<'p> {
    pub(crate) past: &'p Past,
    pub(crate) old: &'p Net,
    pub(crate) new: &'p Net,
    /// Counterparts in the new net by name.
    pub(crate) steps: Vec<Option<StepId>>,
    /// The firing that a retry names, in `each` nets.
    pub(crate) at: Option<RunId>,
    /// The step that a retry names in other nets, with everything after it; steps of the old net.
    pub(crate) from: Option<StepId>,
    after_from: BTreeSet<StepId>,
    preds: Vec<Vec<StepId>>,
    /// Index: join step of the new net. Value: a step whose branch reaches that join again.
    reopened: Vec<Option<StepId>>,
    pub(crate) verdicts: BTreeMap<RunId, Verdict>,
    pub(crate) refused: BTreeMap<StepId, RefusedStep>,
}

impl<'p> Judge<'p> {
    pub(crate) fn new(
        past: &'p Past,
        (old, new): (&'p Net, &'p Net),
        at: Option<RunId>,
        from: Option<StepId>,
    ) -> Judge<'p> {
        let steps = old.steps().map(|(_, step)| new.find(&step.name)).collect();
        let mut judge = Judge {
            past,
            old,
            new,
            steps,
            at,
            from,
            after_from: BTreeSet::new(),
            preds: find_predecessors(new),
            reopened: vec![None; new.join_steps().len()],
            verdicts: BTreeMap::new(),
            refused: BTreeMap::new(),
        };
        judge.after_from = judge.find_after_from();
        for (run, firing) in &past.firings {
            let verdict = judge.judge(*run, firing);
            judge.verdicts.insert(*run, verdict);
            judge.reopen_joins(firing, verdict);
            judge.check_taken(firing, verdict);
        }
        judge
    }

    /// Returns the steps of the old net that a named step puts in question, in either definition.
    fn find_after_from(&self) -> BTreeSet<StepId> {
        let Some(from) = self.from else { return BTreeSet::new() };
        let mut found = self.old.descendants(self.old.outermost(from));
        if let Some(from) = self.steps[from.index()] {
            let names = self.new.descendants(self.new.outermost(from));
            found.extend(names.iter().filter_map(|step| self.old.find(&self.new.step(*step).name)));
        }
        found
    }

    pub(crate) fn verdict(&self, run: RunId) -> Verdict {
        self.verdicts.get(&run).copied().unwrap_or(Verdict::Again(RepeatReason::NotFinished))
    }

    /// Returns whether a firing is part of an iteration that is taken over as a whole.
    pub(crate) fn is_closed(&self, firing: &Firing) -> bool {
        self.past.iteration_of(self.old, firing).is_some_and(|(of, index)| {
            self.verdict(of) == Verdict::Kept || self.past.succeeded.contains(&(of, index))
        })
    }

    fn judge(&self, run: RunId, firing: &Firing) -> Verdict {
        if let Some(found) = self.judge_origin(firing) {
            return found;
        }
        if self.at == Some(run) || self.from == Some(firing.step) {
            return Verdict::Again(RepeatReason::Requested);
        }
        if firing.undone {
            return Verdict::Again(RepeatReason::Undone);
        }
        match firing.end {
            FiringEnd::Handled if self.routes_differently(firing.step) => {
                Verdict::Again(RepeatReason::Changed)
            }
            FiringEnd::Done if self.approves_other_work(firing) => Verdict::Again(RepeatReason::Changed),
            FiringEnd::Done | FiringEnd::Handled | FiringEnd::Skipped => Verdict::Kept,
            FiringEnd::Failed => self.judge_unfinished(run, firing, RepeatReason::Failed),
            FiringEnd::Open => self.judge_unfinished(run, firing, RepeatReason::NotFinished),
        }
    }

    /// Returns whether a firing approved a step that runs again and does something else now.
    fn approves_other_work(&self, firing: &Firing) -> bool {
        let Some(old) = self.old.step(firing.step).approves else { return false };
        let is_kept =
            self.past.at(old, &firing.path).and_then(|run| self.past.firings.get(&run)).is_some_and(
                |approved| {
                    approved.end == FiringEnd::Done && !approved.undone && !self.after_from.contains(&old)
                },
            );
        let is_same = |new: StepId| self.new.step(new).work == self.old.step(old).work;
        !is_kept && !self.steps[old.index()].is_some_and(is_same)
    }

    /// Judges a firing by the reason why it exists; `None` if that is taken over and its own end decides.
    fn judge_origin(&self, firing: &Firing) -> Option<Verdict> {
        match &firing.role {
            Role::Final | Role::Hook { .. } => return Some(Verdict::Dropped),
            Role::Tool { agent, .. } => {
                let is_kept = self.verdict(*agent) == Verdict::Kept;
                return Some(if is_kept { Verdict::Kept } else { self.follows(*agent) });
            }
            Role::Iteration { .. } | Role::Routed => {}
        }
        if let Some((of, index)) = self.past.iteration_of(self.old, firing) {
            match self.verdict(of) {
                Verdict::Kept => return Some(Verdict::Kept),
                Verdict::Resumed if self.past.succeeded.contains(&(of, index)) => return Some(Verdict::Kept),
                Verdict::Resumed => {}
                Verdict::Again(_) | Verdict::Continued(..) | Verdict::Dropped => {
                    return Some(self.follows(of));
                }
            }
        }
        if firing.role != Role::Routed {
            return None;
        }
        match self.old.policy().join {
            Join::Each => {
                let repeated = self.past.origins(firing).find(|run| self.verdict(*run) != Verdict::Kept);
                repeated.map(|run| self.follows(run)).or_else(|| self.judge_join(firing.step))
            }
            Join::All | Join::AnyLive => self.judge_predecessors(firing),
        }
    }

    /// Decides that a join step runs again if a branch that it did not wait for reaches it now.
    fn judge_join(&self, step: StepId) -> Option<Verdict> {
        let new = self.steps[step.index()]?;
        let number = self.new.join_number(new);
        if number.is_some() != self.old.join_number(step).is_some() {
            return Some(Verdict::Again(RepeatReason::Changed));
        }
        self.reopened[number?].map(|from| Verdict::Again(RepeatReason::Follows(from)))
    }

    /// Notes the join steps that a firing can reach again, because it runs again or its arcs are evaluated again.
    fn reopen_joins(&mut self, firing: &Firing, verdict: Verdict) {
        let Some(new) = self.steps[firing.step.index()].filter(|_| firing.role == Role::Routed) else {
            return;
        };
        // The tokens of a join step that fires again wait there again, together with later ones.
        let own = self.new.join_number(new).map_or(0, |number| 1 << number);
        let joins = self.new.joins_behind(new) | own;
        if joins == 0 || verdict == Verdict::Kept && !self.routes_differently(firing.step) {
            return;
        }
        for (number, from) in self.reopened.iter_mut().enumerate() {
            if joins >> number & 1 == 1 {
                from.get_or_insert(firing.step);
            }
        }
    }

    /// Decides, in nets with joins, that a step runs again unless all steps before it are taken over.
    fn judge_predecessors(&self, firing: &Firing) -> Option<Verdict> {
        if self.after_from.contains(&self.old.outermost(firing.step)) && self.from != Some(firing.step) {
            return self.from.map(|from| Verdict::Again(RepeatReason::Follows(from)));
        }
        let step = self.steps[firing.step.index()]?;
        let repeated = self.preds[step.index()].iter().find(|pred| {
            let old = self.old.find(&self.new.step(**pred).name);
            let run = old.and_then(|old| self.past.at(old, &firing.path));
            run.is_none_or(|run| self.verdict(run) != Verdict::Kept)
        })?;
        let name = &self.new.step(*repeated).name;
        Some(match self.old.find(name) {
            Some(old) => Verdict::Again(RepeatReason::Follows(old)),
            None => Verdict::Again(RepeatReason::Changed),
        })
    }

    fn follows(&self, run: RunId) -> Verdict {
        match self.past.firings.get(&run) {
            Some(firing) => Verdict::Again(RepeatReason::Follows(firing.step)),
            None => Verdict::Again(RepeatReason::NotFinished),
        }
    }

    fn judge_unfinished(&self, run: RunId, firing: &Firing, reason: RepeatReason) -> Verdict {
        let (old, new) = (self.old.step(firing.step), self.steps[firing.step.index()]);
        let Some(new) = new.map(|step| self.new.step(step)) else {
            // Without the loop, the work of its iterations would be lost; the caller refuses that.
            let has_work = self
                .past
                .firings
                .values()
                .any(|inside| inside.end == FiringEnd::Done && self.is_inside(inside, run, firing));
            return if has_work { Verdict::Resumed } else { Verdict::Again(reason) };
        };
        if firing.is_loop && !matches!(firing.role, Role::Iteration { .. }) {
            let is_same = old.repeat == new.repeat;
            return if is_same { Verdict::Resumed } else { Verdict::Again(RepeatReason::Changed) };
        }
        let child = firing.child.filter(|_| old.work == new.work);
        child.map_or(Verdict::Again(reason), |(child, record)| Verdict::Continued(child, record))
    }

    /// Returns whether a firing belongs to an iteration of a loop, at any depth.
    fn is_inside(&self, firing: &Firing, of: RunId, around: &Firing) -> bool {
        let mut steps = std::iter::successors(Some(firing.step), |step| self.old.step(*step).region).skip(1);
        let is_own = matches!(firing.role, Role::Iteration { of: own, .. } if own == of);
        is_own || firing.path.0.starts_with(&around.path.0) && steps.any(|step| step == around.step)
    }

    /// Refuses a step that ran and that the new definition does not have in the same place.
    fn check_taken(&mut self, firing: &Firing, verdict: Verdict) {
        let is_kept = match verdict {
            Verdict::Again(_) | Verdict::Dropped => return,
            Verdict::Kept => true,
            Verdict::Resumed | Verdict::Continued(..) => false,
        };
        let lost = match self.steps[firing.step.index()] {
            None if firing.end == FiringEnd::Skipped => return,
            None => RefusedStep::Removed,
            Some(new) if !self.is_same_place(firing.step, new) => RefusedStep::Moved,
            Some(_) if is_kept && self.is_rerouted(firing) => RefusedStep::Rerouted,
            Some(_) => return,
        };
        self.refused.entry(firing.step).or_insert(lost);
    }

    /// Returns whether both definitions have the step in the same loop.
    fn is_same_place(&self, old: StepId, new: StepId) -> bool {
        let region = |net: &Net, step: StepId| net.step(step).region.map(|step| net.step(step).name.clone());
        region(self.old, old) == region(self.new, new)
    }

    /// Returns whether a firing reached a kept firing by an arc that the new definition does not have. Only `each` nets
    /// depend on it: joins are resolved by step.
    fn is_rerouted(&self, firing: &Firing) -> bool {
        if self.old.policy().join != Join::Each || firing.role != Role::Routed {
            return false;
        }
        let emitters = self.past.origins(firing).filter_map(|run| self.past.firings.get(&run));
        emitters.into_iter().any(|emitter| self.routes_differently(emitter.step))
    }

    /// Returns whether the arcs of a step changed.
    pub(crate) fn routes_differently(&self, old: StepId) -> bool {
        let Some(new) = self.steps[old.index()] else { return true };
        let (before, after) = (&self.old.step(old).router, &self.new.step(new).router);
        let same = before.mode == after.mode
            && before.arcs.len() == after.arcs.len()
            && before.arcs.iter().zip(&after.arcs).all(|(before, after)| {
                self.steps[before.to.index()] == Some(after.to)
                    && (&before.guard, &before.args, before.on) == (&after.guard, &after.args, after.on)
            });
        !same
    }
}

/// Returns the steps with an arc to each step, without arcs from a loop into its body.
fn find_predecessors(net: &Net) -> Vec<Vec<StepId>> {
    let mut found = vec![Vec::new(); net.spec().steps.len()];
    if net.policy().join == Join::Each {
        return found;
    }
    for (id, step) in net.steps() {
        for arc in step.router.arcs.iter().filter(|arc| !net.is_body_arc(id, arc)) {
            found[arc.to.index()].push(id);
        }
    }
    found
}
