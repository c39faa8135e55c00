//! Actions: operations in order or as a graph, with retries, approvals, manual completion and compensation. Parse, check,
//! lower.

mod check;
mod language;
mod lower;
mod model;
mod parse;
mod policy;
mod schema;
mod view;

use crate::adapters::{ADAPTERS, Adapters, bind_own, check_operation, parse_section};
use crate::bounded::schema_defaults;
use crate::diagnostic::Problems;
use crate::manifest::{Lowered, Manifest};
use crate::playbook::keychain::place;
use crate::read::{Reader, first_line};
use crate::table::{Compiler, Dialect, Document, Identity};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "actions",
    shape: "a workflow of actions has a list `actions`",
    has_shape: |root| root.get("actions").is_some(),
    identity: Identity::ByName,
    view: &view::VIEW,
    nets_since: 0,
    older_nets_are_programs: false,
    compiler: Some(Compiler { schema: schema::schema, compile }),
};

fn compile(document: &Document<'_>, problems: &mut Problems) -> Lowered {
    let Document { root, text: source, marks, outside } = *document;
    let mut reader = Reader { source, problems, marks, own: Adapters::default(), outside };
    let workflow = parse::workflow(root, &mut reader);
    let mut written = Vec::new();
    let section = root.get(ADAPTERS).filter(|node| !node.is_null());
    let own = section.map_or_else(Adapters::default, |node| {
        let place = format!("actions/{}", place(workflow.name.as_deref(), source));
        parse_section(node, &place, &[], &mut reader, &mut written)
    });
    check::check(&workflow, problems);
    for operation in workflow.operations() {
        check_operation(operation, &own, outside, problems);
    }
    let net = if problems.has_errors() { None } else { lower::lower(&workflow, problems) };
    let at = section.map_or(0..0, first_line);
    let net = net.and_then(|net| bind_own(net, &own, &at, problems));
    Lowered {
        name: workflow.name,
        path: workflow.id,
        status: workflow.status,
        net,
        workload: schema_defaults(workflow.inputs.as_ref()),
        manifest: Manifest {
            inputs_schema: workflow.inputs,
            sod_constraints: workflow.constraints,
            ..Manifest::default()
        },
        written,
        ..Lowered::default()
    }
}
