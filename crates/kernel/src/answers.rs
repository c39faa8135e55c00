//! Values and answers that the live state does not hold, read from the journal. Stores keep the same facts in rows;
//! this code defines how they follow from records.

use crate::any_of;
use crate::event::{Event, Record};
use crate::ids::{Fence, RunId};
use crate::input::{Answer, Need, Values, WorkResult};
use crate::step_run::{Patch, Role};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_failure::codes;

/// Returns the answer that a record accepted, and the fence it was reported under.
#[must_use]
pub fn answer(record: &Record) -> Option<((RunId, Fence), Answer)> {
    let report = |result, patch: &Patch| Answer::Report { result, patch: Some(patch.clone()) };
    match &record.event {
        Event::Done { run, fence: Some(fence), output, patch, .. } => {
            Some(((*run, *fence), report(WorkResult::Done { output: output.clone() }, patch)))
        }
        Event::AwaitingManual { run, answered: Some(fence), output, patch, .. } => {
            Some(((*run, *fence), report(WorkResult::Done { output: output.clone() }, patch)))
        }
        Event::Failed { run, fence: Some(fence), failure, output, patch, reported: true, .. } => {
            let result = match output {
                Some(output) => WorkResult::Done { output: output.clone() },
                None => WorkResult::Failed(failure.clone()),
            };
            // A write that conflicted or was too large was not stored.
            let is_kept =
                ![codes::CONTEXT_CONFLICT, codes::CONTEXT_TOO_LARGE].contains(&failure.code.as_str());
            let patch = is_kept.then(|| patch.clone());
            Some(((*run, *fence), Answer::Report { result, patch }))
        }
        Event::RetryScheduled { run, fence: Some(fence), failure, patch, reported: true, .. } => {
            Some(((*run, *fence), report(WorkResult::Failed(failure.clone()), patch)))
        }
        Event::Yielded { run, fence, until, cursor, patch } => {
            let result = WorkResult::Later { delay_ms: until.since(record.at), cursor: cursor.clone() };
            Some(((*run, *fence), report(result, patch)))
        }
        Event::ChildStarted { run, definition, inputs, delegated: Some(delegated), .. } => {
            let (definition, inputs) = (definition.clone(), inputs.clone());
            let result = WorkResult::Child { definition, inputs, cursor: delegated.cursor.clone() };
            Some(((*run, delegated.fence), report(result, &delegated.patch)))
        }
        Event::Dropped { run, fence: Some(fence), reported: Some(result), .. } => {
            Some(((*run, *fence), Answer::Report { result: (**result).clone(), patch: None }))
        }
        Event::Returned { run, fence, .. } => Some(((*run, *fence), Answer::Child)),
        Event::CompletedManually { run, fence, by } => Some(((*run, *fence), Answer::Manual((**by).clone()))),
        any_of![Event: Created Assigned TimeCame Started Held Released Paused Resumed Draining Cleared StopAsked
            Compensating Finalizing Ended Restarted Continued Routed Denied Admitted Discarded Fired Skipped Waiting
            Woken Delayed Offered Lost RetryScheduled AwaitingManual Done Failed Dropped LoopStarted
            IterationStarted IterationEnded Patched ChildStarted NotCompensated AgentDecided Forked] => None,
    }
}

/// Returns the output that a record holds for a firing. Imported firings are numbered by their position in `Created`.
fn find_output(record: &Record, wanted: RunId) -> Option<Arc<Value>> {
    match &record.event {
        Event::Done { run, output, .. } if *run == wanted => Some(output.clone()),
        Event::Created(created) if wanted.generation() == 1 => {
            let number = usize::try_from(wanted.number()).ok()?;
            created.create.imports.get(number).map(|import| import.output.clone())
        }
        any_of![Event: Created Assigned TimeCame Started Held Released Paused Resumed Draining Cleared StopAsked
            Compensating Finalizing Ended Restarted Continued Routed Denied Admitted Discarded Fired Skipped Waiting
            Woken Delayed Offered Lost RetryScheduled Yielded AwaitingManual CompletedManually Done Failed Dropped
            LoopStarted IterationStarted IterationEnded Patched ChildStarted Returned NotCompensated AgentDecided
            Forked] => None,
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
                    let found = journal.iter().rev().find_map(|record| {
                        let Event::LoopStarted { run: id, items, .. } = &record.event else { return None };
                        items.clone().filter(|_| id == run)
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
        match &record.event {
            Event::Fired { run, role: Role::Iteration { of, index }, .. } if *of == wanted => {
                open.insert(*run, *index);
            }
            Event::Done { run, output, .. } => {
                outputs.extend(open.remove(run).map(|index| (index, output.clone())));
            }
            Event::IterationEnded { run, index, output: Some(output), .. } if *run == wanted => {
                outputs.insert(*index, output.clone());
            }
            any_of![Event: Created Assigned TimeCame Started Held Released Paused Resumed Draining Cleared StopAsked
                Compensating Finalizing Ended Restarted Continued Routed Denied Admitted Discarded Fired Skipped
                Waiting Woken Delayed Offered Lost RetryScheduled Yielded AwaitingManual CompletedManually Failed
                Dropped LoopStarted IterationStarted IterationEnded Patched ChildStarted Returned NotCompensated
                AgentDecided Forked] => {}
        }
    }
    outputs
}

/// Returns the first answer under the fence. The end of a child arrives by mail, whatever record it led to.
fn find_answer(journal: &[Record], run: RunId, fence: Fence) -> Option<Answer> {
    let key = (run, fence);
    let found = journal.iter().filter_map(answer).find(|(at, _)| *at == key).map(|(_, answer)| answer)?;
    let by_child = journal.iter().any(|record| {
        matches!(&record.event, Event::ChildStarted { run: r, fence: f, .. } if *r == run && *f == fence)
    });
    Some(if by_child { Answer::Child } else { found })
}
