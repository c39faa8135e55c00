//! The pipeline runner: a machine without IO. It says which tool to call, gets what came of it, and says what is next.
//!
//! ```text
//! begin ─▶ advance ─▶ Call ─▶ answer ─▶ advance ─▶ Keep, Checkpoint ─▶ advance ─▶ Wait ─▶ advance ─▶ … ─▶ Report
//! ```
//! Where a template reads a large value that is not at hand, `advance` says Load first.
//! Everything a run has learned is in its cursor: a run that begins with it continues as if nothing had happened.

mod cursor;
mod opened;
mod outcome;
mod render;
mod rules;
mod scope;
mod shelf;
mod turn;

use crate::failure::{self, in_task};
use crate::node::meter;
use cursor::Cursor;
use opened::Opened;
use scope::View;
pub(crate) use scope::{execution_id, own_key};
use serde::Deserialize;
use serde_json::{Map, Value};
pub(crate) use shelf::not_available;
use shelf::{Shelf, Trouble};
use std::sync::Arc;
use windlass_artifact::{Artifact, INLINE_BYTES, Source};
use windlass_protocol::{
    Action, CHILD_KIND, Failure, FailureSite, Key, Node, Outcome, PLAN_STEP_KIND, Pipeline, Report, Task,
    Work,
};
use windlass_secrets::{Redactor, Zeroizing};

/// Calls of one run. A hundred rows a page make a million rows of it; what needs more belongs in a loop, whose
/// iterations are step-runs of their own.
pub const CALLS_MAX: u32 = 10_000;

/// A longer pause releases the slot and comes due as a timer.
pub const PAUSE_MAX_MS: u64 = 5_000;

/// A growing delay stops here: no retry is worth more than a month of waiting.
pub const DELAY_MAX_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// Tools whose results are references on purpose.
const OWN_REFERENCES: [&str; 4] = ["artifact", "secrets", CHILD_KIND, PLAN_STEP_KIND];

/// One tool call that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub label: String,
    pub kind: String,
    /// Rendered.
    pub config: Map<String, Value>,
    /// The task's own arguments laid over the step's; null when there are none.
    pub args: Value,
    pub timeout_ms: Option<u64>,
    /// Counts from 1, again after each success.
    pub try_number: u32,
    /// How many calls of this firing came before it. Another try of a call has the same number, also in another attempt
    /// or on another worker.
    pub number: u32,
    /// Where an earlier worker left it, as its tool said then.
    pub memo: Option<Value>,
}

/// What a call came to.
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
    /// To be answered with `opened`, each of them: templates read the secrets behind these handles.
    Open(Vec<String>),
    /// To be answered with `loaded`: templates read what is behind these keys.
    Load(Vec<String>),
    /// Artifacts to store before the run continues: its next output refers to them.
    Keep(Vec<Artifact>),
    /// Cursor of the run, to be stored before it continues.
    Checkpoint(Value),
    /// To be answered with `answer`. Asked again before that, it is the same call.
    Call(Box<Call>),
    /// At most [`PAUSE_MAX_MS`]; then `advance` again.
    Wait { delay_ms: u64 },
    /// The run is over. The patch holds every context key written and not yet reported.
    Report(Box<Report>),
}

/// One attempt of a step-run, from its start or from a cursor to its report.
#[derive(Debug)]
pub struct Run {
    pipeline: Pipeline,
    work: Work,
    cursor: Cursor,
    shelf: Shelf,
    opened: Opened,
    /// Resolved before the first task.
    keychain: Map<String, Value>,
    /// Takes values out of what the run writes down.
    redactor: Arc<Redactor>,
    stage: Stage,
    /// The cursor has moved since it was last stored.
    moved: bool,
}

/// What the run does next.
#[derive(Debug)]
enum Stage {
    /// Starts a run, at the cursor of an earlier worker if there is one.
    Begin,
    /// The task at the cursor has its turn.
    Task,
    /// A call is out; the arguments are the task's own laid over the step's.
    Asked {
        args: Value,
    },
    /// What a call came to meets the task's rules.
    Answered {
        args: Value,
        called: CallResult,
    },
    /// Another execution has ended that the task at the cursor waited for.
    Returned(CallResult),
    /// After the last task.
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
        let shelf = Shelf::new(pipeline.inline_bytes.unwrap_or(INLINE_BYTES));
        let mut run = Run {
            pipeline,
            work,
            cursor,
            shelf,
            opened: Opened::default(),
            keychain: Map::new(),
            redactor: Arc::default(),
            stage: Stage::Begin,
            moved: false,
        };
        if let Some(failure) = refused {
            run.fail(*failure);
        }
        run
    }

    pub fn advance(&mut self) -> Next {
        loop {
            let unkept = self.shelf.take_unkept();
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
                Err(Trouble::Needs(keys)) => return Next::Load(keys),
                Err(Trouble::Opens(handles)) => return Next::Open(handles),
                Err(Trouble::Failed(failure)) => self.fail(*failure),
            }
        }
    }

    /// What the call asked for came to. Without one it means nothing and is dropped.
    pub fn answer(&mut self, called: CallResult) {
        let Stage::Asked { args } = &mut self.stage else { return };
        let args = std::mem::take(args);
        self.answered(args, called);
    }

    fn answered(&mut self, args: Value, called: CallResult) {
        let is =
            |kinds: &[&str]| self.task(&self.cursor.at).is_ok_and(|task| kinds.contains(&task.kind.as_str()));
        // A node says by its contract whether it failed, and so does a step of a plan. Their data may say anything.
        let is_plain = self.pipeline.node.is_some() || is(&[PLAN_STEP_KIND]);
        // These name what is kept; what others give may only look so.
        let own = is(&OWN_REFERENCES);
        let mut called = if is_plain { called } else { outcome::judged(called) };
        let source = if own { Source::Own } else { Source::Outside };
        match &mut called.outcome {
            Ok(result) => *result = self.shelf.lighten(result.take(), source),
            Err(failure) => failure.details = self.shelf.lighten(failure.details.take(), Source::Outside),
        }
        self.cursor.memo = None;
        self.cursor.calls += 1;
        let tries = self.cursor.tries.entry(self.cursor.at.clone()).or_default();
        *tries += 1;
        let number = *tries;
        if let Err(failure) = &mut called.outcome {
            // Tries of a rule continue the count of the attempts that the engine makes.
            failure.facts.attempt = Some(self.work.attempt.saturating_sub(1) + number);
        }
        // A step of one task has no more to say of a single try than its own end says.
        if number > 1 || self.pipeline.tasks.len() > 1 || has_retry(&self.pipeline) {
            self.cursor.note_try(number, called.outcome.as_ref().err().map(|failure| &**failure));
        }
        self.stage = Stage::Answered { args, called };
    }

    /// The step whose failures are described.
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

    /// Keychain entries to resolve before the first task.
    #[must_use]
    pub fn keychain(&self) -> &[Key] {
        &self.pipeline.keychain
    }

    /// Whether the steps after it wait for its keychain.
    #[must_use]
    pub fn unlocks(&self) -> bool {
        self.pipeline.unlocks
    }

    /// What its templates see as `keychain`.
    pub fn unlock(&mut self, keychain: Map<String, Value>) {
        self.keychain = keychain;
    }

    /// From now on.
    pub fn redact_with(&mut self, redactor: Arc<Redactor>) {
        self.redactor = redactor;
    }

    /// What was loaded, key by key; None where there is nothing, or not what there was.
    pub fn loaded(&mut self, values: Vec<(String, Option<Vec<u8>>)>) {
        for (key, bytes) in values {
            self.shelf.put(key, bytes.as_deref());
        }
        self.shelf.satisfied();
    }

    #[must_use]
    pub fn cursor(&self) -> Value {
        self.cursor.stored()
    }

    /// Adds facts of a call to the metadata of the report.
    pub fn note(&mut self, facts: Map<String, Value>) {
        self.cursor.counted.extend(facts);
    }

    /// The report of a run that is ended from outside. What it refers to is kept first: [`Run::take_unkept`].
    #[must_use]
    pub fn report_now(&self, outcome: Outcome) -> Box<Report> {
        Box::new(Report {
            unit: self.work.unit,
            outcome,
            patch: self.cursor.patch(),
            metadata: self.cursor.metadata(),
        })
    }

    /// The workflow node that it is the work of.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.pipeline.node.as_deref()
    }

    /// The context as the attempt sees it: as of its dispatch, and what it wrote since.
    #[must_use]
    pub fn ctx(&self) -> Map<String, Value> {
        let earlier = self.work.cursor.as_deref().and_then(|stored| Cursor::read(stored).ok());
        let written = earlier.map(|(cursor, _)| cursor.ctx).unwrap_or_default();
        self.work.scope.ctx.clone().into_iter().chain(written).collect()
    }

    /// A running call writes to the context. What it refers to is stored first, then the cursor.
    pub fn write(&mut self, key: String, value: Value) {
        let fields = self.shelf.lighten_all(Map::from_iter([(key, value)]));
        self.cursor.write_ctx(fields);
    }

    /// A running call stores its own state.
    pub fn remember(&mut self, memo: Value) {
        self.cursor.memo = Some(memo);
    }

    /// What a call counted.
    pub fn count(&mut self, counted: Map<String, Value>) {
        meter::sum(&mut self.cursor.counted, counted);
    }

    pub fn take_unkept(&mut self) -> Vec<Artifact> {
        self.shelf.take_unkept()
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

    fn in_task(&self, trouble: Trouble) -> Trouble {
        match trouble {
            Trouble::Failed(failure) => Trouble::Failed(in_task(failure, &self.cursor.at)),
            needs @ (Trouble::Needs(_) | Trouble::Opens(_)) => needs,
        }
    }

    fn complete(&mut self) -> Result<(), Trouble> {
        let (output, source) = outcome::output(&self.pipeline, &self.cursor, &self.shelf)?;
        let mut view = View::new(&self.work, &self.cursor, &self.shelf);
        view.own = Some(&output);
        let fields = render::fields(&view, &self.pipeline.set_ctx, "the step's `set_ctx`")?;
        let fields = self.shelf.lighten_all(fields);
        let output = self.shelf.lighten(output, source);
        self.cursor.write_ctx(fields);
        self.stage = Stage::Over(self.report_now(Outcome::Done { output }));
        Ok(())
    }

    /// Reports that the run continues at its cursor after a delay, with whichever worker has the next task.
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
