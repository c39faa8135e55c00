//! Moves large values of events out of the journal, which then holds references to artifacts. A value that only looks
//! like a reference, because it was rendered here or came from outside, is moved out too.

use crate::event::Event;
use crate::input::{Report, WorkResult};
use crate::step_run::Patch;
use serde_json::Value;
use std::sync::Arc;
use windlass_artifact::{Artifact, Source, key, set_aside};

/// Replaces large values of an event by references and passes each value with its artifact to `keep`.
pub(crate) fn move_large(event: &mut Event, inline_bytes: usize, mut keep: impl FnMut(Artifact, Arc<Value>)) {
    for (value, source) in event.values_mut() {
        if let Some((reference, artifact)) = set_aside(value, source, inline_bytes) {
            keep(artifact, std::mem::replace(value, Arc::new(reference)));
        }
    }
}

/// Returns the keys of all artifacts that an event refers to.
#[must_use]
pub fn references(event: &Event) -> Vec<String> {
    let mut event = event.clone();
    event.values_mut().into_iter().filter_map(|(value, _)| key(value).map(str::to_owned)).collect()
}

impl Report {
    /// Returns the report with the same replacements that the journal has.
    pub(crate) fn as_stored(&self, inline_bytes: usize) -> Report {
        let mut report = self.clone();
        let mut fields = ReferenceFields::default();
        fields.add_result(&mut report.result);
        fields.add_patch(&mut report.patch, Source::Own);
        for (value, source) in fields.0 {
            if let Some((reference, _)) = set_aside(value, source, inline_bytes) {
                *value = Arc::new(reference);
            }
        }
        report
    }
}

/// References from workers, ended children and the kernel's own tokens always name stored artifacts.
pub(crate) fn source_of(ours: bool) -> Source {
    if ours { Source::Own } else { Source::Outside }
}

#[derive(Default)]
pub(crate) struct ReferenceFields<'e>(pub(crate) Vec<(&'e mut Arc<Value>, Source)>);

impl<'e> ReferenceFields<'e> {
    pub(crate) fn add_value(&mut self, value: &'e mut Arc<Value>, source: Source) {
        self.0.push((value, source));
    }

    pub(crate) fn add_optional(&mut self, value: &'e mut Option<Arc<Value>>, source: Source) {
        value.iter_mut().for_each(|value| self.add_value(value, source));
    }

    pub(crate) fn add_patch(&mut self, patch: &'e mut Patch, source: Source) {
        patch.values_mut().for_each(|value| self.add_value(value, source));
    }

    pub(crate) fn add_result(&mut self, result: &'e mut WorkResult) {
        match result {
            WorkResult::Done { output } => self.add_value(output, Source::Own),
            WorkResult::Child { inputs, .. } => self.add_value(inputs, Source::Outside),
            WorkResult::Failed(_) | WorkResult::Stopped | WorkResult::Later { .. } => {}
        }
    }
}
