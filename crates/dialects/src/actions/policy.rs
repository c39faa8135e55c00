//! Separation of duties: the rules of a document about who may approve and complete actions. They are stored in the
//! manifest; the server checks them before it accepts an answer.

use super::language::{CONSTRAINT, POLICY};
use crate::document::Node;
use crate::names;
use crate::read::{Reader, Unknown, first_line};
use windlass_duties::SodConstraint;

pub(super) const KINDS: [&str; 4] =
    ["MakerChecker", "DistinctApprovers", "IncompatibleDuties", "SpecialistApproval"];

/// Kinds that need facts about a robot, which no run has here.
const ROBOTICS: [&str; 3] =
    ["HazardousZoneNoSelfApproval", "SafetyClassifiedZoneDualApproval", "RemoteEstopRequesterSeparation"];

/// Maximum number of rules of one document: each is checked for every answer.
const CONSTRAINTS_MAX: usize = 100;
/// Maximum number of entries of one rule, and of characters of each of them.
const ENTRIES_MAX: usize = 100;
const TEXT_MAX: usize = 255;

pub(super) fn constraints(node: &Node, reader: &mut Reader<'_, '_>) -> Vec<SodConstraint> {
    let Some(entries) = reader.map(node, "`policy`") else { return Vec::new() };
    reader.known(entries, "`policy`", POLICY, Unknown::Error);
    let Some(list) = node.get("sodConstraints").filter(|list| !list.is_null()) else { return Vec::new() };
    let Some(items) = reader.list(list, "`sodConstraints`") else { return Vec::new() };
    if items.len() > CONSTRAINTS_MAX {
        let message = format!("`sodConstraints` has {} rules, more than {CONSTRAINTS_MAX}", items.len());
        reader.error("E0143", &first_line(list), message, None);
        return Vec::new();
    }
    items.iter().filter_map(|item| constraint(item, reader)).collect()
}

fn constraint(item: &Node, reader: &mut Reader<'_, '_>) -> Option<SodConstraint> {
    let entries = reader.map(item, "a rule of `sodConstraints`")?;
    let Some(kind) = item.get("kind") else {
        let hint = format!("add `kind`: {}", KINDS.join(", "));
        reader.error("E0102", &first_line(item), "a rule of `sodConstraints` has no `kind`", hint);
        return None;
    };
    let word = reader.text(kind, "`kind` of a rule of `sodConstraints`")?;
    reader.known(entries, &format!("a rule `{word}`"), CONSTRAINT, Unknown::Error);
    match word {
        "MakerChecker" => Some(SodConstraint::MakerChecker),
        "DistinctApprovers" => {
            let node = needed(item, word, "minimumApprovers", reader)?;
            let minimum_approvers = reader.whole(node, "`minimumApprovers`", 1..=1_000)?;
            Some(SodConstraint::DistinctApprovers { minimum_approvers })
        }
        "IncompatibleDuties" => {
            let duty_keys = texts(item, word, "dutyKeys", 2, reader)?;
            Some(SodConstraint::IncompatibleDuties { duty_keys })
        }
        "SpecialistApproval" => {
            let required_roles = texts(item, word, "requiredRoles", 1, reader)?;
            let rationale = item.get("rationale").filter(|node| !node.is_null());
            let rationale = rationale.and_then(|node| reader.limited(node, "`rationale`", 1_000));
            Some(SodConstraint::SpecialistApproval { required_roles, rationale })
        }
        _ => {
            let (message, hint) = match ROBOTICS.contains(&word) {
                true => (
                    format!("the rule `{word}` needs facts about a robot, which a run does not have"),
                    Some(format!("use {}", KINDS.join(", "))),
                ),
                false => (
                    format!("there is no rule `{word}` of `sodConstraints`"),
                    names::hint(word, KINDS.iter().copied()),
                ),
            };
            reader.error("E0108", &kind.at, message, hint);
            None
        }
    }
}

fn needed<'n>(item: &'n Node, kind: &str, field: &str, reader: &mut Reader<'_, '_>) -> Option<&'n Node> {
    let found = item.get(field).filter(|node| !node.is_null());
    if found.is_none() {
        let message = format!("the rule `{kind}` has no `{field}`");
        reader.error("E0102", &first_line(item), message, format!("add `{field}`"));
    }
    found
}

fn texts(
    item: &Node,
    kind: &str,
    field: &str,
    at_least: usize,
    reader: &mut Reader<'_, '_>,
) -> Option<Vec<String>> {
    let node = needed(item, kind, field, reader)?;
    let items = reader.list(node, &format!("`{field}`"))?;
    if !(at_least..=ENTRIES_MAX).contains(&items.len()) {
        let message = format!("`{field}` of the rule `{kind}` must have {at_least} to {ENTRIES_MAX} entries");
        reader.error("E0118", &first_line(node), message, None);
        return None;
    }
    items.iter().map(|item| reader.limited(item, &format!("an entry of `{field}`"), TEXT_MAX)).collect()
}
