//! Comparisons and remainders that refuse operands of other kinds, where minijinja orders and converts all values.
//! Conditions of plans are translated to them.

use std::cmp::Ordering;

use minijinja::value::ValueKind;
use minijinja::{Error, Value as Jinja};

use crate::limits::{ITEM_BYTES, charge, failed};

/// Maximum number of items of a range. The fuel of an evaluation does not last for more.
pub(crate) const RANGE_ITEMS_MAX: i64 = 10_000;

/// Returns -1, 0 or 1: the order of two numbers or two texts. `operator` is the comparison for a message.
pub(crate) fn order(left: &Jinja, right: &Jinja, operator: &str) -> Result<i64, Error> {
    let order = match (left.as_str(), right.as_str()) {
        (Some(left), Some(right)) => Some(left.cmp(right)),
        _ if is_number(left) && is_number(right) => left.partial_cmp(right),
        _ => None,
    };
    match order {
        Some(Ordering::Less) => Ok(-1),
        Some(Ordering::Equal) => Ok(0),
        Some(Ordering::Greater) => Ok(1),
        None => Err(failed(not_ordered(operator, noun(left), noun(right)))),
    }
}

/// Describes a comparison of values that have no order, with its repair.
pub(crate) fn not_ordered(operator: &str, left: &str, right: &str) -> String {
    let repair = match [left, right] {
        ["nil", _] | [_, "nil"] => "test first that the value is there: `x != nil and …`",
        ["a text", "a number"] | ["a number", "a text"] => {
            "declare a schema for the value that is a text, or convert it with `int(…)` or `float(…)`"
        }
        _ => "compare a part of the value, or its length with `len(…)`",
    };
    format!("`{operator}` compares two numbers or two texts, not {left} and {right}: {repair}")
}

/// Returns whether two values are equal. Values of different kinds are not equal, also within lists and maps.
pub(crate) fn is_equal(left: &Jinja, right: &Jinja) -> bool {
    match (left.kind(), right.kind()) {
        (ValueKind::Undefined | ValueKind::None, ValueKind::Undefined | ValueKind::None) => true,
        (ValueKind::Seq | ValueKind::Iterable, ValueKind::Seq | ValueKind::Iterable) => {
            let (Ok(mut left), Ok(mut right)) = (left.try_iter(), right.try_iter()) else { return false };
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return true,
                    (Some(left), Some(right)) if is_equal(&left, &right) => {}
                    _ => return false,
                }
            }
        }
        (ValueKind::Map, ValueKind::Map) => {
            let pairs = left.as_object().and_then(|object| object.try_iter_pairs());
            let is_same = |(key, value): (Jinja, Jinja)| {
                right.get_item(&key).is_ok_and(|other| !other.is_undefined() && is_equal(&value, &other))
            };
            left.len() == right.len() && pairs.into_iter().flatten().all(is_same)
        }
        (left_kind, right_kind) => left_kind == right_kind && left == right,
    }
}

/// Returns the remainder of a division, with the sign of the dividend.
pub(crate) fn remainder(left: &Jinja, right: &Jinja) -> Result<Jinja, Error> {
    if !is_number(left) || !is_number(right) {
        return Err(failed(format!("`%` divides two numbers, not {} and {}", noun(left), noun(right))));
    }
    if left.is_integer() && right.is_integer() {
        let remainder = i128::try_from(left.clone())?.checked_rem(i128::try_from(right.clone())?);
        let remainder = remainder.ok_or_else(|| failed("`%` divides by zero"))?;
        return Ok(i64::try_from(remainder).map_or_else(|_| Jinja::from(remainder), Jinja::from));
    }
    let (left, right) = (f64::try_from(left.clone())?, f64::try_from(right.clone())?);
    if right == 0.0 { Err(failed("`%` divides by zero")) } else { Ok(Jinja::from(left % right)) }
}

/// Returns the whole numbers from one to another, with both; none if the first is greater.
pub(crate) fn range(from: &Jinja, to: &Jinja) -> Result<Jinja, Error> {
    let bound = |value: &Jinja| i64::try_from(value.clone()).ok().filter(|_| is_number(value));
    let (Some(from), Some(to)) = (bound(from), bound(to)) else {
        let shown = |value: &Jinja| match is_number(value) {
            true => value.to_string(),
            false => noun(value).to_owned(),
        };
        return Err(failed(no_range(&shown(from), &shown(to))));
    };
    if let Some(message) = range_problem(from, to) {
        return Err(failed(message));
    }
    let count = usize::try_from(to.saturating_sub(from).saturating_add(1)).unwrap_or(0);
    charge(count.saturating_mul(ITEM_BYTES))?;
    Ok((from..=to).map(Jinja::from).collect())
}

/// Describes a range between values that are no whole numbers.
pub(crate) fn no_range(from: &str, to: &str) -> String {
    format!("`..` counts from a whole number to another, not from {from} to {to}")
}

/// Returns the message for a range that is too long.
pub(crate) fn range_problem(from: i64, to: i64) -> Option<String> {
    (to.saturating_sub(from) >= RANGE_ITEMS_MAX).then(|| {
        format!("`{from}..{to}` has more than {RANGE_ITEMS_MAX} numbers: compare with its ends instead")
    })
}

fn is_number(value: &Jinja) -> bool {
    value.kind() == ValueKind::Number
}

/// Returns the kind of a value for a message.
pub(crate) fn noun(value: &Jinja) -> &'static str {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => "nil",
        ValueKind::Bool => "true or false",
        ValueKind::Number => "a number",
        ValueKind::String => "a text",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        _ => "a map",
    }
}
