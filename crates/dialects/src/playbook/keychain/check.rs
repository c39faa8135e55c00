//! Checks of the reads of the keychain: only fields of tools may read it, because all other rendered values are stored.

use super::KeyDef;
use crate::diagnostic::Problems;
use crate::names;
use crate::playbook::model::{Playbook, StepDef};
use serde_json::{Map, Value};
use std::ops::Range;
use windlass_expr::{Expr, Read, Template};
use windlass_kernel::net::LoopKind;
use windlass_protocol::{CHILD_KIND, Key, Task};

/// Requests of a pipeline.
const ROOT: &str = "keychain";

/// Entries of a keychain. Every read of one is looked for among all of them.
const ENTRIES_MAX: usize = 1_000;

pub(in crate::playbook) fn check(playbook: &Playbook, problems: &mut Problems) {
    if !check_entries(&playbook.keychain, problems) {
        return;
    }
    let keys: Vec<&KeyDef> = playbook.keychain.iter().collect();
    for step in &playbook.steps {
        for task in &step.tasks {
            let read = read_by_config(&task.task);
            check_declared(&read, &keys, &task.at, problems);
            if task.task.kind == CHILD_KIND && read.iter().any(|read| read.root == ROOT) {
                forbidden(&task.at, "inputs of another playbook", problems);
            }
            if read_by_rules(&task.task).iter().any(|read| read.root == ROOT) {
                forbidden(&task.at, "rules of a task", problems);
            }
        }
        stored(step, problems);
    }
    lone_child(playbook, problems);
}

/// Checks each entry against those before it; false if there are too many to check.
pub(crate) fn check_entries(keychain: &[KeyDef], problems: &mut Problems) -> bool {
    if let Some(beyond) = keychain.get(ENTRIES_MAX) {
        let message = format!("the keychain has more than {ENTRIES_MAX} entries");
        let hint = "divide the playbook, or keep several values in one secret".to_owned();
        problems.add("E0002", &beyond.name.at, message, Some(hint));
        return false;
    }
    for (place, def) in keychain.iter().enumerate() {
        entry(def, &keychain[..place], problems);
    }
    true
}

fn entry(def: &KeyDef, earlier: &[KeyDef], problems: &mut Problems) {
    let at = &def.name.at;
    let name = &def.name.text;
    for read in &def.reads {
        match (read.root.as_str(), &read.key) {
            ("workload" | "execution_id", _) | (ROOT, None) => {}
            (ROOT, Some(key)) if earlier.iter().any(|other| other.name.text == *key) => {}
            (ROOT, Some(key)) => {
                let message =
                    format!("keychain entry `{name}` reads `{key}`, which is not an entry before it");
                let hint = if problems.is_full() {
                    None
                } else {
                    names::hint(key, earlier.iter().map(|other| other.name.text.as_str()))
                };
                problems.add("E0132", at, message, hint.or(Some(format!("put `{key}` before `{name}`"))));
            }
            (other, _) => {
                let message = format!("keychain entry `{name}` cannot read `{other}`");
                let hint = "it can read `workload`, `execution_id` and earlier entries".to_owned();
                problems.add("E0132", at, message, Some(hint));
            }
        }
    }
    if def.reads.iter().any(|read| read.root == "workload") {
        let message = format!("keychain entry `{name}` reads `workload`; inputs are stored as plain text");
        let hint = "store the value with `windlass secrets set NAME` and name it: `kind: secret`".to_owned();
        problems.add("W0230", at, message, Some(hint));
    }
}

/// Checks that templates read only entries that exist.
pub(crate) fn check_declared(
    reads: &[Read],
    keychain: &[&KeyDef],
    at: &Range<usize>,
    problems: &mut Problems,
) {
    let missing = |key: &&str| keychain.iter().all(|def| def.name.text != **key);
    let reads = reads.iter().filter(|read| read.root == ROOT);
    for key in reads.filter_map(|read| read.key.as_deref()).filter(missing) {
        if problems.is_full() && problems.has_errors() {
            return;
        }
        let declared = keychain.iter().map(|def| def.name.text.as_str());
        let hint = names::hint(key, declared).unwrap_or_else(|| {
            format!("declare it: `keychain: [{{name: {key}, kind: secret}}]`, and store it with `windlass secrets set {key}`")
        });
        problems.add("E0132", at, format!("the keychain has no entry `{key}`"), Some(hint));
    }
}

/// Checks templates that the kernel evaluates, or whose values the worker stores.
fn stored(step: &StepDef, problems: &mut Problems) {
    let is_key = |read: &&Read| read.root == ROOT;
    let at = &step.name.at;
    if step.args.reads.iter().any(|read| is_key(&read)) {
        forbidden(at, "`args` of a step", problems);
    }
    if step.set_ctx.reads.iter().any(|read| is_key(&read)) {
        forbidden(at, "`set_ctx`", problems);
    }
    let admit = step.admit.iter().flat_map(|admit| &admit.rules).filter_map(|rule| rule.when.as_ref());
    if admit.flat_map(Expr::reads).any(|read| is_key(&read)) {
        forbidden(at, "admission rules", problems);
    }
    if let Some(LoopKind::ForEach { items }) = step.repeat.as_ref().map(|repeat| &repeat.kind)
        && items.reads().iter().any(|read| is_key(&read))
    {
        forbidden(at, "the list of a loop", problems);
    }
    for arc in &step.arcs {
        let guard = arc.guard.iter().flat_map(Expr::reads);
        let args = arc.args.iter().flat_map(Template::reads);
        if guard.chain(args).any(|read| is_key(&read)) {
            forbidden(&arc.to.at, "guards and arguments of arcs", problems);
        }
    }
}

fn forbidden(at: &Range<usize>, place: &str, problems: &mut Problems) {
    let hint = "read it in the field of the tool that needs it: `{{ keychain.NAME.FIELD }}`".to_owned();
    problems.add(
        "E0133",
        at,
        format!("{place} cannot read the keychain: their values are stored"),
        Some(hint),
    );
}

/// Refuses a keychain in a step that only starts another execution: it has no worker that could resolve it.
fn lone_child(playbook: &Playbook, problems: &mut Problems) {
    let Some(step) = playbook.entry().filter(|_| !playbook.keychain.is_empty()) else { return };
    if let [task] = &step.tasks[..]
        && task.task.kind == CHILD_KIND
    {
        let message = format!(
            "step `{}` begins the playbook with another one, before the keychain is resolved",
            step.name.text
        );
        let hint = "put a step before it, `tool: {kind: noop}`".to_owned();
        problems.add("E0133", &step.name.at, message, Some(hint));
    }
}

/// Returns the entries that a step's pipeline carries: those that its tools read and those that these read, in the
/// keychain's order. The first step carries all of them, so that a missing one is reported before a task runs.
pub(in crate::playbook) fn carried(playbook: &Playbook, step: &StepDef) -> Vec<Key> {
    let keys: Vec<&KeyDef> = playbook.keychain.iter().collect();
    let is_entry = playbook.entry().is_some_and(|entry| std::ptr::eq(entry, step));
    entries_of(&keys, step.tasks.iter().map(|task| &task.task.config), is_entry)
}

/// Returns the entries that fields of a tool read, with those that these read, in the keychain's order.
pub(crate) fn needed(keychain: &[&KeyDef], config: &Map<String, Value>) -> Vec<Key> {
    entries_of(keychain, std::iter::once(config), false)
}

fn entries_of<'c>(
    keychain: &[&KeyDef],
    configs: impl Iterator<Item = &'c Map<String, Value>> + Clone,
    all: bool,
) -> Vec<Key> {
    let read: Vec<Read> = configs.clone().flat_map(reads).collect();
    let mut wanted: Vec<String> = configs.flat_map(named).collect();
    wanted.extend(read.iter().filter(|read| read.root == ROOT).filter_map(|read| read.key.clone()));
    let whole = all || read.iter().any(|read| read.root == ROOT && read.key.is_none());
    let mut kept = Vec::new();
    // In reverse order: an entry reads earlier ones only.
    for def in keychain.iter().rev() {
        if whole || wanted.contains(&def.name.text) {
            kept.push(def.key.clone());
            wanted.extend(
                def.reads.iter().filter(|read| read.root == ROOT).filter_map(|read| read.key.clone()),
            );
        }
    }
    kept.reverse();
    kept
}

fn read_by_config(task: &Task) -> Vec<Read> {
    reads(&task.config)
}

fn read_by_rules(task: &Task) -> Vec<Read> {
    let conditions = task.rules.iter().filter_map(|rule| Expr::compile(rule.when.as_deref()?).ok());
    let mut found: Vec<Read> = conditions.flat_map(|condition| condition.reads().to_vec()).collect();
    found.extend(task.rules.iter().flat_map(|rule| [reads(&rule.set_ctx), reads(&rule.set_iter)].concat()));
    found
}

fn reads(fields: &Map<String, Value>) -> Vec<Read> {
    // Errors of expressions were reported when they were read.
    Template::compile(&Value::Object(fields.clone())).map_or_else(|_| Vec::new(), |t| t.reads().to_vec())
}

/// Reads `auth: NAME`, or `auth: {credential: NAME}`.
fn named(config: &Map<String, Value>) -> Option<String> {
    let auth = config.get("auth")?;
    let name =
        auth.as_str().or_else(|| ["credential", "secret"].iter().find_map(|key| auth.get(*key)?.as_str()));
    name.map(str::to_owned)
}
