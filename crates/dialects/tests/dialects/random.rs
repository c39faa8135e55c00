//! Every input text results in diagnostics or a Net, never in a panic.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_dialects::{DIAGNOSTICS_MAX, compile};

fn survives(text: &str) {
    let compiled = compile(text);
    assert_eq!(compiled.net.is_some(), compiled.errors().next().is_none());
    assert!(compiled.diagnostics.len() <= DIAGNOSTICS_MAX + 1);
    for diagnostic in &compiled.diagnostics {
        assert!(diagnostic.line >= 1 && diagnostic.column >= 1);
        let _ = diagnostic.render(text, "f");
    }
}

/// Words of the language, so that random trees reach deep into it.
const WORDS: [&str; 46] = [
    "step",
    "next",
    "tool",
    "kind",
    "noop",
    "shell",
    "command",
    "spec",
    "policy",
    "rules",
    "when",
    "then",
    "else",
    "do",
    "retry",
    "jump",
    "to",
    "loop",
    "in",
    "iterator",
    "args",
    "set_ctx",
    "arcs",
    "mode",
    "parallel",
    "admit",
    "allow",
    "a",
    "b",
    "workbook",
    "name",
    "playbook",
    "path",
    "timeout",
    "{{ a }}",
    "{{ ctx.b",
    "{% if %}",
    "é",
    "executor",
    "entry_step",
    "vars",
    "continue",
    "attempts",
    "<<",
    "30s",
    "previous",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![proptest::sample::select(&WORDS[..]).prop_map(str::to_owned), ".{0,6}"]
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((word(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn step() -> impl Strategy<Value = Value> {
    (proptest::sample::select(&["a", "b", "c"][..]), tree(), tree(), tree(), tree()).prop_map(
        |(name, next, tool, spec, repeat)| {
            json!({ "step": name, "next": next, "tool": [{ "kind": "noop", "spec": tool }, tool], "spec": spec, "loop": repeat })
        },
    )
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        survives(&text);
    }

    #[test]
    fn any_lines_of_yaml_signs_are_survived(text in "([ \\-:\\[\\]{}&*!|>'\"%#?,ab\n\t~<]{0,12}\n){0,12}") {
        survives(&text);
        survives(&format!("workflow:\n{text}"));
    }

    #[test]
    fn any_tree_is_survived(root in tree(), steps in proptest::collection::vec(tree(), 0..4)) {
        survives(&root.to_string());
        survives(&json!({ "workflow": steps, "executor": root, "workbook": root }).to_string());
    }

    #[test]
    fn any_steps_are_survived(steps in proptest::collection::vec(step(), 1..4)) {
        survives(&json!({ "metadata": { "name": "t" }, "workflow": steps }).to_string());
    }

    #[test]
    fn a_good_playbook_cut_anywhere_is_survived(cut in 0usize..2_000) {
        let text = include_str!("../../../../examples/fanout.yaml");
        let end = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        survives(&text[..end]);
    }
}
