//! `conditional`: its conditions as one expression each, and a branch chosen by them.

use super::{Maker, literal};
use crate::document::{Kind as Is, Node};
use crate::workflow::config::{bare, given};
use crate::workflow::model::{Conditional, Form};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Maximum number of conditions of one node: all of them become one expression.
const CONDITIONS_MAX: usize = 64;

struct Condition {
    id: String,
    expression: String,
    or: bool,
}

pub(super) fn form(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let node = maker.get("conditions")?;
    let items = node.items();
    if items.is_empty() || items.len() > CONDITIONS_MAX {
        let message = format!("{} needs from 1 to {CONDITIONS_MAX} conditions", maker.what);
        maker.trouble(node, message, "write `[{id, variable, operator, value}]`");
        return None;
    }
    let mut conditions = Vec::new();
    let mut ids = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let condition = condition(item, index, maker)?;
        if !ids.insert(condition.id.clone()) {
            let message = format!("{} has two conditions `{}`", maker.what, condition.id);
            maker.trouble(item, message, "rename one: edges refer to branches by these names");
        }
        conditions.push(condition);
    }
    let default_branch = maker.text("defaultBranch").map(str::to_owned);
    let result = result(&conditions, maker.text("evaluationMode"));
    let output = output(&conditions, &result, default_branch.as_deref());
    let branches = conditions.into_iter().map(|condition| condition.id).collect();
    Some(Form::Conditional(Conditional { branches, default_branch, output }))
}

fn condition(item: &Node, index: usize, maker: &mut Maker<'_, '_, '_>) -> Option<Condition> {
    let id = given(item, "id")
        .and_then(Node::text)
        .map_or_else(|| format!("condition_{}", index + 1), str::to_owned);
    let variable = match &given(item, "variable")?.kind {
        Is::Bool(value) => value.to_string(),
        Is::Text(text) => bare(text).to_owned(),
        _ => return None,
    };
    let operator = given(item, "operator")?.text()?;
    let value = item.get("value").map_or(Value::Null, Node::json);
    let needs_value = !matches!(operator, "is_empty" | "is_not_empty" | "equals" | "not_equals");
    if needs_value && given(item, "value").is_none() {
        let message = format!("condition `{id}` of {} has no `value`", maker.what);
        maker.trouble(item, message, &format!("`{operator}` needs a value to compare with"));
        return None;
    }
    if let Value::String(text) = &value
        && text.contains("{{")
        && bare(text).contains("{{")
    {
        let message = format!("`value` of condition `{id}` of {} is more than one expression", maker.what);
        maker.trouble(item, message, "write it as one: `{{ inputs.name ~ '!' }}`");
        return None;
    }
    if let (true, Value::String(pattern)) = (operator == "regex_match", &value)
        && !pattern.contains("{{")
        && let Err(wrong) = windlass_expr::check_pattern(pattern)
    {
        let message = format!("`value` of condition `{id}` of {}: {wrong}", maker.what);
        maker.trouble(
            item.get("value").unwrap_or(item),
            message,
            "write it as Rust and RE2 do: no look-around",
        );
        return None;
    }
    let or = given(item, "logicGate").and_then(Node::text) == Some("OR");
    Some(Condition { expression: expression(&format!("({variable})"), operator, &value), id, or })
}

/// Schema of a boolean, for variables of every type.
fn expression(variable: &str, operator: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) if text.contains("{{") => format!("({})", bare(text)),
        value => literal(value),
    };
    format!("({variable} is satisfying({}, {value}))", literal(&json!(operator)))
}

fn result(conditions: &[Condition], mode: Option<&str>) -> String {
    let all: Vec<&str> = conditions.iter().map(|condition| condition.expression.as_str()).collect();
    match mode {
        Some("any") => all.join(" or "),
        Some("custom") => {
            let mut joined = all[0].to_owned();
            for condition in &conditions[1..] {
                let gate = if condition.or { "or" } else { "and" };
                joined = format!("({joined}) {gate} {}", condition.expression);
            }
            joined
        }
        _ => all.join(" and "),
    }
}

/// Returns the output: `matched` is the first condition that holds; `branch` is that, or else the default.
fn output(conditions: &[Condition], result: &str, default: Option<&str>) -> Value {
    let each = conditions.iter().map(|condition| {
        format!("{{ \"id\": {}, \"is\": {} }}", literal(&json!(condition.id)), condition.expression)
    });
    let matched = format!(
        "[{}] | selectattr(\"is\") | map(attribute=\"id\") | first",
        each.collect::<Vec<_>>().join(", ")
    );
    let evaluated: Map<String, Value> = conditions
        .iter()
        .map(|condition| (condition.id.clone(), json!(format!("{{{{ {} }}}}", condition.expression))))
        .collect();
    json!({
        "result": format!("{{{{ {result} }}}}"),
        "matched": format!("{{{{ ({matched}) | default(none) }}}}"),
        "branch": format!("{{{{ ({matched}) | default({}) }}}}", literal(&json!(default))),
        "conditions": evaluated,
    })
}
