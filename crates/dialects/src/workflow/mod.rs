//! Workflows: nodes and edges, as visual editors keep them. Parse, check, lower.

mod children;
mod config;
mod credentials;
mod form;
mod hooks;
mod inputs;
mod language;
mod lower;
mod model;
mod parse;
mod plan;
mod reads;
mod retry;
mod schema;
mod view;

pub use hooks::{HOOK, HOOK_IS_RESERVED, Hook, has_hook, hooks};
pub use inputs::{InputProblem, InputsSchema};
pub use retry::RetryPolicy;
pub use schema::{NodeType, node_types, retry_schema};

pub(crate) use schema::schema;
pub(crate) use view::VIEW;

use crate::diagnostic::Problems;
use crate::document::Node;
use crate::playbook::Lowered;
use crate::read::Reader;
use serde_json::Value;
use windlass_kernel::net::{FailureMode, Retry};
use windlass_secrets::Marks;

/// What a start asks for in place of the definition's settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// For nodes without a policy of their own.
    pub retry: Option<Retry>,
    pub failure_mode: Option<FailureMode>,
}

impl Overrides {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Overrides::default()
    }
}

/// A failure mode by its name in the document.
#[must_use]
pub fn failure_mode(word: &str) -> Option<FailureMode> {
    language::FAILURE_MODES.iter().find(|(known, _)| *known == word).map(|(_, mode)| *mode)
}

pub(crate) fn compile(
    root: &Node,
    source: &str,
    (overrides, marks): (&Overrides, Option<&Marks>),
    problems: &mut Problems,
) -> Lowered {
    let mut reader = Reader { source, problems, marks };
    let mut workflow = parse::workflow(root, &mut reader);
    let plan = plan::plan(&workflow, problems);
    let known = known_names(&workflow);
    credentials::find(&mut workflow, |_, name| known.contains(name), problems);
    reads::check(&workflow, &plan, problems);
    let net = if problems.has_errors() { None } else { lower::lower(&workflow, &plan, overrides, problems) };
    let children = children::children(&workflow, source, root);
    let defaults = inputs::defaults(workflow.inputs.as_ref());
    Lowered {
        failure_mode: workflow.settings.failure,
        name: workflow.name,
        path: None,
        status: workflow.status,
        children,
        net,
        workload: Some(Value::Object(defaults)),
        written: workflow.written,
        inputs_schema: workflow.inputs,
    }
}

/// Names in capitals that are no secrets.
fn known_names(workflow: &model::Workflow) -> std::collections::BTreeSet<String> {
    let names = reads::Names::of(workflow);
    let read = workflow.nodes.iter().flat_map(|node| &node.seen).map(|seen| &seen.read.root);
    read.filter(|root| names.knows(root)).cloned().collect()
}
