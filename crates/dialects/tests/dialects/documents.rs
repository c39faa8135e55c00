//! Texts before they are definitions: YAML, JSON, bounds, dialects, and how a problem is shown.

use crate::compiled::{check, lowers, playbook};
use windlass_dialects::{Dialect, compile};

#[test]
fn broken_yaml_is_refused_with_its_position() {
    check("", &["E0001 1:1 : the document is empty"]);
    check(
        "a: [1,",
        &[
            "E0001 1:4 : this is not YAML: unclosed bracket '[' (look for an indent, a quote or a bracket here or just before)",
        ],
    );
    check(
        "a: 'b\n",
        &[
            "E0001 2:1 : this is not YAML: invalid indentation in multiline quoted scalar (look for an indent, a quote or a bracket here or just before)",
        ],
    );
    check(
        "workflow: [{step: a, next: *b}]",
        &[
            "E0001 1:28 : this is not YAML: while parsing node, found unknown anchor (look for an indent, a quote or a bracket here or just before)",
        ],
    );
    check(
        "workflow: [{step: a}]\n---\nb: 1\n",
        &["E0004 2:1 : a file holds one document; this is the second"],
    );
    check("? [a, b]\n: c\n", &["E0004 1:3 : a key must be a string, not a list or map"]);
    check(
        "workflow: !mine [{step: a}]\nmetadata: {name: t}",
        &[
            "E0004 1:17 workflow: the tag `!mine` has no meaning here",
            "W0205 1:25 workflow[0].step: step `a` does nothing (add `tool` or `next`; a branch ends at any step without `next`)",
        ],
    );
}

#[test]
fn duplicate_keys_are_errors_at_the_second_one() {
    check(
        &playbook("- step: a\n  desc: x\n  tool: {kind: noop}\n  desc: y"),
        &[
            "E0003 6:3 workflow[0].desc: key `desc` is defined twice (a map has each key once; remove or rename one)",
        ],
    );
}

#[test]
fn json_is_read_as_it_is() {
    lowers(
        "{\"metadata\": {\"name\": \"t\"},\n\t\"workflow\": [\n\t{\"step\": \"a\\u00e9\\ud83d\\ude00\", \"next\": \"b\"},\n\t{\"step\": \"b\", \"next\": []}]}",
        &["aé😀: pure -> b", "b: pure"],
    );
}

#[test]
fn anchors_and_merge_keys_repeat_parts() {
    let text = "metadata: {name: t}\nworkflow:\n- step: a\n  spec: &s {timeout: 5s}\n  next: b\n- &b {step: b, spec: *s, tool: {kind: noop}}\n- {<<: *b, step: c}\n";
    lowers(
        &text.replace("next: b", "next: {spec: {mode: inclusive}, arcs: [b, c]}"),
        &["a: pure within 5000 ms => b => c", "b: pure within 5000 ms", "c: pure within 5000 ms"],
    );
}

#[test]
fn bombs_are_bounded() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let below = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "));
    }
    check(&bomb, &["E0002 5:40 : the document has more than 100000 values, or aliases that repeat too much"]);
    let deep = format!("workflow: {}{}", "[".repeat(500), "]".repeat(500));
    check(&deep, &["E0002 1:75 : the document is nested more than 64 deep"]);
    let long = format!("# {}\nworkflow: []", "x".repeat(5 << 20));
    check(
        &long,
        &[
            "E0002 1:1 : the document has 5242895 bytes; 4194304 are allowed (keep data in files that steps read)",
        ],
    );
    let one = format!("- &t '{}'\n", "x".repeat(1 << 20));
    check(
        &format!("{one}{}", "- *t\n".repeat(1_000)),
        &["E0002 5:3 : the document has more than 100000 values, or aliases that repeat too much"],
    );
}

#[test]
fn the_dialect_is_found_by_the_shape_and_others_are_refused() {
    let cases = [
        ("workflow: [{step: a, next: []}]", Some("playbook")),
        ("kind: Playbook", Some("playbook")),
        ("nodes: []\nedges: []", Some("workflow")),
        ("actions: []", Some("actions")),
        ("steps: []", Some("plan")),
        ("spec: {steps: []}", Some("plan")),
        ("a: 1", None),
        ("[1, 2]", None),
        ("text", None),
    ];
    for (text, dialect) in cases {
        assert_eq!(compile(text).dialect.map(Dialect::name), dialect, "{text}");
    }
    check(
        "steps: []",
        &[
            "E0104 1:8 steps: the plan has no steps (write `steps:` and under it `- {id: NAME, action: shell, args: {values: {script: ...}}}`)",
        ],
    );
    check(
        "a: 1",
        &[
            "E0005 1:1 : this is not a definition: a map without steps (a playbook has a list `workflow` whose entries have a name `step`; a workflow has `nodes` and `edges`; a workflow of actions has a list `actions`; a plan has a list `steps`)",
        ],
    );
}

#[test]
fn a_problem_is_shown_with_its_line() {
    let text = playbook("- step: a\n  next: shp\n- step: ship\n  next: []\n");
    let rendered = compile(&text).diagnostics[0].render(&text, "deploy.yaml");
    let shown = "error[E0107]: step `shp` is not defined
 --> deploy.yaml:4:9
  |
4 |   next: shp
  |         ^^^
  = hint: did you mean `ship`?
";
    assert_eq!(rendered, shown);
}

#[test]
fn a_long_line_is_shown_around_the_problem() {
    let text =
        format!("metadata: {{name: {}}}\nworkflow: [{{step: a, desc: {}, next: b}}]", "n", "é".repeat(500));
    let rendered = compile(&text).diagnostics[0].render(&text, "f");
    let lines: Vec<&str> = rendered.lines().collect();
    let under = lines[4].find('^').unwrap();
    assert_eq!(lines[3].chars().nth(under), Some('b'), "{rendered}");
}

#[test]
fn json_of_a_problem_has_the_documented_fields() {
    let rendered = serde_json::to_value(&compile(&playbook("- {step: a, next: b}")).diagnostics[0]).unwrap();
    let expected = serde_json::json!({
        "severity": "error", "code": "E0107", "message": "step `b` is not defined", "line": 3, "column": 19,
        "hint": "known here: `a`", "path": "workflow[0].next",
    });
    assert_eq!(rendered, expected);
}

#[test]
fn names_in_a_message_neither_steer_a_terminal_nor_fill_it() {
    let text =
        format!("metadata: {{name: t}}\nworkflow: [{{step: a, next: \"\\e[31m{}\"}}]", "x".repeat(10_000));
    let rendered = compile(&text).diagnostics[0].render(&text, "f");
    assert!(rendered.len() < 2_000 && !rendered.contains('\u{1b}'), "{rendered}");
}
