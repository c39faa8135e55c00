//! Names that an expression can read. The roots are `workload`, `ctx`, `args`, `iter`, `event`, `steps`, `execution_id`
//! and the additional names of the policy. A bare name is resolved first among names that the definition and the
//! language define, then among keys that callers choose: args, iteration, steps, parts of the event (`error`, `result`,
//! `response`, `loop`) and of the execution (`job.uuid`); then context, workload. The name of a step without output is
//! undefined, even if a caller sends a value of that name.

use super::Draft;
use crate::ids::{Path, RunId, StepId};
use crate::input::{Need, Rejected};
use crate::net::{Root, Step};
use crate::step_run::{Args, Ctx, RunState, StepRun};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::RefCell;
use windlass_expr::{EvalError, Expr, NOW, Scope, Template, of_iteration, of_output};
use windlass_failure::{Failure, codes};

/// Reason why an expression has no value yet, or why its step fails.
pub(super) enum NoValue {
    Rejected(Rejected),
    /// The expression cannot be evaluated, and the step fails.
    Failed(Box<Failure>),
}

impl NoValue {
    pub(super) fn failed(failure: Failure) -> NoValue {
        NoValue::Failed(Box::new(failure))
    }
}

impl From<Rejected> for NoValue {
    fn from(rejected: Rejected) -> Self {
        NoValue::Rejected(rejected)
    }
}

/// Value of an expression, or the reason why there is none.
pub(super) type Evaluated<T> = Result<T, NoValue>;

/// End of a step-run, as guards see it.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunEnd<'e> {
    Done(&'e Value),
    /// `partial` is the result that the step-run has in spite of its failure.
    Failed {
        failure: &'e Failure,
        partial: Option<&'e Value>,
    },
}

/// The `event` of a guard or an admission rule.
pub(super) enum GuardEvent<'e> {
    /// The event that sent the token: the start, or the end of a step.
    Arrival { step: Option<&'e str>, failed: bool },
    /// The end of the step-run whose arcs are evaluated; `attempt` is the number of its last attempt.
    End { step: &'e Step, attempt: u32, end: RunEnd<'e> },
}

impl<'e> GuardEvent<'e> {
    const KEYS: [&'static str; 5] = ["name", "step", "payload", "result", "error"];

    fn name(&self) -> &'static str {
        match self {
            GuardEvent::Arrival { step: None, .. } => "execution.started",
            GuardEvent::End { step, .. } if step.repeat.is_some() => "loop.done",
            GuardEvent::Arrival { failed: false, .. } | GuardEvent::End { end: RunEnd::Done(_), .. } => {
                "step.done"
            }
            GuardEvent::Arrival { failed: true, .. } | GuardEvent::End { end: RunEnd::Failed { .. }, .. } => {
                "step.failed"
            }
        }
    }

    fn get(&self, key: &str) -> Option<Cow<'_, Value>> {
        match (key, self) {
            ("name", _) => Some(Cow::Owned(json!(self.name()))),
            ("step", GuardEvent::Arrival { step, .. }) => step.map(|step| Cow::Owned(json!(step))),
            ("step", GuardEvent::End { step, .. }) => Some(Cow::Owned(json!(step.name))),
            // A failed loop still has the results of its other iterations.
            (
                "payload" | "result",
                GuardEvent::End {
                    end: RunEnd::Done(output) | RunEnd::Failed { partial: Some(output), .. },
                    ..
                },
            ) => Some(Cow::Borrowed(output)),
            ("payload" | "error", GuardEvent::End { step, attempt, end: RunEnd::Failed { failure, .. } }) => {
                Some(Cow::Owned(step.describe_failure(failure, *attempt)))
            }
            _ => None,
        }
    }

    /// Returns the counts of an ended loop in the form of `iter`.
    fn ended_loop(&self) -> Option<Value> {
        let GuardEvent::End { step: Step { repeat: Some(_), .. }, .. } = self else { return None };
        let length = self.get("payload")?.get("iterations")?.as_u64()?;
        let index = length.checked_sub(1);
        Some(json!({ "length": length, "index": index, "first": index == Some(0), "done": true }))
    }
}

pub(super) struct View<'d, 'a> {
    draft: &'d Draft<'a>,
    path: Path,
    args: Args,
    ctx: Ctx,
    event: Option<GuardEvent<'d>>,
    /// The loop run and index of the iteration that `iter` describes.
    iteration: Option<(RunId, u32)>,
    /// The arguments are the summary for the final step, with references to large outputs.
    summary: bool,
    needs: RefCell<Vec<Need>>,
    /// The key of an artifact that is missing.
    gone: RefCell<Option<String>>,
}

impl<'d, 'a> View<'d, 'a> {
    pub(super) fn new(draft: &'d Draft<'a>, path: &Path, args: &Args) -> View<'d, 'a> {
        View {
            draft,
            path: path.clone(),
            args: args.clone(),
            ctx: draft.head().ctx.clone(),
            event: None,
            iteration: None,
            summary: false,
            needs: RefCell::default(),
            gone: RefCell::default(),
        }
    }

    pub(super) fn of_run(draft: &'d Draft<'a>, run: &StepRun) -> View<'d, 'a> {
        let mut view = View::new(draft, &run.path, &run.args);
        if let Some(ctx) = &run.ctx {
            view.ctx = ctx.clone();
        }
        view.iteration = draft.state.iteration_of(draft.net, run);
        view.summary = draft.state.reads_summary(draft.net, run);
        view
    }

    pub(super) fn of_token(draft: &'d Draft<'a>, step: StepId, path: &Path, args: &Args) -> View<'d, 'a> {
        let mut view = View::new(draft, path, args);
        view.iteration = draft.state.enclosing_iteration(draft.net, step, path);
        view
    }

    pub(super) fn with_event(mut self, event: GuardEvent<'d>) -> Self {
        self.event = Some(event);
        self
    }

    pub(super) fn with_ctx(mut self, ctx: Ctx) -> Self {
        self.ctx = ctx;
        self
    }

    /// Views the state right after an iteration, while the outputs of its body are available.
    pub(super) fn in_iteration(mut self, of: RunId, index: u32) -> Self {
        self.path = self.path.child(index);
        self.before_iteration(of, index)
    }

    /// Views the state before an iteration: `iter` describes that iteration, and the outputs are those of the one
    /// before.
    pub(super) fn before_iteration(mut self, of: RunId, index: u32) -> Self {
        self.iteration = Some((of, index));
        self
    }

    pub(super) fn is_true(&self, expr: &Expr) -> Evaluated<bool> {
        self.check_needs(expr.truthy(self), || format!("`{}`", expr.written()))
    }

    pub(super) fn render(&self, template: &Template) -> Evaluated<Value> {
        if let Some(constant) = template.constant() {
            return Ok(constant.clone());
        }
        self.check_needs(template.render(self), || self.describe_failing(template))
    }

    /// Describes the first string of a failed template that fails on its own, with its field.
    fn describe_failing(&self, template: &Template) -> String {
        let mut path = Vec::new();
        let found = self.find_failing(template.source(), &mut path);
        // Discards the needs of this search, because it is not part of the decision.
        drop((self.needs.take(), self.gone.take()));
        match (found, path.is_empty()) {
            (Some(text), true) => format!("`{text}`"),
            (Some(text), false) => format!("`{}`, which is `{text}`,", path.join(".")),
            (None, _) => "the whole template".to_owned(),
        }
    }

    /// Returns the first string that fails on its own, and pushes its position to `path`.
    fn find_failing<'t>(&self, value: &'t Value, path: &mut Vec<String>) -> Option<&'t str> {
        let mut within = |name: String, inner: &'t Value| {
            path.push(name);
            let found = self.find_failing(inner, path);
            if found.is_none() {
                path.pop();
            }
            found
        };
        match value {
            Value::String(text) => {
                let fails = Template::compile(value).is_ok_and(|alone| alone.render(self).is_err());
                fails.then_some(text)
            }
            Value::Array(items) => {
                items.iter().enumerate().find_map(|(index, item)| within(index.to_string(), item))
            }
            Value::Object(fields) => fields.iter().find_map(|(name, field)| within(name.clone(), field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    /// Returns the result, unless values were missing: it was computed without them.
    fn check_needs<T>(&self, result: Result<T, EvalError>, source: impl FnOnce() -> String) -> Evaluated<T> {
        let mut needs = self.needs.take();
        if !needs.is_empty() {
            needs.sort();
            needs.dedup();
            return Err(NoValue::Rejected(Rejected::Needs(needs)));
        }
        if let Some(key) = self.gone.take() {
            let message = format!("{} reads a value that no longer exists: {key}", source());
            return Err(NoValue::failed(Failure::new(codes::REFERENCE_NOT_AVAILABLE, message)));
        }
        result.map_err(|error| {
            let message = format!("{} cannot be evaluated: {error}", source());
            NoValue::failed(Failure::new(codes::EXPRESSION_ERROR, message))
        })
    }

    /// Returns the newest output of a step. While its arcs are evaluated, that is the output it just made.
    fn output(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.output_of(self.draft.net.find(name)?, name)
    }

    fn output_of(&self, step: StepId, name: &str) -> Option<Cow<'_, Value>> {
        if let Some(GuardEvent::End { step: ended, end, .. }) = &self.event
            && ended.name == name
        {
            return match end {
                RunEnd::Done(output) => Some(Cow::Borrowed(output)),
                RunEnd::Failed { partial, .. } => partial.map(Cow::Borrowed),
            };
        }
        let run = self.draft.state.latest_run(self.draft.net, step, &self.path)?;
        let fresh = self.draft.fresh.outputs.get(&run);
        match fresh.or_else(|| self.draft.given.values.outputs.get(&run)) {
            Some(value) => Some(Cow::Borrowed(value)),
            None => self.add_need(Need::Output(run)),
        }
    }

    /// Returns the outputs of the given steps as they are stored; steps without one are left out.
    pub(super) fn latest(&self, steps: impl Iterator<Item = StepId>) -> Evaluated<Vec<(String, Value)>> {
        let names = steps.map(|step| &self.draft.net.step(step).name);
        let found = names.filter_map(|name| Some((name.clone(), self.output(name)?.into_owned()))).collect();
        self.check_needs(Ok(found), || "`the body of a loop`".to_owned())
    }

    /// Returns every output, for names that are only known when the expression runs.
    fn outputs(&self) -> Option<Cow<'_, Value>> {
        let names = self.draft.net.steps().map(|(_, step)| step.name.as_str());
        let whole = |name: &str| Some(self.resolve(self.output(name)?)?.into_owned());
        let found = names.filter_map(|name| Some((name.to_owned(), whole(name)?)));
        Some(Cow::Owned(Value::Object(found.collect())))
    }

    /// Returns outputs in the form `nodes.NAME.output`. An enclosing loop has no output yet, and its current
    /// iteration is returned instead.
    fn wrap_outputs(&self, name: Option<&str>) -> Option<Cow<'_, Value>> {
        let wrap = |output: Cow<'_, Value>| json!({ "output": output.into_owned() });
        match name {
            Some(name) => match self.loop_progress(name) {
                Some(iteration) => Some(Cow::Owned(iteration)),
                None => Some(Cow::Owned(wrap(self.resolve(self.output(name)?)?))),
            },
            None => {
                let mut all = self.outputs()?.into_owned();
                let outputs = all.as_object_mut()?.values_mut();
                outputs.for_each(|output| *output = wrap(Cow::Owned(output.take())));
                Some(Cow::Owned(all))
            }
        }
    }

    fn add_need(&self, need: Need) -> Option<Cow<'_, Value>> {
        self.needs.borrow_mut().push(need);
        None
    }

    /// Returns the enclosing iterations, innermost first.
    fn iterations(&self) -> impl Iterator<Item = (RunId, u32)> {
        let state = &self.draft.state;
        std::iter::successors(self.iteration, |(of, _)| state.iteration_of(self.draft.net, state.run(*of)?))
    }

    /// Returns the name of the items of a loop.
    fn item_name(&self, of: RunId) -> Option<&str> {
        let run = self.draft.state.run(of)?;
        self.draft.net.step(run.step).repeat.as_ref().map(|spec| spec.iterator.as_str())
    }

    /// Returns the item of an outer loop by its name.
    fn outer_item(&self, name: &str) -> Option<Cow<'_, Value>> {
        let iteration = self.iterations().skip(1).find(|(of, _)| self.item_name(*of) == Some(name))?;
        self.describe_iteration(iteration, Some(name))
    }

    /// Returns the current iteration of an enclosing loop: `nodes.NAME.item`.
    fn loop_progress(&self, name: &str) -> Option<Value> {
        let step = self.draft.net.find(name)?;
        let (of, index) = self
            .iterations()
            .find(|(of, _)| self.draft.state.run(*of).is_some_and(|run| run.step == step))?;
        let mut progress = self.describe_iteration((of, index), None)?.into_owned();
        progress["item"] = self.describe_iteration((of, index), Some(self.item_name(of)?))?.into_owned();
        Some(progress)
    }

    fn iter(&self, key: Option<&str>) -> Option<Cow<'_, Value>> {
        self.describe_iteration(self.iteration?, key)
    }

    fn describe_iteration(&self, (of, index): (RunId, u32), key: Option<&str>) -> Option<Cow<'_, Value>> {
        let run = self.draft.state.run(of)?;
        let spec = self.draft.net.step(run.step).repeat.as_ref()?;
        let is_known =
            |key: &str| key == spec.iterator || ["index", "first", "last"].contains(&of_iteration(key));
        if !key.is_none_or(is_known) {
            return None;
        }
        let total = if let RunState::Looping(repeat) = &run.state { repeat.total } else { None };
        let item = key.is_none_or(|key| key == spec.iterator).then(|| self.item(of, index)).flatten();
        let mut iter = Map::new();
        iter.insert("index".into(), json!(index));
        iter.insert("first".into(), json!(index == 0));
        iter.insert("last".into(), total.map_or(Value::Null, |total| json!(index + 1 == total)));
        iter.insert(spec.iterator.clone(), item.unwrap_or(json!(index)));
        match key {
            None => Some(Cow::Owned(Value::Object(iter))),
            Some(key) => iter.remove(of_iteration(key)).map(Cow::Owned),
        }
    }

    fn item(&self, of: RunId, index: u32) -> Option<Value> {
        use crate::net::LoopKind;
        let run = self.draft.state.run(of)?;
        let spec = self.draft.net.step(run.step).repeat.as_ref()?;
        if !matches!(spec.kind, LoopKind::ForEach { .. }) {
            return None;
        }
        let fresh = self.draft.fresh.items.get(&of);
        match fresh.or_else(|| self.draft.given.values.items.get(&of)) {
            Some(items) => self.resolve(Cow::Borrowed(items))?.get(index as usize).cloned(),
            None => self.add_need(Need::Items(of)).map(Cow::into_owned),
        }
    }

    /// Resolves a bare name. Keys of the context and of the inputs are last, because callers choose them.
    fn bare_name(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>> {
        if let Some(argument) = field(self.args(), Some(root)) {
            return field(Some(argument), key);
        }
        if let Some(value) = self.iter(Some(root)).or_else(|| self.outer_item(root)) {
            return field(Some(value), key);
        }
        if let Some(step) = self.draft.net.find(root) {
            return match (self.output_of(step, root), key) {
                (Some(output), Some("_ref")) if windlass_artifact::key(&output).is_some() => Some(output),
                (Some(output), key) => of_output(self.resolve(output)?, key),
                (None, key) => field(self.implied(root), key),
            };
        }
        if self.is_implied(root, key) {
            return field(self.implied(root), key);
        }
        if let Some(value) = self.ctx.get(root) {
            return field(self.resolve(Cow::Borrowed(value)), key);
        }
        field(field(self.inputs(), Some(root)).or_else(|| self.implied(root)), key)
    }

    fn args(&self) -> Option<Cow<'_, Value>> {
        let args = self.resolve(Cow::Borrowed(self.args.as_deref()?))?;
        if !self.summary {
            return Some(args);
        }
        let mut summary = args.into_owned();
        for output in windlass_artifact::summary_references(&mut summary) {
            *output = self.resolve(Cow::Owned(output.take())).map_or(Value::Null, Cow::into_owned);
        }
        Some(Cow::Owned(summary))
    }

    fn inputs(&self) -> Option<Cow<'_, Value>> {
        self.resolve(Cow::Borrowed(&*self.draft.head().inputs))
    }

    fn whole_ctx(&self) -> Value {
        let value =
            |value: &'_ Value| self.resolve(Cow::Borrowed(value)).map_or(Value::Null, Cow::into_owned);
        Value::Object(self.ctx.iter().map(|(key, held)| (key.clone(), value(held))).collect())
    }

    /// Returns a field of the event, with references resolved.
    fn event(&self, key: &str) -> Option<Cow<'_, Value>> {
        self.resolve(self.event.as_ref()?.get(key)?)
    }

    fn whole_event(&self) -> Option<Cow<'_, Value>> {
        self.event.as_ref()?;
        let found = GuardEvent::KEYS
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), self.event(key)?.into_owned())));
        Some(Cow::Owned(Value::Object(found.collect())))
    }

    /// Returns whether a name means a part of the event or of the execution, even if a caller sent a value of that
    /// name.
    fn is_implied(&self, root: &str, key: Option<&str>) -> bool {
        match root {
            "error" | "result" | "response" | "loop" => matches!(self.event, Some(GuardEvent::End { .. })),
            "job" => key == Some("uuid"),
            _ => false,
        }
    }

    /// Returns a part of the event or of the execution by its short name.
    fn implied(&self, root: &str) -> Option<Cow<'_, Value>> {
        match root {
            "error" => self.event("error"),
            "result" | "response" => self.event("payload"),
            "loop" => self.event.as_ref()?.ended_loop().map(Cow::Owned),
            "job" => Some(Cow::Owned(json!({ "uuid": self.draft.head().id.to_string() }))),
            _ => None,
        }
    }

    /// Returns values with their references replaced; those that are missing are requested at once.
    pub(super) fn resolve_all<'v>(&self, values: impl Iterator<Item = &'v Value>) -> Evaluated<Vec<Value>> {
        let resolve = |value| self.resolve(Cow::Borrowed(value)).map_or(Value::Null, Cow::into_owned);
        let found = values.map(resolve).collect();
        self.check_needs(Ok(found), || "a join".to_owned())
    }

    /// Replaces a reference by the value it refers to, which is loaded like any other need.
    fn resolve<'v>(&'v self, value: Cow<'v, Value>) -> Option<Cow<'v, Value>> {
        let Some(key) = windlass_artifact::key(&value) else { return Some(value) };
        let fresh = self.draft.fresh.artifacts.get(key);
        match fresh.or_else(|| self.draft.given.values.artifacts.get(key)) {
            Some(Some(value)) => Some(Cow::Borrowed(value)),
            Some(None) => {
                *self.gone.borrow_mut() = Some(key.to_owned());
                None
            }
            None => self.add_need(Need::Artifact(key.to_owned())),
        }
    }
}

/// Returns a field of a value that has been resolved, even if it looks like a reference.
fn field<'v>(value: Option<Cow<'v, Value>>, key: Option<&str>) -> Option<Cow<'v, Value>> {
    match (value?, key) {
        (value, None) => Some(value),
        (Cow::Borrowed(value), Some(key)) => value.get(key).map(Cow::Borrowed),
        (Cow::Owned(value), Some(key)) => value.get(key).cloned().map(Cow::Owned),
    }
}

impl Scope for View<'_, '_> {
    fn get(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>> {
        let root = match self.draft.net.policy().names.get(root) {
            Some(Root::Inputs) => "workload",
            Some(Root::Arguments) => "args",
            Some(Root::Outputs) => return self.wrap_outputs(key),
            None => root,
        };
        match (root, key) {
            ("workload", key) => field(self.inputs(), key),
            ("ctx", Some(key)) => self.resolve(Cow::Borrowed(self.ctx.get(key)?)),
            ("ctx", None) => Some(Cow::Owned(self.whole_ctx())),
            ("args", key) => field(self.args(), key),
            ("iter", key) => self.iter(key),
            ("event", Some(key)) => self.event(key),
            ("event", None) => self.whole_event(),
            ("steps", Some(name)) => self.resolve(self.output(name)?),
            ("steps", None) => self.outputs(),
            ("execution_id", _) => Some(Cow::Owned(json!(self.draft.head().id.to_string()))),
            (NOW, _) => Some(Cow::Owned(json!(self.draft.at.0))),
            (root, key) => self.bare_name(root, key),
        }
    }
}
