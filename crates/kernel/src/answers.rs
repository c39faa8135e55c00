//! Values and answers that the live state does not hold, read from the journal. Stores keep the same facts in rows;
//! this code defines how they follow from records.

use crate::any_of;
use crate::event::{Event, Facet, Record, RunChange};
use crate::ids::{Fence, RunId};
use crate::input::{Answer, IterationEnds, IterationFailure, Need, OpenFiring, Values};
use crate::step_run::Role;
use serde_json::Value;
use std::sync::Arc;

/// Returns the output that a record holds for a firing. Imported firings are numbered by their position in `Created`.
fn find_output(record: &Record, wanted: RunId) -> Option<Arc<Value>> {
    if let Event::Created(created) = &record.event {
        let number = usize::try_from(wanted.number()).ok().filter(|_| wanted.generation() == 1)?;
        return created.create.imports.get(number).map(|import| import.output.clone());
    }
    let (_, change) = record.event.run_change().filter(|(run, _)| *run == wanted)?;
    change.output().cloned()
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
                    let mut changes = journal.iter().rev().filter_map(|record| record.event.run_change());
                    let found =
                        changes.find_map(|(id, change)| change.items().filter(|_| id == *run).cloned());
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
        let Some((run, change)) = record.event.run_change() else { return };
        match change {
            RunChange::Fired { step, path, role, .. } if !path.0.is_empty() => {
                let own = matches!(role, Role::Iteration { of: around, .. } if *around == of);
                self.open.insert(run, OpenFiring { step, path: path.clone(), attempt: 1, own });
            }
            RunChange::Offered(_, attempt, _) | RunChange::ChildStarted { attempt, .. } => {
                self.open.entry(run).and_modify(|firing| firing.attempt = attempt);
            }
            RunChange::Done(output) => {
                let ended = self.open.remove(&run).filter(|firing| firing.own);
                let index = ended.and_then(|firing| firing.path.index());
                self.outputs.extend(index.map(|index| (index, output.clone())));
            }
            RunChange::IterationEnded { index, output: Some(output), .. } if run == of => {
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
            any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed AwaitingManual Returned Lost Retried
                Dropped Routed AgentDecided Internal] => {}
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
            Facet::Run(r, RunChange::ChildStarted { fence: f, .. }) if r == run && f == fence)
    });
    Some(if by_child { Answer::Child } else { found })
}
