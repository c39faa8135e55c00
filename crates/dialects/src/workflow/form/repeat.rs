//! `loop`: what is repeated, how often, and how many at a time.

use super::{Maker, value_of};
use crate::document::{Kind as Is, Node};
use crate::workflow::config::{bare, given};
use crate::workflow::model::{Form, LoopForm};
use serde_json::{Value, json};
use windlass_expr::{Expr, Template};
use windlass_kernel::net::LoopKind;

/// Iterations at a time, where nothing is said.
const PARALLEL: u32 = 10;
/// Maximum number of iterations of a `while` loop that does not set one.
const WHILE_MAX: u32 = 1_000;

pub(super) fn form(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let max = maker.whole("maxIterations");
    let break_source = condition(maker.config, "breakCondition");
    let mut skip_when = None;
    let kind = match maker.text("loopType")? {
        "for_each" => {
            skip_when = condition(maker.config, "continueCondition");
            LoopKind::ForEach { items: Template::compile(&items(maker, max)?).ok()? }
        }
        "count" => {
            skip_when = condition(maker.config, "continueCondition");
            LoopKind::Count { times: Template::compile(&times(maker, max)?).ok()? }
        }
        word @ ("while" | "do_while") => {
            let going =
                ["condition", "continueCondition"].iter().find_map(|key| condition(maker.config, key));
            // The end condition is evaluated after each iteration.
            let going = going.or_else(|| break_source.as_ref().map(|_| "true".to_owned()));
            let Some(going) = going else {
                let message = format!("{} has no condition", maker.what);
                let config = maker.config;
                maker.trouble(config, message, "add `condition`, or `breakCondition`");
                return None;
            };
            let condition = Expr::compile(&going).ok()?;
            LoopKind::While { condition, check_first: word == "while", max: max.unwrap_or(WHILE_MAX) }
        }
        _ => return None,
    };
    let sequential = matches!(kind, LoopKind::While { .. });
    if sequential && maker.flag("parallelExecution") {
        let message = format!("{} cannot run iterations at the same time", maker.what);
        let config = maker.config;
        maker.trouble(
            config,
            message,
            "each iteration decides whether another one follows; omit `parallelExecution`",
        );
    }
    let cap = match maker.flag("parallelExecution") {
        true if !sequential => maker.whole("maxParallel").unwrap_or(PARALLEL),
        _ => 1,
    };
    let break_when = break_source.and_then(|source| Expr::compile(&source).ok());
    let iterator = iterator(maker.config);
    Some(Form::Loop(Box::new(LoopForm { kind, iterator, cap, break_when, skip_when })))
}

/// Returns the item's name in the body.
pub(super) fn iterator(config: &Node) -> String {
    given(config, "iteratorVariable").and_then(Node::text).unwrap_or("item").trim().to_owned()
}

fn condition(config: &Node, key: &str) -> Option<String> {
    match &given(config, key)?.kind {
        Is::Bool(value) => Some(value.to_string()),
        Is::Text(text) => Some(bare(text).to_owned()),
        _ => None,
    }
}

fn items(maker: &mut Maker<'_, '_, '_>, max: Option<u32>) -> Option<Value> {
    let Some(node) = maker.get("dataSource") else {
        let message = format!("{} has no `dataSource`", maker.what);
        let config = maker.config;
        maker.trouble(config, message, "add it: a list, or an expression that returns one");
        return None;
    };
    Some(match (&node.kind, max) {
        (Is::Text(text), Some(max)) => json!(format!("{{{{ ({})[:{max}] }}}}", bare(text))),
        (Is::List(items), Some(max)) => items.iter().take(max as usize).map(Node::json).collect(),
        _ => value_of(node),
    })
}

fn times(maker: &mut Maker<'_, '_, '_>, max: Option<u32>) -> Option<Value> {
    match (maker.get("dataSource"), max) {
        (Some(node), Some(max)) => Some(capped(node, max, maker)),
        (Some(node), None) => Some(value_of(node)),
        (None, Some(max)) => Some(json!(max)),
        (None, None) => {
            let message = format!("{} has no number of iterations", maker.what);
            let config = maker.config;
            maker.trouble(config, message, "add `maxIterations`");
            None
        }
    }
}

fn capped(node: &Node, max: u32, maker: &mut Maker<'_, '_, '_>) -> Value {
    match &node.kind {
        Is::Number(number) if number.as_u64().is_some_and(|times| times > u64::from(max)) => {
            let message = format!("{} is to run {number} times, and `maxIterations` is {max}", maker.what);
            let hint = format!("it runs {max} times; raise `maxIterations`, or omit it");
            maker.reader.error("W0245", &node.at, message, hint);
            json!(max)
        }
        Is::Text(text) => {
            let times = bare(text);
            json!(format!("{{{{ {max} if ({times}) is number and ({times}) > {max} else ({times}) }}}}"))
        }
        _ => value_of(node),
    }
}
