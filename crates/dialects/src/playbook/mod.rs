//! Playbooks: steps with pipelines of tools, routed by tokens. Parse, check, lower.

mod advice;
mod ambiguous;
mod check;
mod children;
pub(crate) mod keychain;
pub(crate) mod language;
mod lower;
mod model;
mod parse;
mod pure;
mod reads;
mod schema;
mod summary;
mod view;
mod workbook;

use crate::adapters::{ADAPTERS, Adapters, bind_own};
use crate::code::{TaskCode, code_places};
use crate::diagnostic::Problems;
use crate::document::Node;
use crate::manifest::{Lowered, Manifest};
use crate::read::{Reader, first_line};
use crate::table::{Compiler, Dialect, Document, Identity};
use model::{Playbook, StepDef};
pub(crate) use parse::bound_tool;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "playbook",
    shape: "a playbook has a list `workflow` whose entries have a name `step`",
    has_shape,
    identity: Identity::ByName,
    view: &view::VIEW,
    // In earlier versions, values became parts of programs (docs/adr/0025).
    nets_since: 1,
    older_nets_are_programs: true,
    compiler: Some(Compiler { schema: schema::schema, compile }),
};

fn has_shape(root: &Node) -> bool {
    let is_playbook = |kind: &str| kind.eq_ignore_ascii_case("playbook");
    root.get("workflow").is_some() || root.get("kind").and_then(Node::text).is_some_and(is_playbook)
}

fn compile(document: &Document<'_>, problems: &mut Problems) -> Lowered {
    let Document { root, text: source, marks, outside } = *document;
    let mut reader = Reader { source, problems, marks, own: Adapters::default(), outside };
    let mut playbook = parse::playbook(root, &mut reader);
    workbook::inline(&mut playbook, reader.problems);
    check::check(&playbook, reader.problems);
    ambiguous::check(&playbook, root, reader.problems);
    reads::check(&playbook, root, &mut reader);
    keychain::check(&playbook, reader.problems);
    children::check(&playbook, reader.problems);
    let own = std::mem::take(&mut reader.own);
    let net = if problems.has_errors() { None } else { lower::lower(&playbook, problems) };
    let at = root.get(ADAPTERS).map_or(0..0, first_line);
    let net = net.and_then(|net| bind_own(net, &own, &at, problems));
    let mut advice = Problems::default();
    if net.is_some() {
        advice::advise(&playbook, &mut advice);
    }
    let children = children::children(&playbook, source, root);
    let code = code_places(source, playbook.steps.iter().flat_map(task_codes));
    let Playbook { name, path, workload, written, .. } = playbook;
    let manifest = Manifest { children, code, ..Manifest::default() };
    Lowered { name, path, status: None, net, workload, manifest, written, advice }
}

fn task_codes(step: &StepDef) -> impl Iterator<Item = TaskCode<'_>> {
    step.tasks.iter().filter_map(|task| {
        let at = task.code_at.clone()?;
        Some(TaskCode { step: &step.name.text, task: &task.task.label, at })
    })
}
