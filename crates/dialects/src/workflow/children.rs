//! Workflows that a workflow starts, as far as it names them by text.

use super::form::wire_id;
use super::language::Kind;
use super::model::{Form, NodeDef, Workflow};
use crate::diagnostic::{ErrorAt, place_errors};
use crate::document::Node;
use crate::manifest::Child;

pub(super) fn children(workflow: &Workflow, source: &str, root: &Node) -> Vec<Child> {
    let (found, errors): (Vec<_>, Vec<_>) = workflow.nodes.iter().filter_map(child).unzip();
    let nowhere = place_errors("E0119", errors, source, root);
    found
        .into_iter()
        .zip(nowhere)
        .map(|((path, version), nowhere)| Child { path, version, nowhere })
        .collect()
}

/// Returns the path and version that a node names, and the error if there is no such workflow.
fn child(node: &NodeDef) -> Option<((String, Option<u32>), ErrorAt)> {
    let Form::Child { definition, .. } = &node.form else { return None };
    debug_assert_eq!(node.kind.kind, Kind::Workflow);
    let path =
        definition.get("path")?.as_str().filter(|path| !path.contains("{{") && wire_id(path).is_none())?;
    let hint =
        format!("save it as `{path}.yaml` or `{path}.json` in the folder of this file, or register it first");
    let error = ErrorAt { at: node.id.at.clone(), message: format!("there is no workflow `{path}`"), hint };
    let version = definition.get("version").and_then(|version| u32::try_from(version.as_u64()?).ok());
    Some(((path.to_owned(), version), error))
}
