//! The pipeline runner: a machine without IO. It says which tool to call, gets what came of it, and says what is next.
//!
//! ```text
//! begin ─▶ advance ─▶ Call ─▶ answer ─▶ advance ─▶ Keep, Checkpoint ─▶ advance ─▶ Wait ─▶ advance ─▶ … ─▶ Report
//! ```
//! Where a template reads a large value that is not at hand, `advance` says Load first.
//! Everything a run has learned is in its cursor: a run that begins with it goes on as if nothing had happened.

mod cursor;
mod opened;
mod outcome;
mod render;
mod scope;
mod shelf;

use crate::failure::{self, failure, in_task};
use cursor::Cursor;
use opened::Opened;
pub(crate) use scope::execution_id;
use scope::{Secrets, View};
use serde::Deserialize;
use serde_json::{Map, Value};
pub(crate) use shelf::not_available;
use shelf::{Shelf, Trouble};
use std::borrow::Cow;
use std::sync::Arc;
use windlass_artifact::{Artifact, INLINE_BYTES, Source};
use windlass_protocol::{
    Action, Backoff, Failure, Key, OnUnmatched, Outcome, Pipeline, Report, Rule, Task, Work,
};
use windlass_secrets::{Redactor, Zeroizing};

/// Calls of one run. A hundred rows a page make a million rows of it; what needs more belongs in a loop, whose
/// iterations are step-runs of their own.
pub const CALLS_MAX: u32 = 10_000;

/// A longer pause gives the slot back and comes due as a timer.
pub const PAUSE_MAX_MS: u64 = 5_000;

/// A growing delay stops here: a month is longer than anybody waits for a retry.
pub const DELAY_MAX_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// The kind of a task that is another execution.
const CHILD: &str = "playbook";
/// Tools whose results are references on purpose.
const OWN_REFERENCES: [&str; 3] = ["artifact", "secrets", CHILD];

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
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    pub outcome: Result<Value, Box<Failure>>,
    /// What rules see in `outcome` beside status, result and error: `http`, …
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
    /// To be on disk before the run goes on: what it says next refers to them.
    Keep(Vec<Artifact>),
    /// Where the run stands, to be remembered before it goes on.
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
    /// The cursor has moved since it was last told.
    moved: bool,
}

/// What the run does next.
#[derive(Debug)]
enum Stage {
    /// Goes to the cursor of an earlier worker, or to the start.
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
        let mut called = outcome::judged(called);
        // These two name what is kept; what others give may only look so.
        let own = self.task(&self.cursor.at).is_ok_and(|task| OWN_REFERENCES.contains(&task.kind.as_str()));
        let source = if own { Source::Own } else { Source::Outside };
        match &mut called.outcome {
            Ok(result) => *result = self.shelf.lighten(result.take(), source),
            Err(failure) => failure.details = self.shelf.lighten(failure.details.take(), Source::Outside),
        }
        self.cursor.calls += 1;
        *self.cursor.tries.entry(self.cursor.at.clone()).or_default() += 1;
        self.stage = Stage::Answered { args, called };
    }

    /// What a handle stands for, or why it cannot be known; then the task that reads it cannot be called.
    pub fn opened(&mut self, handle: String, value: Result<Zeroizing<String>, Box<Failure>>) {
        match value {
            Ok(value) => self.opened.put(handle, value),
            Err(failure) => self.fail(*in_task(failure, &self.cursor.at)),
        }
    }

    /// What is to be resolved before it goes on.
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

    /// The report of a run that is ended from outside. What it refers to is kept first: [`Run::take_unkept`].
    #[must_use]
    pub fn report_now(&self, outcome: Outcome) -> Box<Report> {
        Box::new(Report { unit: self.work.unit, outcome, patch: self.cursor.patch() })
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

    fn place(&mut self) -> Result<(), Trouble> {
        self.stage = match &self.work.cursor {
            Some(stored) => {
                let (cursor, child) = Cursor::read(stored).map_err(|error| bad_cursor(&error))?;
                self.cursor = cursor;
                self.task(&self.cursor.at)?;
                child.map_or(Stage::Task, |child| Stage::Returned(outcome::of_child(child)))
            }
            None => {
                self.bind_args()?;
                if self.pipeline.tasks.is_empty() { Stage::Complete } else { Stage::Task }
            }
        };
        Ok(())
    }

    fn bind_args(&mut self) -> Result<(), Trouble> {
        if self.pipeline.args.is_empty() {
            return Ok(());
        }
        let view = View::new(&self.work, &self.cursor, &self.shelf);
        let own = render::fields(&view, &self.pipeline.args, "the step's `args`")?;
        let laid = render::laid(view.args().as_deref(), own);
        let laid = self.shelf.settled(Ok(laid))?;
        self.cursor.args = Some(self.shelf.lighten(laid, Source::Outside));
        Ok(())
    }

    fn task(&self, label: &str) -> Result<&Task, Box<Failure>> {
        let found = self.pipeline.tasks.iter().find(|task| task.label == label);
        found.ok_or_else(|| failure::invalid(format!("step `{}` has no task `{label}`", self.work.step)))
    }

    /// The call of the task at the cursor; None when its work is another execution, which is reported.
    fn call(&mut self) -> Result<Option<Call>, Trouble> {
        if self.cursor.calls >= CALLS_MAX {
            let message = format!("the step made {CALLS_MAX} calls; do its jumps ever end?");
            return Err(self.in_task(failure("validation", "LIMIT_EXCEEDED", message).into()));
        }
        let (call, args) = self.configured().map_err(|trouble| self.in_task(trouble))?;
        if call.kind == CHILD {
            self.delegate(&call);
            return Ok(None);
        }
        self.stage = Stage::Asked { args };
        Ok(Some(call))
    }

    fn configured(&self) -> Result<(Call, Value), Trouble> {
        let task = self.task(&self.cursor.at)?;
        let try_number = self.cursor.tries.get(&task.label).copied().unwrap_or_default() + 1;
        let mut view = View::new(&self.work, &self.cursor, &self.shelf);
        view.task = Some((&task.label, try_number));
        // What another execution is given is stored, so no secret is opened for it.
        if task.kind != CHILD {
            view.secrets = Some(Secrets { opened: &self.opened, keychain: &self.keychain });
        }
        let rendered = configured(task, &view);
        let missing = self.opened.take_missing();
        if !missing.is_empty() {
            return Err(Trouble::Opens(missing));
        }
        let (config, args) = rendered?;
        let (label, kind) = (task.label.clone(), task.kind.clone());
        let (timeout_ms, number) = (task.timeout_ms, self.cursor.passed);
        let call = Call { label, kind, config, args: args.clone(), timeout_ms, try_number, number };
        Ok((call, args))
    }

    /// The slot is given back while the other execution runs.
    fn delegate(&mut self, call: &Call) {
        let (definition, inputs) = outcome::child(&call.config);
        let patch = self.cursor.patch();
        self.cursor.unsent.clear();
        let outcome = Outcome::Child { definition, inputs, cursor: self.cursor() };
        self.stage = Stage::Over(Box::new(Report { unit: self.work.unit, outcome, patch }));
    }

    /// The rules of the task see the same arguments as when the other execution was asked for.
    fn returned(&mut self) -> Result<(), Trouble> {
        let (_, args) = self.configured().map_err(|trouble| self.in_task(trouble))?;
        if let Stage::Returned(called) = std::mem::replace(&mut self.stage, Stage::Task) {
            self.answered(args, called);
        }
        Ok(())
    }

    /// The answer meets the task's rules.
    fn fold(&mut self) -> Result<(), Trouble> {
        let action = self.decide().map_err(|trouble| self.in_task(trouble))?;
        let Stage::Answered { called, .. } = std::mem::replace(&mut self.stage, Stage::Task) else {
            return Ok(());
        };
        let label = self.cursor.at.clone();
        self.follow(&action, called).map_err(|failure| in_task(failure, &label))?;
        self.moved = matches!(self.stage, Stage::Task);
        Ok(())
    }

    fn in_task(&self, trouble: Trouble) -> Trouble {
        match trouble {
            Trouble::Failed(failure) => Trouble::Failed(in_task(failure, &self.cursor.at)),
            needs @ (Trouble::Needs(_) | Trouble::Opens(_)) => needs,
        }
    }

    /// Which action follows. The matched rule's writes are made, whatever the action is.
    fn decide(&mut self) -> Result<Action, Trouble> {
        let Stage::Answered { args, called } = &self.stage else { return Ok(Action::Fail) };
        let task = self.task(&self.cursor.at)?;
        let try_number = self.cursor.tries[&task.label];
        let told = outcome::told(called, &task.kind, try_number);
        let mut view = View::new(&self.work, &self.cursor, &self.shelf);
        view.args = Some(args).filter(|args| !args.is_null());
        view.task = Some((&task.label, try_number));
        view.outcome = Some(&told);
        let Some(rule) = matching(task, &view)? else { return Ok(unmatched(task, called)) };
        let place = format!("a rule of task `{}`", task.label);
        let mut set_ctx = render::fields(&view, &rule.set_ctx, &format!("`set_ctx` in {place}"))?;
        let mut set_iter = render::fields(&view, &rule.set_iter, &format!("`set_iter` in {place}"))?;
        let action = rule.action.clone();
        // A task's arguments may hold what was opened for it.
        self.redactor.fields(&mut set_ctx);
        self.redactor.fields(&mut set_iter);
        let (set_ctx, set_iter) = (self.shelf.lighten_all(set_ctx), self.shelf.lighten_all(set_iter));
        self.cursor.write_ctx(set_ctx);
        self.cursor.iter.extend(set_iter);
        Ok(action)
    }

    fn follow(&mut self, action: &Action, called: CallResult) -> Result<(), Box<Failure>> {
        match action {
            Action::Retry { attempts, backoff, delay_ms } => {
                return self.retry(*attempts, *backoff, *delay_ms, called);
            }
            Action::Fail => {
                return Err(called.outcome.err().unwrap_or_else(|| failed_by_rule(&self.cursor.at)));
            }
            Action::Continue | Action::Jump { .. } | Action::Break => self.record(called),
        }
        let next = match action {
            Action::Jump { to } => Some(self.task(to)?.label.clone()),
            Action::Continue => self.following(),
            Action::Break | Action::Retry { .. } | Action::Fail => None,
        };
        match next {
            Some(label) => self.cursor.at = label,
            None => self.stage = Stage::Complete,
        }
        Ok(())
    }

    fn following(&self) -> Option<String> {
        let mut after = self.pipeline.tasks.iter().skip_while(|task| task.label != self.cursor.at);
        after.nth(1).map(|task| task.label.clone())
    }

    fn record(&mut self, called: CallResult) {
        let label = self.cursor.at.clone();
        if let Ok(result) = &called.outcome {
            self.cursor.prev = result.clone();
            self.cursor.tries.remove(&label);
        }
        let kind = self.task(&label).map(|task| task.kind.clone()).unwrap_or_default();
        self.cursor.results.insert(label, outcome::kept(called, &kind));
        self.cursor.passed += 1;
    }

    fn retry(
        &mut self,
        attempts: u32,
        backoff: Backoff,
        delay_ms: u64,
        called: CallResult,
    ) -> Result<(), Box<Failure>> {
        let tries = self.cursor.tries[&self.cursor.at];
        if tries >= attempts {
            return Err(called.outcome.err().unwrap_or_else(|| never_right(&self.cursor.at, tries)));
        }
        // A server that says when it wants to be asked again is not asked earlier.
        let wanted = called.outcome.as_ref().err().and_then(|failure| failure.retry_after_ms).unwrap_or(0);
        let delay_ms = delay(backoff, delay_ms, tries).max(wanted.min(DELAY_MAX_MS));
        if delay_ms <= PAUSE_MAX_MS {
            self.cursor.wait_ms = delay_ms;
            return Ok(());
        }
        let patch = self.cursor.patch();
        self.cursor.unsent.clear();
        let outcome = Outcome::Later { delay_ms, cursor: self.cursor() };
        self.stage = Stage::Over(Box::new(Report { unit: self.work.unit, outcome, patch }));
        Ok(())
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

    fn fail(&mut self, failure: Failure) {
        self.stage = Stage::Over(self.report_now(Outcome::Failed(failure)));
    }
}

/// A task's configuration, and the arguments its other templates and its rules see: its own laid over the step's.
fn configured(task: &Task, view: &View<'_>) -> Result<(Map<String, Value>, Value), Trouble> {
    let place = format!("task `{}`", task.label);
    let is_args = |key: &str| key == "args" || key == "input";
    let (own, others): (Vec<_>, Vec<_>) = task.config.iter().partition(|(key, _)| is_args(key));
    let mut config = Map::new();
    let mut args = view.shelf.settled(Ok(view.args().map(Cow::into_owned)))?;
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

fn matching<'t>(task: &'t Task, view: &View<'_>) -> Result<Option<&'t Rule>, Trouble> {
    let place = format!("task `{}`", task.label);
    for rule in &task.rules {
        let matches = match &rule.when {
            Some(condition) => render::truth(view, condition, &place)?,
            None => true,
        };
        if matches {
            return Ok(Some(rule));
        }
    }
    Ok(None)
}

fn unmatched(task: &Task, called: &CallResult) -> Action {
    match (task.on_unmatched, &called.outcome) {
        (OnUnmatched::Continue, _) | (OnUnmatched::ByOutcome, Ok(_)) => Action::Continue,
        (OnUnmatched::Fail, _) | (OnUnmatched::ByOutcome, Err(_)) => Action::Fail,
    }
}

/// Before the next try, after `tries` of them.
fn delay(backoff: Backoff, delay_ms: u64, tries: u32) -> u64 {
    let factor = match backoff {
        Backoff::Constant => 1,
        Backoff::Linear => u64::from(tries),
        Backoff::Exponential => 1_u64.checked_shl(tries.saturating_sub(1)).unwrap_or(u64::MAX),
    };
    delay_ms.saturating_mul(factor).min(DELAY_MAX_MS)
}

fn failed_by_rule(label: &str) -> Box<Failure> {
    failure(
        "unknown",
        "TASK_REJECTED",
        format!("task `{label}` succeeded, and its policy fails the step then"),
    )
}

fn never_right(label: &str, tries: u32) -> Box<Failure> {
    let message = format!("task `{label}` succeeded {tries} times, and a rule still wants it tried again");
    failure("unknown", "RETRIES_EXHAUSTED", message)
}

fn not_a_pipeline(work: &Work, error: &serde_json::Error) -> Box<Failure> {
    failure::invalid(format!("the work of step `{}` is no pipeline: {error}", work.step))
}

fn bad_cursor(error: &str) -> Box<Failure> {
    let message =
        format!("the checkpoint of an earlier worker cannot be read: {error}; use workers of one version");
    failure("validation", "INVALID_CURSOR", message)
}
