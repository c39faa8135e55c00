//! Tasks that the sub-executions of an execution wait for, at any depth: the views of their parents list them.

use crate::histories::Histories;
use windlass_kernel::{Execution, ExecutionId, Millis, RunState, StepRun};
use windlass_store::{Reader, StoreError, Stored, Tenant};
use windlass_views::{Waiting, seen_by_parent, waiting_of_child};

/// Maximum number of sub-executions read for one response. Each is a read of its state; people do not answer more at
/// once.
const CHILDREN_MAX: usize = 100;

/// Lists the tasks of the sub-executions: first those that only people can continue.
pub(crate) fn children_waiting(
    histories: &Histories,
    reader: &mut impl Reader,
    stored: &Stored,
) -> Result<Vec<Waiting>, StoreError> {
    let (mut left, mut found) = (CHILDREN_MAX, Vec::new());
    let mut open = open_children(&stored.state, None);
    while let Some((child, until)) = open.pop()
        && left > 0
    {
        left -= 1;
        let Some(stored) = read_child(reader, &stored.origin.tenant, child)? else { continue };
        let Some(net) = histories.net(reader, stored.state.head.net)? else { continue };
        let waiting = waiting_of_child(&net, &stored.state);
        found.extend(waiting.into_iter().map(|waits| seen_by_parent(waits, until)));
        open.extend(open_children(&stored.state, until));
    }
    Ok(found)
}

fn read_child(
    reader: &mut impl Reader,
    tenant: &Tenant,
    child: ExecutionId,
) -> Result<Option<Stored>, StoreError> {
    Ok(reader
        .load(child)?
        .filter(|stored| stored.origin.tenant == *tenant && !stored.state.phase().is_ended()))
}

/// Lists the children of an execution with the time until which they are waited for; those that only people can
/// continue come last.
fn open_children(state: &Execution<'_>, within: Option<Millis>) -> Vec<(ExecutionId, Option<Millis>)> {
    let census = &state.head.census;
    if census.children + census.paused_children == 0 {
        return Vec::new();
    }
    let child = |run: &StepRun| match run.state {
        RunState::Child { child, until, paused, .. } => {
            Some((paused, child, until.into_iter().chain(within).min()))
        }
        _ => None,
    };
    let mut open: Vec<_> = state.runs.values().filter_map(|run| child(run)).collect();
    open.reverse();
    open.sort_by_key(|(paused, ..)| *paused);
    open.into_iter().map(|(_, child, until)| (child, until)).collect()
}
