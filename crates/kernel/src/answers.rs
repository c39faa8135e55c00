//! Values and answers that the live state does not hold, read from the journal. Stores keep the same facts in rows;
//! this code defines how they follow from records.

use crate::any_of;
use crate::event::{Demand, Event, Facet, LifeChange, Record, RunChange};
use crate::ids::{Fence, RunId};
use crate::input::{Answer, IterationEnds, IterationFailure, Need, OpenFiring, Values};
use crate::step_run::Role;
use serde_json::Value;
use std::sync::Arc;

/// Returns the output that a record holds for a firing. Imported firings are numbered by their position in `Created`.
fn find_output(record: &Record, wanted: RunId) -> Option<Arc<Value>> {
    match record.event.facet() {
        Facet::Run(run, RunChange::Done(output) | RunChange::Failed { partial: Some(output), .. })
            if run == wanted =>
        {
            Some(output.clone())
        }
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
                    journal.iter().for_each(|record| found.note(*run, record));
                }
                Need::Answer(run, fence) => {
                    let found = find_answer(journal, *run, *fence);
                    self.answers.insert((*run, *fence), found);
                }
                Need::Firings => {
                    let found = self.firings.get_or_insert_default();
                    journal.iter().for_each(|record| found.note(record));
                }
                Need::Artifact(_) => {}
            }
        }
    }
}

/// Number of failures that are read for one loop, so that their number is bounded by memory and not by the loop.
const FAILURES_READ_MAX: usize = 10_000;

impl IterationEnds {
    /// Adds the next record since the loop of the run `of` began.
    pub fn note(&mut self, of: RunId, record: &Record) {
        match &record.event {
            Event::Fired { run, step, path, role, .. } if !path.0.is_empty() => {
                let own = matches!(role, Role::Iteration { of: around, .. } if *around == of);
                let attempt = 1;
                self.open.insert(*run, OpenFiring { step: *step, path: path.clone(), attempt, own });
            }
            Event::Offered { run, attempt, .. } | Event::ChildStarted { run, attempt, .. } => {
                self.open.entry(*run).and_modify(|firing| firing.attempt = *attempt);
            }
            event => event.run_change().into_iter().for_each(|(run, change)| self.note_end(of, run, change)),
        }
    }

    fn note_end(&mut self, of: RunId, run: RunId, change: RunChange<'_>) {
        match change {
            RunChange::Done(output) => {
                let ended = self.open.remove(&run).filter(|firing| firing.own);
                let index = ended.and_then(|firing| firing.path.index());
                self.outputs.extend(index.map(|index| (index, output.clone())));
            }
            RunChange::IterationEnded(index, Some(output)) if run == of => {
                self.outputs.insert(index, output.clone());
            }
            RunChange::Failed { failure, handled, .. } => {
                let ended = self.open.remove(&run).filter(|_| !handled);
                if let Some(OpenFiring { step, path, attempt, .. }) = ended
                    && self.failures.len() < FAILURES_READ_MAX
                {
                    self.failures.push(IterationFailure { step, path, attempt, failure: failure.clone() });
                }
            }
            any_of![RunChange: Fired Skipped LoopStarted IterationEnded Retried Dropped Routed] => {}
        }
    }
}

/// Returns the first answer under the fence. If the fence started a child, the end of that child is the answer.
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
