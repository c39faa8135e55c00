//! Warnings about fields that have no effect because of other fields: their author expects something.

use super::Maker;
use crate::workflow::config::given;
use crate::workflow::language::Kind;

pub(super) fn check(kind: Kind, maker: &mut Maker<'_, '_, '_>) {
    for (field, why, hint) in idle(kind, maker) {
        let Some(node) = maker.get(field) else { continue };
        let message = format!("`{field}` of {} has no effect: {why}", maker.what);
        maker.reader.error("W0243", &crate::read::first_line(node), message, hint.to_owned());
    }
}

/// The field, why it changes nothing, and what to do about it.
type Idle = (&'static str, &'static str, &'static str);

fn idle(kind: Kind, maker: &Maker<'_, '_, '_>) -> Vec<Idle> {
    let has = |field: &str, value: &str| maker.text(field) == Some(value);
    let any_of = |field: &str, values: &[&str]| values.iter().any(|value| has(field, value));
    let mut found = Vec::new();
    match kind {
        Kind::Trigger => {
            let mode = maker.text("triggerMode");
            if mode.is_some_and(|mode| mode != "schedule") {
                let hint = "write `triggerMode: schedule`, or leave it out";
                found.push(("scheduleConfig", "the `triggerMode` is another one", hint));
            }
            if mode == Some("schedule") && maker.get("scheduleConfig").is_none() {
                let hint = "add `scheduleConfig`, or create a schedule: `windlass schedules create`";
                found.push(("triggerMode", "there is no `scheduleConfig`", hint));
            }
        }
        Kind::Loop if any_of("loopType", &["while", "do_while"]) => {
            let counts = "such a loop repeats by its condition and has no items";
            found.push(("dataSource", counts, "use `for_each`, or leave it out"));
            found.push(("maxParallel", "its iterations follow each other", "leave it out"));
            if maker.get("condition").is_some() {
                found.push((
                    "continueCondition",
                    "`condition` is the same, and is there",
                    "leave one of them out",
                ));
            }
        }
        Kind::Loop => {
            found.push((
                "condition",
                "only `while` and `do_while` use it",
                "use `breakCondition`, or another `loopType`",
            ));
            if !maker.flag("parallelExecution") {
                found.push((
                    "maxParallel",
                    "one iteration follows the other",
                    "add `parallelExecution: true`",
                ));
            }
        }
        Kind::Conditional if !has("evaluationMode", "custom") => {
            // Editors write the gate that the mode means anyway.
            let other = if has("evaluationMode", "any") { "AND" } else { "OR" };
            let gates = maker.get("conditions").map(|list| list.items().iter()).into_iter().flatten();
            let mut gates = gates.filter_map(|item| given(item, "logicGate")?.text());
            if gates.any(|gate| gate == other) {
                let why = "with this `evaluationMode` `logicGate` is ignored";
                found.push(("conditions", why, "write `evaluationMode: custom`, or leave `logicGate` out"));
            }
        }
        Kind::Llm if !has("outputFormat", "json") => {
            found.push(("jsonSchema", "the answer is not JSON", "add `outputFormat: json`"));
        }
        Kind::Code if has("language", "javascript") => {
            found.push(("pipDependencies", "they are packages of Python", "leave it out"));
        }
        Kind::Workflow if maker.get("workflowId").is_some() => {
            found.push(("workflowName", "`workflowId` says which one it is", "leave one of them out"));
        }
        Kind::HttpApi if has("bodyType", "none") => {
            found.push(("body", "the `bodyType` is `none`", "leave one of them out"));
        }
        Kind::Delay if maker.text("duration").is_some_and(|text| !text.contains("{{")) => {
            found.push((
                "unit",
                "the `duration` is a text with a unit of its own",
                "leave it out, or write a number",
            ));
        }
        Kind::AiAgent if has("agentType", "conversational") => {
            found.push(("toolTimeout", "a conversational agent has no tools", "leave it out"));
        }
        _ => {}
    }
    if matches!(kind, Kind::Llm | Kind::AiAgent) && maker.get("apiKey").is_some() {
        found.push(("apiKeyVariableId", "`apiKey` is there", "leave one of them out"));
    }
    found
}
