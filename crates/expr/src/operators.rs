//! Operators that can create values larger than their operands, under the meter. `guarded` uses them instead of
//! minijinja's, which allocate up to 100 MB each.

use std::fmt::Write;

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Environment, Error, Value as Jinja};

use crate::convert::{to_jinja, to_json};
use crate::limits::{BYTES_MAX, Charged, ITEM_BYTES, charge, failed, step, text_size, too_large, weigh};
use crate::time::{INSTANT, instant};

pub(crate) const ADD: &str = "__add";
pub(crate) const MULTIPLY: &str = "__multiply";
pub(crate) const CONCAT: &str = "__concat";
pub(crate) const SLICE: &str = "__slice";
pub(crate) const ITEM: &str = "__item";
pub(crate) const NEEDLE: &str = "__needle";
pub(crate) const WEIGHED: &str = "__weighed";
pub(crate) const MADE: &str = "__made";
pub(crate) const COPIED: &str = "__copied";

/// Registers the operators as filters, because a variable cannot shadow a filter. Users cannot write their names.
pub(crate) fn register(env: &mut Environment<'static>) {
    env.add_filter(ADD, add);
    env.add_filter(MULTIPLY, multiply);
    env.add_filter(CONCAT, concat);
    env.add_filter(SLICE, slice);
    env.add_filter(ITEM, item);
    env.add_filter(NEEDLE, |value: Jinja| charge_needle(&value).map(|()| value));
    env.add_filter(WEIGHED, charge_walk);
    env.add_filter(MADE, check_created);
    env.add_filter(COPIED, copy);
    env.add_filter(INSTANT, |value: Jinja| instant(&value));
}

/// Copies a value that is set in a namespace: one that held the namespace itself would have no end.
fn copy(value: Jinja) -> Result<Jinja, Error> {
    let weight = weigh(&value)?;
    charge(weight.text.saturating_add(weight.nodes.saturating_mul(ITEM_BYTES)))?;
    let plain = to_json(&value).map_err(|error| failed(error.to_string()))?;
    to_jinja(&plain, 1, &mut 0).ok_or_else(too_large)
}

/// Collects all items of `parts` into a list, charged as it grows; tuples are collected into a tuple.
pub(crate) fn collect(parts: &[&Jinja]) -> Result<Jinja, Error> {
    let mut items = Vec::new();
    for part in parts {
        for item in part.try_iter()? {
            charge(ITEM_BYTES)?;
            items.push(item);
        }
    }
    Ok(collect_like(parts, items))
}

fn collect_like(parts: &[&Jinja], items: Vec<Jinja>) -> Jinja {
    match parts.iter().all(|part| part.is_tuple()) {
        true => Jinja::from(Tuple::from(items)),
        false => Jinja::from(items),
    }
}

/// Checks a new list or map: its nesting, and that its text is no longer than a result may be.
pub(crate) fn check_created(value: Jinja) -> Result<Jinja, Error> {
    match weigh(&value)?.text {
        text if text <= BYTES_MAX => Ok(value),
        _ => Err(too_large()),
    }
}

/// Charges the steps for visiting an operand.
fn charge_walk(value: Jinja) -> Result<Jinja, Error> {
    weigh(&value).map(|_| value)
}

/// Charges the left operand of `in`: if it is a list that is searched for in text, it becomes text.
pub(crate) fn charge_needle(value: &Jinja) -> Result<(), Error> {
    match value.as_object() {
        Some(_) => text_size(value).map(drop),
        None => weigh(value).map(drop),
    }
}

fn is_list(value: &Jinja) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn add(left: &Jinja, right: &Jinja) -> Result<Jinja, Error> {
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        charge(left.len() + right.len())?;
        return Ok(Jinja::from([left, right].concat()));
    }
    if is_list(left) && is_list(right) {
        return collect(&[left, right]);
    }
    arithmetic("+", left, right, i128::checked_add, |left, right| left + right)
}

fn multiply(left: &Jinja, right: &Jinja) -> Result<Jinja, Error> {
    let repeats = |value: &Jinja| value.as_str().is_some() || is_list(value);
    let (value, times) = match (repeats(left), repeats(right)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        _ => return arithmetic("*", left, right, i128::checked_mul, |left, right| left * right),
    };
    let times = times
        .as_usize()
        .filter(|_| times.is_integer())
        .ok_or_else(|| failed("text and lists can be repeated with `*` by an integer of 0 or more"))?;
    if let Some(text) = value.as_str() {
        charge(text.len().saturating_mul(times))?;
        return Ok(Jinja::from(text.repeat(times)));
    }
    let items = value.try_iter()?.collect::<Vec<_>>();
    let repeated = items.len().saturating_mul(times);
    charge(repeated.saturating_mul(ITEM_BYTES))?;
    check_created(collect_like(&[value], items.iter().cycle().take(repeated).cloned().collect()))
}

fn arithmetic(
    operator: &str,
    left: &Jinja,
    right: &Jinja,
    integers: fn(i128, i128) -> Option<i128>,
    floats: fn(f64, f64) -> f64,
) -> Result<Jinja, Error> {
    let is_integer = |value: &Jinja| value.is_integer() || value.kind() == ValueKind::Bool;
    let is_number = |value: &Jinja| value.is_number() || is_integer(value);
    if !is_number(left) || !is_number(right) {
        let (left, right) = (left.kind(), right.kind());
        return Err(failed(format!(
            "tried to use {operator} operator on unsupported types {left} and {right}"
        )));
    }
    if is_integer(left) && is_integer(right) {
        let value = integers(i128::try_from(left.clone())?, i128::try_from(right.clone())?)
            .ok_or_else(|| failed(format!("the result of `{operator}` is too large for an integer")))?;
        return Ok(i64::try_from(value).map_or_else(|_| Jinja::from(value), Jinja::from));
    }
    let float = |value: &Jinja| f64::try_from(value.clone()).unwrap_or_else(|_| value.is_true().into());
    Ok(Jinja::from(floats(float(left), float(right))))
}

fn concat(left: &Jinja, right: &Jinja) -> Result<Jinja, Error> {
    let mut text = Charged(String::new());
    write!(text, "{left}{right}")?;
    Ok(Jinja::from(text.0))
}

/// Evaluates `value[key]`, which hashes keys and counts the characters of text.
pub(crate) fn item(value: &Jinja, key: &Jinja) -> Result<Jinja, Error> {
    if value.is_undefined() {
        return Ok(Jinja::UNDEFINED);
    }
    weigh(key)?;
    step(value.as_str().map_or(0, str::len) / 64)?;
    value.get_item(key)
}

/// Evaluates `value[start:stop:step]` as Python does. minijinja's own panics on some bounds with a negative step.
fn slice(value: &Jinja, start: &Jinja, stop: &Jinja, by: &Jinja) -> Result<Jinja, Error> {
    let bound = |value: &Jinja| match value.is_none() {
        true => Ok(None),
        false => i64::try_from(value.clone()).map(|bound| Some(i128::from(bound))),
    };
    let (start, stop, by) = (bound(start)?, bound(stop)?, bound(by)?.unwrap_or(1));
    if by == 0 {
        return Err(failed("a slice needs a step other than 0"));
    }
    if let Some(text) = value.as_str() {
        charge(text.len().saturating_mul(size_of::<char>()))?;
        let letters: Vec<char> = text.chars().collect();
        let picked = positions(letters.len(), start, stop, by).filter_map(|at| letters.get(at));
        return Ok(Jinja::from(picked.collect::<String>()));
    }
    if !is_list(value) && !value.is_none() && !value.is_undefined() {
        return Err(failed(format!("a value of type {} cannot be sliced", value.kind())));
    }
    let items = value.try_iter()?.collect::<Vec<_>>();
    charge(items.len() * ITEM_BYTES)?;
    let picked = positions(items.len(), start, stop, by).filter_map(|at| items.get(at).cloned());
    Ok(collect_like(&[value], picked.collect()))
}

fn positions(len: usize, start: Option<i128>, stop: Option<i128>, by: i128) -> impl Iterator<Item = usize> {
    let len = len as i128;
    let (first, last) = if by > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |bound: i128| if bound < 0 { (bound + len).max(first) } else { bound.min(last) };
    let start = start.map_or(if by > 0 { first } else { last }, clamp);
    let stop = stop.map_or(if by > 0 { last } else { first }, clamp);
    let inside = move |at: &i128| if by > 0 { *at < stop } else { *at > stop };
    std::iter::successors(Some(start), move |at| Some(at + by))
        .take_while(inside)
        .filter_map(|at| usize::try_from(at).ok())
}

/// Implements the function `range`. It returns a list, because a lazy value could grow later.
pub(crate) fn range(lower: i64, upper: Option<i64>, by: Option<i64>) -> Result<Jinja, Error> {
    let (start, stop) = upper.map_or((0, lower), |upper| (lower, upper));
    let by = i128::from(by.unwrap_or(1));
    if by == 0 {
        return Err(failed("a range needs a step other than 0"));
    }
    let mut items = Vec::new();
    let mut at = i128::from(start);
    while if by > 0 { at < i128::from(stop) } else { at > i128::from(stop) } {
        charge(ITEM_BYTES)?;
        items.push(Jinja::from(at as i64));
        at += by;
    }
    Ok(Jinja::from(items))
}
