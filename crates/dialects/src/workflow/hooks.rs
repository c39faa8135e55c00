//! Requests that start a workflow, as its triggers ask for them.

use super::config::given;
use super::language::{Kind, NodeKind};
use crate::diagnostic::Problems;
use crate::document::{self, Node};

/// The input that tells of the request, beside those that the request has.
pub const HOOK: &str = "hook";

/// Why nothing but a request to a hook sets [`HOOK`] in a workflow that has one, and what to do instead.
pub const HOOK_IS_RESERVED: &str = "only a request to the workflow's hook sets it, so that expressions can rely on it; \
                                    send the request to the hook, or give the value another name";

/// A request under `/hooks` that starts the workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub method: String,
    /// Without slashes around it.
    pub path: String,
    /// A token is needed unless the trigger says that none is.
    pub require_auth: bool,
}

/// Whether a definition's text has a hook. Cheap for definitions that have none.
#[must_use]
pub fn has_hook(source: &str) -> bool {
    // A name may be written with escapes.
    (source.contains("webhookConfig") || source.contains('\\')) && !hooks(source).is_empty()
}

/// Of a definition's text; none when it is no workflow.
#[must_use]
pub fn hooks(source: &str) -> Vec<Hook> {
    let Some(root) = document::parse(source, &mut Problems::default()) else { return Vec::new() };
    root.get("nodes").map(Node::items).unwrap_or_default().iter().filter_map(hook).collect()
}

fn hook(node: &Node) -> Option<Hook> {
    let data = given(node, "data").filter(|data| data.is_map());
    let get = |key: &str| data.and_then(|data| given(data, key)).or_else(|| given(node, key));
    let kind = get("nodeType").or_else(|| given(node, "type"))?.text()?;
    NodeKind::of(kind).filter(|kind| kind.kind == Kind::Trigger)?;
    let config = get("config")?;
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

    fn told(config: &str) -> Vec<String> {
        let text = format!(
            r#"{{"name": "w", "nodes": [{{"id": "t", "type": "trigger", "config": {config}}}, {{"id": "n", "type": "delay"}}], "edges": []}}"#
        );
        hooks(&text)
            .iter()
            .map(|hook| format!("{} {} {}", hook.method, hook.path, hook.require_auth))
            .collect()
    }

    #[test]
    fn a_trigger_names_its_path_and_wants_a_token_unless_it_says_otherwise() {
        assert_eq!(told(r#"{"webhookConfig": {"path": "/orders/new/"}}"#), ["POST orders/new true"]);
        let open = r#"{"triggerMode": "webhook", "webhookConfig": {"path": "x", "method": "PUT", "requireAuth": false}}"#;
        assert_eq!(told(open), ["PUT x false"]);
        let left_over = r#"{"triggerMode": "manual", "webhookConfig": {"path": "x", "requireAuth": false}}"#;
        assert!(told(left_over).is_empty());
        for none in ["{}", r#"{"webhookConfig": {"path": "/"}}"#, r#"{"webhookConfig": {"method": "GET"}}"#] {
            assert!(told(none).is_empty(), "{none}");
        }
        assert!(hooks("metadata: {name: p}\nworkflow: []").is_empty() && hooks("{").is_empty());
        let escaped = r#"{"nodes": [{"type": "trigger", "config": {"w\u0065bhookConfig": {"path": "x"}}}]}"#;
        assert!(has_hook(escaped) && !has_hook("{}"));
    }

    #[test]
    fn the_shape_of_visual_editors_is_read_too() {
        let text = r#"{"nodes": [{"id": "t", "type": "custom", "data": {"nodeType": "trigger",
            "config": {"webhookConfig": {"path": "p"}}}}], "edges": []}"#;
        assert_eq!(hooks(text)[0].path, "p");
    }
}
