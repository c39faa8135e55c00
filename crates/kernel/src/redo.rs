//! Retry from a step, for every dialect but playbooks: the steps that a new execution takes over from an ended one
//! (R12).

use crate::any_of;
use crate::event::{Emission, Event, Facet, Import, LifeChange, Record, RunChange};
use crate::ids::{RunId, StepId};
use crate::input::Rejected;
use crate::net::{Join, Net};
use crate::phase::{Outcome, Phase};
use crate::step_run::Role;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns the completed steps that are not run again. `from` and its descendants, everything that did not complete,
/// and everything that compensation undid are run again. Without `from`, this resumes a failed execution.
pub fn redo(net: &Net, journal: &[Record], from: Option<StepId>) -> Result<Vec<Import>, Rejected> {
    if net.policy().join == Join::Each {
        return Err(Rejected::Malformed("a playbook cannot be retried from a step; fork it at a firing"));
    }
    if let Some(step) = from
        && !net.knows(step)
    {
        return Err(Rejected::UnknownStep(step));
    }
    can_be_retried(journal)?;
    let mut past = CompletedSteps::default();
    journal.iter().for_each(|record| past.observe(&record.event));
    let again = from.map(|step| net.descendants(net.outermost(step))).unwrap_or_default();
    let kept = past.completed.into_iter().filter(|(step, done)| {
        net.step(*step).region.is_none() && !again.contains(step) && !past.undone.contains(&done.run)
    });
    Ok(kept.map(|(step, done)| Import { step, output: done.output, emitted: done.emitted }).collect())
}

/// Rejects an execution that has not ended, or that completed.
pub fn can_be_retried(journal: &[Record]) -> Result<(), Rejected> {
    match journal.last().map(|record| &record.event) {
        Some(Event::Ended { outcome: Outcome::Failed | Outcome::Partial | Outcome::Cancelled, .. }) => Ok(()),
        Some(Event::Ended { outcome: Outcome::Completed, .. }) => {
            let why = "only a failed, partial or cancelled execution can be retried";
            Err(Rejected::Conflict { phase: Phase::Ended(Outcome::Completed), why })
        }
        _ => Err(Rejected::Conflict { phase: Phase::Running, why: "it has not ended" }),
    }
}

/// Completed steps outside loops, read from a journal.
#[derive(Default)]
struct CompletedSteps {
    live: BTreeMap<RunId, (StepId, Role)>,
    completed: BTreeMap<StepId, Completed>,
    undone: BTreeSet<RunId>,
}

struct Completed {
    run: RunId,
    output: Arc<Value>,
    emitted: Option<Vec<Emission>>,
}

impl CompletedSteps {
    fn observe(&mut self, event: &Event) {
        match event.facet() {
            Facet::Life(LifeChange::Created(imports)) => {
                let mut run = RunId::first(1);
                for import in imports {
                    let Import { step, output, emitted } = import.clone();
                    self.completed.insert(step, Completed { run, output, emitted });
                    run = run.next();
                }
            }
            Facet::Life(LifeChange::Restarted) => *self = CompletedSteps::default(),
            Facet::Run(run, RunChange::Fired(step, role, _)) => {
                self.live.insert(run, (step, role.clone()));
            }
            Facet::Run(run, RunChange::Done(output)) => self.record_done(run, output),
            Facet::Run(run, RunChange::Routed(step, emitted, _)) => {
                if let Some(done) = self.completed.get_mut(&step).filter(|done| done.run == run) {
                    done.emitted = Some(emitted.to_vec());
                }
            }
            any_of![Facet: Life Run Demand Internal] => {}
        }
    }

    fn record_done(&mut self, run: RunId, output: &Arc<Value>) {
        match self.live.remove(&run) {
            Some((step, Role::Routed)) => {
                let output = output.clone();
                self.completed.insert(step, Completed { run, output, emitted: None });
            }
            Some((_, Role::Hook { of })) => {
                self.undone.insert(of);
            }
            _ => {}
        }
    }
}
