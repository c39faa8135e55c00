//! The maps of the language.

use super::tools::{one, tool};
use super::{Values, closed, kinds, open, or_null, refer, words};
use crate::adapters::section_schema;
use crate::playbook::language::{
    ACTIONS, ADMIT, ADMIT_THEN, ARC, ATTEMPTS_MAX, BACKOFFS, DEFAULTS, EXECUTOR, EXECUTOR_POLICY,
    EXECUTOR_SPEC, FAILURES, FINAL_FAILURES, IN_FLIGHT_MAX, JOINS, KEYCHAIN, Key, LIFECYCLE, LOOP,
    LOOP_MODES, LOOP_POLICY, LOOP_SPEC, METADATA, NEXT, NEXT_SPEC, ON_DENY, ON_UNMATCHED, PENDING_GATES,
    POLICY_MODES, PREVIOUS, PROFILES, REQUIRES, RESULT, RESULTS, RETRY, ROUTER_MODES, RULE, STEP,
    STEP_POLICY, STEP_SPEC, TASK_POLICY, TEMPLATES, THEN, TOOL_SPEC, WORKBOOK_ENTRY,
};
use serde_json::{Map, Value, json};

/// A definition of the schema: the keys of a map, their values, and whether other keys are allowed.
struct Part {
    name: &'static str,
    keys: &'static [Key],
    values: Values,
    others: bool,
}

pub(super) fn root() -> Values {
    vec![
        ("apiVersion", json!({ "type": "string", "examples": ["noetl.io/v2"] })),
        ("kind", json!({ "const": "Playbook" })),
        ("metadata", refer("metadata")),
        ("keychain", or_null(json!({ "type": "array", "items": keychain_entry() }))),
        ("executor", or_null(refer("executor"))),
        ("workload", or_null(json!({ "type": "object" }))),
        ("workflow", json!({ "type": "array", "minItems": 1, "items": refer("step") })),
        ("workbook", or_null(refer("workbook"))),
        ("adapters", or_null(section_schema())),
    ]
}

/// Other keys depend on the kind, and are checked by the parser.
fn keychain_entry() -> Value {
    let kinds: Vec<&str> = KEYCHAIN.iter().map(|(kind, _)| *kind).collect();
    let properties = json!({ "name": { "type": "string" }, "kind": { "enum": kinds } });
    json!({ "type": "object", "required": ["name", "kind"], "properties": properties })
}

pub(super) fn definitions() -> Value {
    let mut definitions = Map::new();
    for part in parts() {
        let schema =
            if part.others { open(part.keys, &part.values) } else { closed(part.keys, &part.values) };
        definitions.insert(part.name.to_owned(), schema);
    }
    definitions["step"]["required"] = json!(["step"]);
    definitions["arc"]["required"] = json!(["step"]);
    definitions["loop"]["required"] = json!(["in", "iterator"]);
    definitions["then"]["required"] = json!(["do"]);
    definitions["admit_then"]["required"] = json!(["allow"]);
    definitions["admit"]["required"] = json!(["rules"]);
    definitions["task_policy"]["required"] = json!(["rules"]);
    definitions.extend(scalars());
    definitions.insert("rule".into(), rule("then", "a task's outcome"));
    definitions.insert("admit_rule".into(), rule("admit_then", "a token"));
    definitions.insert("next".into(), next());
    definitions.insert("tool".into(), tool());
    definitions.insert("workbook".into(), workbook());
    Value::Object(definitions)
}

fn parts() -> Vec<Part> {
    let part = |name, keys, values| Part { name, keys, values, others: false };
    let extended = |name, keys, values| Part { name, keys, values, others: true };
    vec![
        extended("metadata", METADATA, metadata()),
        part("executor", EXECUTOR, executor()),
        extended("requires", REQUIRES, vec![("tools", json!({ "type": "array", "items": kinds() }))]),
        part("executor_spec", EXECUTOR_SPEC, executor_spec()),
        extended(
            "executor_policy",
            EXECUTOR_POLICY,
            vec![("defaults", or_null(refer("defaults"))), ("results", or_null(refer("results")))],
        ),
        extended("results", RESULTS, vec![("inline_max_bytes", inline_bytes())]),
        extended(
            "defaults",
            DEFAULTS,
            vec![("timeout_s", refer("duration")), ("timeout", refer("duration"))],
        ),
        part("step", STEP, step()),
        part(
            "step_spec",
            STEP_SPEC,
            vec![
                ("timeout", refer("duration")),
                ("join", or_null(words(&JOINS))),
                ("policy", or_null(refer("step_policy"))),
            ],
        ),
        part(
            "step_policy",
            STEP_POLICY,
            vec![("admit", or_null(refer("admit"))), ("lifecycle", or_null(refer("lifecycle")))],
        ),
        part("lifecycle", LIFECYCLE, vec![("timeout_s", refer("duration"))]),
        part("admit", ADMIT, admit()),
        part("admit_then", ADMIT_THEN, vec![("allow", json!({ "type": "boolean" }))]),
        part("loop", LOOP, repeat()),
        part("loop_spec", LOOP_SPEC, loop_spec()),
        extended("loop_policy", LOOP_POLICY, vec![("exec", json!({ "type": "string" }))]),
        part(
            "router",
            NEXT,
            vec![
                ("spec", or_null(refer("next_spec"))),
                ("arcs", or_null(json!({ "type": "array", "items": refer("arc_or_name") }))),
            ],
        ),
        part("next_spec", NEXT_SPEC, vec![("mode", or_null(words(&ROUTER_MODES)))]),
        part("arc", ARC, arc()),
        extended(
            "tool_spec",
            TOOL_SPEC,
            vec![
                ("policy", or_null(refer("task_policy"))),
                ("timeout", json!({ "anyOf": [refer("duration"), { "type": "object" }] })),
                ("result", or_null(refer("result"))),
            ],
        ),
        part("task_policy", TASK_POLICY, task_policy()),
        part("then", THEN, then()),
        part("retry", RETRY, retry()),
        extended("result", RESULT, vec![("inline_max_bytes", inline_bytes())]),
        extended("workbook_entry", WORKBOOK_ENTRY, vec![("name", refer("name")), ("tool", one())]),
    ]
}

/// Values that occur in many places.
fn scalars() -> [(String, Value); 6] {
    let seconds = "Seconds, or text with a unit: `500ms`, `30s`, `2m`, `1h`, `1d`";
    let condition = "An expression: `{{ ctx.count > 3 }}`, with or without the braces, or true or false";
    [
        ("name", json!({ "type": "string", "pattern": "\\S" })),
        ("template", json!({ "description": "Any value; texts in it may be templates: `{{ workload.name }}`" })),
        ("fields", or_null(json!({ "type": "object", "additionalProperties": refer("template") }))),
        ("condition", json!({ "description": condition, "type": ["string", "boolean"], "examples": ["{{ event.name == 'step.failed' }}"] })),
        ("duration", json!({
            "description": seconds,
            "anyOf": [{ "type": "number", "minimum": 0 }, { "type": "string", "pattern": "^\\s*[0-9.]+([eE][0-9]+)?\\s*(ms|s|m|h|d)?\\s*$" }, { "type": "null" }],
            "examples": [30, "500ms", "2m"],
        })),
        ("arc_or_name", json!({ "anyOf": [refer("arc"), refer("name")] })),
    ].map(|(name, value)| (name.to_owned(), value))
}

fn metadata() -> Values {
    let text = || json!({ "type": ["string", "null"] });
    vec![("name", text()), ("path", text())]
}

fn executor() -> Values {
    vec![
        ("profile", or_null(words(&PROFILES))),
        ("kind", or_null(words(&PROFILES))),
        ("requires", or_null(refer("requires"))),
        ("spec", or_null(refer("executor_spec"))),
    ]
}

fn executor_spec() -> Values {
    vec![
        ("entry_step", or_null(refer("name"))),
        ("final_step", or_null(refer("name"))),
        ("no_next_is_error", json!({ "type": ["boolean", "null"], "default": false })),
        ("failure", or_null(words(&FAILURES))),
        ("final_failure", or_null(words(&FINAL_FAILURES))),
        ("pending_gates", or_null(words(&PENDING_GATES))),
        ("templates", or_null(words(&TEMPLATES))),
        ("policy", or_null(refer("executor_policy"))),
    ]
}

fn step() -> Values {
    vec![
        ("step", refer("name")),
        ("spec", or_null(refer("step_spec"))),
        ("args", refer("fields")),
        ("input", refer("fields")),
        ("loop", or_null(refer("loop"))),
        ("tool", or_null(refer("tool"))),
        ("set_ctx", refer("fields")),
        ("set", refer("fields")),
        ("result", or_null(refer("result"))),
        ("next", or_null(refer("next"))),
    ]
}

fn admit() -> Values {
    vec![
        ("rules", json!({ "type": "array", "items": refer("admit_rule") })),
        ("mode", or_null(words(&POLICY_MODES))),
        ("on_deny", or_null(words(&ON_DENY))),
        ("deadline", refer("duration")),
    ]
}

fn repeat() -> Values {
    let list = json!({ "anyOf": [{ "type": "array" }, { "type": "string", "pattern": "\\{[{%]" }], "examples": ["{{ workload.items }}"] });
    vec![("in", list), ("iterator", refer("name")), ("spec", or_null(refer("loop_spec")))]
}

fn loop_spec() -> Values {
    vec![
        ("mode", or_null(words(&LOOP_MODES))),
        ("max_in_flight", whole(IN_FLIGHT_MAX)),
        ("policy", or_null(refer("loop_policy"))),
    ]
}

/// Returns the schema of a whole number from 1, or text that is one.
fn whole(most: u32) -> Value {
    json!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": most }, { "type": "string", "pattern": "^\\s*[0-9.]+\\s*$" }, { "type": "null" }] })
}

fn arc() -> Values {
    vec![
        ("step", refer("name")),
        ("when", refer("condition")),
        ("args", refer("fields")),
        ("input", refer("fields")),
    ]
}

fn task_policy() -> Values {
    vec![
        ("rules", json!({ "type": "array", "items": refer("rule") })),
        ("on_unmatched", or_null(words(&ON_UNMATCHED))),
        ("mode", or_null(words(&POLICY_MODES))),
    ]
}

fn then() -> Values {
    vec![
        ("do", words(&ACTIONS)),
        ("attempts", whole(ATTEMPTS_MAX)),
        ("backoff", or_null(words(&BACKOFFS))),
        ("delay", refer("duration")),
        ("to", json!({ "type": "string", "examples": [PREVIOUS[0]] })),
        ("set_ctx", refer("fields")),
        ("set_iter", refer("fields")),
        ("set", refer("fields")),
    ]
}

fn inline_bytes() -> Value {
    json!({ "type": "integer", "minimum": 1024, "maximum": 1_048_576 })
}

fn retry() -> Values {
    vec![
        ("max_attempts", whole(ATTEMPTS_MAX)),
        ("attempts", whole(ATTEMPTS_MAX)),
        ("initial_delay", refer("duration")),
        ("delay", refer("duration")),
        ("backoff", or_null(words(&BACKOFFS))),
        ("backoff_multiplier", json!({ "type": ["number", "string", "null"] })),
        ("retry_when", or_null(refer("condition"))),
        ("stop_when", or_null(refer("condition"))),
    ]
}

/// Returns the schema of `{when, then}`, or one of the forms of `else`.
fn rule(then: &str, of: &str) -> Value {
    let otherwise = json!({ "anyOf": [
        refer(then),
        { "type": "object", "properties": { "then": refer(then) }, "required": ["then"] },
        { "type": "null" },
    ] });
    let values = vec![("when", refer("condition")), ("then", or_null(refer(then))), ("else", otherwise)];
    let mut rule = closed(RULE, &values);
    rule["description"] = json!(format!("What follows for {of}"));
    rule["oneOf"] = json!([{ "required": ["when", "then"] }, { "required": ["else"] }]);
    rule
}

/// Returns the schema of `{spec, arcs}`, a name, an arc, or a list of both.
fn next() -> Value {
    json!({ "anyOf": [
        refer("router"),
        refer("arc_or_name"),
        { "type": "array", "items": refer("arc_or_name") },
    ] })
}

fn workbook() -> Value {
    let mut entry = refer("workbook_entry");
    entry["required"] = json!(["name"]);
    json!({ "anyOf": [
        { "type": "array", "items": entry },
        { "type": "object" },
    ] })
}
