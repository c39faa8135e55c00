//! One action, with its operation, tier, input, completion and compensation.

use super::retry::{policy, usual, usual_of_hook};
use super::{Head, ID_MAX, given, integer, milliseconds, timeout_ms};
use crate::actions::language::{ACTION, COMPENSATION, COMPLETION_MODES, PORT_FAMILIES, PortFamily, TIERS};
use crate::actions::model::{Action, Compensation, CompletionMode, Input, Seen, Tier};
use crate::document::{Kind, Node};
use crate::names;
use crate::read::{Name, Reader, Unknown, first_line};
use serde_json::Value;
use windlass_expr::Template;

/// Timeout of an attempt without one of its own.
const TIMEOUT_MS: u64 = 300_000;

pub(super) fn action(item: &Node, head: Head, reader: &mut Reader<'_, '_>) -> Option<Action> {
    let entries = reader.map(item, "an action")?;
    let id = action_id(item, reader)?;
    let what = format!("action `{}`", id.text);
    reader.known(entries, &what, ACTION, Unknown::Error);
    for key in ["description", "inputSchemaRef", "outputSchemaRef"] {
        if let Some(node) = given(item, key) {
            reader.text(node, &format!("`{key}` of {what}"));
        }
    }
    let operation = operation(item, head, &what, reader)
        .unwrap_or_else(|| Name { text: String::new(), at: first_line(item) });
    let compensation = given(item, "compensation").and_then(|node| compensation(node, &what, reader));
    let retry = given(item, "retryPolicy").and_then(|node| policy(node, &what, usual(), reader));
    Some(Action {
        order: order(item, &what, reader),
        tier: tier(item, head, &what, reader),
        input: input(item, "input", &what, reader),
        depends_on: given(item, "dependsOn").map(|node| depends_on(node, &what, reader)),
        retry: retry.unwrap_or_else(usual),
        timeout_ms: timeout_ms(item, &what, reader).unwrap_or(TIMEOUT_MS),
        completion: completion(item, &what, reader),
        side_effecting: side_effecting(item, &operation.text, &what, reader),
        compensation,
        operation,
        id,
    })
}

fn action_id(item: &Node, reader: &mut Reader<'_, '_>) -> Option<Name> {
    let Some(node) = given(item, "actionId") else {
        reader.error(
            "E0102",
            &first_line(item),
            "an action has no `actionId`",
            "add `actionId: NAME`".to_owned(),
        );
        return None;
    };
    reader.limited(node, "`actionId` of an action", ID_MAX)?;
    let id = reader.name(node, "`actionId` of an action")?;
    if id.text.contains(|sign: char| sign == ':' || sign.is_whitespace() || sign.is_control()) {
        let message = format!("action `{}`: actionId must have no colon and no spaces", id.text);
        let hint = "it is a part of the idempotency key `runId:actionId`".to_owned();
        reader.error("E0109", &node.at, message, hint);
    }
    Some(id)
}

fn order(item: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<(i64, std::ops::Range<usize>)> {
    let hint = "number the actions 1, 2, 3, … in the order of the list".to_owned();
    let Some(node) = given(item, "order") else {
        reader.error("E0102", &first_line(item), format!("{what} has no `order`"), hint);
        return None;
    };
    let number = integer(node).filter(|number| *number >= 1);
    if number.is_none() {
        reader.error(
            "E0118",
            &first_line(node),
            format!("{what}: order must be a whole number from 1"),
            hint,
        );
    }
    Some((number?, node.at.clone()))
}

fn tier(item: &Node, head: Head, what: &str, reader: &mut Reader<'_, '_>) -> Tier {
    let Some(node) = given(item, "executionTierOverride") else { return head.tier };
    let Some(tier) = reader.choice(node, &format!("{what}: executionTierOverride"), &TIERS) else {
        return head.tier;
    };
    if tier < head.tier {
        let message = format!(
            "{what}: executionTierOverride {} cannot be less strict than the workflow executionTier {}",
            tier.word(),
            head.tier.word()
        );
        let hint = "tiers from the least strict: Auto, Assisted, HumanApprove, ManualOnly".to_owned();
        reader.error("E0172", &node.at, message, hint);
    }
    tier
}

/// Reads the operation, or the capability in its place. Both are checked against the port family.
fn operation(item: &Node, head: Head, what: &str, reader: &mut Reader<'_, '_>) -> Option<Name> {
    let family = port_family(item, what, reader);
    let capability = given(item, "capability").and_then(|node| entity_verb(node, "capability", what, reader));
    let operation = given(item, "operation").and_then(|node| entity_verb(node, "operation", what, reader));
    if given(item, "capability").is_none() && head.version == Some(2) {
        let message = format!("{what}: capability is required when schemaVersion is 2");
        let hint = "name the capability of its port family, or write `schemaVersion: 1`".to_owned();
        reader.error("E0173", &first_line(item), message, hint);
    }
    if let Some(capability) = &capability {
        allowed(capability, item, family, what, reader);
    }
    if let (Some(capability), Some(operation)) = (&capability, &operation)
        && capability.text != operation.text
    {
        let message = format!("{what}: operation must match capability when both are provided");
        let hint = format!("leave out `operation`, or write `{}`", capability.text);
        reader.error("E0173", &operation.at, message, hint);
    }
    if given(item, "operation").is_none() && given(item, "capability").is_none() && head.version != Some(2) {
        let message = format!("{what} has no `operation`");
        reader.error("E0102", &first_line(item), message, "add `operation: entity:verb`".to_owned());
    }
    operation.or(capability)
}

fn port_family(item: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<&'static PortFamily> {
    let node = given(item, "portFamily")?;
    let word = reader.text(node, &format!("`portFamily` of {what}"))?;
    let family = PortFamily::named(word);
    if family.is_none() {
        let known = PORT_FAMILIES.iter().map(|family| family.name);
        let near = names::hint(word, known.clone());
        let hint = near.unwrap_or_else(|| format!("use {}", known.collect::<Vec<_>>().join(", ")));
        reader.error("E0108", &node.at, format!("{what}: there is no portFamily `{word}`"), hint);
    }
    family
}

fn allowed(
    capability: &Name,
    item: &Node,
    family: Option<&PortFamily>,
    what: &str,
    reader: &mut Reader<'_, '_>,
) {
    let Some(family) = family else {
        if given(item, "portFamily").is_none() {
            let message = format!("{what} has a capability and no `portFamily`");
            reader.error("E0102", &capability.at, message, "add `portFamily`".to_owned());
        }
        return;
    };
    if !family.allows(&capability.text) {
        let message =
            format!("{what}: capability `{}` is not one of the port family {}", capability.text, family.name);
        let known = family.capabilities();
        let hint = names::hint(&capability.text, known.clone())
            .unwrap_or_else(|| format!("use {}", known.collect::<Vec<_>>().join(", ")));
        reader.error("E0173", &capability.at, message, hint);
    }
}

/// Reads a name of two words with one colon between them.
fn entity_verb(node: &Node, key: &str, what: &str, reader: &mut Reader<'_, '_>) -> Option<Name> {
    let name = reader.name(node, &format!("`{key}` of {what}"))?;
    let word = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace) && !part.contains(':');
    let fits = name.text.split_once(':').is_some_and(|(entity, verb)| word(entity) && word(verb));
    if !fits {
        let message = format!("{what}: {key} must match \"entity:verb\" format");
        reader.error("E0171", &node.at, message, "for example `invoice:write`".to_owned());
        return None;
    }
    reader.limited(node, &format!("`{key}` of {what}"), ID_MAX)?;
    Some(name)
}

fn depends_on(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Vec<Name> {
    let label = format!("`dependsOn` of {what}");
    let items = reader.list(node, &label).unwrap_or_default();
    items.iter().filter_map(|item| reader.name(item, &format!("an entry of {label}"))).collect()
}

fn completion(item: &Node, what: &str, reader: &mut Reader<'_, '_>) -> CompletionMode {
    let is_manual = match given(item, "completionMode") {
        Some(node) => reader.choice(node, &format!("{what}: completionMode"), &COMPLETION_MODES),
        None => Some(false),
    };
    let deadline_ms = milliseconds(item, "completionDeadlineMs", what, reader);
    if let (Some(node), Some(false)) = (given(item, "completionDeadlineMs"), is_manual) {
        let message = format!("{what}: completionDeadlineMs has no effect without manual completion");
        reader.error("E0174", &node.at, message, "add `completionMode: manual`".to_owned());
    }
    if is_manual == Some(true) { CompletionMode::Manual { deadline_ms } } else { CompletionMode::Auto }
}

fn side_effecting(item: &Node, operation: &str, what: &str, reader: &mut Reader<'_, '_>) -> bool {
    let undone = given(item, "compensation").is_some();
    let Some(node) = given(item, "sideEffecting") else { return undone || !operation.ends_with(":read") };
    let flag = reader.boolean(node, &format!("`sideEffecting` of {what}")).unwrap_or(true);
    if undone && !flag {
        let message = format!("{what}: an action with compensation is side-effecting");
        reader.error(
            "E0174",
            &node.at,
            message,
            "remove `sideEffecting: false` or `compensation`".to_owned(),
        );
    }
    flag
}

fn compensation(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<Compensation> {
    let what = format!("`compensation` of {what}");
    let entries = reader.map(node, &what)?;
    reader.known(entries, &what, COMPENSATION, Unknown::Error);
    let Some(operation) = given(node, "compensationOperation") else {
        let message = format!("{what} has no `compensationOperation`");
        reader.error(
            "E0102",
            &first_line(node),
            message,
            "add `compensationOperation: entity:verb`".to_owned(),
        );
        return None;
    };
    let operation = entity_verb(operation, "compensationOperation", &what, reader)?;
    let schema = given(node, "compensationInputSchema");
    let input_schema =
        schema.and_then(|node| reader.json_schema(node, &format!("`compensationInputSchema` of {what}")));
    let retry = given(node, "retryPolicy").and_then(|node| policy(node, &what, usual_of_hook(), reader));
    Some(Compensation {
        operation,
        input: input(node, "compensationInput", &what, reader),
        input_schema,
        retry: retry.unwrap_or_else(usual_of_hook),
        timeout_ms: timeout_ms(node, &what, reader).unwrap_or(TIMEOUT_MS),
    })
}

fn input(item: &Node, key: &str, what: &str, reader: &mut Reader<'_, '_>) -> Input {
    let Some(node) = given(item, key) else { return Input::default() };
    let label = format!("`{key}` of {what}");
    let Some(entries) = reader.map(node, &label) else { return Input::default() };
    let mut reads = Vec::new();
    entries.iter().for_each(|entry| templates(&entry.value, &mut reads, reader));
    Input { fields: crate::document::json_map(entries), reads }
}

/// Compiles every text of a tree on its own, so that an error has its place.
fn templates(node: &Node, reads: &mut Vec<Seen>, reader: &mut Reader<'_, '_>) {
    if let Kind::Text(text) = &node.kind {
        match Template::compile(&Value::String(text.clone())) {
            Ok(template) => {
                let seen = |read: &windlass_expr::Read| Seen { read: read.clone(), at: node.at.clone() };
                reads.extend(template.reads().iter().map(seen));
            }
            Err(error) => reader.bad_expression(node, &error),
        }
    }
    node.items().iter().for_each(|item| templates(item, reads, reader));
    node.entries().iter().for_each(|entry| templates(&entry.value, reads, reader));
}
