//! Workflows that a workflow starts, as far as it names them by text.

use super::form::wire_id;
use super::language::Kind;
use super::model::{Form, NodeDef, Workflow};
use crate::diagnostic::Problems;
use crate::document::Node;
use crate::manifest::Child;

pub(super) fn children(workflow: &Workflow, source: &str, root: &Node) -> Vec<Child> {
    workflow.nodes.iter().filter_map(|node| child(node, source, root)).collect()
}

fn child(node: &NodeDef, source: &str, root: &Node) -> Option<Child> {
    let Form::Child { definition, .. } = &node.form else { return None };
    debug_assert_eq!(node.kind.kind, Kind::Workflow);
    let path =
        definition.get("path")?.as_str().filter(|path| !path.contains("{{") && wire_id(path).is_none())?;
    let mut problems = Problems::default();
    let hint =
        format!("save it as `{path}.yaml` or `{path}.json` in the folder of this file, or register it first");
    problems.add("E0119", &node.id.at, format!("there is no workflow `{path}`"), hint);
    let nowhere = problems.into_diagnostics(source, Some(root)).pop()?;
    let version = definition.get("version").and_then(|version| u32::try_from(version.as_u64()?).ok());
    Some(Child { path: path.to_owned(), version, nowhere })
}
