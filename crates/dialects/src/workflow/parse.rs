//! Nodes, edges and settings, in the shape that drawings have and in the flat one.

use super::config::{Checked, given};
use super::form::{Maker, form};
use super::language::{
    DRAWN_EDGE, DRAWN_NODE, EDGE, FAILURE_MODES, NODE, NODE_TYPES, NodeKind, ROOT, SETTINGS, STATUSES,
};
use super::model::{EdgeDef, NodeDef, Settings, Workflow};
use super::{credentials, retry, triggers};
use crate::bounded::TIMEOUT_MAX_MS;
use crate::document::{Entry, Node};
use crate::names;
use crate::playbook::keychain::{place, plain};
use crate::read::{Key, Reader, Unknown, first_line};
use crate::source::Written;

/// Maximum length of the columns that store them.
const ID_MAX: usize = 100;
const NAME_MAX: usize = 255;
/// Nodes and edges of one workflow: what a person can draw, many times over.
const NODES_MAX: usize = 5_000;
const EDGES_MAX: usize = 10_000;

pub(super) fn workflow(root: &Node, reader: &mut Reader<'_, '_>) -> Workflow {
    let mut workflow = Workflow::default();
    let Some(entries) = reader.map(root, "a workflow") else { return workflow };
    reader.known(entries, "the workflow", ROOT, Unknown::Warning);
    workflow.name =
        given(root, "name").and_then(|node| reader.limited(node, "`name` of the workflow", NAME_MAX));
    for key in ["id", "description"] {
        if let Some(node) = given(root, key) {
            let max = if key == "id" { ID_MAX } else { usize::MAX };
            reader.limited(node, &format!("`{key}` of the workflow"), max);
        }
    }
    if let Some(status) = given(root, "status") {
        workflow.status = reader.choice(status, "status", &STATUSES);
    }
    if let Some(node) = given(root, "settings") {
        workflow.settings = settings(node, reader);
    }
    let place = format!("workflow/{}", place(workflow.name.as_deref(), reader.source));
    workflow.nodes = nodes(root, &place, reader, &mut workflow.written);
    workflow.edges = edges(root, reader);
    workflow.inputs = triggers::inputs_schema(root);
    workflow
}

fn settings(node: &Node, reader: &mut Reader<'_, '_>) -> Settings {
    let mut settings = Settings::default();
    let Some(entries) = reader.map(node, "`settings`") else { return settings };
    reader.known(entries, "`settings`", SETTINGS, Unknown::Error);
    if let Some(node) = given(node, "failureMode") {
        settings.failure = reader.choice(node, "failureMode", &FAILURE_MODES);
    }
    if let Some(node) = given(node, "timeout") {
        settings.timeout_ms =
            reader.number_between(node, "`timeout` of `settings`", 1.0, TIMEOUT_MAX_MS).map(|ms| ms as u64);
    }
    if let Some(node) = given(node, "maxParallel") {
        settings.max_parallel = reader.whole(node, "`maxParallel` of `settings`", 1..=100_000);
    }
    if let Some(node) = given(node, "retryPolicy") {
        settings.retry = retry::policy(node, "`retryPolicy` of `settings`", reader);
    }
    settings
}

fn nodes(root: &Node, place: &str, reader: &mut Reader<'_, '_>, written: &mut Vec<Written>) -> Vec<NodeDef> {
    let hint = "write `nodes: [{id: start, type: trigger}, ...]`".to_owned();
    let Some(list) = root.get("nodes") else {
        reader.error("E0104", &first_line(root), "the workflow has no `nodes`", hint);
        return Vec::new();
    };
    let Some(items) = reader.list(list, "`nodes`") else { return Vec::new() };
    if items.is_empty() {
        reader.error("E0104", &first_line(list), "the workflow has no nodes", hint);
    }
    if items.len() > NODES_MAX {
        let message = format!("the workflow has {} nodes, more than {NODES_MAX}", items.len());
        reader.error(
            "E0143",
            &first_line(list),
            message,
            "put parts of it into workflows of their own".to_owned(),
        );
        return Vec::new();
    }
    items.iter().filter_map(|item| node(item, place, reader, written)).collect()
}

/// Object with the fields of a node that are not for drawing: `data`, or the node itself.
struct Parts<'n> {
    node: &'n Node,
    data: Option<&'n Node>,
}

impl<'n> Parts<'n> {
    fn get(&self, keys: &[&str]) -> Option<&'n Node> {
        let inner = keys.iter().find_map(|key| given(self.data?, key));
        inner.or_else(|| keys.iter().find_map(|key| given(self.node, key)))
    }
}

fn node(
    item: &Node,
    place: &str,
    reader: &mut Reader<'_, '_>,
    written: &mut Vec<Written>,
) -> Option<NodeDef> {
    let entries = reader.map(item, "a node")?;
    let Some(id) = given(item, "id") else {
        reader.error("E0102", &first_line(item), "a node has no `id`", "add `id: ...`".to_owned());
        return None;
    };
    reader.limited(id, "`id` of a node", ID_MAX)?;
    let id = reader.name(id, "`id` of a node")?;
    let what = format!("node `{}`", id.text);
    drawn(entries, &what, DRAWN_NODE, NODE, reader);
    let data = given(item, "data").filter(|data| reader.map(data, &format!("`data` of {what}")).is_some());
    if let Some(data) = data {
        drawn(data.entries(), &format!("`data` of {what}"), DRAWN_NODE, NODE, reader);
    }
    let found = Parts { node: item, data };
    let kind = kind(&found, item, &what, reader)?;
    let title = found.get(&["label", "name"]);
    let title = title.and_then(|node| reader.limited(node, &format!("`name` of {what}"), NAME_MAX));
    let description = found.get(&["description"]).and_then(Node::text).unwrap_or_default().to_owned();
    let empty = Node { kind: crate::document::Kind::Map(Vec::new()), at: item.at.start..item.at.start };
    let config = found.get(&["config"]).unwrap_or(&empty);
    let mut seen = Vec::new();
    Checked { reader: &mut *reader, seen: &mut seen, what: &what }.config(config, kind.fields);
    let policy = given(config, "retryPolicy")
        .or_else(|| given(config, "retry"))
        .or_else(|| found.get(&["retryPolicy", "retry"]));
    let own = policy.and_then(|node| retry::policy(node, &format!("`retryPolicy` of {what}"), reader));
    let timeout = given(config, "timeoutMs").or_else(|| found.get(&["timeoutMs"]));
    let timeout_ms = timeout
        .and_then(|node| reader.number_between(node, &format!("`timeoutMs` of {what}"), 1.0, TIMEOUT_MAX_MS))
        .map(|ms| ms as u64);
    let earlier = written.len();
    let maker = Maker {
        reader: &mut *reader,
        written: &mut *written,
        config,
        place: plain(&format!("{place}/{}", id.text)),
        keychain: Vec::new(),
        what: &what,
    };
    let form = form(kind.kind, maker);
    let credentials = credentials::declared(config, &what, reader);
    Some(NodeDef {
        title: title.unwrap_or_else(|| id.text.clone()),
        description,
        kind,
        config: credentials::without(config, &written[earlier..]),
        form,
        seen,
        credentials,
        env: given(config, "env").and_then(|env| env.json().as_object().cloned()).unwrap_or_default(),
        parameters: found.get(&["parameters"]).and_then(crate::bounded::schema_of),
        retry: own,
        timeout_ms,
        id,
    })
}

/// `data.nodeType` before `nodeType` before `type`: drawings use `type` for how a node looks.
fn kind(
    found: &Parts<'_>,
    item: &Node,
    what: &str,
    reader: &mut Reader<'_, '_>,
) -> Option<&'static NodeKind> {
    let known = NODE_TYPES.iter().map(|kind| kind.name);
    let all = format!("known types: {}", known.clone().collect::<Vec<_>>().join(", "));
    let Some(node) =
        found.get(&["nodeType"]).or_else(|| given(item, "type")).or_else(|| found.get(&["type"]))
    else {
        reader.error("E0102", &first_line(item), format!("{what} has no `type`"), all);
        return None;
    };
    let text = reader.text(node, &format!("`type` of {what}"))?;
    let kind = NodeKind::of(text);
    if kind.is_none() {
        let near = names::hint(text, known).filter(|hint| hint.starts_with("did"));
        let hint = near.map_or(all.clone(), |near| format!("{near} {all}"));
        reader.error("E0144", &node.at, format!("there is no node type `{text}`"), hint);
    }
    kind
}

/// Keys that editors write are ignored; unknown keys are reported.
fn drawn(entries: &[Entry], what: &str, drawn: &[&str], keys: &[Key], reader: &mut Reader<'_, '_>) {
    let ours = entries.iter().filter(|entry| !drawn.contains(&entry.key.as_str()));
    reader.known(ours, what, keys, Unknown::Warning);
}

fn edges(root: &Node, reader: &mut Reader<'_, '_>) -> Vec<EdgeDef> {
    let Some(list) = root.get("edges").filter(|list| !list.is_null()) else { return Vec::new() };
    let Some(items) = reader.list(list, "`edges`") else { return Vec::new() };
    if items.len() > EDGES_MAX {
        let message = format!("the workflow has {} edges, more than {EDGES_MAX}", items.len());
        reader.error("E0143", &first_line(list), message, None);
        return Vec::new();
    }
    items.iter().filter_map(|item| edge(item, reader)).collect()
}

fn edge(item: &Node, reader: &mut Reader<'_, '_>) -> Option<EdgeDef> {
    let entries = reader.map(item, "an edge")?;
    drawn(entries, "an edge", DRAWN_EDGE, EDGE, reader);
    if let Some(id) = given(item, "id") {
        reader.limited(id, "`id` of an edge", NAME_MAX)?;
    }
    let mut end = |key: &str| match given(item, key) {
        Some(node) => reader.name(node, &format!("`{key}` of an edge")),
        None => {
            let message = format!("an edge has no `{key}`");
            reader.error("E0102", &first_line(item), message, format!("add `{key}: ID`"));
            None
        }
    };
    let (source, target) = (end("source"), end("target"));
    let handle = given(item, "sourceHandle").and_then(|node| reader.name(node, "`sourceHandle` of an edge"));
    let target_handle = given(item, "targetHandle").and_then(Node::text).map(str::to_owned);
    Some(EdgeDef { source: source?, target: target?, handle, target_handle, at: item.at.clone() })
}
