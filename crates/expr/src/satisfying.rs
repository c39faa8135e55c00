//! Comparisons in the conditions of workflows. Editors and queries pass numbers and booleans as text, so text is
//! compared by the value it represents.

use std::cmp::Ordering;

use minijinja::value::ValueKind;
use minijinja::{Error, Value as Jinja};

use crate::limits::failed;
use crate::pattern;

/// Evaluates a comparison. A missing value satisfies only `is_empty` and operators that begin with `not_`.
pub(crate) fn is_satisfying(value: &Jinja, operator: &str, other: &Jinja) -> Result<bool, Error> {
    let ordered = |wanted: fn(Ordering) -> bool| compare(value, other).is_some_and(wanted);
    Ok(match operator {
        "equals" => is_equal(value, other),
        "not_equals" => !is_equal(value, other),
        "greater_than" => ordered(Ordering::is_gt),
        "less_than" => ordered(Ordering::is_lt),
        "gte" => ordered(Ordering::is_ge),
        "lte" => ordered(Ordering::is_le),
        "contains" => contains(value, other),
        "not_contains" => !contains(value, other),
        "starts_with" => both_texts(value, other).is_some_and(|(text, part)| text.starts_with(&part)),
        "ends_with" => both_texts(value, other).is_some_and(|(text, part)| text.ends_with(&part)),
        "is_empty" => is_empty(value),
        "is_not_empty" => !is_empty(value),
        "regex_match" => match format_scalar(other) {
            Some(pattern) => pattern::is_matching(value, &Jinja::from(pattern))?,
            None => false,
        },
        other => return Err(failed(format!("comparison `{other}` does not exist"))),
    })
}

/// Value of a scalar, independent of whether it is written as text.
enum Scalar {
    Whole(i128),
    Fraction(f64),
    Truth(bool),
}

fn scalar_of(value: &Jinja) -> Option<Scalar> {
    match value.kind() {
        ValueKind::Bool => Some(Scalar::Truth(value.is_true())),
        ValueKind::Number => match i128::try_from(value.clone()) {
            Ok(whole) => Some(Scalar::Whole(whole)),
            Err(_) => f64::try_from(value.clone()).ok().map(Scalar::Fraction),
        },
        ValueKind::String => parse_scalar(value.as_str()?.trim()),
        _ => None,
    }
}

/// Parses text as JSON writes numbers, so `007` and `+49` stay text.
fn parse_scalar(text: &str) -> Option<Scalar> {
    if let "true" | "false" = text {
        return Some(Scalar::Truth(text == "true"));
    }
    let number: serde_json::Number = serde_json::from_str(text).ok()?;
    match text.contains(['.', 'e', 'E']) {
        // A number that is too long stays text: two such texts are equal if their characters are.
        false => text.parse().ok().map(Scalar::Whole),
        true => number.as_f64().filter(|number| number.is_finite()).map(Scalar::Fraction),
    }
}

/// Compares two values; returns `None` if they have no order.
fn compare(value: &Jinja, other: &Jinja) -> Option<Ordering> {
    match (scalar_of(value), scalar_of(other)) {
        (Some(Scalar::Whole(a)), Some(Scalar::Whole(b))) => Some(a.cmp(&b)),
        (Some(Scalar::Whole(a)), Some(Scalar::Fraction(b))) => (a as f64).partial_cmp(&b),
        (Some(Scalar::Fraction(a)), Some(Scalar::Whole(b))) => a.partial_cmp(&(b as f64)),
        (Some(Scalar::Fraction(a)), Some(Scalar::Fraction(b))) => a.partial_cmp(&b),
        (Some(Scalar::Truth(_)), Some(Scalar::Truth(_))) => None,
        _ => Some(value.as_str()?.cmp(other.as_str()?)),
    }
}

fn is_equal(value: &Jinja, other: &Jinja) -> bool {
    match (scalar_of(value), scalar_of(other)) {
        (Some(Scalar::Truth(a)), Some(Scalar::Truth(b))) => a == b,
        (Some(_), _) | (_, Some(_)) => compare(value, other) == Some(Ordering::Equal),
        (None, None) => !value.is_undefined() && !other.is_undefined() && value == other,
    }
}

fn contains(value: &Jinja, part: &Jinja) -> bool {
    match value.kind() {
        ValueKind::String => both_texts(value, part).is_some_and(|(text, part)| text.contains(&part)),
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().is_ok_and(|mut items| items.any(|item| is_equal(&item, part)))
        }
        ValueKind::Map => format_scalar(part)
            .and_then(|key| value.get_item(&Jinja::from(key)).ok())
            .is_some_and(|found| !found.is_undefined()),
        _ => false,
    }
}

fn is_empty(value: &Jinja) -> bool {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => true,
        ValueKind::String | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => value.len() == Some(0),
        _ => false,
    }
}

/// Returns both as text; only text can begin or end with something.
fn both_texts<'v>(value: &'v Jinja, part: &Jinja) -> Option<(&'v str, String)> {
    Some((value.as_str()?, format_scalar(part)?))
}

fn format_scalar(value: &Jinja) -> Option<String> {
    match value.kind() {
        ValueKind::Bool => Some(value.is_true().to_string()),
        ValueKind::String | ValueKind::Number => Some(value.to_string()),
        _ => None,
    }
}
