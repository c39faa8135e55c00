//! Moves large values of events out of the journal, which then holds references to artifacts. A value that only looks
//! like a reference, because it was rendered here or came from outside, is moved out too.

use crate::any_of;
use crate::event::{AgentDecision, Event, TokenValue};
use crate::input::{Report, WorkResult};
use crate::step_run::{Patch, Role};
use serde_json::Value;
use std::sync::Arc;
use windlass_artifact::{Artifact, Source, key, set_aside};

/// Replaces large values of an event by references and passes each value with its artifact to `keep`.
pub(crate) fn move_large(event: &mut Event, inline_bytes: usize, mut keep: impl FnMut(Artifact, Arc<Value>)) {
    for (value, source) in list_fields(event) {
        if let Some((reference, artifact)) = set_aside(value, source, inline_bytes) {
            keep(artifact, std::mem::replace(value, Arc::new(reference)));
        }
    }
}

/// Returns the keys of all artifacts that an event refers to.
#[must_use]
pub fn references(event: &Event) -> Vec<String> {
    let mut event = event.clone();
    list_fields(&mut event).into_iter().filter_map(|(value, _)| key(value).map(str::to_owned)).collect()
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

/// Returns the fields of an event that can hold a reference, and whether an existing reference there can be trusted.
fn list_fields(event: &mut Event) -> Vec<(&mut Arc<Value>, Source)> {
    let mut fields = ReferenceFields::default();
    match event {
        // The journals of a parent and of an earlier execution hold the values that they pass on.
        Event::Created(created) => {
            let create = &mut created.create;
            fields.add_value(&mut create.inputs, source_of(create.parent.is_some()));
            create.imports.iter_mut().for_each(|import| fields.add_value(&mut import.output, Source::Own));
        }
        Event::Routed { emitted, .. } => {
            for emission in emitted {
                if let TokenValue::Live(args) = &mut emission.token {
                    fields.add_optional(args, Source::Outside);
                }
            }
        }
        Event::Fired { role, args, .. } => {
            fields.add_optional(args, source_of(!matches!(role, Role::Tool { .. })))
        }
        Event::Done { fence, output, patch, .. }
        | Event::AwaitingManual { answered: fence, output, patch, .. } => {
            fields.add_value(output, source_of(fence.is_some()));
            fields.add_patch(patch, source_of(fence.is_some()));
        }
        Event::Failed { reported, output, patch, .. } => {
            fields.add_optional(output, source_of(*reported));
            fields.add_patch(patch, source_of(*reported));
        }
        Event::RetryScheduled { patch, .. } | Event::Yielded { patch, .. } => {
            fields.add_patch(patch, Source::Own)
        }
        Event::Dropped { reported: Some(result), .. } => fields.add_result(result),
        Event::LoopStarted { items, .. } => fields.add_optional(items, Source::Outside),
        Event::IterationEnded { output, .. } => fields.add_optional(output, Source::Own),
        Event::Patched { patch, .. } => fields.add_patch(patch, Source::Outside),
        Event::ChildStarted { inputs, delegated, .. } => {
            fields.add_value(inputs, Source::Outside);
            delegated.iter_mut().for_each(|delegated| fields.add_patch(&mut delegated.patch, Source::Own));
        }
        Event::Forked(fork) => fields.add_optional(&mut fork.inputs, Source::Outside),
        Event::AgentDecided { decision: AgentDecision::Execute { args, .. }, .. } => {
            fields.add_optional(args, Source::Outside);
        }
        any_of![Event: Assigned TimeCame Started Held Released Paused Resumed Draining Cleared StopAsked
            Compensating Finalizing Ended Restarted Continued Denied Admitted Discarded Skipped Waiting Woken
            Delayed Offered Lost CompletedManually Dropped IterationStarted Returned NotCompensated AgentDecided] =>
            {}
    }
    fields.0
}

/// References from workers, ended children and the kernel's own tokens always name stored artifacts.
fn source_of(ours: bool) -> Source {
    if ours { Source::Own } else { Source::Outside }
}

#[derive(Default)]
struct ReferenceFields<'e>(Vec<(&'e mut Arc<Value>, Source)>);

impl<'e> ReferenceFields<'e> {
    fn add_value(&mut self, value: &'e mut Arc<Value>, source: Source) {
        self.0.push((value, source));
    }

    fn add_optional(&mut self, value: &'e mut Option<Arc<Value>>, source: Source) {
        value.iter_mut().for_each(|value| self.add_value(value, source));
    }

    fn add_patch(&mut self, patch: &'e mut Patch, source: Source) {
        patch.values_mut().for_each(|value| self.add_value(value, source));
    }

    fn add_result(&mut self, result: &'e mut WorkResult) {
        match result {
            WorkResult::Done { output } => self.add_value(output, Source::Own),
            WorkResult::Child { inputs, .. } => self.add_value(inputs, Source::Outside),
            WorkResult::Failed(_) | WorkResult::Stopped | WorkResult::Later { .. } => {}
        }
    }
}
