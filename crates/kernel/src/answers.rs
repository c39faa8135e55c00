//! What the journal says about values and answers that the live state does not hold. Stores keep the same
//! facts in rows; this is how they follow from records.

use crate::event::{Event, Record};
use crate::ids::{Fence, RunId};
use crate::input::{Answer, Need, Values, WorkResult};
use serde_json::Value;
use std::sync::Arc;

/// The answer that a record accepted, and the fence it was given under.
#[must_use]
pub fn answer(record: &Record) -> Option<((RunId, Fence), Answer)> {
    let report = |result, patch: &crate::Patch| Answer::Report { result, patch: patch.clone() };
    match &record.event {
        Event::Done { run, fence: Some(fence), output, patch, .. } => {
            Some(((*run, *fence), report(WorkResult::Done { output: output.clone() }, patch)))
        }
        Event::AwaitingManual { run, answered: Some(fence), output, patch, .. } => {
            Some(((*run, *fence), report(WorkResult::Done { output: output.clone() }, patch)))
        }
        Event::Failed { run, fence: Some(fence), failure, output, patch, .. } => {
            let result = match output {
                Some(output) => WorkResult::Done { output: output.clone() },
                None => WorkResult::Failed(failure.clone()),
            };
            Some(((*run, *fence), report(result, patch)))
        }
        Event::RetryScheduled { run, fence: Some(fence), failure, patch, .. } => {
            Some(((*run, *fence), report(WorkResult::Failed(failure.clone()), patch)))
        }
        Event::Yielded { run, fence, until, cursor, patch } => {
            let result = WorkResult::Later { delay_ms: until.since(record.at), cursor: cursor.clone() };
            Some(((*run, *fence), report(result, patch)))
        }
        Event::Dropped { run, fence: Some(fence), .. } => {
            Some(((*run, *fence), report(WorkResult::Stopped, &crate::Patch::new())))
        }
        Event::CompletedManually { run, fence, by } => Some(((*run, *fence), Answer::Manual((**by).clone()))),
        _ => None,
    }
}

/// The output that a record gave a firing. Imported firings are numbered as they stand in `Created`.
fn output(record: &Record, wanted: RunId) -> Option<Arc<Value>> {
    match &record.event {
        Event::Done { run, output, .. } if *run == wanted => Some(output.clone()),
        Event::Created(created) if wanted.generation() == 1 => {
            let number = usize::try_from(wanted.number()).ok()?;
            created.imports.get(number).map(|import| import.output.clone())
        }
        _ => None,
    }
}

impl Values {
    /// Adds what is needed, as far as the journal has it. Artifacts are not in a journal.
    pub fn load(&mut self, journal: &[Record], needs: &[Need]) {
        for need in needs {
            match need {
                Need::Output(run) => {
                    let found = journal.iter().rev().find_map(|record| output(record, *run));
                    self.outputs.insert(*run, found.unwrap_or_default());
                }
                Need::Items(run) => {
                    let found = journal.iter().rev().find_map(|record| match &record.event {
                        Event::LoopStarted { run: id, items, .. } if id == run => items.clone(),
                        _ => None,
                    });
                    self.items.insert(*run, found.unwrap_or_default());
                }
                Need::Answer(run, fence) => {
                    let found = answered(journal, *run, *fence);
                    self.answers.insert((*run, *fence), found);
                }
                Need::Artifact(_) => {}
            }
        }
    }
}

/// The first answer under the fence; a child's end is told by mail, whatever record it led to.
fn answered(journal: &[Record], run: RunId, fence: Fence) -> Option<Answer> {
    let key = (run, fence);
    let found = journal.iter().filter_map(answer).find(|(at, _)| *at == key).map(|(_, answer)| answer)?;
    let by_child = journal.iter().any(|record| {
        matches!(&record.event, Event::ChildStarted { run: r, fence: f, .. } if *r == run && *f == fence)
    });
    Some(if by_child { Answer::Child } else { found })
}
