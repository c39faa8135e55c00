//! Triggers of a workflow: the requests and the times that start it, and the inputs that they take.

use super::config::given;
use super::language::{Kind, NodeKind};
use crate::bounded::schema_of;
use crate::document::Node;
use crate::manifest::{Hook, TriggerSchedule};
use serde_json::{Value, json};

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

/// Returns the times at which triggers start the workflow.
pub(super) fn schedules(root: &Node) -> Vec<TriggerSchedule> {
    root.get("nodes").map(Node::items).unwrap_or_default().iter().filter_map(schedule).collect()
}

fn schedule(node: &Node) -> Option<TriggerSchedule> {
    let config = trigger_config(node)?;
    // An editor keeps the fields of a mode that is chosen no longer.
    let mode = given(config, "triggerMode").and_then(Node::text);
    let times = given(config, "scheduleConfig").filter(|_| mode.is_none_or(|mode| mode == "schedule"))?;
    let text = |key: &str| given(times, key).and_then(Node::text);
    let kind = text("type").or_else(|| text("cronExpression").map(|_| "cron"));
    let schedule = match kind.or_else(|| text("onceDate").map(|_| "once")) {
        Some("cron") => json!({ "kind": "cron", "expr": text("cronExpression") }),
        Some("once") => json!({ "kind": "once", "at": text("onceDate") }),
        // Counted from a fixed time, so that a new version does not begin the interval again.
        _ => {
            json!({ "kind": "interval", "every_seconds": interval_seconds(times), "anchor_at": "1970-01-01T00:00:00Z" })
        }
    };
    let node = given(node, "id").and_then(Node::text)?.to_owned();
    Some(TriggerSchedule { node, timezone: text("timezone").map(str::to_owned), schedule })
}

fn interval_seconds(times: &Node) -> Option<u64> {
    let unit = match given(times, "intervalUnit").and_then(Node::text)? {
        "seconds" => 1,
        "minutes" => 60,
        "hours" => 3_600,
        "days" => 86_400,
        "weeks" => 604_800,
        _ => return None,
    };
    given(times, "intervalValue")?.json().as_u64()?.checked_mul(unit)
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
    fn a_trigger_has_the_times_of_its_mode() {
        let times = |config: &str| {
            let text = format!(r#"{{"nodes": [{{"id": "t", "type": "trigger", "config": {config}}}]}}"#);
            let root = document::parse(&text, &mut Problems::default()).expect("a document");
            schedules(&root).pop().map(|one| (one.timezone, one.schedule))
        };
        let cron = r#"{"triggerMode": "schedule", "scheduleConfig": {"type": "cron", "cronExpression": "0 6 * * *", "timezone": "Asia/Tokyo"}}"#;
        let expected = json!({ "kind": "cron", "expr": "0 6 * * *" });
        assert_eq!(times(cron), Some((Some("Asia/Tokyo".to_owned()), expected)));
        let every = |unit: &str| {
            let config = format!(r#"{{"scheduleConfig": {{"intervalValue": 2, "intervalUnit": "{unit}"}}}}"#);
            times(&config).map(|(_, schedule)| schedule["every_seconds"].clone())
        };
        assert_eq!(every("minutes"), Some(json!(120)));
        assert_eq!(every("weeks"), Some(json!(1_209_600)));
        assert_eq!(every("years"), Some(Value::Null), "refused where it is stored");
        let once = r#"{"scheduleConfig": {"onceDate": "2030-01-01T00:00:00Z"}}"#;
        assert_eq!(times(once).map(|(_, schedule)| schedule["kind"].clone()), Some(json!("once")));
        let left_over =
            r#"{"triggerMode": "manual", "scheduleConfig": {"type": "cron", "cronExpression": "x"}}"#;
        assert_eq!((times(left_over), times("{}")), (None, None));
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
