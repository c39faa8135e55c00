//! Large values of events are set aside: the journal holds references, and no value is too large for it. What was
//! rendered here or came from outside may only look like a reference, and is set aside too.

use crate::event::{AgentDecision, Created, Event, TokenValue};
use crate::input::{Report, WorkResult};
use crate::step_run::{Patch, Role};
use serde_json::Value;
use std::sync::Arc;
use windlass_artifact::{Artifact, Source, set_aside};

/// Gives each value that leaves the event to `keep`, with the artifact it is from now on.
pub(crate) fn lighten(event: &mut Event, inline_bytes: usize, keep: &mut impl FnMut(Artifact, Arc<Value>)) {
    let mut values = Values { inline_bytes, keep };
    match event {
        Event::Created(created) => values.created(created),
        Event::Routed { emitted, .. } => {
            for emission in emitted {
                if let TokenValue::Live(args) = &mut emission.token {
                    values.option(args, Source::Outside);
                }
            }
        }
        Event::Fired { role, args, .. } => {
            let asked = matches!(role, Role::Tool { .. });
            values.option(args, if asked { Source::Outside } else { Source::Own });
        }
        Event::Done { fence, output, patch, .. }
        | Event::AwaitingManual { answered: fence, output, patch, .. } => {
            let source = by(fence.is_some());
            values.one(output, source);
            values.patch(patch, source);
        }
        Event::Failed { reported, output, patch, .. } => {
            values.option(output, by(*reported));
            values.patch(patch, by(*reported));
        }
        Event::RetryScheduled { patch, .. } | Event::Yielded { patch, .. } => {
            values.patch(patch, Source::Own)
        }
        Event::Dropped { reported: Some(result), .. } => {
            if let WorkResult::Done { output } = &mut **result {
                values.one(output, Source::Own);
            }
        }
        Event::LoopStarted { items, .. } => values.option(items, Source::Outside),
        Event::Patched { patch, .. } => values.patch(patch, Source::Outside),
        Event::ChildStarted { inputs, delegated, .. } => {
            values.one(inputs, Source::Outside);
            if let Some(delegated) = delegated {
                values.patch(&mut delegated.patch, Source::Own);
            }
        }
        Event::Forked(fork) => values.option(&mut fork.inputs, Source::Outside),
        Event::AgentDecided { decision: AgentDecision::Execute { args, .. }, .. } => {
            values.option(args, Source::Outside);
        }
        _ => {}
    }
}

impl Report {
    /// As the journal tells it afterwards.
    pub(crate) fn as_kept(&self, inline_bytes: usize) -> Report {
        let mut report = self.clone();
        let mut keep = |_, _| {};
        let mut values = Values { inline_bytes, keep: &mut keep };
        match &mut report.result {
            WorkResult::Done { output } => values.one(output, Source::Own),
            WorkResult::Child { inputs, .. } => values.one(inputs, Source::Outside),
            WorkResult::Failed(_) | WorkResult::Stopped | WorkResult::Later { .. } => {}
        }
        values.patch(&mut report.patch, Source::Own);
        report
    }
}

/// A worker and an ended child name only what they kept themselves.
fn by(reported: bool) -> Source {
    if reported { Source::Own } else { Source::Outside }
}

struct Values<'k, K> {
    inline_bytes: usize,
    keep: &'k mut K,
}

impl<K: FnMut(Artifact, Arc<Value>)> Values<'_, K> {
    fn one(&mut self, value: &mut Arc<Value>, source: Source) {
        if let Some((reference, artifact)) = set_aside(value, source, self.inline_bytes) {
            (self.keep)(artifact, std::mem::replace(value, Arc::new(reference)));
        }
    }

    fn option(&mut self, value: &mut Option<Arc<Value>>, source: Source) {
        if let Some(value) = value {
            self.one(value, source);
        }
    }

    fn patch(&mut self, patch: &mut Patch, source: Source) {
        patch.values_mut().for_each(|value| self.one(value, source));
    }

    /// A parent's journal holds what it hands down, and so does an earlier execution's.
    fn created(&mut self, created: &mut Created) {
        let create = &mut created.create;
        self.one(&mut create.inputs, by(create.parent.is_some()));
        for import in &mut create.imports {
            self.one(&mut import.output, Source::Own);
        }
    }
}
