//! Names that templates and rules of a pipeline can read.
//!
//! Roots: `workload`, `ctx`, `args` (also `input`), `iter`, `steps`, `results` (of tasks; in a final step also of
//! steps), `execution_id`, `_prev`, `_task`, `_attempt`, `_idempotency_key`, and in rules `outcome` (also `output`). A
//! bare name is resolved among the names of the definition, and then, as in guards, among the keys that callers choose:
//! the step's own result once it has one, results of its tasks, arguments, iteration, steps and tasks, `job.uuid`;
//! context, workload. The name of a step or a task without a result is undefined, even if a caller sends a value of
//! that name.
//!
//! In a node of a workflow, `inputs` is the workload, `nodes.NAME.output` equals `steps.NAME`, `nodes.NAME.item` is
//! that of an enclosing loop, and the name of a credential of the node has no other meaning. Other dialects set the
//! root of these outputs in the pipeline: `actions.NAME.output`.

use super::cursor::Cursor;
use super::large_values::LargeValues;
use super::opened::Opened;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use windlass_expr::{NOW, Scope, of_iteration, of_output};
use windlass_protocol::{Iter, Work, idempotency_key};

#[derive(Clone, Copy)]
pub(super) struct View<'r> {
    pub(super) work: &'r Work,
    pub(super) cursor: &'r Cursor,
    pub(super) large_values: &'r LargeValues,
    pub(super) args: Option<&'r Value>,
    /// Label of the task, and the number of the try.
    pub(super) task: Option<(&'r str, u32)>,
    pub(super) outcome: Option<&'r Value>,
    /// Result of the step, after its last task.
    pub(super) own: Option<&'r Value>,
    /// Values for the configuration of a tool only.
    pub(super) secrets: Option<Secrets<'r>>,
}

#[derive(Clone, Copy)]
pub(super) struct Secrets<'r> {
    pub(super) opened: &'r Opened,
    pub(super) keychain: &'r Map<String, Value>,
}

type Found<'v> = Option<Cow<'v, Value>>;

impl<'r> View<'r> {
    pub(super) fn new(work: &'r Work, cursor: &'r Cursor, large_values: &'r LargeValues) -> View<'r> {
        let args = cursor.args.as_ref().or(work.scope.args.as_deref());
        View { work, cursor, large_values, args, task: None, outcome: None, own: None, secrets: None }
    }

    /// Returns the arguments as a whole.
    pub(super) fn args(&self) -> Found<'r> {
        self.large_values.resolve(Cow::Borrowed(self.args?))
    }

    fn workload(&self) -> Found<'r> {
        self.large_values.resolve(Cow::Borrowed(&*self.work.scope.workload))
    }

    /// Returns every value of an object, with references replaced.
    fn resolved<'v>(&self, fields: impl Iterator<Item = (&'v String, &'v Value)>) -> Value {
        let whole = |value: &Value| {
            self.large_values.resolve(Cow::Borrowed(value)).map_or(Value::Null, Cow::into_owned)
        };
        Value::Object(fields.map(|(key, value)| (key.clone(), whole(value))).collect())
    }

    /// Returns a field of a value, or of the value that it refers to; `_ref` is the reference itself.
    fn field(&self, value: Cow<'r, Value>, key: Option<&str>) -> Found<'r> {
        let Some(key) = key else { return self.large_values.resolve(value) };
        if key == "_ref" && windlass_artifact::key(&value).is_some() {
            return Some(value);
        }
        match self.large_values.resolve(value)? {
            Cow::Borrowed(value) => value.get(key).map(Cow::Borrowed),
            Cow::Owned(value) => value.get(key).cloned().map(Cow::Owned),
        }
    }

    /// Returns a stored result with its handles replaced. A handle in it was stored by the worker: a value from
    /// outside that looks like one is stored in another place. A value that is read through a reference is not
    /// searched for handles.
    fn revealed(&self, value: &'r Value) -> Cow<'r, Value> {
        match self.secrets {
            Some(secrets) => secrets.opened.reveal(Cow::Borrowed(value)),
            None => Cow::Borrowed(value),
        }
    }

    fn keychain(&self, entry: Option<&str>) -> Found<'r> {
        let keychain = self.secrets?.keychain;
        match entry {
            Some(entry) => keychain.get(entry).map(Cow::Borrowed),
            None => Some(Cow::Owned(Value::Object(keychain.clone()))),
        }
    }

    fn ctx(&self, key: &str) -> Option<&'r Value> {
        self.cursor.ctx.get(key).or_else(|| self.work.scope.ctx.get(key))
    }

    fn whole_ctx(&self) -> Value {
        self.resolved(self.work.scope.ctx.iter().chain(&self.cursor.ctx))
    }

    fn iter(&self, key: &str) -> Found<'r> {
        match self.cursor.iter.get(key) {
            Some(written) => self.field(Cow::Borrowed(written), None),
            None => iteration(self.work.scope.iter.as_ref()?, key),
        }
    }

    /// Returns an item of an outer loop, by its name there.
    fn outer(&self, name: &str) -> Found<'r> {
        let mut around = self.work.scope.around.iter();
        around.find(|(_, iter)| iter.name == name).map(|(_, iter)| Cow::Borrowed(&iter.item))
    }

    /// Returns the current iteration of a loop around the step.
    fn around(&self, name: &str) -> Option<Value> {
        let (_, iter) = self.work.scope.around.iter().find(|(step, _)| step == name)?;
        let last = iter.total.map(|total| iter.index + 1 == total);
        Some(json!({ "item": iter.item, "index": iter.index, "first": iter.index == 0, "last": last }))
    }

    fn whole_iter(&self) -> Found<'r> {
        let mut whole = Map::new();
        if let Some(iter) = &self.work.scope.iter {
            for key in ["index", "first", "last", &iter.name] {
                let value = iteration(iter, key).map(Cow::into_owned);
                whole.extend(value.map(|value| (key.to_owned(), value)));
            }
        }
        let written = self.resolved(self.cursor.iter.iter());
        whole.extend(written.as_object().cloned().unwrap_or_default());
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
        let earlier = self.work.scope.steps.iter().map(|(name, output)| (name, &**output));
        self.resolved(earlier.chain(self.own.map(|own| (&self.work.step, own))))
    }

    /// Returns the results of other steps, for a final step.
    fn summarized_results(&self) -> Found<'r> {
        if self.work.scope.summary { part(self.args(), Some("results")) } else { None }
    }

    /// Returns the results of the earlier tasks, merged over those of other steps.
    fn all_results(&self) -> Value {
        let mut all = self.resolved(self.cursor.results.iter());
        if let (Value::Object(tasks), Some(others)) = (&mut all, self.summarized_results()) {
            let others = others.as_object().into_iter().flatten();
            for (step, firings) in others {
                tasks.entry(step).or_insert_with(|| firings.clone());
            }
        }
        all
    }

    fn is_node(&self) -> bool {
        self.work.spec.get("node").is_some()
    }

    /// Returns the root of outputs in the form ROOT.STEP.output, if the dialect has one.
    fn outputs_root(&self) -> Option<&'r str> {
        let named = self.work.spec.get("outputs_root").and_then(Value::as_str);
        named.or_else(|| self.is_node().then_some("nodes"))
    }

    /// Returns outputs at the paths that a workflow uses.
    fn node(&self, name: &str) -> Found<'r> {
        if let Some(lap) = self.around(name) {
            return Some(Cow::Owned(lap));
        }
        let output = self.field(self.revealed(self.output(name)?), None)?;
        Some(Cow::Owned(json!({ "output": output })))
    }

    fn nodes(&self) -> Value {
        let Value::Object(outputs) = self.outputs() else { return Value::Null };
        outputs.into_iter().map(|(name, output)| (name, json!({ "output": output }))).collect()
    }

    fn is_credential(&self, name: &str) -> bool {
        let node = self.work.spec.get("node");
        node.and_then(|node| node.get("credentials")?.get(name)).is_some()
    }

    /// Returns the value of a credential, for the configuration of a tool only.
    fn secret(&self, name: &str) -> Found<'r> {
        let entry = self.secrets.filter(|_| self.is_node())?.keychain.get(name)?;
        entry.get("value").map(Cow::Borrowed)
    }

    /// Returns the result under its other name, `output`, which also has it as `data`.
    fn outcome(&self, root: &str, key: Option<&str>) -> Found<'r> {
        let outcome = self.outcome?;
        let data = (root == "output").then(|| outcome.get("result")).flatten();
        match key {
            Some("data") if data.is_some() => self.field(Cow::Borrowed(data?), None),
            Some("result") => self.field(Cow::Borrowed(outcome.get("result")?), None),
            Some(key) => outcome.get(key).map(Cow::Borrowed),
            None => {
                let mut whole = outcome.clone();
                for (name, value) in [("result", outcome.get("result")), ("data", data)] {
                    if let Some(value) = value {
                        whole[name] = self.field(Cow::Borrowed(value), None)?.into_owned();
                    }
                }
                Some(Cow::Owned(whole))
            }
        }
    }

    /// Resolves a bare name. Callers choose keys of the context, which can be patched, and of the workload, so these
    /// are last.
    fn bare(&self, name: &str, key: Option<&str>) -> Found<'r> {
        if self.own.is_some() && name == self.work.step {
            return self.of_output(name, key);
        }
        if self.is_credential(name) {
            return part(self.secret(name), key);
        }
        if let Some(value) = self.cursor.results.get(name) {
            return self.field(self.revealed(value), key);
        }
        if let Some(argument) = part(self.args(), Some(name)) {
            return part(Some(argument), key);
        }
        if let Some(value) = self.iter(name).or_else(|| self.outer(name)) {
            return part(Some(value), key);
        }
        if self.output(name).is_some() || self.is_without_result(name) {
            return self.of_output(name, key);
        }
        let job = || Some(Cow::Owned(json!({ "uuid": execution_id(self.work) })));
        if name == "job" && key == Some("uuid") {
            return part(job(), key);
        }
        if let Some(value) = self.ctx(name) {
            return self.field(Cow::Borrowed(value), key);
        }
        let given = part(self.workload(), Some(name));
        part(given.or_else(|| (name == "job").then(job).flatten()), key)
    }

    /// Returns whether the name is of a step of the work or a task of this pipeline that has no output.
    fn is_without_result(&self, name: &str) -> bool {
        let tasks = || self.work.spec.get("tasks").and_then(Value::as_array).into_iter().flatten();
        self.work.scope.absent.iter().any(|step| step == name)
            || tasks().any(|task| task.get("label").and_then(Value::as_str) == Some(name))
    }

    fn of_output(&self, name: &str, key: Option<&str>) -> Found<'r> {
        let output = self.revealed(self.output(name)?);
        match key {
            Some("_ref") if windlass_artifact::key(&output).is_some() => Some(output),
            _ => of_output(self.large_values.resolve(output)?, key),
        }
    }
}

/// Returns a field of a value that is not read as a reference.
fn part<'v>(value: Found<'v>, key: Option<&str>) -> Found<'v> {
    match (value?, key) {
        (value, None) => Some(value),
        (Cow::Borrowed(value), Some(key)) => value.get(key).map(Cow::Borrowed),
        (Cow::Owned(value), Some(key)) => value.get(key).cloned().map(Cow::Owned),
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
        match (root, key) {
            ("keychain", key) => self.keychain(key),
            ("workload", _) => part(self.workload(), key),
            ("inputs", _) if self.outputs_root().is_some() => part(self.workload(), key),
            (root, Some(name)) if self.outputs_root() == Some(root) => self.node(name),
            (root, None) if self.outputs_root() == Some(root) => Some(Cow::Owned(self.nodes())),
            ("ctx", Some(key)) => self.field(Cow::Borrowed(self.ctx(key)?), None),
            ("ctx", None) => Some(Cow::Owned(self.whole_ctx())),
            ("args", _) => part(self.args(), key),
            // In a playbook an input of that name is never used, also if a token has no arguments.
            ("input", _) if self.args.is_some() || !self.is_node() => part(self.args(), key),
            ("iter", Some(key)) => self.iter(key),
            ("iter", None) => self.whole_iter(),
            ("steps", Some(name)) => self.field(self.revealed(self.output(name)?), None),
            ("steps", None) => Some(Cow::Owned(self.outputs())),
            ("results", Some(label)) => match self.cursor.results.get(label) {
                Some(result) => self.field(self.revealed(result), None),
                None => part(self.summarized_results(), key),
            },
            ("results", None) => Some(Cow::Owned(self.all_results())),
            ("execution_id", _) => Some(Cow::Owned(json!(execution_id(self.work)))),
            (NOW, _) => self.work.decided_ms.map(|ms| Cow::Owned(json!(ms))),
            ("_prev", _) => self.field(self.revealed(&self.cursor.prev), key),
            ("_task", _) => self.task.map(|(label, _)| Cow::Owned(json!(label))),
            ("_idempotency_key", _) => {
                Some(Cow::Owned(json!(idempotency_key(self.work.unit, own_key(self.work)))))
            }
            ("_attempt", _) => self.task.map(|(_, number)| Cow::Owned(json!(number))),
            ("outcome" | "output", key) if self.outcome.is_some() => self.outcome(root, key),
            (name, key) => self.bare(name, key),
        }
    }
}

/// Formats the id as everywhere: 32 hex digits.
pub(crate) fn execution_id(work: &Work) -> String {
    format!("{:032x}", work.unit.execution)
}

/// Returns the part of the idempotency key that the definition determines, if there is one.
pub(crate) fn own_key(work: &Work) -> Option<&str> {
    work.spec.get("idempotency").and_then(Value::as_str)
}
