//! The next task: from the cursor of the run to the next call, or to the other execution that the task waits for.

use super::cursor::Cursor;
use super::large_values::RenderError;
use super::scope::{Secrets, View};
use super::{CALLS_MAX, Call, Run, Stage, outcome, render};
use crate::failure::failure;
use serde_json::{Map, Value};
use std::borrow::Cow;
use windlass_artifact::{Source, summary_references};
use windlass_protocol::{CHILD_KIND, Failure, Outcome, Report, Task, codes};
use windlass_schemas::{Misfit, Schema};

impl Run {
    pub(super) fn place(&mut self) -> Result<(), RenderError> {
        self.stage = match &self.work.cursor {
            Some(stored) => {
                let (cursor, child) = Cursor::read(stored).map_err(|error| bad_cursor(&error))?;
                self.cursor = cursor;
                self.task(&self.cursor.at)?;
                child.map_or(Stage::Task, |child| Stage::Returned(outcome::of_child(child)))
            }
            None => {
                self.complete_summary()?;
                self.bind_args()?;
                if self.pipeline.tasks.is_empty() { Stage::Complete } else { Stage::Task }
            }
        };
        Ok(())
    }

    /// Replaces references by large outputs in the summary for a final step, once for all its tasks.
    fn complete_summary(&mut self) -> Result<(), RenderError> {
        if !self.work.scope.summary || self.cursor.args.is_some() {
            return Ok(());
        }
        let view = View::new(&self.work, &self.cursor, &self.large_values);
        let Some(args) = self.large_values.settled(Ok(view.args()))? else { return Ok(()) };
        let mut summary = args.into_owned();
        let mut is_complete = true;
        for output in summary_references(&mut summary) {
            is_complete = false;
            *output =
                self.large_values.resolve(Cow::Owned(output.take())).map_or(Value::Null, Cow::into_owned);
        }
        self.large_values.settled(Ok(()))?;
        if !is_complete {
            self.cursor.args = Some(self.large_values.replace_large(summary, Source::Outside));
        }
        Ok(())
    }

    fn bind_args(&mut self) -> Result<(), RenderError> {
        if self.pipeline.args.is_empty() && self.pipeline.args_schema.is_none() {
            return Ok(());
        }
        let view = View::new(&self.work, &self.cursor, &self.large_values);
        let own = render::fields(&view, &self.pipeline.args, "the step's `args`")?;
        if let Some(schema) = &self.pipeline.args_schema {
            check_args(schema, &own)?;
        }
        let laid = render::laid(view.args().as_deref(), own);
        let laid = self.large_values.settled(Ok(laid))?;
        self.cursor.args = Some(self.large_values.replace_large(laid, Source::Outside));
        Ok(())
    }

    /// Returns the call of the task at the cursor; None if its work is another execution, which is reported.
    pub(super) fn call(&mut self) -> Result<Option<Call>, RenderError> {
        if self.cursor.calls >= CALLS_MAX {
            let message = format!(
                "the step made {CALLS_MAX} calls, which is the maximum; check that the jumps of its rules end"
            );
            return Err(self.in_task(failure(codes::LIMIT_EXCEEDED, message).into()));
        }
        let (call, args) = self.configured().map_err(|trouble| self.in_task(trouble))?;
        if call.kind == CHILD_KIND {
            self.delegate(&call);
            return Ok(None);
        }
        self.stage = Stage::Asked { args };
        Ok(Some(call))
    }

    fn configured(&self) -> Result<(Call, Value), RenderError> {
        let task = self.task(&self.cursor.at)?;
        let try_number = self.cursor.tries.get(&task.label).copied().unwrap_or_default() + 1;
        let mut view = View::new(&self.work, &self.cursor, &self.large_values);
        view.task = Some((&task.label, try_number));
        // The inputs of another execution are stored, so no secret is opened for them.
        if task.kind != CHILD_KIND {
            view.secrets = Some(Secrets { opened: &self.opened, keychain: &self.keychain });
        }
        let rendered = configured(task, &view);
        let missing = self.opened.take_missing();
        if !missing.is_empty() {
            return Err(RenderError::Opens(missing));
        }
        let (config, args) = rendered?;
        let (label, kind) = (task.label.clone(), task.kind.clone());
        let (timeout_ms, number, memo) = (task.timeout_ms, self.cursor.passed, self.cursor.memo.clone());
        let call = Call { label, kind, config, args: args.clone(), timeout_ms, try_number, number, memo };
        Ok((call, args))
    }

    /// Releases the slot while the other execution runs.
    fn delegate(&mut self, call: &Call) {
        let (definition, inputs) = outcome::child(&call.config);
        let patch = self.cursor.patch();
        self.cursor.unsent.clear();
        let outcome = Outcome::Child { definition, inputs, cursor: self.cursor() };
        self.stage = Stage::Over(Box::new(Report {
            unit: self.work.unit,
            outcome,
            patch,
            metadata: Default::default(),
        }));
    }

    /// Continues after the other execution. The rules of the task see the arguments with which it was requested.
    pub(super) fn returned(&mut self) -> Result<(), RenderError> {
        let (_, args) = self.configured().map_err(|trouble| self.in_task(trouble))?;
        if let Stage::Returned(called) = std::mem::replace(&mut self.stage, Stage::Task) {
            self.answered(args, called);
        }
        Ok(())
    }
}

/// Returns a task's configuration, and the arguments for its other templates and its rules: its own merged over the
/// step's.
fn configured(task: &Task, view: &View<'_>) -> Result<(Map<String, Value>, Value), RenderError> {
    let place = format!("task `{}`", task.label);
    let is_args = |key: &str| key == "args" || key == "input";
    let (own, others): (Vec<_>, Vec<_>) = task.config.iter().partition(|(key, _)| is_args(key));
    let mut config = Map::new();
    let mut args = view.large_values.settled(Ok(view.args().map(Cow::into_owned)))?;
    for (key, value) in own {
        let rendered = render::field(view, key, value, &place)?;
        if let Value::Object(fields) = &rendered {
            args = Some(render::laid(args.as_ref(), fields.clone()));
        }
        config.insert(key.clone(), rendered);
    }
    let view = View { args: args.as_ref(), ..*view };
    for (key, value) in others {
        config.insert(key.clone(), render::field(&view, key, value, &place)?);
    }
    Ok((config, args.unwrap_or_default()))
}

/// Checks arguments before the first call. Only hooks have a schema, so that few runs pay for its compilation.
fn check_args(schema: &Value, args: &Map<String, Value>) -> Result<(), Box<Failure>> {
    let refused = |message: String| failure(codes::VALIDATION_ERROR, message);
    let schema = Schema::new(schema)
        .map_err(|problem| refused(format!("the schema of the arguments cannot be used: {problem}")))?;
    match schema.validate(&Value::Object(args.clone())).err().and_then(|misfits| misfits.into_iter().next()) {
        None => Ok(()),
        Some(Misfit { pointer, message }) => {
            let place = if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") };
            Err(refused(format!("the arguments do not fit their schema{place}: {message}")))
        }
    }
}

fn bad_cursor(error: &str) -> Box<Failure> {
    let message =
        format!("the checkpoint of an earlier worker cannot be read: {error}; use workers of one version");
    failure(codes::INVALID_CURSOR, message)
}
