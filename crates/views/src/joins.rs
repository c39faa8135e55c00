//! Join steps of playbooks that wait for branches.

use std::collections::BTreeSet;
use windlass_kernel::{Execution, Net, Role, StepId};

/// Maximum number of steps that a waiting join step names, of each kind.
const NAMED_MAX: usize = 20;

/// A join step at which tokens wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingJoin {
    pub step: StepId,
    /// Steps that the waiting tokens came from.
    pub arrived: Vec<StepId>,
    /// Steps whose branches can still reach it.
    pub awaited: Vec<StepId>,
}

/// Lists the join steps at which tokens wait, in the order of the definition.
#[must_use]
pub fn waiting_joins(net: &Net, state: &Execution<'_>) -> Vec<WaitingJoin> {
    if state.joining.is_empty() {
        return Vec::new();
    }
    let live = live_steps(state);
    let joins = net.join_steps().iter().enumerate();
    let found = joins.map(|(number, step)| {
        let arrived = state.joining.values().filter(|token| token.step == *step);
        let arrived: BTreeSet<StepId> = arrived.filter_map(|token| Some(token.from?.0)).collect();
        let at_others = state.joining.values().map(|token| token.step).filter(|at| at != step);
        let awaited: BTreeSet<StepId> = live.iter().copied().chain(at_others).collect();
        let can_reach = |from: &StepId| net.joins_behind(*from) >> number & 1 == 1;
        WaitingJoin {
            step: *step,
            arrived: arrived.into_iter().take(NAMED_MAX).collect(),
            awaited: awaited.into_iter().filter(can_reach).take(NAMED_MAX).collect(),
        }
    });
    found.filter(|join| !join.arrived.is_empty()).collect()
}

/// Returns the steps with tokens or step-runs that arcs can lead on.
fn live_steps(state: &Execution<'_>) -> BTreeSet<StepId> {
    let tokens = state.arrived.values().chain(state.gated.values().map(|gate| &gate.token));
    let runs = state.runs.values().filter(|run| run.role == Role::Routed);
    tokens.map(|token| token.step).chain(runs.map(|run| run.step)).collect()
}
