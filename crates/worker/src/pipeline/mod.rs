//! The pipeline runner: a machine without IO. It says which tool to call, gets what came of it, and says what is next.
//!
//! ```text
//! begin ─▶ advance ─▶ Call ─▶ answer ─▶ (checkpoint) ─▶ advance ─▶ Wait ─▶ advance ─▶ … ─▶ Report
//! ```
//! Everything a run has learned is in its cursor: a run that begins with it goes on as if nothing had happened.

mod cursor;
mod outcome;
mod render;
mod scope;

use crate::failure::{self, failure, in_task};
use cursor::Cursor;
use scope::View;
pub(crate) use scope::execution_id;
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_protocol::{Action, Backoff, Failure, OnUnmatched, Outcome, Pipeline, Report, Rule, Task, Work};

/// Calls of one run. A hundred rows a page make a million rows of it; what needs more belongs in a loop, whose
/// iterations are step-runs of their own.
pub const CALLS_MAX: u32 = 10_000;

/// A longer pause gives the slot back and comes due as a timer.
pub const PAUSE_MAX_MS: u64 = 5_000;

/// A growing delay stops here: a month is longer than anybody waits for a retry.
pub const DELAY_MAX_MS: u64 = 30 * 24 * 60 * 60 * 1000;

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
    /// Arguments of the call that is asked for, with the task's own laid over the step's.
    asked: Option<Value>,
    report: Option<Box<Report>>,
}

impl Run {
    /// What cannot begin has a failure as its report.
    #[must_use]
    pub fn begin(work: Work) -> Run {
        let (pipeline, refused) = match Pipeline::deserialize(&*work.spec) {
            Ok(pipeline) => (pipeline, None),
            Err(error) => (Pipeline::default(), Some(not_a_pipeline(&work, &error))),
        };
        let first = pipeline.tasks.first().map_or("", |task| &task.label);
        let cursor = Cursor::start(first);
        let mut run = Run { pipeline, work, cursor, asked: None, report: None };
        let begun = refused.map_or_else(|| run.place(), Err);
        match begun {
            Err(failure) => run.fail(*failure),
            Ok(()) if run.pipeline.tasks.is_empty() => run.complete(),
            Ok(()) => {}
        }
        run
    }

    pub fn advance(&mut self) -> Next {
        if let Some(report) = &self.report {
            return Next::Report(report.clone());
        }
        if self.cursor.wait_ms > 0 {
            return Next::Wait { delay_ms: std::mem::take(&mut self.cursor.wait_ms) };
        }
        match self.call() {
            Ok(call) => Next::Call(Box::new(call)),
            Err(failure) => {
                self.fail(*in_task(failure, &self.cursor.at));
                self.advance()
            }
        }
    }

    /// What the call asked for came to. Without one it means nothing and is dropped.
    pub fn answer(&mut self, called: CallResult) {
        let (Some(args), None) = (self.asked.take(), &self.report) else { return };
        let label = self.cursor.at.clone();
        self.cursor.calls += 1;
        *self.cursor.tries.entry(label.clone()).or_default() += 1;
        let called = outcome::judged(called);
        let followed = self.decide(&args, &called).and_then(|action| self.follow(&action, called));
        if let Err(failure) = followed {
            self.fail(*in_task(failure, &label));
        }
    }

    /// The cursor, when there is something to remember: a call was answered and the run goes on.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Value> {
        (self.report.is_none() && self.cursor.calls > 0).then(|| self.cursor())
    }

    #[must_use]
    pub fn cursor(&self) -> Value {
        self.cursor.stored()
    }

    /// The report of a run that is ended from outside.
    #[must_use]
    pub fn report_now(&self, outcome: Outcome) -> Box<Report> {
        Box::new(Report { unit: self.work.unit, outcome, patch: self.cursor.patch() })
    }

    #[must_use]
    pub fn work(&self) -> &Work {
        &self.work
    }

    #[must_use]
    pub fn tasks(&self) -> usize {
        self.pipeline.tasks.len()
    }

    /// Goes to the cursor of an earlier worker, or to the start.
    fn place(&mut self) -> Result<(), Box<Failure>> {
        if let Some(stored) = &self.work.cursor {
            self.cursor = Cursor::read(stored).map_err(|error| bad_cursor(&error))?;
            return self.task(&self.cursor.at).map(drop);
        }
        if !self.pipeline.args.is_empty() {
            let view = View::new(&self.work, &self.cursor);
            let own = render::fields(&view, &self.pipeline.args, "the step's `args`")?;
            self.cursor.args = Some(render::laid(self.work.scope.args.as_deref(), own));
        }
        Ok(())
    }

    fn task(&self, label: &str) -> Result<&Task, Box<Failure>> {
        let found = self.pipeline.tasks.iter().find(|task| task.label == label);
        found.ok_or_else(|| failure::invalid(format!("step `{}` has no task `{label}`", self.work.step)))
    }

    fn call(&mut self) -> Result<Call, Box<Failure>> {
        if self.cursor.calls >= CALLS_MAX {
            let message = format!("the step made {CALLS_MAX} calls; do its jumps ever end?");
            return Err(failure("validation", "LIMIT_EXCEEDED", message));
        }
        let task = self.task(&self.cursor.at)?;
        let try_number = self.cursor.tries.get(&task.label).copied().unwrap_or_default() + 1;
        let mut view = View::new(&self.work, &self.cursor);
        view.task = Some((&task.label, try_number));
        let (config, args) = configured(task, &view)?;
        let (label, kind) = (task.label.clone(), task.kind.clone());
        let (timeout_ms, number) = (task.timeout_ms, self.cursor.passed);
        let call = Call { label, kind, config, args: args.clone(), timeout_ms, try_number, number };
        self.asked = Some(args);
        Ok(call)
    }

    /// Which action follows. The matched rule's writes are made, whatever the action is.
    fn decide(&mut self, args: &Value, called: &CallResult) -> Result<Action, Box<Failure>> {
        let task = self.task(&self.cursor.at)?;
        let try_number = self.cursor.tries[&task.label];
        let told = outcome::told(called, &task.kind, try_number);
        let mut view = View::new(&self.work, &self.cursor);
        view.args = Some(args).filter(|args| !args.is_null());
        view.task = Some((&task.label, try_number));
        view.outcome = Some(&told);
        let Some(rule) = matching(task, &view)? else { return Ok(unmatched(task, called)) };
        let place = format!("a rule of task `{}`", task.label);
        let set_ctx = render::fields(&view, &rule.set_ctx, &format!("`set_ctx` in {place}"))?;
        let set_iter = render::fields(&view, &rule.set_iter, &format!("`set_iter` in {place}"))?;
        let action = rule.action.clone();
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
            None => self.complete(),
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
        let delay_ms = delay(backoff, delay_ms, tries);
        if delay_ms <= PAUSE_MAX_MS {
            self.cursor.wait_ms = delay_ms;
            return Ok(());
        }
        let patch = self.cursor.patch();
        self.cursor.unsent.clear();
        let outcome = Outcome::Later { delay_ms, cursor: self.cursor() };
        self.report = Some(Box::new(Report { unit: self.work.unit, outcome, patch }));
        Ok(())
    }

    fn complete(&mut self) {
        let output = outcome::output(&self.pipeline, &self.cursor.prev, &self.cursor.results);
        let mut view = View::new(&self.work, &self.cursor);
        view.own = Some(&output);
        match render::fields(&view, &self.pipeline.set_ctx, "the step's `set_ctx`") {
            Err(failure) => self.fail(*failure),
            Ok(fields) => {
                self.cursor.write_ctx(fields);
                self.report = Some(self.report_now(Outcome::Done { output }));
            }
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.report = Some(self.report_now(Outcome::Failed(failure)));
    }
}

/// A task's configuration, and the arguments its other templates and its rules see: its own laid over the step's.
fn configured(task: &Task, view: &View<'_>) -> Result<(Map<String, Value>, Value), Box<Failure>> {
    let place = format!("task `{}`", task.label);
    let is_args = |key: &str| key == "args" || key == "input";
    let (own, others): (Vec<_>, Vec<_>) = task.config.iter().partition(|(key, _)| is_args(key));
    let mut config = Map::new();
    let mut args = view.args.cloned();
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

fn matching<'t>(task: &'t Task, view: &View<'_>) -> Result<Option<&'t Rule>, Box<Failure>> {
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
