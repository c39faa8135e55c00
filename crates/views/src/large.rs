//! Large values as they are told. What was set aside is a reference in the journal; inputs and outputs are told as they are
//! up to a bound. What is beyond a bound is told by its size and the place where it can be had whole.

use crate::firing::Firing;
use crate::history::FIRINGS_BYTES_MAX;
use crate::kept::{Kept, ResultPlace, ValuePlace};
use crate::shapes::Shortened;
use crate::wire::execution_id;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_artifact::{json_bytes, key};
use windlass_kernel::ExecutionId;

/// JSON of the inputs that one execution is told with, and likewise of its outputs, of its context and of what it asks
/// people. An answer stays within what clients read at once.
pub const TOLD_BYTES_MAX: u64 = 1 << 20;
/// Things that an execution waits for, as it is told. People do not answer more at once.
pub(crate) const WAITING_MAX: usize = 1_000;

/// The key of what stands for a value that is not told.
const OMITTED: &str = "$omitted";

/// Returns the value of an artifact by its key, if it is there.
pub type Open<'o> = dyn Fn(&str) -> Option<Arc<Value>> + 'o;
/// Returns a value of the execution's journal, if it is there.
pub type ReadValue<'o> = dyn Fn(&ValuePlace) -> Option<Arc<Value>> + 'o;

/// Where values come from that are not in memory.
#[derive(Clone, Copy)]
pub struct Sources<'o> {
    pub open: &'o Open<'o>,
    pub read: &'o ReadValue<'o>,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}

/// A reference with the place of its value; any other value as it is.
#[must_use]
pub fn reference(execution: ExecutionId, value: &Value) -> Value {
    let mut told = value.clone();
    if let Some(key) = key(value) {
        told["url"] = json!(format!("{}/artifacts/{key}", of_execution(execution)));
    }
    told
}

/// The same for a value that is shared.
#[must_use]
pub fn shared(execution: ExecutionId, value: &Arc<Value>) -> Arc<Value> {
    match key(value) {
        Some(_) => Arc::new(reference(execution, value)),
        None => value.clone(),
    }
}

/// A value of the journal by its size and its place.
#[must_use]
pub fn omitted(execution: ExecutionId, place: &ValuePlace) -> Value {
    let url = format!("{}/values/{}", of_execution(execution), place.address());
    json!({ OMITTED: true, "bytes": place.bytes, "url": url })
}

/// A value whose place in the journal is not known.
fn omitted_somewhere(execution: ExecutionId, bytes: usize) -> Value {
    json!({ OMITTED: true, "bytes": bytes, "url": format!("{}/journal", of_execution(execution)) })
}

fn of_execution(execution: ExecutionId) -> String {
    format!("/api/v1/executions/{}", execution_id(execution))
}

/// The room of one answer about an execution: what is told whole, and what had to be left out.
pub struct Room<'o> {
    execution: ExecutionId,
    sources: Sources<'o>,
    firings_left: usize,
    shortened: Shortened,
}

/// Bytes that are left for values of one kind.
pub struct Share(u64);

impl Default for Share {
    fn default() -> Share {
        Share(TOLD_BYTES_MAX)
    }
}

impl Share {
    fn take(&mut self, bytes: u64) -> bool {
        let left = self.0.checked_sub(bytes);
        left.inspect(|left| self.0 = *left).is_some()
    }
}

impl<'o> Room<'o> {
    #[must_use]
    pub fn new(execution: ExecutionId, sources: Sources<'o>) -> Room<'o> {
        let shortened = Shortened::new(format!("{}/journal", of_execution(execution)));
        Room { execution, sources, firings_left: FIRINGS_BYTES_MAX, shortened }
    }

    /// What had to be left out; None when all is told.
    pub(crate) fn shortened(self) -> Option<Shortened> {
        let Shortened { values, node_executions, .. } = &self.shortened;
        (*values > 0 || *node_executions > 0).then_some(self.shortened)
    }

    pub(crate) fn leave_out_firings(&mut self, count: u64) {
        self.shortened.node_executions += count;
    }

    /// Whether a firing is told. Ask for the newest first.
    pub(crate) fn takes(&mut self, firing: &Firing, label_bytes: usize) -> bool {
        match self.firings_left.checked_sub(firing.weight() + label_bytes) {
            Some(left) => self.firings_left = left,
            None => {
                self.firings_left = 0;
                self.shortened.node_executions += 1;
                return false;
            }
        }
        true
    }

    /// A value of a firing: the history holds as many as are told.
    pub fn held(&mut self, kept: &Kept) -> Arc<Value> {
        match &kept.value {
            Some(value) => shared(self.execution, value),
            None => Arc::new(self.omit(&kept.place)),
        }
    }

    /// Inputs: a reference as what it stands for.
    pub(crate) fn tell(&mut self, share: &mut Share, value: &Value) -> Value {
        if key(value).is_none() {
            let bytes = json_bytes(value);
            return match share.take(bytes as u64) {
                true => value.clone(),
                false => self.omit_somewhere(bytes),
            };
        }
        self.open(share, value).unwrap_or_else(|| reference(self.execution, value))
    }

    /// A result in the journal; a reference as what it stands for.
    pub fn read(&mut self, share: &mut Share, result: &ResultPlace) -> Value {
        let place = &result.place;
        let read = || result.held().or_else(|| (self.sources.read)(place));
        let found = share.take(place.bytes as u64).then(read).flatten();
        match found {
            None => self.omit(place),
            Some(value) if key(&value).is_some() => {
                self.open(share, &value).unwrap_or_else(|| reference(self.execution, &value))
            }
            Some(value) => Arc::unwrap_or_clone(value),
        }
    }

    /// The context. A reference stays one.
    pub fn context(&mut self, ctx: &BTreeMap<String, Arc<Value>>) -> Map<String, Value> {
        let mut share = Share::default();
        let told = ctx.iter().map(|(key, value)| (key.clone(), self.refer(&mut share, value)));
        told.collect()
    }

    /// A value that stays a reference if it is one.
    pub(crate) fn refer(&mut self, share: &mut Share, value: &Value) -> Value {
        let bytes = json_bytes(value);
        match share.take(bytes as u64) {
            true => reference(self.execution, value),
            false => self.omit_somewhere(bytes),
        }
    }

    fn open(&self, share: &mut Share, value: &Value) -> Option<Value> {
        let bytes = value["bytes"].as_u64()?;
        let fits = share.take(bytes);
        fits.then(|| (self.sources.open)(key(value)?)).flatten().map(Arc::unwrap_or_clone)
    }

    fn omit(&mut self, place: &ValuePlace) -> Value {
        self.count(place.bytes);
        omitted(self.execution, place)
    }

    fn omit_somewhere(&mut self, bytes: usize) -> Value {
        self.count(bytes);
        omitted_somewhere(self.execution, bytes)
    }

    fn count(&mut self, bytes: usize) {
        self.shortened.values += 1;
        self.shortened.bytes += bytes as u64;
    }
}

impl std::fmt::Debug for Room<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").field("shortened", &self.shortened).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Share({})", self.0)
    }
}
