//! Names in expressions that do not exist: typing errors in inputs, steps, events and fields of results. They are null
//! when the playbook runs, so each is a warning at its position.

use super::model::{Playbook, StepDef};
use super::summary;
use crate::document::{Kind, Node};
use crate::names;
use crate::read::Reader;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use windlass_expr::{Expr, NOW, Read, Template, Value};
use windlass_protocol::Tool;

/// Roots that the language defines, with their keys where those are fixed.
const ROOTS: [(&str, &[&str]); 23] = [
    ("workload", &[]),
    ("ctx", &[]),
    ("args", &[]),
    ("input", &[]),
    ("iter", &[]),
    ("steps", &[]),
    ("keychain", &[]),
    ("execution_id", &[]),
    ("job", &["uuid"]),
    ("event", &["name", "step", "payload", "result", "error"]),
    ("loop", &["length", "index", "first", "last", "done"]),
    ("loop_index", &[]),
    ("outcome", OUTCOME),
    ("output", OUTCOME),
    ("result", &[]),
    ("response", &[]),
    ("error", &[]),
    ("results", &[]),
    ("_prev", &[]),
    ("_task", &[]),
    ("_attempt", &[]),
    ("_idempotency_key", &[]),
    (NOW, &[]),
];
const OUTCOME: &[&str] = &["status", "result", "data", "error", "meta", "http", "pg", "py", "ref"];

const LOOP_FIELDS: &[&str] = &["iterations", "succeeded", "failed", "stats", "results", "errors"];
/// Fields of every result.
const EVERY: &[&str] = &["data", "_ref"];

pub(super) fn check(playbook: &Playbook, root: &Node, reader: &mut Reader<'_, '_>) {
    let names = Names::of(playbook, root);
    let nodes = root.get("workflow").map(Node::items).unwrap_or_default();
    for node in nodes {
        let name = node.get("step").and_then(Node::text).unwrap_or_default();
        if let Some(step) = names.steps.get(name) {
            let own = with_step(step);
            for entry in node.entries() {
                names.walk(&entry.value, &entry.key, &own, reader);
            }
        }
    }
}

/// Names that expressions of the playbook can read.
struct Names<'p> {
    /// Declared inputs; none if the playbook declares none, so that any name may be one.
    inputs: BTreeSet<&'p str>,
    steps: BTreeMap<&'p str, &'p StepDef>,
    /// Keys of the context, arguments of tokens and steps, names of items: bare names that have a value somewhere.
    bare: BTreeSet<String>,
    /// Names that may still be compared with others.
    left: Cell<u32>,
}

/// Number of unknown names that are compared with known ones. Larger documents are generated, and generators make no
/// typing errors.
const COMPARED_MAX: u32 = 1_000;

impl<'p> Names<'p> {
    fn of(playbook: &'p Playbook, root: &'p Node) -> Names<'p> {
        let workload = root.get("workload").map(Node::entries).unwrap_or_default();
        let mut bare = BTreeSet::new();
        collect_keys(root, &mut bare);
        if playbook.executor.final_step.is_some() {
            bare.extend(summary::NAMES.map(str::to_owned));
        }
        for step in &playbook.steps {
            bare.extend(step.repeat.iter().map(|repeat| repeat.iterator.clone()));
        }
        Names {
            inputs: workload.iter().map(|entry| entry.key.as_str()).collect(),
            steps: playbook.steps.iter().map(|step| (step.name.text.as_str(), step)).collect(),
            bare,
            left: Cell::new(COMPARED_MAX),
        }
    }

    fn walk(&self, node: &Node, key: &str, tasks: &BTreeSet<&str>, reader: &mut Reader<'_, '_>) {
        match &node.kind {
            Kind::Text(text) => {
                for read in reads(text, key) {
                    self.read(&read, node, tasks, reader);
                }
            }
            Kind::List(items) => items.iter().for_each(|item| self.walk(item, key, tasks, reader)),
            Kind::Map(entries) => {
                entries.iter().for_each(|entry| self.walk(&entry.value, &entry.key, tasks, reader));
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
        }
    }

    fn read(&self, read: &Read, node: &Node, tasks: &BTreeSet<&str>, reader: &mut Reader<'_, '_>) {
        if reader.problems.is_full() {
            return;
        }
        let (root, key) = (read.root.as_str(), read.key.as_deref());
        let found = match key {
            Some(key) if root == "workload" => self.input(key),
            Some(key) if root == "steps" => self.step(key),
            Some(key) if self.steps.contains_key(root) && !tasks.contains(root) => self.field(root, key),
            Some(key) => fixed(root, key).or_else(|| self.root(root, tasks)),
            None => self.root(root, tasks),
        };
        let Some((message, hint)) = found else { return };
        let whole = key.map_or_else(|| root.to_owned(), |key| format!("{root}.{key}"));
        let at = reader.spot(node, &whole);
        reader.error("W0254", &at, message, hint);
    }

    fn input(&self, key: &str) -> Option<Found> {
        if self.inputs.is_empty() || self.inputs.contains(key) {
            return None;
        }
        let hint = near(key, self.inputs.iter().copied())
            .unwrap_or_else(|| format!("declare it: `workload: {{{key}: null}}`"));
        Some((format!("`workload` has no input `{key}`"), Some(hint)))
    }

    fn step(&self, key: &str) -> Option<Found> {
        let is_known = self.steps.contains_key(key);
        (!is_known).then(|| {
            (
                format!("an expression reads step `{key}`, which does not exist"),
                self.hint(key, &BTreeSet::new()),
            )
        })
    }

    /// Checks a field of a result, if the tool determines the fields.
    fn field(&self, step: &str, key: &str) -> Option<Found> {
        let fields = fields(self.steps.get(step)?)?;
        let known = || fields.iter().chain(EVERY).copied();
        (!known().any(|field| field == key))
            .then(|| (format!("the result of step `{step}` has no field `{key}`"), names::hint(key, known())))
    }

    /// Checks a bare name. Callers may send inputs and patches of any name, so only one that is similar to another is
    /// reported.
    fn root(&self, root: &str, tasks: &BTreeSet<&str>) -> Option<Found> {
        let is_known = ROOTS.iter().any(|(name, _)| *name == root)
            || self.inputs.contains(root)
            || self.steps.contains_key(root)
            || self.bare.contains(root)
            || tasks.contains(root);
        let left = self.left.get();
        if is_known || left == 0 {
            return None;
        }
        self.left.set(left - 1);
        let hint = self.hint(root, tasks)?;
        Some((format!("an expression reads `{root}`, and nothing here has that name"), Some(hint)))
    }

    fn hint(&self, wrong: &str, tasks: &BTreeSet<&str>) -> Option<String> {
        let roots = ROOTS.iter().map(|(name, _)| *name).filter(|name| !name.starts_with('_'));
        let all = roots.chain(self.inputs.iter().copied()).chain(self.steps.keys().copied());
        near(wrong, all.chain(tasks.iter().copied()))
    }
}

/// Returns bare names that only expressions of this step have: its tasks.
fn with_step(step: &StepDef) -> BTreeSet<&str> {
    step.tasks.iter().map(|task| task.task.label.as_str()).collect()
}

type Found = (String, Option<String>);

/// Returns the nearest name as a hint. Names of two letters are near to too many others.
fn near<'a>(wrong: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    names::hint(wrong, known).filter(|hint| hint.starts_with("did"))
}

fn fixed(root: &str, key: &str) -> Option<Found> {
    let (_, keys) = ROOTS.iter().find(|(name, keys)| *name == root && !keys.is_empty())?;
    (!keys.contains(&key))
        .then(|| (format!("`{root}` has no `{key}`"), names::hint(key, keys.iter().copied())))
}

/// Returns the fields that the result of a step has, if the tool determines them.
fn fields(step: &StepDef) -> Option<&'static [&'static str]> {
    if step.repeat.is_some() {
        return Some(LOOP_FIELDS);
    }
    // Rules may let a step continue without a result, or with that of another task.
    let [task] = &step.tasks[..] else { return None };
    let fields = Tool::named(&task.task.kind)?.row().result;
    (!fields.is_empty() && task.task.rules.is_empty()).then_some(fields)
}

/// Returns the reads of a text of the document: a condition needs no braces.
fn reads(text: &str, key: &str) -> Vec<Read> {
    if ["when", "retry_when", "stop_when"].contains(&key) {
        return Expr::compile(text).map(|expr| expr.reads().to_vec()).unwrap_or_default();
    }
    if !windlass_expr::has_tags(text) {
        return Vec::new();
    }
    let template = Template::compile(&Value::String(text.to_owned()));
    template.map(|template| template.reads().to_vec()).unwrap_or_default()
}

/// Maps whose keys become bare names: arguments, the context, the iteration.
const NAMED: [&str; 8] = ["args", "input", "set_ctx", "set_iter", "set", "payload", "data", "map"];

fn collect_keys(node: &Node, found: &mut BTreeSet<String>) {
    for entry in node.entries() {
        if NAMED.contains(&entry.key.as_str()) {
            let keys = entry.value.entries().iter().map(|inner| inner.key.as_str());
            found.extend(keys.map(|key| key.rsplit('.').next().unwrap_or(key).to_owned()));
        }
        collect_keys(&entry.value, found);
    }
    node.items().iter().for_each(|item| collect_keys(item, found));
}
