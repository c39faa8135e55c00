//! Stored secrets that a node reads. Templates read one by its name: `{{ API_KEY }}`.

use super::config::given;
use super::model::{Form, NodeDef, Workflow};
use crate::diagnostic::Problems;
use crate::document::{Entry, Node};
use crate::read::{Reader, first_line};
use crate::source::Written;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use windlass_artifact::SECRET;
use windlass_secrets::check_name;

/// Reads `credentials: {NAME: SECRET}`.
pub(super) fn declared(config: &Node, what: &str, reader: &mut Reader<'_, '_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for Entry { key, value, .. } in given(config, "credentials").map(Node::entries).unwrap_or_default() {
        let Some(secret) = reader.text(value, &format!("`{key}` in `credentials` of {what}")) else {
            continue;
        };
        // The name of a secret may have braces around it, as in a template.
        let secret = super::config::bare(secret);
        if check_name(secret).is_err() {
            let message = format!("`{secret}` cannot be the name of a secret");
            let hint = "store it with `windlass secrets set NAME`, and write the name here".to_owned();
            reader.error("E0131", &first_line(value), message, hint);
        }
        found.insert(key.clone(), secret.to_owned());
    }
    found
}

/// Returns a configuration in its stored form: with handles in place of secrets.
pub(super) fn without(config: &Node, written: &[Written]) -> Map<String, Value> {
    fn kept(node: &Node, written: &[Written]) -> Value {
        if let Some(found) = written.iter().find(|found| found.at == node.at) {
            return json!({ SECRET: found.secret });
        }
        if !node.items().is_empty() {
            return node.items().iter().map(|item| kept(item, written)).collect();
        }
        if !node.entries().is_empty() {
            let entries = node.entries().iter().map(|entry| (entry.key.clone(), kept(&entry.value, written)));
            return Value::Object(entries.collect());
        }
        node.json()
    }
    kept(config, written).as_object().cloned().unwrap_or_default()
}

/// Returns whether a name is in capitals, like the name of a stored secret.
pub(super) fn looks_like_one(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Adds those that a node reads without having declared them. `known` says what else a name may be.
pub(super) fn find(workflow: &mut Workflow, known: impl Fn(&NodeDef, &str) -> bool, problems: &mut Problems) {
    for place in 0..workflow.nodes.len() {
        let node = &workflow.nodes[place];
        let reads = node.seen.iter().filter(|seen| !node.credentials.contains_key(&seen.read.root));
        let read: Vec<_> = reads
            .filter(|seen| looks_like_one(&seen.read.root) && !known(node, &seen.read.root))
            .map(|seen| (seen.read.root.clone(), seen.at.clone()))
            .collect();
        if let (false, [(name, at), ..]) = (matches!(node.form, Form::Task(_)), &read[..]) {
            let message = format!("node `{}` cannot read the secret `{name}`", node.id.text);
            let hint =
                "values that this type of node reads are stored; read the secret in the node that needs it"
                    .to_owned();
            problems.add("E0133", at, message, hint);
            continue;
        }
        let names = read.into_iter().map(|(name, _)| (name.clone(), name));
        workflow.nodes[place].credentials.extend(names);
    }
}
