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
pub(crate) fn lighten(event: &mut Event, inline_bytes: usize, mut keep: impl FnMut(Artifact, Arc<Value>)) {
    for (value, source) in places(event) {
        if let Some((reference, artifact)) = set_aside(value, source, inline_bytes) {
            keep(artifact, std::mem::replace(value, Arc::new(reference)));
        }
    }
}

/// Returns the keys of all artifacts that an event refers to.
#[must_use]
pub fn references(event: &Event) -> Vec<String> {
    let mut event = event.clone();
    places(&mut event).into_iter().filter_map(|(value, _)| key(value).map(str::to_owned)).collect()
}

impl Report {
    /// Returns the report with the same replacements that the journal has.
    pub(crate) fn as_kept(&self, inline_bytes: usize) -> Report {
        let mut report = self.clone();
        let mut places = Places::default();
        places.result(&mut report.result);
        places.patch(&mut report.patch, Source::Own);
        for (value, source) in places.0 {
            if let Some((reference, _)) = set_aside(value, source, inline_bytes) {
                *value = Arc::new(reference);
            }
        }
        report
    }
}

/// Returns the fields of an event that can hold a reference, and whether an existing reference there can be trusted.
fn places(event: &mut Event) -> Vec<(&mut Arc<Value>, Source)> {
    let mut places = Places::default();
    match event {
        // The journals of a parent and of an earlier execution hold the values that they pass on.
        Event::Created(created) => {
            let create = &mut created.create;
            places.one(&mut create.inputs, by(create.parent.is_some()));
            create.imports.iter_mut().for_each(|import| places.one(&mut import.output, Source::Own));
        }
        Event::Routed { emitted, .. } => {
            for emission in emitted {
                if let TokenValue::Live(args) = &mut emission.token {
                    places.some(args, Source::Outside);
                }
            }
        }
        Event::Fired { role, args, .. } => places.some(args, by(!matches!(role, Role::Tool { .. }))),
        Event::Done { fence, output, patch, .. }
        | Event::AwaitingManual { answered: fence, output, patch, .. } => {
            places.one(output, by(fence.is_some()));
            places.patch(patch, by(fence.is_some()));
        }
        Event::Failed { reported, output, patch, .. } => {
            places.some(output, by(*reported));
            places.patch(patch, by(*reported));
        }
        Event::RetryScheduled { patch, .. } | Event::Yielded { patch, .. } => {
            places.patch(patch, Source::Own)
        }
        Event::Dropped { reported: Some(result), .. } => places.result(result),
        Event::LoopStarted { items, .. } => places.some(items, Source::Outside),
        Event::IterationEnded { output, .. } => places.some(output, Source::Own),
        Event::Patched { patch, .. } => places.patch(patch, Source::Outside),
        Event::ChildStarted { inputs, delegated, .. } => {
            places.one(inputs, Source::Outside);
            delegated.iter_mut().for_each(|delegated| places.patch(&mut delegated.patch, Source::Own));
        }
        Event::Forked(fork) => places.some(&mut fork.inputs, Source::Outside),
        Event::AgentDecided { decision: AgentDecision::Execute { args, .. }, .. } => {
            places.some(args, Source::Outside);
        }
        any_of![Event: Assigned TimeCame Started Held Released Paused Resumed Draining Cleared StopAsked
            Compensating Finalizing Ended Restarted Continued Denied Admitted Discarded Skipped Waiting Woken
            Delayed Offered Lost CompletedManually Dropped IterationStarted Returned NotCompensated AgentDecided] =>
            {}
    }
    places.0
}

/// References from workers, ended children and the kernel's own tokens always name stored artifacts.
fn by(ours: bool) -> Source {
    if ours { Source::Own } else { Source::Outside }
}

#[derive(Default)]
struct Places<'e>(Vec<(&'e mut Arc<Value>, Source)>);

impl<'e> Places<'e> {
    fn one(&mut self, value: &'e mut Arc<Value>, source: Source) {
        self.0.push((value, source));
    }

    fn some(&mut self, value: &'e mut Option<Arc<Value>>, source: Source) {
        value.iter_mut().for_each(|value| self.one(value, source));
    }

    fn patch(&mut self, patch: &'e mut Patch, source: Source) {
        patch.values_mut().for_each(|value| self.one(value, source));
    }

    fn result(&mut self, result: &'e mut WorkResult) {
        match result {
            WorkResult::Done { output } => self.one(output, Source::Own),
            WorkResult::Child { inputs, .. } => self.one(inputs, Source::Outside),
            WorkResult::Failed(_) | WorkResult::Stopped | WorkResult::Later { .. } => {}
        }
    }
}
