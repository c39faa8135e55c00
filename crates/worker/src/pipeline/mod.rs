//! The pipeline runner: a state machine without IO. It returns the tool call to make, takes its outcome, and returns
//! the next action.
//!
//! ```text
//! begin ─▶ advance ─▶ Call ─▶ answer ─▶ advance ─▶ Keep, Checkpoint ─▶ advance ─▶ Wait ─▶ advance ─▶ … ─▶ Report
//! ```
//! If a template reads a large value that is not in memory, `advance` first returns Load.
//! All state of a run is in its cursor: a run that starts with a cursor continues where the other one stopped.

mod cursor;
mod large_values;
mod opened;
mod outcome;
mod render;
mod rules;
mod scope;
mod turn;

use crate::failure::{self, in_task};
use crate::node::meter;
use cursor::Cursor;
pub(crate) use large_values::not_available;
use large_values::{LargeValues, RenderError};
use opened::Opened;
use scope::View;
pub(crate) use scope::{execution_id, own_key};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_artifact::{Artifact, INLINE_BYTES, Source};
use windlass_protocol::{
    Action, CHILD_KIND, Failure, FailureSite, Key, Node, Outcome, PLAN_STEP_KIND, Pipeline, Report, Task,
    Tool, TryTimes, Work,
};
use windlass_secrets::{Redactor, Zeroizing};

/// Maximum number of calls of one run. A hundred rows per page make a million rows; larger work belongs in a loop,
/// whose iterations are step-runs of their own.
pub const CALLS_MAX: u32 = 10_000;

/// A longer pause releases the slot and becomes a timer.
pub const PAUSE_MAX_MS: u64 = 5_000;

/// Maximum of a growing delay: a month.
pub const DELAY_MAX_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// One requested tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub label: String,
    pub kind: String,
    /// Rendered configuration.
    pub config: Map<String, Value>,
    /// Arguments of the task merged over those of the step; null if there are none.
    pub args: Value,
    pub timeout_ms: Option<u64>,
    /// Counts from 1, again after each success.
    pub try_number: u32,
    /// Number of calls of this firing before this one. A repeated try of a call has the same number, also in another
    /// attempt or on another worker.
    pub number: u32,
    /// State of the call that an earlier worker stored.
    pub memo: Option<Value>,
}

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    pub outcome: Result<Value, Box<Failure>>,
    /// Further fields of `outcome` in rules: `http`, …
    pub facts: Map<String, Value>,
}

impl From<Result<Value, Box<Failure>>> for CallResult {
    fn from(outcome: Result<Value, Box<Failure>>) -> CallResult {
        CallResult { outcome, facts: Map::new() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Handles whose values templates read. The caller passes each with `opened`.
    Open(Vec<String>),
    /// Keys whose values templates read. The caller passes them with `loaded`.
    Load(Vec<String>),
    /// Artifacts to store before the run continues: its next output refers to them.
    Keep(Vec<Artifact>),
    /// Cursor of the run, to be stored before it continues.
    Checkpoint(Value),
    /// A call, whose outcome is passed with `answer`. If it is requested again before that, it is the same call.
    Call(Box<Call>),
    /// A pause of at most [`PAUSE_MAX_MS`]; then call `advance` again.
    Wait { delay_ms: u64 },
    /// The run has ended. The patch contains every context key that was written and not reported yet.
    Report(Box<Report>),
}

/// One attempt of a step-run, from its start or from a cursor to its report.
#[derive(Debug)]
pub struct Run {
    pipeline: Pipeline,
    work: Work,
    cursor: Cursor,
    large_values: LargeValues,
    opened: Opened,
    /// Keychain, resolved before the first task.
    keychain: Map<String, Value>,
    /// Redactor for all data that the run stores.
    redactor: Arc<Redactor>,
    stage: Stage,
    /// Times of the call that is answered next.
    times: Option<TryTimes>,
    /// Whether the cursor has moved since it was last stored.
    moved: bool,
}

/// Next state of the run.
#[derive(Debug)]
enum Stage {
    /// Starts a run, at the cursor of an earlier worker if there is one.
    Begin,
    /// The task at the cursor is next.
    Task,
    /// A call is in progress; the arguments are those of the task merged over those of the step.
    Asked {
        args: Value,
    },
    /// The outcome of a call is evaluated by the rules of the task.
    Answered {
        args: Value,
        called: CallResult,
    },
    /// The other execution has ended that the task at the cursor waited for.
    Returned(CallResult),
    /// The last task has ended.
    Complete,
    Over(Box<Report>),
}

impl Run {
    #[must_use]
    pub fn begin(work: Work) -> Run {
        let (pipeline, refused) = match Pipeline::deserialize(&*work.spec) {
            Ok(pipeline) => (pipeline, None),
            Err(error) => (Pipeline::default(), Some(not_a_pipeline(&work, &error))),
        };
        let cursor = Cursor::start(pipeline.tasks.first().map_or("", |task| &task.label));
        let large_values = LargeValues::new(pipeline.inline_bytes.unwrap_or(INLINE_BYTES));
        let mut run = Run {
            pipeline,
            work,
            cursor,
            large_values,
            opened: Opened::default(),
            keychain: Map::new(),
            redactor: Arc::default(),
            stage: Stage::Begin,
            times: None,
            moved: false,
        };
        if let Some(failure) = refused {
            run.fail(*failure);
        }
        run
    }

    pub fn advance(&mut self) -> Next {
        loop {
            let unkept = self.large_values.take_unkept();
            if !unkept.is_empty() {
                return Next::Keep(unkept);
            }
            if std::mem::take(&mut self.moved) {
                return Next::Checkpoint(self.cursor());
            }
            let gone_on = match &self.stage {
                Stage::Over(report) => return Next::Report(report.clone()),
                Stage::Task | Stage::Asked { .. } if self.cursor.wait_ms > 0 => {
                    return Next::Wait { delay_ms: std::mem::take(&mut self.cursor.wait_ms) };
                }
                Stage::Task | Stage::Asked { .. } => match self.call() {
                    Ok(Some(call)) => return Next::Call(Box::new(call)),
                    Ok(None) => Ok(()),
                    Err(trouble) => Err(trouble),
                },
                Stage::Begin => self.place(),
                Stage::Returned(_) => self.returned(),
                Stage::Answered { .. } => self.fold(),
                Stage::Complete => self.complete(),
            };
            match gone_on {
                Ok(()) => {}
                Err(RenderError::Needs(keys)) => return Next::Load(keys),
                Err(RenderError::Opens(handles)) => return Next::Open(handles),
                Err(RenderError::Failed(failure)) => self.fail(*failure),
            }
        }
    }

    /// Takes the times of the call whose outcome is passed next.
    pub fn note_times(&mut self, times: TryTimes) {
        self.times = Some(times);
    }

    /// Takes the outcome of the requested call. If no call was requested, the outcome is dropped.
    pub fn answer(&mut self, called: CallResult) {
        let Stage::Asked { args } = &mut self.stage else { return };
        let args = std::mem::take(args);
        self.answered(args, called);
    }

    fn answered(&mut self, args: Value, called: CallResult) {
        let kind = self.task(&self.cursor.at).map_or("", |task| task.kind.as_str());
        // A node states its failure by its contract, and so does a step of a plan. Their data may have any form.
        let is_plain = self.pipeline.node.is_some() || kind == PLAN_STEP_KIND;
        // The result of a child is a reference if the child's is.
        let own = kind == CHILD_KIND || Tool::named(kind).is_some_and(|tool| tool.row().returns_references);
        let mut called = if is_plain { called } else { outcome::judged(called) };
        let source = if own { Source::Own } else { Source::Outside };
        match &mut called.outcome {
            Ok(result) => *result = self.large_values.replace_large(result.take(), source),
            Err(failure) => {
                failure.details = self.large_values.replace_large(failure.details.take(), Source::Outside)
            }
        }
        let times = self.times.take();
        self.cursor.memo = None;
        self.cursor.calls += 1;
        let tries = self.cursor.tries.entry(self.cursor.at.clone()).or_default();
        *tries += 1;
        let number = *tries;
        if let Err(failure) = &mut called.outcome {
            // Tries of a rule continue the count of the engine's attempts.
            failure.facts.attempt = Some(self.work.attempt.saturating_sub(1) + number);
        }
        // For a step of one task, a single try has no information beyond the end of the step.
        if number > 1 || self.pipeline.tasks.len() > 1 || has_retry(&self.pipeline) {
            let failure = called.outcome.as_ref().err().map(|failure| &**failure);
            self.cursor.note_try(number, failure, times);
        }
        self.stage = Stage::Answered { args, called };
    }

    /// Returns the step whose failures are described.
    fn site(&self) -> FailureSite<'_> {
        let node_name = self.pipeline.node.as_ref().map_or(&self.work.step, |node| &node.name);
        FailureSite { node_id: &self.work.step, node_name, attempt: self.work.attempt }
    }

    /// Takes the value of a handle, or the reason why it cannot be opened; then the task that reads it cannot be called.
    pub fn opened(&mut self, handle: String, value: Result<Zeroizing<String>, Box<Failure>>) {
        match value {
            Ok(value) => self.opened.put(handle, value),
            Err(failure) => self.fail(*in_task(failure, &self.cursor.at)),
        }
    }

    /// Returns the keychain entries to resolve before the first task.
    #[must_use]
    pub fn keychain(&self) -> &[Key] {
        &self.pipeline.keychain
    }

    /// Returns whether the steps after it wait for its keychain.
    #[must_use]
    pub fn unlocks(&self) -> bool {
        self.pipeline.unlocks
    }

    /// Returns the keychain for templates.
    pub fn unlock(&mut self, keychain: Map<String, Value>) {
        self.keychain = keychain;
    }

    /// Sets the redactor from now on.
    pub fn redact_with(&mut self, redactor: Arc<Redactor>) {
        self.redactor = redactor;
    }

    /// Takes loaded values, key by key; None for a value that is missing or damaged.
    pub fn loaded(&mut self, values: Vec<(String, Option<Vec<u8>>)>) {
        for (key, bytes) in values {
            self.large_values.put(key, bytes.as_deref());
        }
        self.large_values.satisfied();
    }

    /// Returns the memory of the loaded large values.
    #[must_use]
    pub fn loaded_memory(&self) -> u64 {
        self.large_values.loaded_memory()
    }

    #[must_use]
    pub fn cursor(&self) -> Value {
        self.cursor.stored()
    }

    /// Adds facts of a call to the metadata of the report.
    pub fn note(&mut self, facts: Map<String, Value>) {
        self.cursor.counted.extend(facts);
    }

    /// Returns the report of a run that is ended from outside. Values that it refers to are stored first:
    /// [`Run::take_unkept`].
    #[must_use]
    pub fn report_now(&self, outcome: Outcome) -> Box<Report> {
        Box::new(Report {
            unit: self.work.unit,
            outcome,
            patch: self.cursor.patch(),
            metadata: self.cursor.metadata(),
        })
    }

    /// Returns the workflow node whose work it is.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.pipeline.node.as_deref()
    }

    /// Returns the context of the attempt: that of its dispatch, with its later writes.
    #[must_use]
    pub fn ctx(&self) -> Map<String, Value> {
        let earlier = self.work.cursor.as_deref().and_then(|stored| Cursor::read(stored).ok());
        let written = earlier.map(|(cursor, _)| cursor.ctx).unwrap_or_default();
        self.work.scope.ctx.clone().into_iter().chain(written).collect()
    }

    /// Writes to the context for a running call. Values that the write refers to are stored first, then the cursor.
    pub fn write(&mut self, key: String, value: Value) {
        let fields = self.large_values.replace_large_fields(Map::from_iter([(key, value)]));
        self.cursor.write_ctx(fields);
    }

    /// Stores the state of a running call.
    pub fn remember(&mut self, memo: Value) {
        self.cursor.memo = Some(memo);
    }

    /// Adds the counters of a call.
    pub fn count(&mut self, counted: Map<String, Value>) {
        meter::sum(&mut self.cursor.counted, counted);
    }

    pub fn take_unkept(&mut self) -> Vec<Artifact> {
        self.large_values.take_unkept()
    }

    #[must_use]
    pub fn work(&self) -> &Work {
        &self.work
    }

    #[must_use]
    pub fn tasks(&self) -> usize {
        self.pipeline.tasks.len()
    }

    fn task(&self, label: &str) -> Result<&Task, Box<Failure>> {
        let found = self.pipeline.tasks.iter().find(|task| task.label == label);
        found.ok_or_else(|| failure::invalid(format!("step `{}` has no task `{label}`", self.work.step)))
    }

    fn in_task(&self, trouble: RenderError) -> RenderError {
        match trouble {
            RenderError::Failed(failure) => RenderError::Failed(in_task(failure, &self.cursor.at)),
            needs @ (RenderError::Needs(_) | RenderError::Opens(_)) => needs,
        }
    }

    fn complete(&mut self) -> Result<(), RenderError> {
        let (output, source) = outcome::output(&self.pipeline, &self.cursor, &self.large_values)?;
        let mut view = View::new(&self.work, &self.cursor, &self.large_values);
        view.own = Some(&output);
        let fields = render::fields(&view, &self.pipeline.set_ctx, "the step's `set_ctx`")?;
        let fields = self.large_values.replace_large_fields(fields);
        let output = self.large_values.replace_large(output, source);
        self.cursor.write_ctx(fields);
        self.stage = Stage::Over(self.report_now(Outcome::Done { output }));
        Ok(())
    }

    /// Reports that the run continues at its cursor after a delay, on any worker.
    #[must_use]
    pub fn hand_over(&mut self, delay_ms: u64) -> Box<Report> {
        let patch = self.cursor.patch();
        self.cursor.unsent.clear();
        let outcome = Outcome::Later { delay_ms, cursor: self.cursor() };
        Box::new(Report { unit: self.work.unit, outcome, patch, metadata: Map::new() })
    }

    fn fail(&mut self, failure: Failure) {
        self.stage = Stage::Over(self.report_now(Outcome::Failed(failure)));
    }
}

/// Returns whether a failed try may be followed by another one of the same attempt.
fn has_retry(pipeline: &Pipeline) -> bool {
    let mut rules = pipeline.tasks.iter().flat_map(|task| &task.rules);
    rules.any(|rule| matches!(rule.action, Action::Retry { .. }))
}

fn not_a_pipeline(work: &Work, error: &serde_json::Error) -> Box<Failure> {
    failure::invalid(format!("the work of step `{}` is no pipeline: {error}", work.step))
}
