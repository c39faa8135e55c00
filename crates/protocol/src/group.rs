//! Tasks that workers outside of the server claim, by the name of their group.

use crate::tools::WORKER_KIND;
use serde_json::Value;

/// Maximum length of the name of a group.
pub const GROUP_NAME_MAX: usize = 64;

/// The group and the operation of a task, which are literals of the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupTask<'s> {
    pub group: &'s str,
    pub operation: &'s str,
    /// Whether the task has a time limit of its own.
    pub is_limited: bool,
}

/// Returns the group that claims a unit of work; None: workers of the server run it. `cursor` is the position of its
/// pipeline, where an earlier worker left one.
#[must_use]
pub fn group_task<'s>(spec: &'s Value, cursor: Option<&Value>) -> Option<GroupTask<'s>> {
    let tasks = spec.get("tasks")?.as_array()?;
    let position = cursor.map(|cursor| cursor.get("then").unwrap_or(cursor));
    let task = match position.and_then(|cursor| cursor.get("at")).and_then(Value::as_str) {
        Some(label) => tasks.iter().find(|task| task.get("label").and_then(Value::as_str) == Some(label))?,
        None => tasks.first()?,
    };
    if task.get("kind")?.as_str()? != WORKER_KIND {
        return None;
    }
    let config = task.get("config")?;
    let group = config.get("group")?.as_str()?;
    let is_set = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let is_limited = is_set(task.get("timeout_ms")) || is_set(config.get("timeout_seconds"));
    Some(GroupTask { group, operation: operation_of(config), is_limited })
}

/// Returns the operation that the configuration of a `worker` task names.
#[must_use]
pub fn operation_of(config: &Value) -> &str {
    config.get("operation").and_then(Value::as_str).unwrap_or(WORKER_KIND)
}

/// Returns whether a text can be the name of a group: letters, digits, `.`, `_` and `-`.
#[must_use]
pub fn is_group_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=GROUP_NAME_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_task_at_the_cursor_decides_who_runs_a_unit() {
        let spec = json!({ "tasks": [
            { "label": "fetch", "kind": "http", "config": { "url": "x" } },
            { "label": "resize", "kind": "worker", "config": { "group": "images", "operation": "image:resize" } },
            { "label": "note", "kind": "worker", "config": { "group": "notes" }, "timeout_ms": 50 },
            { "label": "late", "kind": "worker", "config": { "group": "notes", "timeout_seconds": "{{ ctx.s }}" } },
        ] });
        let at = |label: &str| json!({ "version": 1, "at": label });
        let group = |cursor: Option<Value>| group_task(&spec, cursor.as_ref());
        assert_eq!(group(None), None);
        assert_eq!(group(Some(at("fetch"))), None);
        let resize = GroupTask { group: "images", operation: "image:resize", is_limited: false };
        assert_eq!(group(Some(at("resize"))), Some(resize));
        assert_eq!(group(Some(json!({ "child": {}, "then": at("resize") }))), Some(resize));
        let note = GroupTask { group: "notes", operation: "worker", is_limited: true };
        assert_eq!([group(Some(at("note"))), group(Some(at("late")))], [Some(note), Some(note)]);
        assert_eq!(group(Some(at("other"))), None);
        assert_eq!(group_task(&json!({ "image": "alpine" }), None), None);
        assert_eq!(group_task(&json!({ "tasks": [] }), None), None);
    }

    #[test]
    fn names_of_groups_are_short_and_plain() {
        let long = "g".repeat(GROUP_NAME_MAX + 1);
        for name in ["", "a b", "a/b", "{{ group }}", "ä", &long] {
            assert!(!is_group_name(name), "{name}");
        }
        for name in ["gpu", "eu-west.2_A", &long[1..]] {
            assert!(is_group_name(name), "{name}");
        }
    }
}
