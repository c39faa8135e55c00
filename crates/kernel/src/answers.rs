//! Values and answers that the live state does not hold, read from the journal. Stores keep the same facts in rows;
//! this code defines how they follow from records.

use crate::any_of;
use crate::event::{Demand, Facet, LifeChange, Record, RunChange};
use crate::ids::{Fence, RunId};
use crate::input::{Answer, Need, Values};
use crate::step_run::Role;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the output that a record holds for a firing. Imported firings are numbered by their position in `Created`.
fn find_output(record: &Record, wanted: RunId) -> Option<Arc<Value>> {
    match record.event.facet() {
        Facet::Run(run, RunChange::Done(output)) if run == wanted => Some(output.clone()),
        Facet::Life(LifeChange::Created(imports)) if wanted.generation() == 1 => {
            let number = usize::try_from(wanted.number()).ok()?;
            imports.get(number).map(|import| import.output.clone())
        }
        any_of![Facet: Life Run Demand Internal] => None,
    }
}

impl Values {
    /// Adds the needed values that the journal contains. Artifacts are not in a journal.
    pub fn load(&mut self, journal: &[Record], needs: &[Need]) {
        for need in needs {
            match need {
                Need::Output(run) => {
                    let found = journal.iter().rev().find_map(|record| find_output(record, *run));
                    self.outputs.extend(found.map(|output| (*run, output)));
                }
                Need::Items(run) => {
                    let found = journal.iter().rev().find_map(|record| match record.event.run_change()? {
                        (id, RunChange::LoopStarted(items)) if id == *run => items.cloned(),
                        _ => None,
                    });
                    self.items.extend(found.map(|items| (*run, items)));
                }
                Need::Results(run) => {
                    let found = self.results.entry(*run).or_default();
                    found.outputs.extend(find_results(journal, *run));
                    found.whole = true;
                }
                Need::Answer(run, fence) => {
                    let found = find_answer(journal, *run, *fence);
                    self.answers.insert((*run, *fence), found);
                }
                Need::Artifact(_) => {}
            }
        }
    }
}

/// Returns the outputs of the iterations whose start and end are both in the journal.
fn find_results(journal: &[Record], wanted: RunId) -> BTreeMap<u32, Arc<Value>> {
    let mut open = BTreeMap::new();
    let mut outputs = BTreeMap::new();
    for record in journal {
        let Some((run, change)) = record.event.run_change() else { continue };
        match change {
            RunChange::Fired(_, Role::Iteration { of, index }, _) if *of == wanted => {
                open.insert(run, *index);
            }
            RunChange::Done(output) => {
                outputs.extend(open.remove(&run).map(|index| (index, output.clone())));
            }
            RunChange::IterationEnded(index, Some(output)) if run == wanted => {
                outputs.insert(index, output.clone());
            }
            any_of![RunChange: Fired Skipped LoopStarted IterationEnded Retried Failed Dropped Routed] => {}
        }
    }
    outputs
}

/// Returns the first answer under the fence. The end of a child arrives by mail, whatever record it led to.
fn find_answer(journal: &[Record], run: RunId, fence: Fence) -> Option<Answer> {
    let key = (run, fence);
    let found =
        journal.iter().filter_map(Record::answer).find(|(at, _)| *at == key).map(|(_, answer)| answer)?;
    let by_child = journal.iter().any(|record| {
        matches!(record.event.facet(),
            Facet::Demand(Demand::StartChild { run: r, fence: f, .. }) if r == run && f == fence)
    });
    Some(if by_child { Answer::Child } else { found })
}
