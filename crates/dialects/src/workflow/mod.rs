//! Workflows: nodes and edges, as visual editors keep them. Parse, check, lower.

mod children;
mod config;
mod credentials;
mod form;
mod language;
mod lower;
mod model;
mod parse;
mod plan;
mod reads;
mod retry;
mod schema;
mod triggers;
mod view;
mod width;

pub use retry::RetryPolicy;
pub use schema::{NodeType, node_types, retry_schema};

use crate::adapters::Adapters;
use crate::bounded::schema_defaults;
use crate::code::{TaskCode, code_places};
use crate::diagnostic::Problems;
use crate::manifest::{Lowered, Manifest};
use crate::read::Reader;
use crate::table::{Compiler, Dialect, Document, Identity, has_key};
use windlass_kernel::net::FailureMode;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "workflow",
    shape: "a workflow has `nodes` and `edges`",
    has_shape: |root| has_key(root, "nodes"),
    identity: Identity::ByName,
    view: &view::VIEW,
    nets_since: 0,
    older_nets_are_programs: false,
    compiler: Some(Compiler { schema: schema::schema, compile }),
};

/// Returns a failure mode by its name in the document.
#[must_use]
pub fn failure_mode(word: &str) -> Option<FailureMode> {
    language::FAILURE_MODES.iter().find(|(known, _)| *known == word).map(|(_, mode)| *mode)
}

fn compile(document: &Document<'_>, problems: &mut Problems) -> Lowered {
    let Document { root, text: source, marks, outside } = *document;
    let mut reader = Reader { source, problems, marks, own: Adapters::default(), outside };
    let mut workflow = parse::workflow(root, &mut reader);
    let plan = plan::plan(&workflow, problems);
    let known = known_names(&workflow);
    credentials::find(&mut workflow, |_, name| known.contains(name), problems);
    reads::check(&workflow, &plan, problems);
    width::check(&workflow, problems);
    let net = if problems.has_errors() { None } else { lower::lower(&workflow, &plan, problems) };
    let manifest = Manifest {
        hooks: triggers::hooks(root),
        schedules: triggers::schedules(root),
        settings: Some(lower::settings(&workflow)),
        children: children::children(&workflow, source, root),
        code: code_places(source, workflow.nodes.iter().filter_map(node_code)),
        ..Manifest::default()
    };
    Lowered {
        advice: Problems::default(),
        name: workflow.name,
        path: None,
        status: workflow.status,
        net,
        workload: schema_defaults(workflow.inputs.as_ref()),
        manifest: Manifest { inputs_schema: workflow.inputs, ..manifest },
        written: workflow.written,
    }
}

/// Names in capitals that are no secrets.
fn known_names(workflow: &model::Workflow) -> std::collections::BTreeSet<String> {
    let names = reads::Names::of(workflow);
    let read = workflow.nodes.iter().flat_map(|node| &node.seen).map(|seen| &seen.read.root);
    read.filter(|root| names.knows(root)).cloned().collect()
}

/// Returns the code of a node's only task, which has the node's name.
fn node_code(node: &model::NodeDef) -> Option<TaskCode<'_>> {
    let model::Form::Task(task) = &node.form else { return None };
    Some(TaskCode { step: &node.id.text, task: &node.id.text, at: task.code_at.clone()? })
}
