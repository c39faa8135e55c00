//! Names in expressions: whether there is anything of that name, and whether it has a value by then.

use super::credentials::looks_like_one;
use super::language::Kind;
use super::model::{NodeDef, Workflow};
use super::plan::Plan;
use crate::diagnostic::Problems;
use crate::inputs::HOOK;
use crate::names;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use windlass_expr::{NOW, Read};

/// Roots of outputs, by node.
const OUTPUTS: [&str; 2] = ["nodes", "steps"];

/// Roots that every expression sees.
const ROOTS: [&str; 10] =
    ["inputs", "workload", "nodes", "steps", "ctx", "args", "iter", "execution_id", "job", "keychain"];
/// Names that an iteration, a handled failure and the request of a hook set.
const CONTEXT_ROOTS: [&str; 10] =
    ["index", "first", "last", "_index", "_first", "_last", "loop_index", "error", "range", HOOK];

/// Nodes whose order is looked at; the check asks for each pair.
const ORDERED_MAX: usize = 500;

pub(super) struct Names<'w> {
    index: BTreeMap<&'w str, usize>,
    inputs: BTreeSet<&'w str>,
    iterators: BTreeSet<&'w str>,
    /// Ids by the names that authors write for them where an id is no name.
    dashed: BTreeMap<String, &'w str>,
}

impl<'w> Names<'w> {
    pub(super) fn of(workflow: &'w Workflow) -> Names<'w> {
        let properties = workflow.inputs.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        let index = workflow.nodes.iter().enumerate().map(|(place, node)| (node.id.text.as_str(), place));
        Names {
            index: index.collect(),
            inputs: properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect(),
            iterators: workflow.nodes.iter().filter_map(iterator).collect(),
            dashed: workflow.nodes.iter().rev().filter_map(|node| dashed(&node.id.text)).collect(),
        }
    }

    /// Returns the node that a name with other characters may mean.
    fn near(&self, root: &str) -> Option<&'w str> {
        let begun = format!("{root}-");
        let from = (Bound::Included(begun.as_str()), Bound::Unbounded);
        let longer = self.index.range::<str, _>(from).next().map(|(id, _)| *id);
        self.dashed.get(root).copied().or(longer.filter(|id| id.starts_with(&begun)))
    }

    /// Returns whether something other than a stored secret has the name.
    pub(super) fn knows(&self, root: &str) -> bool {
        ROOTS.contains(&root)
            || root == NOW
            || CONTEXT_ROOTS.contains(&root)
            || self.index.contains_key(root)
            || self.inputs.contains(root)
            || self.iterators.contains(root)
    }

    /// Returns the node whose output is read.
    pub(super) fn node(&self, read: &Read) -> Option<usize> {
        match (OUTPUTS.contains(&read.root.as_str()), &read.key) {
            (true, Some(key)) => self.index.get(key.as_str()).copied(),
            (true, None) => None,
            (false, _) => self.index.get(read.root.as_str()).copied(),
        }
    }
}

/// Returns whether an expression reads the outputs of all nodes.
pub(super) fn reads_all(read: &Read) -> bool {
    OUTPUTS.contains(&read.root.as_str()) && read.key.is_none()
}

/// Returns an id that is not a valid name in the form of one.
fn dashed(id: &str) -> Option<(String, &str)> {
    let name = id.replace(['-', '.', ' '], "_");
    (name != id).then_some((name, id))
}

/// Returns the name of the items of a node's list.
fn iterator(node: &NodeDef) -> Option<&str> {
    let named =
        || node.config.get("iteratorVariable")?.as_str().map(str::trim).filter(|name| !name.is_empty());
    matches!(node.kind.kind, Kind::Loop | Kind::Filter).then(|| named().unwrap_or("item"))
}

pub(super) fn check(workflow: &Workflow, plan: &Plan, problems: &mut Problems) {
    let names = Names::of(workflow);
    let before = (workflow.nodes.len() <= ORDERED_MAX).then(|| before(workflow, plan));
    for (place, node) in workflow.nodes.iter().enumerate() {
        for seen in &node.seen {
            if problems.is_full() {
                return;
            }
            unknown(node, place, &seen.read, &seen.at, &names, plan, problems);
            ambiguous(&seen.read, &seen.at, &names, problems);
            let Some(of) = names.node(&seen.read) else { continue };
            let own = of == place && node.kind.kind == Kind::Loop;
            if let Some(before) = &before
                && !own
                && !plan.on_demand.contains(&place)
                && !plan.on_demand.contains(&of)
            {
                let order = Order { workflow, plan, before };
                order.check(place, of, &seen.at, problems);
            }
        }
    }
}

fn unknown(
    node: &NodeDef,
    place: usize,
    read: &Read,
    at: &std::ops::Range<usize>,
    names: &Names<'_>,
    plan: &Plan,
    problems: &mut Problems,
) {
    let root = read.root.as_str();
    if OUTPUTS.contains(&root) {
        if let Some(key) = read.key.as_deref().filter(|key| !names.index.contains_key(key)) {
            let hint = if problems.is_full() { None } else { names::hint(key, names.index.keys().copied()) };
            problems.add(
                "E0141",
                at,
                format!("an expression reads node `{key}`, which does not exist"),
                hint,
            );
        }
        return;
    }
    if INPUTS.contains(&root) {
        return unknown_input(read, at, names, problems);
    }
    // An agent passes arguments of any name to its tools.
    if names.knows(root) || node.credentials.contains_key(root) || plan.on_demand.contains(&place) {
        return;
    }
    // Only warnings are reported after this.
    if problems.is_full() {
        return;
    }
    let dashed = names.near(root);
    // Without a schema, an input may have any name.
    if names.inputs.is_empty() && dashed.is_none() {
        return;
    }
    let hint = match dashed {
        Some(id) => Some(format!("read a node of that name with `nodes['{id}'].output`")),
        None => names::hint(root, names.index.keys().copied().chain(names.inputs.iter().copied()))
            .filter(|hint| hint.starts_with("did"))
            .or_else(|| Some("an input of that name is also `inputs.NAME`; name inputs in the trigger's `inputPayload`".to_owned())),
    };
    let what = if looks_like_one(root) { "not a known secret" } else { "neither a node nor an input" };
    let message = format!("an expression reads `{root}`, which is {what}");
    problems.add("W0241", at, message, hint);
}

/// Roots of the inputs.
const INPUTS: [&str; 2] = ["inputs", "workload"];

/// Reports an input that the schema does not have.
fn unknown_input(read: &Read, at: &std::ops::Range<usize>, names: &Names<'_>, problems: &mut Problems) {
    let Some(key) = read.key.as_deref() else { return };
    if names.inputs.is_empty() || names.inputs.contains(key) || key == HOOK || problems.is_full() {
        return;
    }
    let hint = names::hint(key, names.inputs.iter().copied());
    problems.add("W0241", at, format!("the inputs have no `{key}`"), hint);
}

/// Reports inputs whose bare name means a node.
fn ambiguous(read: &Read, at: &std::ops::Range<usize>, names: &Names<'_>, problems: &mut Problems) {
    let root = read.root.as_str();
    if names.index.contains_key(root) && names.inputs.contains(root) && !names.iterators.contains(root) {
        let message = format!("`{root}` is an input and a node: `{root}` means the output of the node");
        let hint = format!("write `inputs.{root}` for the input, or rename one of them");
        problems.add("W0250", at, message, hint);
    }
}

struct Order<'o> {
    workflow: &'o Workflow,
    plan: &'o Plan,
    before: &'o [BTreeSet<usize>],
}

impl Order<'_> {
    /// Reports reads of a node that has no output yet or several: one that runs later, in parallel or inside a loop.
    fn check(&self, reader: usize, of: usize, at: &std::ops::Range<usize>, problems: &mut Problems) {
        let name = |place: usize| &self.workflow.nodes[place].id.text;
        let loops_around =
            |place: usize| std::iter::successors(self.plan.region[place], |at| self.plan.region[*at]);
        let body_of_reader = self.plan.region[of] == Some(reader);
        let inside = self.plan.region[of]
            .filter(|around| !body_of_reader && !loops_around(reader).any(|other| other == *around));
        if let Some(around) = inside {
            let message = format!(
                "node `{}` reads `{}`, which runs once per iteration of the loop `{}`",
                name(reader),
                name(of),
                name(around)
            );
            let hint =
                format!("read the results of the iterations: `nodes['{}'].output.results`", name(around));
            problems.add("W0242", at, message, hint);
        } else if !body_of_reader && reader != of && !self.before[reader].contains(&of) {
            let message =
                format!("node `{}` reads `{}`, which does not run before it", name(reader), name(of));
            let hint = format!("add an edge from `{}`, or from something after it", name(of));
            problems.add("W0242", at, message, hint);
        } else if reader == of {
            let message = format!("node `{}` reads its own output, which it does not have yet", name(of));
            let hint = format!("an input of that name is `inputs.{}`", name(of));
            problems.add("W0242", at, message, hint);
        }
    }
}

/// Returns all predecessors of each node, direct and indirect.
fn before(workflow: &Workflow, plan: &Plan) -> Vec<BTreeSet<usize>> {
    let mut into = vec![Vec::new(); workflow.nodes.len()];
    plan.flows.iter().for_each(|flow| into[flow.to].push(flow.from));
    let all = |start: usize| {
        let mut found = BTreeSet::new();
        let mut open = vec![start];
        while let Some(place) = open.pop() {
            open.extend(into[place].iter().filter(|from| found.insert(**from)));
        }
        found
    };
    (0..workflow.nodes.len()).map(all).collect()
}
