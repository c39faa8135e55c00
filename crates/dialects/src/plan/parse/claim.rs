//! Actions that are written in place and say which registered action they are a copy of, as the actions of stored plans do.

use super::super::model::{Action, ActionBody};
use super::super::registry::{ActionLookup, ActionRef};
use super::super::spec::action_json;
use super::action::{built_in_action, resolve};
use super::given;
use crate::document::Node;
use crate::read::{Reader, first_line};
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_protocol::BuiltinAction;

/// Keys that name an action. The others are its content.
const NAMING: [&str; 3] = ["actionID", "name", "revision"];

/// Compares an action with the registered one that it says it is, and returns the registered one.
pub(super) fn check_claim(
    written: Action,
    node: &Node,
    what: &str,
    lookup: &dyn ActionLookup,
    reader: &mut Reader<'_, '_>,
) -> Action {
    let Some(claimed) = claim_of(&written) else { return written };
    let Some(found) = lookup.find_original(&claimed) else { return written };
    let at = given(node, "actionID").or(given(node, "name")).unwrap_or(node);
    let original = match BuiltinAction::named(&claimed.action) {
        Some(builtin) => built_in_action(builtin),
        None => resolve(&claimed, found, at, what, reader),
    };
    let is_reported = [&written, &original].iter().any(|action| matches!(action.body, ActionBody::Unknown));
    let differences = if is_reported { Vec::new() } else { differences(&written, &original) };
    if differences.is_empty() {
        return original;
    }
    let name = original.name.as_deref().unwrap_or(&claimed.action);
    let revision = original.revision.map(|revision| format!(" revision {revision}")).unwrap_or_default();
    let message = format!("{what} is not the action `{name}`{revision}: {} differ", differences.join(", "));
    let hint = "leave out what differs to use the registered action, or leave out `actionID` and `revision` to write one in place";
    reader.error("E0188", &first_line(at), message, hint.to_owned());
    written
}

/// Returns the registered action that an action says it is. A name alone is only a name.
fn claim_of(written: &Action) -> Option<ActionRef> {
    let Action { id, name, revision, .. } = written;
    let action = id.as_ref().or(name.as_ref().filter(|_| revision.is_some()))?.clone();
    Some(ActionRef { action, name: name.clone().filter(|_| id.is_some()), revision: *revision })
}

/// Returns the keys under which two actions have different content.
fn differences(written: &Action, original: &Action) -> Vec<String> {
    let (written, original) = (action_json(written), action_json(original));
    let keys: BTreeSet<&String> = [&written, &original]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|fields| fields.keys())
        .collect();
    let differs = |key: &&String| !NAMING.contains(&key.as_str()) && written.get(*key) != original.get(*key);
    keys.into_iter().filter(differs).map(|key| format!("`{key}`")).collect()
}
