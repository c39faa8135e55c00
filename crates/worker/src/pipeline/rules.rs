//! Rules of tasks: the first rule that matches an outcome determines the next action, and its writes are made.

use super::large_values::RenderError;
use super::scope::View;
use super::{CallResult, DELAY_MAX_MS, PAUSE_MAX_MS, Run, Stage, outcome, render};
use crate::failure::{failure, in_task};
use windlass_protocol::{Action, Backoff, Failure, OnUnmatched, Rule, Task, codes};

impl Run {
    /// Evaluates the rules of the task for an outcome.
    pub(super) fn fold(&mut self) -> Result<(), RenderError> {
        let action = self.decide().map_err(|trouble| self.in_task(trouble))?;
        let Stage::Answered { called, .. } = std::mem::replace(&mut self.stage, Stage::Task) else {
            return Ok(());
        };
        let label = self.cursor.at.clone();
        self.follow(&action, called).map_err(|failure| in_task(failure, &label))?;
        self.moved = matches!(self.stage, Stage::Task);
        Ok(())
    }

    /// Returns the action. The writes of the matched rule are made for every action.
    fn decide(&mut self) -> Result<Action, RenderError> {
        let Stage::Answered { args, called } = &self.stage else { return Ok(Action::Fail) };
        let task = self.task(&self.cursor.at)?;
        let try_number = self.cursor.tries[&task.label];
        let described = outcome::describe(called, self.site(), &task.kind, try_number);
        let mut view = View::new(&self.work, &self.cursor, &self.large_values);
        view.args = Some(args).filter(|args| !args.is_null());
        view.task = Some((&task.label, try_number));
        view.outcome = Some(&described);
        let Some(rule) = matching(task, &view)? else { return Ok(unmatched(task, called)) };
        let place = format!("a rule of task `{}`", task.label);
        let mut set_ctx = render::fields(&view, &rule.set_ctx, &format!("`set_ctx` in {place}"))?;
        let mut set_iter = render::fields(&view, &rule.set_iter, &format!("`set_iter` in {place}"))?;
        let action = rule.action.clone();
        // A task's arguments may contain opened secrets.
        self.redactor.fields(&mut set_ctx);
        self.redactor.fields(&mut set_iter);
        let (set_ctx, set_iter) = (
            self.large_values.replace_large_fields(set_ctx),
            self.large_values.replace_large_fields(set_iter),
        );
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
        let kept = outcome::task_value(called, self.site(), &kind);
        self.cursor.results.insert(label, kept);
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
        // A server that requests a time for the next try is not called earlier.
        let wanted = called.outcome.as_ref().err().and_then(|failure| failure.retry_after_ms).unwrap_or(0);
        let delay_ms = delay(backoff, delay_ms, tries).max(wanted.min(DELAY_MAX_MS));
        if delay_ms <= PAUSE_MAX_MS {
            self.cursor.wait_ms = delay_ms;
            return Ok(());
        }
        self.stage = Stage::Over(self.hand_over(delay_ms));
        Ok(())
    }
}

fn matching<'t>(task: &'t Task, view: &View<'_>) -> Result<Option<&'t Rule>, RenderError> {
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

/// Returns the delay before the next try, after `tries` of them.
fn delay(backoff: Backoff, delay_ms: u64, tries: u32) -> u64 {
    let factor = match backoff {
        Backoff::Constant => 1,
        Backoff::Linear => u64::from(tries),
        Backoff::Exponential => 1_u64.checked_shl(tries.saturating_sub(1)).unwrap_or(u64::MAX),
    };
    delay_ms.saturating_mul(factor).min(DELAY_MAX_MS)
}

fn failed_by_rule(label: &str) -> Box<Failure> {
    failure(codes::TASK_REJECTED, format!("task `{label}` succeeded, and its policy fails the step then"))
}

fn never_right(label: &str, tries: u32) -> Box<Failure> {
    let message = format!(
        "task `{label}` succeeded {tries} times, and a rule still retries it; check the condition of the rule"
    );
    failure(codes::RETRIES_EXHAUSTED, message)
}
