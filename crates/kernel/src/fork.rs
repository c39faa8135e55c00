//! Retry from a firing, for playbooks: the new execution has the old journal up to the event before the token was
//! consumed, and continues from there under its own id (R12).

use crate::any_of;
use crate::decide::{Draft, settle};
use crate::event::{Event, Facet, Fork, LifeChange, Record, RunChange};
use crate::evolve::replay;
use crate::ids::{ExecutionId, RunId};
use crate::input::{Given, Rejected};
use crate::net::{Join, Net};
use crate::phase::Phase;
use crate::redo::can_be_retried;
use crate::step_run::Role;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_artifact::Artifact;

/// A new execution that took over the beginning of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Forked {
    /// The whole journal of the new execution.
    pub records: Vec<Record>,
    /// Artifacts that only the new records refer to.
    pub artifacts: Vec<Artifact>,
}

/// Creates an execution that repeats the firing `at`. Without `at`, it repeats the first unhandled failure, or
/// continues before the outcome was decided if nothing failed.
pub fn fork(
    net: &Net,
    journal: &[Record],
    at: Option<RunId>,
    id: ExecutionId,
    inputs: Option<Arc<Value>>,
    given: &Given<'_>,
) -> Result<Forked, Rejected> {
    if net.policy().join != Join::Each {
        return Err(Rejected::Malformed("only a playbook can be forked; retry other executions from a step"));
    }
    can_be_retried(journal)?;
    let prefix = &journal[..find_firing(journal, at)?];
    let state = replay(net, prefix)?;
    // The firing can be in the part of the journal that the old execution took over itself.
    let forked = |record: &Record| if let Event::Forked(fork) = &record.event { Some(fork.id) } else { None };
    let own = journal.iter().rev().find_map(forked);
    let mut draft = Draft::new(&state, net, given);
    let fork = Fork {
        parent: own.unwrap_or(state.head.id),
        id,
        generation: state.head.generation + 1,
        inputs,
        deadline: state.head.timeout_ms.map(|ms| draft.at.plus(ms)),
    };
    draft.emit(Event::Forked(Box::new(fork)))?;
    settle(&mut draft)?;
    let records = prefix.iter().cloned().chain(draft.records).collect();
    Ok(Forked { records, artifacts: draft.artifacts })
}

/// Returns the position of a firing in the journal. An iteration belongs to the firing of its loop.
fn find_firing(journal: &[Record], at: Option<RunId>) -> Result<usize, Rejected> {
    let mut fired = BTreeMap::new();
    let (mut failed, mut decided) = (None, None);
    for (record, position) in journal.iter().zip(0..) {
        match record.event.facet() {
            Facet::Run(run, RunChange::Fired(_, role, _)) => {
                let routed = match role {
                    Role::Routed => Some(position),
                    Role::Iteration { of, .. } => fired.get(of).copied().flatten(),
                    Role::Final | Role::Hook { .. } | Role::Tool { .. } => None,
                };
                fired.insert(run, routed);
            }
            Facet::Run(run, RunChange::Failed { handled: false, .. }) => {
                failed = failed.or_else(|| fired.get(&run).copied().flatten().map(|_| run));
            }
            Facet::Life(LifeChange::OutcomeDecided) => decided = Some(position),
            any_of![Facet: Life Run Demand Internal] => {}
        }
    }
    let Some(run) = at.or(failed) else {
        return decided.ok_or(Rejected::Conflict { phase: Phase::Running, why: "it has not ended" });
    };
    let found = fired.get(&run).ok_or(Rejected::UnknownRun(run))?;
    found.ok_or(Rejected::Malformed("no token fired that step-run, so it cannot be a fork point"))
}
