//! Checks of the whole document: the order of the actions, their dependencies, and the reads of their inputs.

use super::model::{Action, Input, Workflow};
use crate::ancestors::Ancestors;
use crate::cycles::unorderable;
use crate::diagnostic::Problems;
use crate::names;
use crate::read::Name;
use std::collections::{BTreeMap, BTreeSet};
use windlass_expr::NOW;

/// Roots of the outputs of actions, by action.
pub(super) const OUTPUTS: [&str; 2] = ["actions", "steps"];

/// Names that only a compensation reads: the failure of the run, and the key of the call.
const OF_HOOKS: [&str; 2] = ["failure", "idempotencyKey"];
/// Roots of the inputs of a run.
const INPUTS: [&str; 2] = ["inputs", "workload"];
/// Other names that an input may read.
const OTHERS: [&str; 4] = ["execution_id", "job", "range", NOW];

/// Dependencies of one workflow, of all actions together.
const DEPENDENCIES_MAX: usize = 20_000;
/// Actions named in a message about a cycle.
const NAMED_MAX: usize = 5;

/// Positions of the actions by their ids.
pub(super) type Index<'w> = BTreeMap<&'w str, usize>;

pub(super) fn index(workflow: &Workflow) -> Index<'_> {
    // The first of two actions with the same id is meant.
    let places = workflow.actions.iter().enumerate().rev();
    places.map(|(place, action)| (action.id.text.as_str(), place)).collect()
}

pub(super) fn check(workflow: &Workflow, problems: &mut Problems) {
    let index = index(workflow);
    check_order(workflow, problems);
    check_ids(workflow, problems);
    check_dependencies(workflow, &index, problems);
    // What runs before an action is known only if the graph is sound.
    if !problems.has_errors() {
        let before = predecessors(workflow, &index);
        for (place, action) in workflow.actions.iter().enumerate() {
            let reads = Reads { workflow, index: &index, before: before.as_ref(), action: place };
            reads.check(&action.input, false, problems);
            if let Some(compensation) = &action.compensation {
                reads.check(&compensation.input, true, problems);
            }
        }
    }
}

/// Reports the first action out of order, because those after it follow from it.
fn check_order(workflow: &Workflow, problems: &mut Problems) {
    for (action, expected) in workflow.actions.iter().zip(1..) {
        let Some((order, at)) = &action.order else { return };
        if *order != expected {
            let message = format!(
                "action `{}`: actions must be ordered by 'order' with contiguous values starting at 1 (expected {expected}, got {order})",
                action.id.text
            );
            let hint = "the list itself is in the order of the actions; move the action, or number it anew";
            return problems.add("E0175", at, message, hint.to_owned());
        }
    }
}

fn check_ids(workflow: &Workflow, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for action in &workflow.actions {
        if !seen.insert(action.id.text.as_str()) {
            let message = format!("action `{}` is defined twice: actionId must be unique", action.id.text);
            problems.add("E0105", &action.id.at, message, "rename one of them".to_owned());
        }
    }
}

fn check_dependencies(workflow: &Workflow, index: &Index<'_>, problems: &mut Problems) {
    let count: usize = workflow.actions.iter().flat_map(|action| &action.depends_on).map(Vec::len).sum();
    if count > DEPENDENCIES_MAX {
        let message = format!("the actions have {count} dependencies, more than {DEPENDENCIES_MAX}");
        let at = workflow.actions.first().map_or(0..0, |action| action.id.at.clone());
        return problems.add("E0143", &at, message, "put parts of it into workflows of their own".to_owned());
    }
    for action in &workflow.actions {
        let mut seen = BTreeSet::new();
        for name in action.depends_on.iter().flatten() {
            check_dependency(action, name, index, problems);
            if !seen.insert(name.text.as_str()) {
                let message = format!("action `{}` depends on `{}` twice", action.id.text, name.text);
                problems.add("E0176", &name.at, message, "remove one of them".to_owned());
            }
        }
    }
    check_cycles(workflow, index, problems);
}

fn check_dependency(action: &Action, name: &Name, index: &Index<'_>, problems: &mut Problems) {
    if name.text == action.id.text {
        let message = format!("action `{}` depends on itself", action.id.text);
        problems.add("E0176", &name.at, message, "remove it".to_owned());
    } else if !index.contains_key(name.text.as_str()) && !problems.is_full() {
        let message = format!("action `{}` depends on `{}`, which does not exist", action.id.text, name.text);
        problems.add("E0107", &name.at, message, names::hint(&name.text, index.keys().copied()));
    }
}

fn check_cycles(workflow: &Workflow, index: &Index<'_>, problems: &mut Problems) {
    let after = |action: &Action| -> BTreeSet<usize> {
        let names = action.depends_on.iter().flatten().filter(|name| name.text != action.id.text);
        names.filter_map(|name| index.get(name.text.as_str()).copied()).collect()
    };
    let left = unorderable(workflow.actions.iter().map(after).collect());
    let left: Vec<&Name> = left.into_iter().map(|place| &workflow.actions[place].id).collect();
    let Some(first) = left.first() else { return };
    let shown: Vec<String> = left.iter().take(NAMED_MAX).map(|name| format!("`{}`", name.text)).collect();
    let more = if left.len() > NAMED_MAX { ", …" } else { "" };
    let message = format!("the dependencies of {}{more} form a cycle or follow one", shown.join(", "));
    problems.add("E0176", &first.at, message, "remove one of the dependencies".to_owned());
}

/// Returns the actions that have succeeded before each action of a graph starts; None: all that are earlier in the
/// list.
fn predecessors(workflow: &Workflow, index: &Index<'_>) -> Option<Ancestors> {
    let direct = |action: &Action| {
        let names = action.depends_on.iter().flatten();
        names.filter_map(|name| index.get(name.text.as_str()).copied()).collect()
    };
    workflow
        .is_graph()
        .then(|| Ancestors::find(&workflow.actions.iter().map(direct).collect::<Vec<Vec<usize>>>()))
}

/// Check of the names that the input of an action reads.
struct Reads<'c> {
    workflow: &'c Workflow,
    index: &'c Index<'c>,
    before: Option<&'c Ancestors>,
    action: usize,
}

impl Reads<'_> {
    fn check(&self, input: &Input, is_hook: bool, problems: &mut Problems) {
        for seen in &input.reads {
            if problems.is_full() {
                return;
            }
            let (root, key) = (seen.read.root.as_str(), seen.read.key.as_deref());
            match key {
                _ if INPUTS.contains(&root) => self.check_input(key, &seen.at, problems),
                Some(key) if OUTPUTS.contains(&root) => self.check_output(key, is_hook, &seen.at, problems),
                None if OUTPUTS.contains(&root) => {
                    let message = format!("action `{}` reads the outputs of all actions", self.name());
                    problems.add("E0177", &seen.at, message, "name one: `actions.ID.output`".to_owned());
                }
                _ if OTHERS.contains(&root) || is_hook && OF_HOOKS.contains(&root) => {}
                _ => {
                    let message = format!("action `{}` reads `{root}`, which does not exist", self.name());
                    let hint =
                        "an input reads `inputs.NAME`, `actions.ID.output` and `execution_id`".to_owned();
                    problems.add("E0177", &seen.at, message, hint);
                }
            }
        }
    }

    fn name(&self) -> &str {
        &self.workflow.actions[self.action].id.text
    }

    fn check_input(&self, key: Option<&str>, at: &std::ops::Range<usize>, problems: &mut Problems) {
        let properties =
            self.workflow.inputs.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        let (Some(key), Some(properties)) = (key, properties) else { return };
        if !properties.is_empty() && !properties.contains_key(key) {
            let hint = names::hint(key, properties.keys().map(String::as_str));
            problems.add("W0241", at, format!("the inputs have no `{key}`"), hint);
        }
    }

    fn check_output(&self, key: &str, is_hook: bool, at: &std::ops::Range<usize>, problems: &mut Problems) {
        let Some(of) = self.index.get(key).copied() else {
            let message =
                format!("action `{}` reads the output of `{key}`, which does not exist", self.name());
            return problems.add("E0177", at, message, names::hint(key, self.index.keys().copied()));
        };
        let own = is_hook && of == self.action;
        let runs_before = match self.before {
            None => of < self.action,
            Some(before) => before.has(self.action, of),
        };
        if !own && !runs_before {
            let message =
                format!("action `{}` reads the output of `{key}`, which does not run before it", self.name());
            let hint = match self.before {
                None => "read an action that is earlier in the list".to_owned(),
                Some(_) => format!("add `{key}` to its `dependsOn`"),
            };
            problems.add("E0177", at, message, hint);
        }
    }
}
