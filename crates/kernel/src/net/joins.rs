//! Join steps of an `each` net, and the steps from which control can reach them.

use super::NetSpec;
use crate::ids::StepId;

/// Maximum number of join steps in a net. The set of join steps behind a step is then one word, so that large nets stay
/// small in memory.
pub const JOIN_STEPS_MAX: usize = 64;

/// Join steps by their number, which is their bit in a set.
#[derive(Debug, Default)]
pub(super) struct Joins {
    pub(super) steps: Vec<StepId>,
    /// Set of the join steps that arcs lead to from each step. It is empty in a net without join steps.
    pub(super) behind: Vec<u64>,
}

impl Joins {
    pub(super) fn find(spec: &NetSpec) -> Joins {
        let ids = (0..).map(StepId).zip(&spec.steps);
        let steps: Vec<StepId> = ids.filter(|(_, step)| step.join_all).map(|(id, _)| id).collect();
        if steps.is_empty() {
            return Joins::default();
        }
        let mut before = vec![Vec::new(); spec.steps.len()];
        for (from, step) in spec.steps.iter().enumerate() {
            step.router.arcs.iter().for_each(|arc| before[arc.to.index()].push(from));
        }
        let mut behind = vec![0; spec.steps.len()];
        for (number, join) in steps.iter().enumerate() {
            mark_before(join.index(), 1 << number, &before, &mut behind);
        }
        Joins { steps, behind }
    }

    pub(super) fn number(&self, step: StepId) -> Option<usize> {
        self.steps.binary_search(&step).ok()
    }

    pub(super) fn behind(&self, step: StepId) -> u64 {
        self.behind.get(step.index()).copied().unwrap_or_default()
    }
}

/// Adds `bit` to every step that leads to `join`; to `join` itself only if it is part of a cycle.
fn mark_before(join: usize, bit: u64, before: &[Vec<usize>], behind: &mut [u64]) {
    let mut open = vec![join];
    while let Some(at) = open.pop() {
        for from in &before[at] {
            if behind[*from] & bit == 0 {
                behind[*from] |= bit;
                open.push(*from);
            }
        }
    }
}
