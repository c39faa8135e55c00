//! Lowering of the model to the Net.

use super::check::{positions, target};
use super::keychain::carried;
use super::language::Templates;
use super::model::{ArcDef, Executor, Playbook, StepDef, TaskDef};
use super::pure::pure;
use super::summary;
use crate::diagnostic::Problems;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use windlass_expr::{NOW, Read, Template};
use windlass_kernel::net::{
    Finish, Join, JoinArc, Limits, NetSpec, Policy, Recovery, Root, Router, Step, Work,
};
use windlass_kernel::{Net, StepId};
use windlass_protocol::{Action, CHILD_KIND, Key, Pipeline, Task};

/// Lowers a playbook that has been checked: every name in it exists.
pub(super) fn lower(playbook: &Playbook, problems: &mut Problems) -> Option<Net> {
    let ids: Ids<'_> = positions(playbook)
        .into_iter()
        .map(|(name, place)| (name, StepId(u32::try_from(place).unwrap_or(u32::MAX))))
        .collect();
    let results = WantedResults::of(playbook);
    let steps = playbook.steps.iter().map(|def| step(playbook, def, &ids, &results)).collect();
    let refused = match Net::new(NetSpec { steps, policy: policy(playbook, &ids) }) {
        Ok(net) => return Some(net),
        Err(refused) => refused,
    };
    for problem in refused.problems {
        problems.add("E0117", &(0..0), problem.to_string(), None);
    }
    None
}

type Ids<'p> = BTreeMap<&'p str, StepId>;

fn policy(playbook: &Playbook, ids: &Ids<'_>) -> Policy {
    let executor = &playbook.executor;
    let id = |name: &super::model::Name| ids.get(name.text.as_str()).copied();
    Policy {
        join: Join::Each,
        entry: Some(executor.entry_step.as_ref().and_then(id).unwrap_or(StepId(0))),
        finish: executor.final_step.as_ref().and_then(id).map_or(Finish::Nothing, Finish::Step),
        final_failure: executor.final_failure,
        final_reads_firings: summary::is_read(playbook),
        failure: executor.failure,
        end: executor.end,
        recovery: Recovery::ResumeStep,
        no_next_is_error: executor.no_next_is_error,
        complete_with_pending_gates: executor.complete_with_pending_gates,
        editors_only: executor.templates == Templates::Text,
        limits: limits(executor),
        names: BTreeMap::from([("input".to_owned(), Root::Arguments)]),
        ..Policy::default()
    }
}

fn limits(executor: &Executor) -> Limits {
    let usual = Limits::default();
    Limits { inline_bytes: executor.inline_bytes.unwrap_or(usual.inline_bytes), ..usual }
}

fn step(playbook: &Playbook, def: &StepDef, ids: &Ids<'_>, results: &WantedResults<'_>) -> Step {
    let mut step = Step::new(&def.name.text, work(playbook, def));
    if matches!(step.work, Work::Task { .. }) {
        step.reads = reads(def, ids);
        step.clock = def.reads().any(|read| read.root == NOW);
    }
    step.admit.clone_from(&def.admit);
    step.join_all = def.join_all.is_some();
    step.repeat.clone_from(&def.repeat);
    step.collect = def.repeat.is_some() && results.include(&def.name.text);
    step.timeout_ms = def.timeout_ms.or(playbook.executor.timeout_ms);
    step.router = Router {
        mode: def.mode,
        conditional: false,
        arcs: def.arcs.iter().filter_map(|arc| join_arc(arc, ids)).collect(),
    };
    step
}

/// Loops whose results, or whose whole outputs, are read.
struct WantedResults<'p> {
    names: BTreeSet<&'p str>,
    all: bool,
}

impl<'p> WantedResults<'p> {
    fn of(playbook: &'p Playbook) -> WantedResults<'p> {
        let all = summary::mentions_results(playbook);
        let mut wanted = WantedResults { names: BTreeSet::new(), all };
        for read in playbook.steps.iter().flat_map(StepDef::reads) {
            match (read.root.as_str(), read.key.as_deref()) {
                ("steps", None) => wanted.all = true,
                ("steps", Some(key)) => drop(wanted.names.insert(key)),
                (root, None | Some("results" | "data")) => drop(wanted.names.insert(root)),
                (_, Some(_)) => {}
            }
        }
        wanted
    }

    fn include(&self, name: &str) -> bool {
        self.all || self.names.contains(name)
    }
}

fn join_arc(arc: &ArcDef, ids: &Ids<'_>) -> Option<JoinArc> {
    let to = *ids.get(arc.to.text.as_str())?;
    Some(JoinArc { guard: arc.guard.clone(), args: arc.args.clone(), ..JoinArc::to(to) })
}

/// Returns whether a step needs a worker: for a credential, or for large results in a final step, which only workers
/// load.
fn work(playbook: &Playbook, def: &StepDef) -> Work {
    let keychain = carried(playbook, def);
    let alone = if keychain.is_empty() && !summary::reads_firings(playbook, def) {
        pure(def).or_else(|| child(def))
    } else {
        None
    };
    alone.unwrap_or_else(|| Work::task(pipeline(playbook, def, keychain)))
}

/// Returns the work of a step that only starts a playbook; with rules or patches, the start is a task like others.
fn child(def: &StepDef) -> Option<Work> {
    let [TaskDef { task, .. }] = &def.tasks[..] else { return None };
    if task.kind != CHILD_KIND || !task.rules.is_empty() || !def.set_ctx.fields.is_empty() {
        return None;
    }
    let kept = |keys: &[&str]| -> Map<String, Value> {
        keys.iter().filter_map(|key| Some(((*key).to_owned(), task.config.get(*key)?.clone()))).collect()
    };
    let definition = Value::Object(kept(&["path", "catalog_id", "version"]));
    let given = ["args", "input", "payload"].iter().find_map(|key| task.config.get(*key)?.as_object());
    let mut inputs = def.args.fields.clone();
    inputs.extend(given.cloned().unwrap_or_default());
    Some(Work::Child {
        definition: Template::compile(&definition).ok()?,
        inputs: Template::compile(&Value::Object(inputs)).ok()?,
    })
}

fn pipeline(playbook: &Playbook, def: &StepDef, keychain: Vec<Key>) -> Value {
    let is_entry = playbook.entry().is_some_and(|entry| std::ptr::eq(entry, def));
    let labels: Vec<&str> = def.tasks.iter().map(|task| task.task.label.as_str()).collect();
    let tasks = def.tasks.iter().enumerate().map(|(place, task)| resolved(&task.task, &labels, place));
    let pipeline = Pipeline {
        args: def.args.fields.clone(),
        tasks: tasks.collect(),
        set_ctx: def.set_ctx.fields.clone(),
        inline_bytes: def.inline_bytes.or(playbook.executor.inline_bytes),
        unlocks: is_entry && !keychain.is_empty(),
        keychain,
        ..Pipeline::default()
    };
    serde_json::to_value(pipeline).unwrap_or_default()
}

fn resolved(task: &Task, labels: &[&str], place: usize) -> Task {
    let mut task = task.clone();
    for rule in &mut task.rules {
        if let Action::Jump { to } = &mut rule.action
            && let Some(label) = target(to, labels, place)
        {
            label.clone_into(to);
        }
    }
    task
}

/// Returns the steps whose results the templates of the pipeline name.
fn reads(def: &StepDef, ids: &Ids<'_>) -> Vec<StepId> {
    let own = |read: &&Read| read.root != def.name.text;
    let patch = def.set_ctx.reads.iter().filter(own);
    let all = def.tasks.iter().flat_map(|task| &task.reads).chain(&def.args.reads).chain(patch);
    let mut found = BTreeSet::new();
    for read in all {
        match (read.root.as_str(), &read.key) {
            ("steps", None) => found.extend(ids.values().copied()),
            ("steps", Some(key)) => found.extend(ids.get(key.as_str())),
            (root, _) => found.extend(ids.get(root)),
        }
    }
    found.into_iter().collect()
}
