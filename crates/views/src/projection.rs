//! Lists that follow from a journal, record by record: public events here, lines of the log and evidence in files of
//! their own.

use crate::event_data::event_data;
use crate::timeline::TimelineEntry;
use crate::wire::{execution_id, time};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use windlass_artifact::json_bytes;
use windlass_kernel::{ExecutionId, Net, Record};

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
    /// The place of its record in the journal; events of one record share it.
    pub sequence: u64,
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// `step.done`, `execution.completed`, …
    pub event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub step: Option<String>,
    /// Iteration numbers, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub path: Vec<u32>,
    /// The fields of the record.
    pub data: Value,
}

/// Lists the public events of an execution.
#[derive(Debug, Clone, Copy)]
pub struct EventProjection(pub ExecutionId);

impl Projection for EventProjection {
    type Item = PublicEvent;

    fn project(&mut self, net: &Net, record: &Record, entry: &TimelineEntry) -> Vec<PublicEvent> {
        let public = entry.public_events().into_iter().map(|public| PublicEvent {
            execution_id: execution_id(self.0),
            sequence: entry.version,
            timestamp: time(entry.at),
            event: public.name,
            step: public.about.map(|(step, _)| net.step(step).name.clone()),
            path: public.about.map(|(_, path)| path.to_vec()).unwrap_or_default(),
            data: event_data(&record.event),
        });
        public.collect()
    }

    fn bytes(event: &PublicEvent) -> usize {
        EVENT_BYTES + json_bytes(&event.data)
    }
}
