//! Lists that follow from a journal, record by record: public events here, lines of the log and evidence in files of
//! their own.

use crate::event_data::EventContext;
use crate::timeline::{ExecutionChange, FiringChange, FiringRef, Occurrence, TimelineEntry};
use crate::wire::{execution_id, time};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_artifact::json_bytes;
use windlass_kernel::{ExecutionId, Net, Record, Role, RunId, StepId, any_of};

/// Derives the items of a list from the records of a journal, from the first record on.
pub trait Projection: Clone {
    type Item;

    fn project(&mut self, net: &Net, record: &Record, entry: &TimelineEntry) -> Vec<Self::Item>;

    /// Bytes of an item's JSON, roughly.
    fn bytes(item: &Self::Item) -> usize;
}

/// JSON of a public event without its data, roughly.
const EVENT_BYTES: usize = 300;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublicEvent {
    pub execution_id: String,
    /// Number among the events of the execution, from 1, in the order in which they happened.
    pub sequence: u64,
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// `step.done`, `execution.completed`, …
    pub event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub step: Option<String>,
    /// Among the firings of its step, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub firing: Option<u32>,
    /// Iteration numbers, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub path: Vec<u32>,
    /// Further fields, by the kind of the event.
    #[schema(value_type = Object)]
    pub data: Value,
}

/// Lists the public events of an execution.
#[derive(Debug, Clone)]
pub struct EventProjection {
    execution: ExecutionId,
    count: u64,
    /// Firings of each step so far.
    numbers: BTreeMap<StepId, u32>,
    /// Firings that have not ended, or whose end is not routed yet.
    live: BTreeMap<RunId, LiveFiring>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LiveFiring {
    number: u32,
    child: Option<ExecutionId>,
}

impl Projection for EventProjection {
    type Item = PublicEvent;

    fn project(&mut self, net: &Net, record: &Record, entry: &TimelineEntry) -> Vec<PublicEvent> {
        let fired = self.note_beginning(&entry.occurrence);
        let mut events = Vec::new();
        for (index, public) in entry.public_events().into_iter().enumerate() {
            self.count += 1;
            let firing = firing_of(&entry.occurrence, index);
            let live = firing.and_then(|firing| self.live.get(&firing.run)).copied().or(fired);
            let context = EventContext {
                net,
                execution: self.execution,
                at: entry.at,
                step: public.about.map(|(step, _)| step),
                firing,
                attempt: firing.and_then(|firing| firing.attempt).map(|attempt| attempt.number),
                child: live.and_then(|live| live.child),
            };
            events.push(PublicEvent {
                execution_id: execution_id(self.execution),
                sequence: self.count,
                timestamp: time(entry.at),
                event: public.name,
                step: public.about.map(|(step, _)| net.step(step).name.clone()),
                firing: firing.and(live).map(|live| live.number),
                path: public.about.map(|(_, path)| path.to_vec()).unwrap_or_default(),
                data: context.data(&record.event, public.name, index),
            });
        }
        self.note_end(&entry.occurrence);
        events
    }

    fn bytes(event: &PublicEvent) -> usize {
        EVENT_BYTES + json_bytes(&event.data)
    }
}

impl EventProjection {
    #[must_use]
    pub fn new(execution: ExecutionId) -> EventProjection {
        EventProjection { execution, count: 0, numbers: BTreeMap::new(), live: BTreeMap::new() }
    }

    /// Counts firings as views do. Returns a firing that begins and ends with this record.
    fn note_beginning(&mut self, occurrence: &Occurrence) -> Option<LiveFiring> {
        match occurrence {
            Occurrence::Execution(ExecutionChange::Created { imports, .. }) => {
                for (step, _) in imports {
                    self.number(*step);
                }
            }
            Occurrence::Execution(ExecutionChange::Restarted { .. }) => {
                self.numbers.clear();
                self.live.clear();
            }
            Occurrence::Firing(firing, FiringChange::Fired { .. }) => {
                let number = match &firing.role {
                    Role::Iteration { of, .. } | Role::Hook { of } => {
                        self.live.get(of).map(|live| live.number)
                    }
                    Role::Routed | Role::Final | Role::Tool { .. } => Some(self.number(firing.step)),
                };
                let fired = number.map(|number| (firing.run, LiveFiring { number, child: None }));
                self.live.extend(fired);
            }
            Occurrence::Firing(firing, FiringChange::Skipped(_)) => {
                return Some(LiveFiring { number: self.number(firing.step), child: None });
            }
            Occurrence::Firing(firing, FiringChange::ChildStarted { child, .. }) => {
                if let Some(live) = self.live.get_mut(&firing.run) {
                    live.child = Some(*child);
                }
            }
            Occurrence::Execution(
                any_of![ExecutionChange: Forked Started Held Released Paused Resumed Draining
                Compensating Finalizing NotCompensated Ended Patched Bookkeeping],
            )
            | Occurrence::Firing(
                _,
                any_of![FiringChange: Waiting Woken Delayed Offered Lost RetryScheduled Yielded
                AwaitingManual CompletedManually Noted Done Failed Dropped LoopStarted IterationStarted IterationEnded
                ChildPaused ChildReturned AgentDecided Routed],
            )
            | any_of![Occurrence: Token Cleared] => {}
        }
        None
    }

    fn number(&mut self, step: StepId) -> u32 {
        let number = self.numbers.entry(step).or_default();
        *number += 1;
        *number
    }

    fn note_end(&mut self, occurrence: &Occurrence) {
        match occurrence {
            Occurrence::Firing(firing, FiringChange::Routed { .. } | FiringChange::Dropped(_)) => {
                self.live.remove(&firing.run);
            }
            // The tokens of a routed firing follow its end.
            Occurrence::Firing(firing, FiringChange::Done { .. } | FiringChange::Failed { .. })
                if firing.role != Role::Routed =>
            {
                self.live.remove(&firing.run);
            }
            Occurrence::Cleared { dropped, .. } => {
                for (firing, _) in dropped {
                    self.live.remove(&firing.run);
                }
            }
            Occurrence::Firing(
                _,
                any_of![FiringChange: Fired Skipped Waiting Woken Delayed Offered Lost RetryScheduled
                Yielded AwaitingManual CompletedManually Noted Done Failed LoopStarted IterationStarted IterationEnded
                ChildStarted ChildPaused ChildReturned AgentDecided],
            )
            | any_of![Occurrence: Execution Token] => {}
        }
    }
}

/// Returns the firing that the `index`-th public event of a record is about.
fn firing_of(occurrence: &Occurrence, index: usize) -> Option<&FiringRef> {
    match occurrence {
        // Further events are about the tokens that it emits.
        Occurrence::Firing(firing, FiringChange::Routed { .. }) => (index == 0).then_some(firing),
        Occurrence::Firing(firing, _) => Some(firing),
        Occurrence::Cleared { tokens, dropped } => {
            index.checked_sub(tokens.len()).and_then(|place| dropped.get(place)).map(|(firing, _)| firing)
        }
        Occurrence::Execution(_) | Occurrence::Token(_) => None,
    }
}
