//! Large values in answers. A value that is stored outside of the journal is a reference in it; inputs and outputs are
//! shown whole up to a bound. A value beyond a bound is replaced by its size and the URL where it can be read.

use crate::firing::Firing;
use crate::history::FIRINGS_BYTES_MAX;
use crate::kept::{HeldValue, ResultPlace, ValuePlace};
use crate::shapes::Shortened;
use crate::wire::execution_id;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_artifact::{json_bytes, key};
use windlass_kernel::{ExecutionId, RunId};

/// Maximum bytes of JSON that an answer shows of the inputs, and likewise of the outputs, of the context and of
/// questions to people, so that an answer stays within what clients can read at once.
pub const SHOWN_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of entries in `waitingFor`. People do not answer more at once.
pub(crate) const WAITING_MAX: usize = 1_000;

/// The key that marks a value as omitted.
const OMITTED: &str = "$omitted";

/// Returns the value of an artifact by its key, if it is there.
pub type Open<'o> = dyn Fn(&str) -> Option<Arc<Value>> + 'o;
/// Returns a value of the execution's journal, if it is there.
pub type ReadValue<'o> = dyn Fn(&ValuePlace) -> Option<Arc<Value>> + 'o;

/// Returns the state of the copy of an artifact, by the artifact's key.
pub type FindCopy<'o> = dyn Fn(&str) -> ArtifactCopy + 'o;

/// The copy of an artifact in an object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArtifactCopy {
    /// The copy exists, or artifacts are not copied.
    Ready,
    Waiting,
    /// The upload failed in all attempts, the last for this reason.
    Failed(String),
}

/// Output of a step-run on its streams, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedOutput {
    pub stdout: String,
    pub stderr: String,
}

/// Returns the beginning and the end of the output of a step-run; None if nothing more can be read for this answer.
pub type ReadLog<'o> = dyn Fn(RunId) -> Option<LoggedOutput> + 'o;

/// Reads values that are not in memory.
#[derive(Clone, Copy)]
pub struct Sources<'o> {
    pub open: &'o Open<'o>,
    pub read: &'o ReadValue<'o>,
    pub copy: &'o FindCopy<'o>,
    pub log: &'o ReadLog<'o>,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}

/// Returns a reference with the URL of its value, and any other value unchanged.
#[must_use]
pub fn reference(execution: ExecutionId, value: &Value) -> Value {
    let mut shown = value.clone();
    if let Some(key) = key(value) {
        shown["url"] = json!(format!("{}/artifacts/{key}", execution_url(execution)));
    }
    shown
}

/// Does the same as [`reference`] for a shared value.
#[must_use]
pub fn shared(execution: ExecutionId, value: &Arc<Value>) -> Arc<Value> {
    match key(value) {
        Some(_) => Arc::new(reference(execution, value)),
        None => value.clone(),
    }
}

/// Returns the mark for an omitted value of the journal.
#[must_use]
pub fn omitted(execution: ExecutionId, place: &ValuePlace) -> Value {
    let url = format!("{}/values/{}", execution_url(execution), place.address());
    json!({ OMITTED: true, "bytes": place.bytes, "url": url })
}

/// Returns the mark for an omitted value whose place in the journal is not known.
fn omitted_somewhere(execution: ExecutionId, bytes: usize) -> Value {
    json!({ OMITTED: true, "bytes": bytes, "url": events_url(execution) })
}

/// Returns the URL of the events, which have every value of the journal.
fn events_url(execution: ExecutionId) -> String {
    format!("{}/events", execution_url(execution))
}

fn execution_url(execution: ExecutionId) -> String {
    format!("/api/v1/executions/{}", execution_id(execution))
}

/// Limits the size of one answer about an execution, and counts what it omits.
pub struct AnswerBudget<'o> {
    execution: ExecutionId,
    sources: Sources<'o>,
    firings_left: usize,
    shortened: Shortened,
}

/// Bytes that are left for values of one kind.
pub struct ValueBudget(u64);

impl Default for ValueBudget {
    fn default() -> ValueBudget {
        ValueBudget(SHOWN_BYTES_MAX)
    }
}

impl ValueBudget {
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let left = self.0.checked_sub(bytes);
        left.inspect(|left| self.0 = *left).is_some()
    }
}

impl<'o> AnswerBudget<'o> {
    #[must_use]
    pub fn new(execution: ExecutionId, sources: Sources<'o>) -> AnswerBudget<'o> {
        let shortened = Shortened::new(events_url(execution));
        AnswerBudget { execution, sources, firings_left: FIRINGS_BYTES_MAX, shortened }
    }

    /// Returns the state of the copy of an artifact.
    #[must_use]
    pub fn find_copy(&self, key: &str) -> ArtifactCopy {
        (self.sources.copy)(key)
    }

    /// Returns the output of a step-run that its worker did not report.
    #[must_use]
    pub fn read_log(&self, run: RunId) -> Option<LoggedOutput> {
        (self.sources.log)(run)
    }

    /// Returns what was omitted; None when the answer is complete.
    pub(crate) fn shortened(self) -> Option<Shortened> {
        let Shortened { values, node_executions, .. } = &self.shortened;
        (*values > 0 || *node_executions > 0).then_some(self.shortened)
    }

    pub(crate) fn omit_firings(&mut self, count: u64) {
        self.shortened.node_executions += count;
    }

    /// Returns whether the answer has space for a firing. Call it for the newest first.
    pub(crate) fn take_firing(&mut self, firing: &Firing, label_bytes: usize) -> bool {
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

    /// Shows a value of a firing. The history bounds how many of them are held.
    pub fn show(&mut self, held: &HeldValue) -> Arc<Value> {
        match &held.value {
            Some(value) => shared(self.execution, value),
            None => Arc::new(self.omit(&held.place)),
        }
    }

    /// Shows inputs, with a reference replaced by its value.
    pub fn show_inputs(&mut self, values: &mut ValueBudget, value: &Value) -> Value {
        if key(value).is_none() {
            let bytes = json_bytes(value);
            return match values.take(bytes as u64) {
                true => value.clone(),
                false => self.omit_somewhere(bytes),
            };
        }
        self.open(values, value).unwrap_or_else(|| reference(self.execution, value))
    }

    /// Returns inputs as a whole, to compute from them what the answer shows; None if they are missing.
    #[must_use]
    pub fn read_inputs(&self, value: &Arc<Value>) -> Option<Arc<Value>> {
        match key(value) {
            Some(key) => (self.sources.open)(key),
            None => Some(value.clone()),
        }
    }

    /// Shows the selected fields of inputs, each as far as it has space. `stored` is the value or its reference in the
    /// journal.
    pub fn show_fields(
        &mut self,
        values: &mut ValueBudget,
        fields: &Map<String, Value>,
        is_selected: impl Fn(&str) -> bool,
        stored: &Value,
    ) -> Map<String, Value> {
        let mut show = |field: &Value| {
            let bytes = json_bytes(field);
            if values.take(bytes as u64) {
                return field.clone();
            }
            let mut omitted = self.omit_somewhere(bytes);
            if let Some(url) = reference(self.execution, stored).get_mut("url") {
                omitted["url"] = url.take();
            }
            omitted
        };
        let selected = fields.iter().filter(|(name, _)| is_selected(name));
        selected.map(|(name, field)| (name.clone(), show(field))).collect()
    }

    /// Shows a result of the journal, with a reference replaced by its value.
    pub fn show_result(&mut self, values: &mut ValueBudget, result: &ResultPlace) -> Value {
        let place = &result.place;
        let read = || result.held().or_else(|| (self.sources.read)(place));
        let found = values.take(place.bytes as u64).then(read).flatten();
        match found {
            None => self.omit(place),
            Some(value) if key(&value).is_some() => {
                self.open(values, &value).unwrap_or_else(|| reference(self.execution, &value))
            }
            Some(value) => Arc::unwrap_or_clone(value),
        }
    }

    /// Shows the context, with references as they are.
    pub fn show_context(&mut self, ctx: &BTreeMap<String, Arc<Value>>) -> Map<String, Value> {
        let mut values = ValueBudget::default();
        ctx.iter().map(|(key, value)| (key.clone(), self.show_reference(&mut values, value))).collect()
    }

    /// Shows a value, with a reference as it is.
    pub(crate) fn show_reference(&mut self, values: &mut ValueBudget, value: &Value) -> Value {
        let bytes = json_bytes(value);
        match values.take(bytes as u64) {
            true => reference(self.execution, value),
            false => self.omit_somewhere(bytes),
        }
    }

    fn open(&self, values: &mut ValueBudget, value: &Value) -> Option<Value> {
        let bytes = value["bytes"].as_u64()?;
        let fits = values.take(bytes);
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

impl std::fmt::Debug for AnswerBudget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerBudget").field("shortened", &self.shortened).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ValueBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueBudget({})", self.0)
    }
}
