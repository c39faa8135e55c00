//! Compares the JSON Schemas with the parser: they have the same keys, and a schema refuses nothing that the parser
//! accepts. Every valid document of the other tests is also checked by `accepts`.

use crate::compiled::playbook;
use jsonschema::Validator;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use windlass_dialects::{Dialect, as_json, compile};

fn of_playbooks() -> Value {
    schema("playbook")
}

fn schema(dialect: &str) -> Value {
    Dialect::of_name(dialect).and_then(Dialect::schema).expect("the dialect has a schema")
}

fn validator(dialect: &str) -> &'static Validator {
    const DIALECTS: [&str; 4] = ["playbook", "workflow", "actions", "plan"];
    static VALIDATORS: [OnceLock<Validator>; 4] = [const { OnceLock::new() }; 4];
    let schema = || schema(dialect);
    VALIDATORS[DIALECTS.iter().position(|name| *name == dialect).expect("a dialect with a schema")]
        .get_or_init(|| jsonschema::draft202012::new(&schema()).expect("the schema is one"))
}

fn complaints(text: &str) -> Vec<String> {
    let document = as_json(text).expect("the text is YAML");
    let is = |key: &str| document.get(key).is_some();
    let has_steps = || is("steps") || document.get("spec").is_some_and(|spec| spec.get("steps").is_some());
    let dialect = if is("nodes") {
        "workflow"
    } else if is("actions") {
        "actions"
    } else if has_steps() && !is("workflow") {
        "plan"
    } else {
        "playbook"
    };
    validator(dialect)
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[track_caller]
pub fn accepts(text: &str) {
    assert_eq!(complaints(text), [""; 0], "\n{text}");
}

#[track_caller]
fn refuses(text: &str) {
    assert!(!complaints(text).is_empty(), "{text}");
    assert!(compile(text).errors().next().is_some(), "the parser accepts it:\n{text}");
}

/// A document with this key somewhere.
type Document = Box<dyn Fn(&str) -> String>;

/// Every map of the language, by its place in the schema and by a document with one key of it.
fn maps() -> Vec<(&'static str, Document)> {
    fn at(before: &'static str, after: &'static str) -> Document {
        Box::new(move |key| format!("metadata: {{name: t}}\n{before}{key}: {after}"))
    }
    let step = "workflow:\n- step: a\n  next: []\n  ";
    let in_step = |before: &str, after: &str| -> Document {
        let (before, after) = (format!("{step}{before}"), after.to_owned());
        Box::new(move |key| format!("metadata: {{name: t}}\n{before}{key}: {after}"))
    };
    let workflow = "}\nworkflow: [{step: a, next: []}]";
    let deep = "}}\nworkflow: [{step: a, next: []}]";
    let deeper = "}}}\nworkflow: [{step: a, next: []}]";
    let deepest = "}}}}\nworkflow: [{step: a, next: []}]";
    vec![
        ("", at("workflow: [{step: a, next: []}]\n", "")),
        ("executor", at("executor: {", workflow)),
        ("executor_spec", at("executor: {spec: {", deep)),
        ("executor_policy", at("executor: {spec: {policy: {", deeper)),
        ("defaults", at("executor: {spec: {policy: {defaults: {", deepest)),
        ("results", at("executor: {spec: {policy: {results: {", deepest)),
        ("requires", at("executor: {requires: {", deep)),
        ("step", at("workflow:\n- step: a\n  next: []\n  ", "")),
        ("step_spec", in_step("spec: {", "}")),
        ("step_policy", in_step("spec: {policy: {", "}}")),
        ("lifecycle", in_step("spec: {policy: {lifecycle: {", "}}}")),
        ("admit", in_step("spec: {policy: {admit: {rules: [], ", "}}}")),
        ("admit_then", in_step("spec: {policy: {admit: {rules: [{when: x, then: {allow: true, ", "}}]}}}")),
        ("admit_rule", in_step("spec: {policy: {admit: {rules: [{when: x, then: {allow: true}, ", "}]}}}")),
        ("loop", in_step("tool: {kind: noop}\n  loop: {in: [1], iterator: i, ", "}")),
        ("loop_spec", in_step("tool: {kind: noop}\n  loop: {in: [1], iterator: i, spec: {", "}}")),
        (
            "loop_policy",
            in_step("tool: {kind: noop}\n  loop: {in: [1], iterator: i, spec: {policy: {", "}}}"),
        ),
        ("router", at("workflow:\n- step: a\n  next: {", "}")),
        ("next_spec", at("workflow:\n- step: a\n  next: {arcs: [], spec: {", "}}")),
        ("arc", at("workflow:\n- step: a\n  next: [{step: a, when: x, ", "}]")),
        ("task_policy", in_step("tool: {kind: noop, spec: {policy: {rules: [], ", "}}}")),
        ("rule", in_step("tool: {kind: noop, spec: {policy: {rules: [{when: x, then: {do: fail}, ", "}]}}}")),
        ("then", in_step("tool: {kind: noop, spec: {policy: {rules: [{when: x, then: {do: fail, ", "}}]}}}")),
        ("retry", in_step("tool: {kind: noop, retry: {", "}}")),
        ("result", in_step("result: {", "}")),
        (
            "workbook_entry",
            at("workflow: [{step: a, next: []}]\nworkbook:\n- name: n\n  tool: {kind: noop}\n  ", ""),
        ),
    ]
}

/// Message of the parser about a key that a map does not have.
fn is_unknown(text: &str, key: &str) -> bool {
    let diagnostic = compile(text).diagnostics;
    let about = |code: &str, message: &str| {
        ["E0103", "W0201"].contains(&code) && message.ends_with(&format!("has no key `{key}`"))
    };
    diagnostic.iter().any(|diagnostic| about(&diagnostic.code, &diagnostic.message))
}

#[test]
fn parser_and_schema_know_the_same_keys() {
    let schema = of_playbooks();
    for (name, document) in maps() {
        let map = if name.is_empty() { &schema } else { &schema["$defs"][name] };
        let keys: BTreeSet<&String> =
            map["properties"].as_object().unwrap_or_else(|| panic!("{name}")).keys().collect();
        for key in &keys {
            assert!(!is_unknown(&document(key), key), "the parser does not know `{key}` of `{name}`");
        }
        let text = document("zzz");
        assert!(is_unknown(&text, "zzz"), "the parser takes any key of `{name}`:\n{text}");
        let refused = !complaints(&text).is_empty();
        assert_eq!(
            refused,
            compile(&text).errors().next().is_some(),
            "`{name}` is as strict in both:\n{text}"
        );
    }
}

#[test]
fn every_key_that_the_parser_names_is_in_the_schema() {
    let schema = of_playbooks();
    for (name, document) in maps() {
        let map = if name.is_empty() { &schema } else { &schema["$defs"][name] };
        // Close to nothing: the hint lists what there is, where that is little enough to be read.
        let text = document("qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq");
        let diagnostic = compile(&text).diagnostics;
        let hints = diagnostic
            .iter()
            .filter_map(|diagnostic| diagnostic.hint.as_deref()?.strip_prefix("known here: "));
        for key in hints.flat_map(|hint| hint.split(", ")) {
            let key = key.trim_matches('`');
            assert!(map["properties"].get(key).is_some(), "the schema of `{name}` lacks `{key}`");
        }
    }
}

#[test]
fn every_definition_is_used_and_every_map_is_compared() {
    let schema = of_playbooks();
    let text = schema.to_string();
    let compared: BTreeSet<&str> = maps().into_iter().map(|(name, _)| name).collect();
    for (name, definition) in schema["$defs"].as_object().expect("definitions") {
        assert!(text.contains(&format!("\"#/$defs/{name}\"")), "`{name}` is never used");
        let free = ["metadata", "tool_spec"].contains(&name.as_str());
        if definition.get("properties").is_some() && !free {
            assert!(compared.contains(name.as_str()), "`{name}` is not compared with the parser");
        }
    }
}

#[test]
fn the_examples_are_good() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).expect("examples").filter_map(Result::ok).map(|file| file.path());
    let yaml: Vec<_> = files.filter(|file| file.extension().is_some_and(|kind| kind == "yaml")).collect();
    assert!(yaml.len() >= 4);
    for file in yaml {
        accepts(&std::fs::read_to_string(&file).expect("a text"));
    }
}

#[test]
fn what_is_wrong_by_its_shape_is_refused_by_both() {
    for steps in [
        "[]",
        "[a]",
        "[{desc: x}]",
        "[{step: a, when: x, next: []}]",
        "[{step: a, nxt: b}]",
        "[{step: a, next: {spec: {mode: all}, arcs: []}}]",
        "[{step: a, next: {arcs: [{when: x}]}}]",
        "[{step: a, next: {arcs: [{step: a, set: {x: 1}}]}}]",
        "[{step: a, tool: {code: x}}]",
        "[{step: a, tool: []}]",
        "[{step: a, tool: {kind: shell}}]",
        "[{step: a, tool: {kind: http, method: GET}}]",
        "[{step: a, tool: {kind: noop, args: 3}}]",
        "[{step: a, tool: {kind: noop}, loop: {in: [1]}}]",
        "[{step: a, tool: {kind: noop}, loop: {in: items, iterator: i}}]",
        "[{step: a, tool: {kind: noop}, loop: {in: [1], iterator: i, spec: {mode: cursor}}}]",
        "[{step: a, tool: {kind: noop}, loop: {in: [1], iterator: i, spec: {max_in_flight: 0, mode: parallel}}}]",
        "[{step: a, next: [], spec: {timeout: soon}}]",
        "[{step: a, next: [], spec: {policy: {admit: {}}}}]",
        "[{step: a, next: [], spec: {policy: {admit: {rules: [{when: x, then: {allow: maybe}}]}}}}]",
        "[{step: a, tool: {kind: noop, spec: {policy: {}}}}]",
        "[{step: a, tool: {kind: noop, spec: {policy: {rules: [{then: {do: fail}}]}}}}]",
        "[{step: a, tool: {kind: noop, spec: {policy: {rules: [{else: {do: stop}}]}}}}]",
        "[{step: a, tool: {kind: noop, spec: {policy: {rules: [{when: x, then: {set_ctx: {}}}]}}}}]",
        "[{step: a, tool: {kind: noop, spec: {policy: {rules: [{else: {do: retry, backoff: slow}}]}}}}]",
    ] {
        refuses(&format!("metadata: {{name: t}}\nworkflow: {steps}"));
    }
    let steps = "\nworkflow: [{step: a, next: []}]";
    for root in [
        "vars: {x: 1}",
        "kind: Job",
        "workload: [1]",
        "executor: local",
        "executor: {spec: {failure: fast}}",
        "executor: {profile: somewhere}",
        "adapters: {tools: {duckdb: {code: x}}}",
        "adapters: {tool: {}}",
        "keychain: {}",
    ] {
        refuses(&format!("metadata: {{name: t}}\n{root}{steps}"));
    }
}

#[test]
fn short_forms_are_accepted() {
    for steps in [
        "- {step: a, next: a}",
        "- {step: a, next: [a, {step: a, when: true}]}",
        "- {step: a, next: {step: a, when: x}}",
        "- {step: a, tool: [{kind: noop}, {name: b, kind: noop}, {c: {kind: shell, cmds: [ls]}}], next: }",
        "- step: a\n  tool: {kind: http, spec: {url: 'http://x', timeout: {connect: 1}}}",
        "- step: a\n  tool: {kind: noop, spec: {policy: {rules: [{when: x, then: {do: retry, attempts: '3', delay: '0.5'}}, {else: {do: continue}}]}}}",
        "- step: a\n  tool: {kind: noop, spec: {policy: {rules: [{else: , then: {do: continue, set: {ctx.n: 1, iter.m: 2}}}]}}}",
    ] {
        let text = playbook(steps);
        assert!(compile(&text).errors().next().is_none(), "{text}");
        accepts(&text);
    }
}
