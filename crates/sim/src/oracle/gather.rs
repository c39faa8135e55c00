//! Join steps of a playbook: one firing for all branches, when no other branch can come any more.

use super::net::Net;
use super::run::{Kind, Run};
use super::world::World;
use std::collections::BTreeSet;

impl World {
    /// Fires a join step that every branch has reached or will never reach.
    pub(super) fn gather(&mut self) -> bool {
        let complete = |join: &usize| !self.decided() && !self.may_still_come(*join);
        let Some(join) = self.gathered.keys().copied().find(complete) else { return false };
        self.fire_gathered(join);
        true
    }

    /// Nothing is left but closed gates and join steps. Those that no other one leads to go first; where all wait for each
    /// other, the first does.
    pub(super) fn gather_last(&mut self) -> bool {
        let waiting: Vec<usize> = self.gathered.keys().copied().collect();
        let leads = |other: usize, join: usize| other != join && behind(&self.net, other).contains(&join);
        let free = waiting.iter().find(|join| !waiting.iter().any(|other| leads(*other, **join)));
        let Some(join) = free.or(waiting.first()).copied() else { return false };
        self.fire_gathered(join);
        true
    }

    fn may_still_come(&self, join: usize) -> bool {
        let steps =
            self.runs.iter().filter(|run| run.lives() && run.of == Kind::Step).map(|run: &Run| run.step);
        let others = self.gathered.keys().copied().filter(|other| *other != join);
        steps.chain(others).any(|step| behind(&self.net, step).contains(&join))
    }

    /// Fires the join step with the arguments of its branches. If several have the same name, the last one in the order
    /// of the definition is used.
    fn fire_gathered(&mut self, join: usize) {
        let mut tokens = self.gathered.remove(&join).unwrap_or_default();
        tokens.sort_by_key(|(from, _)| *from);
        let arg = tokens.iter().rev().find_map(|(_, arg)| *arg);
        self.fire(join, Vec::new(), arg);
    }
}

/// The steps that one arc or more lead to.
fn behind(net: &Net, step: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![step];
    while let Some(at) = open.pop() {
        open.extend(net.step(at).arcs.iter().map(|arc| arc.to).filter(|to| found.insert(*to)));
    }
    found
}
