//! Inputs of an execution: the caller's values over the defaults of the definition.
//!
//! A default can be a template over other inputs and the execution's id; it is rendered once, before the execution is
//! created. Values of the caller are data and are never evaluated.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::limits::ITEM_BYTES;
use crate::program::has_tags;
use crate::time::NOW;
use crate::{Read, Scope, Template, Value};

/// Merges objects key by key, and replaces anything else.
pub fn overlay(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                overlay(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

/// Maximum number of defaults that are templates, because each may wait for all others.
const TEMPLATES_MAX: usize = 1_000;

/// Maximum size of all rendered defaults of one start in bytes. Each one alone is bounded as any evaluation is.
const RENDERED_MAX: usize = 4 << 20;

/// Returns whether any default is a template that has to be rendered.
#[must_use]
pub fn has_templates(defaults: &Value) -> bool {
    match defaults {
        Value::String(text) => has_tags(text),
        Value::Array(items) => items.iter().any(has_templates),
        Value::Object(fields) => fields.values().any(has_templates),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the inputs of the execution with this id. The error names the default that cannot be rendered, and the
/// reason.
pub fn with_defaults(defaults: &Value, given: Value, id: &str) -> Result<Value, String> {
    let mut waiting = find_templates(defaults);
    // A default that the caller replaced as a whole is never rendered.
    waiting.retain(|key, _| given.get(key).is_none_or(Value::is_object));
    if waiting.len() > TEMPLATES_MAX {
        return Err(format!(
            "more than {TEMPLATES_MAX} defaults of inputs are templates; compute some in steps"
        ));
    }
    let mut left = RENDERED_MAX;
    let mut inputs = StartScope { inputs: defaults.clone(), id };
    overlay(&mut inputs.inputs, given.clone());
    let (order, circular) = order_templates(&waiting);
    if !circular.is_empty() {
        return Err(describe_cycle(circular.iter()));
    }
    for key in order {
        let Some(template) = waiting.remove(&key) else { continue };
        let mut value = template.render(&inputs).map_err(|error| format!("input `{key}`: {error}"))?;
        let large = || format!("input `{key}`: the defaults of inputs make more than {RENDERED_MAX} bytes");
        left = left.checked_sub(estimate_size(&value)).ok_or_else(large)?;
        if let Some(over) = given.get(&key) {
            overlay(&mut value, over.clone());
        }
        inputs.inputs[&key] = value;
    }
    Ok(inputs.inputs)
}

/// Returns the defaults that depend on each other, so that none can be rendered first.
#[must_use]
pub fn circular_defaults(defaults: &Value) -> Vec<String> {
    order_templates(&find_templates(defaults)).1
}

/// Returns whether a default can read this name. Text that reads anything else is left unchanged, because it may be
/// meant for later.
#[must_use]
pub fn known_at_start(defaults: &Value, read: &Read) -> bool {
    match (read.root.as_str(), &read.key) {
        ("workload", key) => key.is_some(),
        ("execution_id" | "job" | NOW, _) => true,
        (root, _) => defaults.get(root).is_some(),
    }
}

/// Returns the defaults that are templates and can be rendered at the start.
fn find_templates(defaults: &Value) -> BTreeMap<String, Template> {
    let fields = defaults.as_object().into_iter().flatten();
    let compiled = fields.filter_map(|(key, value)| Some((key.clone(), Template::compile(value).ok()?)));
    let rendered = |template: &Template| {
        template.constant().is_none() && template.reads().iter().all(|read| known_at_start(defaults, read))
    };
    compiled.filter(|(_, template)| rendered(template)).collect()
}

/// Estimates the memory of a value.
fn estimate_size(value: &Value) -> usize {
    ITEM_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(estimate_size).sum(),
            Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + estimate_size(value)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

/// Returns the templates ordered so that each follows those it reads, and the templates that depend on each other. It
/// takes time in proportion to the reads, because a definition may have thousands of defaults, each reading the one
/// before.
fn order_templates(waiting: &BTreeMap<String, Template>) -> (Vec<String>, Vec<String>) {
    let mut readers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    for (key, template) in waiting {
        let awaited: BTreeSet<&str> =
            template.reads().iter().map(input_name).filter(|read| waiting.contains_key(*read)).collect();
        missing.insert(key, awaited.len());
        awaited.into_iter().for_each(|read| readers.entry(read).or_default().push(key));
    }
    let mut order: Vec<String> =
        missing.iter().filter(|(_, count)| **count == 0).map(|(key, _)| (*key).to_owned()).collect();
    let mut done = 0;
    while let Some(key) = order.get(done).cloned() {
        done += 1;
        missing.remove(key.as_str());
        for reader in readers.remove(key.as_str()).unwrap_or_default() {
            if let Some(count) = missing.get_mut(reader) {
                *count -= 1;
                if *count == 0 {
                    order.push(reader.to_owned());
                }
            }
        }
    }
    (order, missing.into_keys().map(str::to_owned).collect())
}

/// Returns the name of the input that is read; if the read is not an input, no input has the name.
fn input_name(read: &Read) -> &str {
    match (read.root.as_str(), &read.key) {
        ("workload", Some(key)) => key,
        (root, _) => root,
    }
}

fn describe_cycle<'k>(keys: impl Iterator<Item = &'k String>) -> String {
    let named: BTreeSet<String> = keys.map(|key| format!("`{key}`")).collect();
    format!("defaults of inputs need each other: {}", named.into_iter().collect::<Vec<_>>().join(", "))
}

/// Returns the time at which the execution was created, which its id begins with.
fn created_ms(id: &str) -> Option<i64> {
    i64::from_str_radix(id.get(..12)?, 16).ok()
}

struct StartScope<'i> {
    inputs: Value,
    id: &'i str,
}

impl Scope for StartScope<'_> {
    fn get(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>> {
        let value = match root {
            "workload" => Cow::Borrowed(&self.inputs),
            "execution_id" => Cow::Owned(json!(self.id)),
            NOW => Cow::Owned(json!(created_ms(self.id)?)),
            // As in steps, an input cannot hide the id of the execution.
            "job" if key == Some("uuid") => Cow::Owned(json!({ "uuid": self.id })),
            _ if self.inputs.get(root).is_some() => Cow::Borrowed(self.inputs.get(root)?),
            "job" => Cow::Owned(json!({ "uuid": self.id })),
            _ => return None,
        };
        match (value, key) {
            (value, None) => Some(value),
            (Cow::Borrowed(value), Some(key)) => value.get(key).map(Cow::Borrowed),
            (Cow::Owned(value), Some(key)) => value.get(key).cloned().map(Cow::Owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0007";

    fn check(defaults: Value, given: Value, expected: Result<Value, &str>) {
        assert_eq!(with_defaults(&defaults, given, ID), expected.map_err(str::to_owned));
    }

    #[test]
    fn defaults_may_read_the_execution_and_each_other_in_any_order() {
        check(
            json!({ "id": "{{ job.uuid }}", "b": "{{ a + 1 }}", "a": "{{ workload.n * 2 }}", "n": 3, "also": "{{ execution_id }}" }),
            json!({}),
            Ok(json!({ "id": ID, "b": 7, "a": 6, "n": 3, "also": ID })),
        );
        check(
            json!({ "host": "here", "db": { "url": "http://{{ host }}/x", "port": 1 } }),
            json!({ "host": "there", "db": { "port": 2 } }),
            Ok(json!({ "host": "there", "db": { "url": "http://there/x", "port": 2 } })),
        );
    }

    #[test]
    fn values_of_a_caller_are_never_evaluated() {
        check(
            json!({ "a": "{{ b }}", "b": 1, "c": { "x": "{{ b }}" } }),
            json!({ "b": "{{ execution_id }}", "c": { "y": "{{ b }}" } }),
            Ok(json!({
                "a": "{{ execution_id }}", "b": "{{ execution_id }}", "c": { "x": "{{ execution_id }}", "y": "{{ b }}" }
            })),
        );
        check(json!({ "a": "{{ 1 / 0 }}" }), json!({ "a": "{{ 1 }}" }), Ok(json!({ "a": "{{ 1 }}" })));
    }

    #[test]
    fn text_that_reads_later_names_is_left_unchanged() {
        let later =
            json!({ "query": "select {{ iter.n }}", "all": "{{ workload }}", "step": "{{ fetch.n }}" });
        check(later.clone(), json!({}), Ok(later));
    }

    #[test]
    fn a_default_that_cannot_be_rendered_is_an_error() {
        let circle = json!({ "a": "{{ b }}", "b": "{{ workload.a }}", "c": "{{ 1 }}" });
        check(circle.clone(), json!({}), Err("defaults of inputs need each other: `a`, `b`"));
        assert_eq!(circular_defaults(&circle), ["a", "b"]);
        assert_eq!(circular_defaults(&json!({ "a": "{{ b }}", "b": 1 })), [""; 0]);
        check(circle, json!({ "b": 5 }), Ok(json!({ "a": 5, "b": 5, "c": 1 })));
        let failed = with_defaults(&json!({ "a": "{{ 1 / n }}", "n": 0 }), json!({}), ID);
        assert!(failed.as_ref().is_err_and(|why| why.starts_with("input `a`: ")), "{failed:?}");
    }

    #[test]
    fn no_input_hides_the_id_of_the_execution() {
        check(
            json!({ "job": { "uuid": 1, "n": 2 }, "a": "{{ job.uuid }}", "b": "{{ job.n }}", "c": "{{ execution_id }}" }),
            json!({ "execution_id": "forged" }),
            Ok(json!({ "job": { "uuid": 1, "n": 2 }, "a": ID, "b": 2, "c": ID, "execution_id": "forged" })),
        );
    }
}
