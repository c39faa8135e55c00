//! Playbooks: steps with pipelines of tools, routed by tokens. Parse, check, lower.

mod ambiguous;
mod check;
mod children;
pub(crate) mod keychain;
pub(crate) mod language;
mod lower;
mod model;
mod parse;
mod pure;
mod schema;
mod view;
mod workbook;

pub use children::Child;

use crate::diagnostic::Problems;
use crate::document::Node;
use crate::read::Reader;
use crate::source::Written;
use model::Playbook;
use serde_json::Value;
use windlass_kernel::Net;
use windlass_kernel::net::FailureMode;
use windlass_secrets::Marks;

pub(crate) use schema::schema;
pub(crate) use view::VIEW;

#[derive(Debug, Default)]
pub(crate) struct Lowered {
    /// As the definition says it, for those who start it.
    pub(crate) failure_mode: Option<FailureMode>,
    pub(crate) name: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) status: Option<&'static str>,
    pub(crate) children: Vec<Child>,
    pub(crate) net: Option<Net>,
    pub(crate) workload: Option<Value>,
    pub(crate) written: Vec<Written>,
    /// JSON Schema that the inputs of a start must fit.
    pub(crate) inputs_schema: Option<Value>,
}

pub(crate) fn compile(root: &Node, source: &str, marks: Option<&Marks>, problems: &mut Problems) -> Lowered {
    let mut reader = Reader { source, problems, marks };
    let mut playbook = parse::playbook(root, &mut reader);
    workbook::inline(&mut playbook, reader.problems);
    check::check(&playbook, reader.problems);
    ambiguous::check(&playbook, root, reader.problems);
    keychain::check(&playbook, reader.problems);
    children::check(&playbook, reader.problems);
    let net = if problems.has_errors() { None } else { lower::lower(&playbook, problems) };
    let children = children::children(&playbook, source, root);
    let Playbook { name, path, workload, written, .. } = playbook;
    Lowered {
        failure_mode: None,
        name,
        path,
        status: None,
        children,
        net,
        workload: Some(Value::Object(workload)),
        written,
        inputs_schema: None,
    }
}
