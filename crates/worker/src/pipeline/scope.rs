//! What templates and rules of a pipeline see.
//!
//! Roots: `workload`, `ctx`, `args` (also `input`), `iter`, `steps`, `results`, `execution_id`, `_prev`, `_task`,
//! `_attempt`, and in rules `outcome` (also `output`). A bare name is the innermost thing of that name: the step's own
//! result once it has one, a task's, then as in guards: arguments, context, iteration, workload, results of steps,
//! and `job`, whose `uuid` is the execution's id.

use super::cursor::Cursor;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use windlass_expr::{Scope, of_iteration, of_output};
use windlass_protocol::{Iter, Work};

#[derive(Clone, Copy)]
pub(super) struct View<'r> {
    pub(super) work: &'r Work,
    pub(super) cursor: &'r Cursor,
    pub(super) args: Option<&'r Value>,
    /// The label of the task, and which try of it this is.
    pub(super) task: Option<(&'r str, u32)>,
    pub(super) outcome: Option<&'r Value>,
    /// The step's own result, after its last task.
    pub(super) own: Option<&'r Value>,
}

type Found<'v> = Option<Cow<'v, Value>>;

impl<'r> View<'r> {
    pub(super) fn new(work: &'r Work, cursor: &'r Cursor) -> View<'r> {
        let token = work.scope.args.as_deref();
        View { work, cursor, args: cursor.args.as_ref().or(token), task: None, outcome: None, own: None }
    }

    fn ctx(&self, key: &str) -> Option<&'r Value> {
        self.cursor.ctx.get(key).or_else(|| self.work.scope.ctx.get(key))
    }

    fn whole_ctx(&self) -> Value {
        let mut whole = self.work.scope.ctx.clone();
        whole.extend(self.cursor.ctx.clone());
        Value::Object(whole)
    }

    fn iter(&self, key: &str) -> Found<'r> {
        let written = self.cursor.iter.get(key).map(Cow::Borrowed);
        written.or_else(|| iteration(self.work.scope.iter.as_ref()?, key))
    }

    fn whole_iter(&self) -> Found<'r> {
        let mut whole = Map::new();
        if let Some(iter) = &self.work.scope.iter {
            for key in ["index", "first", "last", &iter.name] {
                let value = iteration(iter, key).map(Cow::into_owned);
                whole.extend(value.map(|value| (key.to_owned(), value)));
            }
        }
        whole.extend(self.cursor.iter.clone());
        (!whole.is_empty()).then(|| Cow::Owned(Value::Object(whole)))
    }

    fn output(&self, name: &str) -> Option<&'r Value> {
        let own = self.own.filter(|_| name == self.work.step);
        own.or_else(|| {
            let mut steps = self.work.scope.steps.iter();
            steps.find(|(step, _)| step == name).map(|(_, output)| &**output)
        })
    }

    fn outputs(&self) -> Value {
        let earlier = self.work.scope.steps.iter().map(|(name, output)| (name.clone(), (**output).clone()));
        let own = self.own.map(|own| (self.work.step.clone(), own.clone()));
        Value::Object(earlier.chain(own).collect())
    }

    fn bare(&self, name: &str) -> Found<'r> {
        let task = self.cursor.results.get(name);
        task.or_else(|| self.args.and_then(|args| args.get(name)))
            .or_else(|| self.ctx(name))
            .map(Cow::Borrowed)
            .or_else(|| self.iter(name))
            .or_else(|| self.work.scope.workload.get(name).map(Cow::Borrowed))
    }

    fn of_output(&self, name: &str, key: Option<&str>) -> Found<'r> {
        of_output(Cow::Borrowed(self.output(name)?), key)
    }
}

fn iteration<'v>(iter: &'v Iter, key: &str) -> Found<'v> {
    let value = match of_iteration(key) {
        _ if key == iter.name => return Some(Cow::Borrowed(&iter.item)),
        "index" => json!(iter.index),
        "first" => json!(iter.index == 0),
        "last" => json!(iter.index + 1 == iter.total?),
        _ => return None,
    };
    Some(Cow::Owned(value))
}

impl Scope for View<'_> {
    fn get(&self, root: &str, key: Option<&str>) -> Found<'_> {
        let value = match (root, key) {
            ("workload", _) => Some(Cow::Borrowed(&*self.work.scope.workload)),
            ("ctx", Some(key)) => return self.ctx(key).map(Cow::Borrowed),
            ("ctx", None) => Some(Cow::Owned(self.whole_ctx())),
            ("args", _) => self.args.map(Cow::Borrowed),
            ("input", _) if self.args.is_some() => self.args.map(Cow::Borrowed),
            ("iter", Some(key)) => return self.iter(key),
            ("iter", None) => self.whole_iter(),
            ("steps", Some(name)) => return self.output(name).map(Cow::Borrowed),
            ("steps", None) => Some(Cow::Owned(self.outputs())),
            ("results", Some(label)) => return self.cursor.results.get(label).map(Cow::Borrowed),
            ("results", None) => Some(Cow::Owned(Value::Object(self.cursor.results.clone()))),
            ("execution_id", _) => Some(Cow::Owned(json!(execution_id(self.work)))),
            ("_prev", _) => Some(Cow::Borrowed(&self.cursor.prev)),
            ("_task", _) => self.task.map(|(label, _)| Cow::Owned(json!(label))),
            ("_attempt", _) => self.task.map(|(_, number)| Cow::Owned(json!(number))),
            ("outcome", _) if self.outcome.is_some() => self.outcome.map(Cow::Borrowed),
            ("output", key) if self.outcome.is_some() => return output(self.outcome?, key),
            (name, _) if self.own.is_some() && name == self.work.step => return self.of_output(name, key),
            (name, _) => match self.bare(name) {
                None if self.output(name).is_some() => return self.of_output(name, key),
                None if name == "job" => Some(Cow::Owned(json!({ "uuid": execution_id(self.work) }))),
                found => found,
            },
        };
        match (value?, key) {
            (value, None) => Some(value),
            (Cow::Borrowed(value), Some(key)) => value.get(key).map(Cow::Borrowed),
            (Cow::Owned(value), Some(key)) => value.get(key).cloned().map(Cow::Owned),
        }
    }
}

/// The outcome under its other name, where `data` stands for `result`.
fn output<'v>(outcome: &'v Value, key: Option<&str>) -> Found<'v> {
    match key {
        Some("data") => outcome.get("result").map(Cow::Borrowed),
        Some(key) => outcome.get(key).map(Cow::Borrowed),
        None => {
            let mut whole = outcome.clone();
            if let (Some(fields), Some(result)) = (whole.as_object_mut(), outcome.get("result")) {
                fields.insert("data".to_owned(), result.clone());
            }
            Some(Cow::Owned(whole))
        }
    }
}

/// As everywhere: 32 hex digits.
pub(crate) fn execution_id(work: &Work) -> String {
    format!("{:032x}", work.unit.execution)
}
