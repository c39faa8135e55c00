//! Triggers of a workflow: the requests that start it, and the inputs that they take.

use super::config::given;
use super::language::{Kind, NodeKind};
use crate::bounded::schema_of;
use crate::document::Node;
use crate::manifest::Hook;
use serde_json::Value;

/// Returns the schema of the inputs: that of the first trigger that has one.
pub(super) fn inputs_schema(root: &Node) -> Option<Value> {
    let nodes = root.get("nodes").map(Node::items).unwrap_or_default();
    let schema = |node| schema_of(given(given(trigger_config(node)?, "manualConfig")?, "inputPayload")?);
    nodes.iter().find_map(schema)
}

/// Returns the requests that start the workflow. Of two triggers with the same request, the stricter one holds.
pub(super) fn hooks(root: &Node) -> Vec<Hook> {
    let mut hooks: Vec<Hook> = Vec::new();
    for hook in root.get("nodes").map(Node::items).unwrap_or_default().iter().filter_map(hook) {
        match hooks.iter_mut().find(|known| known.method == hook.method && known.path == hook.path) {
            Some(known) => known.require_auth |= hook.require_auth,
            None => hooks.push(hook),
        }
    }
    hooks
}

/// Returns the fields of a node that is a trigger, in either shape.
fn trigger_config(node: &Node) -> Option<&Node> {
    let data = given(node, "data").filter(|data| data.is_map());
    let get = |key: &str| data.and_then(|data| given(data, key)).or_else(|| given(node, key));
    let kind = get("nodeType").or_else(|| given(node, "type"))?.text()?;
    NodeKind::of(kind).filter(|kind| kind.kind == Kind::Trigger)?;
    get("config")
}

fn hook(node: &Node) -> Option<Hook> {
    let config = trigger_config(node)?;
    // An editor keeps the fields of a mode that is chosen no longer.
    let mode = given(config, "triggerMode").and_then(Node::text);
    let config = given(config, "webhookConfig").filter(|_| mode.is_none_or(|mode| mode == "webhook"))?;
    let path = given(config, "path")?.text()?.trim_matches('/');
    let method = given(config, "method").and_then(Node::text).unwrap_or("POST");
    let require_auth = given(config, "requireAuth").map(Node::json).and_then(|flag| flag.as_bool());
    let hook = Hook {
        method: method.to_ascii_uppercase(),
        path: path.to_owned(),
        require_auth: require_auth.unwrap_or(true),
    };
    (!hook.path.is_empty()).then_some(hook)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Problems;
    use crate::document;

    fn found(text: &str) -> Vec<Hook> {
        document::parse(text, &mut Problems::default()).map(|root| hooks(&root)).unwrap_or_default()
    }

    fn hooks_of(config: &str) -> Vec<String> {
        let text = format!(
            r#"{{"name": "w", "nodes": [{{"id": "t", "type": "trigger", "config": {config}}}, {{"id": "n", "type": "delay"}}], "edges": []}}"#
        );
        found(&text)
            .iter()
            .map(|hook| format!("{} {} {}", hook.method, hook.path, hook.require_auth))
            .collect()
    }

    #[test]
    fn a_trigger_names_its_path_and_wants_a_token_unless_it_says_otherwise() {
        assert_eq!(hooks_of(r#"{"webhookConfig": {"path": "/orders/new/"}}"#), ["POST orders/new true"]);
        let open = r#"{"triggerMode": "webhook", "webhookConfig": {"path": "x", "method": "PUT", "requireAuth": false}}"#;
        assert_eq!(hooks_of(open), ["PUT x false"]);
        let left_over = r#"{"triggerMode": "manual", "webhookConfig": {"path": "x", "requireAuth": false}}"#;
        assert!(hooks_of(left_over).is_empty());
        for none in ["{}", r#"{"webhookConfig": {"path": "/"}}"#, r#"{"webhookConfig": {"method": "GET"}}"#] {
            assert!(hooks_of(none).is_empty(), "{none}");
        }
        assert!(found("metadata: {name: p}\nworkflow: []").is_empty() && found("{").is_empty());
        let escaped = r#"{"nodes": [{"type": "trigger", "config": {"w\u0065bhookConfig": {"path": "x"}}}]}"#;
        assert!(!found(escaped).is_empty());
    }

    #[test]
    fn of_two_triggers_with_one_path_the_stricter_one_holds() {
        let trigger = |auth| {
            format!(
                r#"{{"type": "trigger", "config": {{"webhookConfig": {{"path": "p", "requireAuth": {auth}}}}}}}"#
            )
        };
        let text = format!(r#"{{"nodes": [{}, {}]}}"#, trigger(false), trigger(true));
        assert_eq!(
            found(&text),
            [Hook { method: "POST".to_owned(), path: "p".to_owned(), require_auth: true }]
        );
    }

    #[test]
    fn the_shape_of_visual_editors_is_read_too() {
        let text = r#"{"nodes": [{"id": "t", "type": "custom", "data": {"nodeType": "trigger",
            "config": {"webhookConfig": {"path": "p"}}}}], "edges": []}"#;
        assert_eq!(found(text)[0].path, "p");
    }
}
