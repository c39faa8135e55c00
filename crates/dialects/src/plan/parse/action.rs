//! Actions: named by a step, written in place, or in a document of their own.

use super::super::language::ACTION;
use super::super::model::{Action, ActionBody, ActionTimeout, Field};
use super::super::registry::{ActionLookup, ActionRef, RegisteredAction, hydrate};
use super::claim::check_claim;
use super::field::{self, built_in};
use super::{NAME_MAX, TEXT_MAX, given};
use crate::document::Node;
use crate::names;
use crate::read::{Reader, Unknown, first_line};
use serde_json::json;
use std::collections::BTreeMap;
use windlass_protocol::{BuiltinAction, DURATION_MAX_MS, StepVariable};

/// Characters of a script. A longer program belongs into an image or a repository.
const SCRIPT_MAX: usize = 256 * 1024;
const VARIABLES_MAX: usize = 200;

/// Keys that make an action one that is written in place.
const BODY: [&str; 2] = ["script", "image"];

/// Reads the action of a step.
pub(super) fn action_of(
    item: &Node,
    what: &str,
    lookup: &dyn ActionLookup,
    reader: &mut Reader<'_, '_>,
) -> Action {
    let what = format!("`action` of {what}");
    let Some(node) = given(item, "action") else {
        let hint = "write `action: NAME`, or `action: {script: ...}`".to_owned();
        reader.error("E0102", &first_line(item), format!("{what} is missing"), hint);
        return Action::default();
    };
    if let Some(name) = node.text().filter(|name| !name.trim().is_empty()) {
        let wanted = ActionRef { action: name.to_owned(), name: None, revision: None };
        return named(&wanted, node, &what, lookup, reader);
    }
    if BODY.iter().any(|key| given(node, key).is_some()) {
        let Some((_, written)) = action_document(node, &what, reader) else { return Action::default() };
        return check_claim(written, node, &what, lookup, reader);
    }
    by_keys(node, &what, lookup, reader)
}

/// Reads an action that is named by `actionID`, or by `name`.
fn by_keys(node: &Node, what: &str, lookup: &dyn ActionLookup, reader: &mut Reader<'_, '_>) -> Action {
    let Some(entries) = reader.map(node, what) else { return Action::default() };
    reader.known(entries, what, ACTION, Unknown::Error);
    let (id, name) = (text(node, "actionID", what, reader), text(node, "name", what, reader));
    let revision = revision(node, what, reader);
    let Some(action) = id.clone().or_else(|| name.clone()) else {
        let hint = "write `action: NAME`, or an action with `script` or `image`".to_owned();
        reader.error("E0188", &first_line(node), format!("{what} names no action and has no script"), hint);
        return Action::default();
    };
    let at = given(node, "actionID").or(given(node, "name")).unwrap_or(node);
    let wanted = ActionRef { action, name: name.filter(|_| id.is_some()), revision };
    named(&wanted, at, what, lookup, reader)
}

fn named(
    wanted: &ActionRef,
    node: &Node,
    what: &str,
    lookup: &dyn ActionLookup,
    reader: &mut Reader<'_, '_>,
) -> Action {
    if let Some(builtin) = BuiltinAction::named(&wanted.action) {
        if wanted.revision.is_some_and(|revision| revision != 1) {
            let message = format!("{what}: the built-in action `{}` has the revision 1 only", wanted.action);
            reader.error("E0188", &first_line(node), message, "leave out `revision`".to_owned());
        }
        return built_in_action(builtin);
    }
    resolve(wanted, lookup.find_action(wanted), node, what, reader)
}

/// Returns the action that a lookup has found, if plans can be made with it.
pub(super) fn resolve(
    wanted: &ActionRef,
    found: Result<RegisteredAction, Vec<String>>,
    node: &Node,
    what: &str,
    reader: &mut Reader<'_, '_>,
) -> Action {
    let registered = match found {
        Ok(registered) => registered,
        Err(known) => {
            let revision =
                wanted.revision.map(|revision| format!(" with revision {revision}")).unwrap_or_default();
            let message = format!("{what}: there is no action `{}`{revision}", wanted.action);
            let builtin = BuiltinAction::ALL.iter().map(|action| action.name());
            let all = known.iter().map(String::as_str).chain(builtin);
            reader.error("E0188", &first_line(node), message, names::hint(&wanted.action, all));
            return Action::default();
        }
    };
    let refuse = |message: String, hint: &str, reader: &mut Reader<'_, '_>| {
        reader.error("E0188", &first_line(node), message, hint.to_owned());
    };
    if !registered.is_enabled {
        let message = format!("{what}: the action `{}` is disabled", registered.name);
        refuse(message, "use another action, or have it enabled", reader);
    }
    if wanted.name.as_ref().is_some_and(|name| *name != registered.name) {
        let message = format!("{what}: the action `{}` has the name `{}`", wanted.action, registered.name);
        refuse(message, "leave out `name`", reader);
    }
    hydrate(&registered).unwrap_or_else(|| {
        let message = format!("{what}: the document of the action `{}` cannot be read", registered.name);
        refuse(message, "register the action again", reader);
        Action::default()
    })
}

pub(super) fn built_in_action(builtin: BuiltinAction) -> Action {
    let (params, outputs) = builtin_fields(builtin);
    let (name, revision) = (Some(builtin.name().to_owned()), Some(1));
    Action { name, revision, params, outputs, body: ActionBody::Builtin(builtin), ..Action::default() }
}

/// Parameters and outputs of a built-in action.
fn builtin_fields(builtin: BuiltinAction) -> (Vec<Field>, Vec<Field>) {
    let any = || Some(json!({}));
    let object = || Some(json!({ "type": "object" }));
    let needed = |name: &str| built_in(name, true, None);
    let optional = |name: &str, schema| built_in(name, false, schema);
    match builtin {
        BuiltinAction::Shell => (vec![needed("script")], Vec::new()),
        BuiltinAction::RequestHttp => {
            let method = Field { default: Some(json!("GET")), ..optional("method", None) };
            let params = vec![method, needed("url"), optional("headers", object()), optional("body", any())];
            let outputs = vec![
                optional("status", Some(json!({ "type": "integer" }))),
                optional("headers", object()),
                optional("body", any()),
                optional("capture", object()),
            ];
            (params, outputs)
        }
        BuiltinAction::Check => {
            let name = Field { default: Some(json!("check")), ..optional("name", None) };
            (vec![needed("expression"), name], vec![optional("result", object())])
        }
        BuiltinAction::RunImage => (vec![needed("image"), optional("command", any())], Vec::new()),
    }
}

/// Reads an action that is written out: its description, and everything that steps take from it.
pub(in super::super) fn action_document(
    node: &Node,
    what: &str,
    reader: &mut Reader<'_, '_>,
) -> Option<(Option<String>, Action)> {
    let entries = reader.map(node, what)?;
    reader.known(entries, what, ACTION, Unknown::Error);
    let description = given(node, "description")
        .and_then(|node| reader.limited(node, &format!("`description` of {what}"), TEXT_MAX));
    let action = Action {
        id: text(node, "actionID", what, reader),
        name: text(node, "name", what, reader),
        revision: revision(node, what, reader),
        params: field::fields(node, "params", what, reader),
        outputs: field::fields(node, "outputs", what, reader),
        timeout: given(node, "timeout").and_then(|node| timeout(node, what, reader)),
        env: given(node, "env").map(|node| env(node, what, reader)).unwrap_or_default(),
        body: body(node, what, reader),
    };
    check_inputs(&action, node, what, reader);
    Some((description, action))
}

fn text(node: &Node, key: &str, what: &str, reader: &mut Reader<'_, '_>) -> Option<String> {
    given(node, key).and_then(|node| reader.limited(node, &format!("`{key}` of {what}"), NAME_MAX))
}

fn revision(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<u32> {
    given(node, "revision")
        .and_then(|node| reader.whole(node, &format!("`revision` of {what}"), 1..=u32::MAX))
}

fn timeout(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<ActionTimeout> {
    let what = format!("`timeout` of {what}");
    if node.is_map() {
        return input_name(node, &what, "a duration", reader).map(ActionTimeout::Input);
    }
    let found = reader.duration_ms(node, &what)?;
    if found == 0 || found > DURATION_MAX_MS {
        reader.error("E0118", &first_line(node), format!("{what} must be from 1 ms to 365 days"), None);
        return None;
    }
    Some(ActionTimeout::Millis(found))
}

fn body(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> ActionBody {
    let script = given(node, "script")
        .and_then(|node| reader.limited(node, &format!("`script` of {what}"), SCRIPT_MAX));
    let image = given(node, "image").map(|node| variable(node, &format!("`image` of {what}"), reader));
    match (image, script) {
        (Some(Some(image)), script) => ActionBody::Image { image, script },
        (Some(None), _) => ActionBody::Unknown,
        (None, Some(script)) => ActionBody::Script(script),
        (None, None) if given(node, "script").is_some() => ActionBody::Unknown,
        (None, None) => {
            let hint = "add `script`, `image` or both".to_owned();
            reader.error("E0102", &first_line(node), format!("{what} has no `script` and no `image`"), hint);
            ActionBody::Unknown
        }
    }
}

/// Reads a text, or `{input: NAME}`.
fn variable(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<StepVariable> {
    if !node.is_map() {
        return reader.text(node, what).map(|text| StepVariable::Text(text.to_owned()));
    }
    input_name(node, what, "a text", reader).map(|input| StepVariable::Input { input })
}

/// Reads the name of `{input: NAME}`, in place of which another value could be written.
fn input_name(node: &Node, what: &str, other: &str, reader: &mut Reader<'_, '_>) -> Option<String> {
    let Some(input) = node.get("input").filter(|_| node.entries().len() == 1) else {
        let message = format!("{what} must be {other} or `{{input: NAME}}`");
        reader.error("E0101", &first_line(node), message, None);
        return None;
    };
    reader.text(input, &format!("`input` of {what}")).map(str::to_owned)
}

fn env(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> BTreeMap<String, StepVariable> {
    let what = format!("`env` of {what}");
    let entries = reader.map(node, &what).unwrap_or_default();
    if entries.len() > VARIABLES_MAX {
        let message = format!("{what} has {} variables, more than {VARIABLES_MAX}", entries.len());
        reader.error("E0143", &first_line(node), message, "remove some of them".to_owned());
        return BTreeMap::new();
    }
    let mut found = BTreeMap::new();
    for entry in entries {
        let is_reserved = ["SIGNADOT_", "WINDLASS_"].iter().any(|prefix| entry.key.starts_with(prefix))
            || ["HOME", "PATH", "TMPDIR"].contains(&entry.key.as_str());
        if is_reserved || entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            let why = if is_reserved { "the worker sets it" } else { "it is not a name of a variable" };
            let message = format!("{what} cannot set `{}`: {why}", entry.key);
            reader.error("E0109", &entry.at, message, "choose another name".to_owned());
        }
        let value = variable(&entry.value, &format!("`{}` in {what}", entry.key), reader);
        found.extend(value.map(|value| (entry.key.clone(), value)));
    }
    found
}

/// Checks that the inputs exist that `image`, `env` and `timeout` name.
fn check_inputs(action: &Action, node: &Node, what: &str, reader: &mut Reader<'_, '_>) {
    let named = |variable: &StepVariable| match variable {
        StepVariable::Input { input } => Some(input.clone()),
        StepVariable::Text(_) => None,
    };
    let of_image = match &action.body {
        ActionBody::Image { image, .. } => named(image),
        ActionBody::Unknown | ActionBody::Builtin(_) | ActionBody::Script(_) => None,
    };
    let of_timeout = match &action.timeout {
        Some(ActionTimeout::Input(input)) => Some(input.clone()),
        Some(ActionTimeout::Millis(_)) | None => None,
    };
    let of_env = action.env.values().filter_map(named).map(|input| ("env", input));
    let others = [("image", of_image), ("timeout", of_timeout)];
    let others = others.into_iter().filter_map(|(key, input)| Some((key, input?)));
    for (key, input) in of_env.chain(others) {
        if !action.params.iter().any(|param| param.name.text == input) {
            let at = given(node, key).map_or(0..0, |node| reader.spot(node, &input));
            let message = format!("`{key}` of {what} reads the input `{input}`, which does not exist");
            let known = action.params.iter().map(|param| param.name.text.as_str());
            reader.error("E0181", &at, message, names::hint(&input, known));
        }
    }
}
