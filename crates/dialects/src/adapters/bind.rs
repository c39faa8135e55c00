//! Applies bindings to a Net: each task that is bound is replaced by the task of its binding.

use super::{Adapters, Binding, Unbound, is_built_in};
use crate::diagnostic::Problems;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::Arc;
use windlass_artifact::INLINE_BYTES;
use windlass_expr::Template;
use windlass_kernel::Net;
use windlass_kernel::net::{NetError, Step, Work};
use windlass_protocol::{CHILD_KIND, Key, Pipeline, Task};

/// Maximum bytes that bindings add to one Net. A binding is copied into every task that calls it, and a Net is kept in memory
/// while its executions run.
const ADDED_BYTES_MAX: usize = 16 << 20;

/// Returns the Net with every task bound, or the calls that are not.
pub fn bind(net: &Net, adapters: &Adapters) -> Result<Net, Vec<Unbound>> {
    let bound = apply(net, adapters)?;
    let left = list_unbound(&bound);
    if left.is_empty() { Ok(bound) } else { Err(left) }
}

/// Returns the Net with another length above which values are stored as artifacts. Steps and definitions that set their own keep it.
pub fn limit_inline(net: &Net, bytes: usize) -> Result<Net, NetError> {
    let mut spec = net.spec().clone();
    if spec.policy.limits.inline_bytes == INLINE_BYTES {
        spec.policy.limits.inline_bytes = bytes;
    }
    for step in &mut spec.steps {
        let hook = step.compensation.as_mut().map(|hook| &mut hook.work);
        for work in std::iter::once(&mut step.work).chain(hook) {
            if let Work::Task { spec } = work
                && let Some(pipeline) = Arc::make_mut(spec).as_object_mut()
            {
                pipeline.entry("inline_bytes").or_insert_with(|| bytes.into());
            }
        }
    }
    Net::new(spec)
}

/// Applies the bindings of a definition itself; the adapters file may bind the remaining calls.
pub(crate) fn bind_own(net: Net, own: &Adapters, at: &Range<usize>, problems: &mut Problems) -> Option<Net> {
    if own.is_empty() {
        return Some(net);
    }
    match apply(&net, own) {
        Ok(bound) => Some(bound),
        Err(refused) => {
            refused.iter().for_each(|one| problems.add("E0166", at, one.message(), None));
            None
        }
    }
}

/// Returns the calls of a Net that are not bound, compensation included.
pub(crate) fn list_unbound(net: &Net) -> Vec<Unbound> {
    let mut found = Vec::new();
    for (_, step) in net.steps() {
        for spec in works(step).filter_map(spec_of) {
            let open = kinds(spec).filter(|kind| !is_built_in(kind));
            found.extend(open.map(|kind| unbound(&step.name, kind, None)));
        }
    }
    found
}

/// Returns the work of a step and that of its compensation.
pub(crate) fn works(step: &Step) -> impl Iterator<Item = &Work> {
    std::iter::once(&step.work).chain(step.compensation.iter().map(|hook| &hook.work))
}

fn spec_of(work: &Work) -> Option<&Value> {
    match work {
        Work::Task { spec } => Some(spec),
        Work::Pure { .. } | Work::Child { .. } | Work::Approval { .. } | Work::Delay { .. } => None,
    }
}

/// Returns the kinds of the tasks of a pipeline, without reading the rest of it.
fn kinds(spec: &Value) -> impl Iterator<Item = &str> {
    let tasks = spec.get("tasks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    tasks.iter().filter_map(|task| task.get("kind")?.as_str())
}

fn unbound(step: &str, name: &str, problem: Option<String>) -> Unbound {
    Unbound { step: step.to_owned(), name: name.to_owned(), problem }
}

pub(super) fn apply(net: &Net, adapters: &Adapters) -> Result<Net, Vec<Unbound>> {
    let mut spec = net.spec().clone();
    let mut binder = Binder { adapters, added: 0, refused: Vec::new() };
    for step in &mut spec.steps {
        binder.bind_work(&step.name, &mut step.work);
        if let Some(hook) = &mut step.compensation {
            binder.bind_work(&step.name, &mut hook.work);
        }
    }
    if !binder.refused.is_empty() {
        return Err(binder.refused);
    }
    Net::new(spec).map_err(|error| vec![unbound("", "", Some(error.to_string()))])
}

struct Binder<'a> {
    adapters: &'a Adapters,
    /// Bytes that bindings have added.
    added: usize,
    refused: Vec<Unbound>,
}

impl Binder<'_> {
    fn bind_work(&mut self, step: &str, work: &mut Work) {
        let Work::Task { spec } = work else { return };
        if !kinds(spec).any(|kind| self.adapters.binds(kind)) {
            return;
        }
        // A definition that cannot be read fails when it runs, with or without bindings.
        let Ok(mut pipeline) = Pipeline::deserialize(&**spec) else { return };
        let Pipeline { tasks, keychain, .. } = &mut pipeline;
        for task in tasks {
            let Some(binding) = self.adapters.get(&task.kind) else { continue };
            if let Err(problem) = self.replace(task, binding, keychain) {
                self.refused.push(unbound(step, &task.kind, Some(problem)));
            }
        }
        *spec = Arc::new(serde_json::to_value(pipeline).unwrap_or_default());
    }

    fn replace(&mut self, task: &mut Task, binding: &Binding, keychain: &mut Vec<Key>) -> Result<(), String> {
        self.added += binding.bytes();
        if self.added > ADDED_BYTES_MAX {
            let most = ADDED_BYTES_MAX >> 20;
            return Err(format!(
                "bindings would add more than {most} MiB to the definition; shorten the binding"
            ));
        }
        for key in &binding.keychain {
            match keychain.iter().find(|own| own.name == key.name) {
                None => keychain.push(key.clone()),
                Some(own) if own == key => {}
                Some(_) => {
                    let name = &key.name;
                    return Err(format!(
                        "the definition and the binding have different keychain entries `{name}`; rename one"
                    ));
                }
            }
        }
        let args = Value::Object(arguments(std::mem::take(&mut task.config)));
        if binding.kind == CHILD_KIND && reads_keychain(&args) {
            return Err(
                "its arguments read the keychain, and inputs of another execution are stored".to_owned()
            );
        }
        task.kind.clone_from(&binding.kind);
        task.config.clone_from(&binding.config);
        task.config.insert("args".to_owned(), args);
        task.timeout_ms = task.timeout_ms.into_iter().chain(binding.timeout_ms).min();
        Ok(())
    }
}

/// Returns the arguments of a call: its `args`, and every other field by its name.
fn arguments(mut config: Map<String, Value>) -> Map<String, Value> {
    let mut args = Map::new();
    for key in ["args", "input"] {
        if let Some(Value::Object(given)) = config.shift_remove(key) {
            args.extend(given);
        }
    }
    args.extend(config);
    args
}

fn reads_keychain(args: &Value) -> bool {
    Template::compile(args).is_ok_and(|args| args.reads().iter().any(|read| read.root == "keychain"))
}

impl Binding {
    /// Returns an estimate of the bytes that one use adds to a Net.
    fn bytes(&self) -> usize {
        let config: usize = self.config.iter().map(|(key, value)| key.len() + value.to_string().len()).sum();
        let keychain = serde_json::to_string(&self.keychain).map_or(0, |text| text.len());
        config + keychain + 64
    }
}
