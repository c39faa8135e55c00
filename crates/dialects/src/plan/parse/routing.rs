//! Routing contexts: the sandbox, route group or routing key that a step runs with.

use super::super::language::{ROUTING, ROUTING_LITERAL, ROUTING_REF};
use super::super::model::{Routing, RoutingKind, RoutingName};
use super::{NAME_MAX, given, reference};
use crate::document::{Entry, Node};
use crate::read::{Key, Reader, Unknown, first_line};

pub(super) fn routing(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<Routing> {
    let what = format!("`routingContext` of {what}");
    let entries = reader.map(node, &what)?;
    reader.known(entries, &what, ROUTING, Unknown::Error);
    match (given(node, "literal"), given(node, "ref")) {
        (Some(literal), None) => {
            let entry = one_of(literal, &what, ROUTING_LITERAL, reader)?;
            let kind = match entry.key.as_str() {
                "sandbox" => RoutingKind::Sandbox,
                "routeGroup" => RoutingKind::RouteGroup,
                _ => RoutingKind::RoutingKey,
            };
            let name = reader.limited(&entry.value, &format!("`{}` of {what}", entry.key), NAME_MAX)?;
            if kind != RoutingKind::RoutingKey && !windlass_protocol::is_group_name(&name) {
                let message = format!("`{}` of {what} cannot be `{name}`", entry.key);
                let hint = "use 1 to 64 letters, digits, `.`, `_` and `-`".to_owned();
                reader.error("E0190", &first_line(&entry.value), message, hint);
            }
            Some(Routing { kind, name: RoutingName::Literal(name) })
        }
        (None, Some(by_ref)) => {
            let entry = one_of(by_ref, &what, ROUTING_REF, reader)?;
            let kind = match entry.key.as_str() {
                "sandboxRef" => RoutingKind::Sandbox,
                "routeGroupRef" => RoutingKind::RouteGroup,
                "routingKeyRef" => RoutingKind::RoutingKey,
                _ => RoutingKind::Any,
            };
            let name = reference(&entry.value, &format!("`{}` of {what}", entry.key), reader)?;
            Some(Routing { kind, name: RoutingName::Ref(name) })
        }
        (first, _) => {
            let message = match first {
                Some(_) => format!("{what} has `literal` and `ref`"),
                None => format!("{what} has neither `literal` nor `ref`"),
            };
            let hint = "write `literal: {sandbox: NAME}` or `ref: {sandboxRef: params.NAME}`".to_owned();
            reader.error("E0190", &first_line(node), message, hint);
            None
        }
    }
}

/// Returns the only entry of a map with these keys.
fn one_of<'n>(node: &'n Node, what: &str, keys: &[Key], reader: &mut Reader<'_, '_>) -> Option<&'n Entry> {
    let entries = reader.map(node, &format!("the target in {what}"))?;
    reader.known(entries, &format!("the target in {what}"), keys, Unknown::Error);
    let mut found = entries.iter().filter(|entry| keys.iter().any(|key| key.name == entry.key));
    match (found.next(), found.next()) {
        (Some(entry), None) => Some(entry),
        _ => {
            let names: Vec<String> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
            let message = format!("{what} must name exactly one target");
            reader.error("E0190", &first_line(node), message, format!("write one of {}", names.join(", ")));
            None
        }
    }
}
