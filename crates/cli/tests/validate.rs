//! `windlass validate` from outside: exit codes, output streams, JSON.

use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const GOOD: &str = "metadata: {name: good}\nworkflow:\n- {step: a, next: b}\n- {step: b, tool: {kind: shell, command: ls}}\n";
const WARNED: &str =
    "metadata: {name: odd}\nextra: 1\nworkflow:\n- {step: a, tool: {kind: shell, command: ls}}\n";
const BAD: &str =
    "metadata: {name: bad}\nworkflow:\n- {step: ship, next: shp}\n- {step: b, when: x, next: ship}\n";

/// Exit code, stdout, stderr.
fn validate(args: &[&str], stdin: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .arg("validate")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("windlass can be started");
    child.stdin.take().expect("a pipe").write_all(stdin.as_bytes()).expect("stdin is read");
    let Output { status, stdout, stderr } = child.wait_with_output().expect("windlass ends");
    let text = |bytes| String::from_utf8(bytes).expect("the output is text");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}

fn check(text: &str, code: i32, stdout: &str) -> String {
    let (found, out, err) = validate(&["-"], text);
    assert_eq!((found, out.as_str()), (code, stdout), "{err}");
    err
}

fn output(text: &str) -> Value {
    let (_, out, err) = validate(&["-", "--json"], text);
    assert_eq!(err, "");
    serde_json::from_str(&out).expect("one JSON object")
}

#[test]
fn a_valid_definition_is_reported_on_stdout_and_exits_0() {
    assert_eq!(check(GOOD, 0, "<stdin>: playbook good, 2 steps, no problem\n"), "");
}

#[test]
fn a_broken_json_document_is_not_called_yaml() {
    let err = check("{\"name\": \"w\",\n \"nodes\": [1, 2}", 2, "");
    assert!(
        err.starts_with("error[E0001]: this is not JSON: expected `,` or `]`\n --> <stdin>:2:16\n"),
        "{err}"
    );
    assert!(err.contains("look for a comma, a quote or a bracket") && !err.contains("YAML"), "{err}");
    let err = check("workflow:\n\t- step: a\n", 2, "");
    assert!(err.contains("this is not YAML") && err.contains("replace the tab"), "{err}");
    check(
        "{metadata: {name: flow}, workflow: [{step: a, tool: {kind: shell, command: ls}}]}",
        0,
        "<stdin>: playbook flow, 1 step, no problem\n",
    );
}

#[test]
fn a_document_that_is_nested_too_deep_is_called_that() {
    for text in [
        format!("{{\"x\": {}1{}}}", "[".repeat(5_000), "]".repeat(5_000)),
        format!("x: {}", "[".repeat(5_000)),
    ] {
        let err = check(&text, 2, "");
        assert!(err.starts_with("error[E0002]: the document is nested more than 64 deep\n"), "{err}");
    }
}

#[test]
fn warnings_leave_a_definition_valid() {
    let err = check(WARNED, 0, "<stdin>: playbook odd, 1 step, 1 warning\n");
    assert!(err.starts_with("warning[W0201]: a playbook has no key `extra`\n --> <stdin>:2:1\n"), "{err}");
}

#[test]
fn pbk_26_pbk_27_an_invalid_definition_exits_2_and_reports_every_problem() {
    let err = check(BAD, 2, "");
    for part in [
        "error[E0107]: step `shp` is not defined",
        "--> <stdin>:3:22",
        "did you mean `ship`?",
        "error[E0106]: a step has no `when`",
        "spec.policy.admit",
        "<stdin>: 2 errors",
    ] {
        assert!(err.contains(part), "{part} is missing:\n{err}");
    }
}

#[test]
fn json_has_the_verdict_and_the_problems() {
    let good = json!({ "valid": true, "dialect": "playbook", "name": "good", "errors": [], "warnings": [] });
    assert_eq!(output(GOOD), good);
    let bad = output(BAD);
    assert_eq!((&bad["valid"], bad["errors"].as_array().map(Vec::len)), (&json!(false), Some(2)));
    let first = json!({
        "severity": "error", "code": "E0107", "message": "step `shp` is not defined", "line": 3, "column": 22,
        "hint": "did you mean `ship`?", "path": "workflow[0].next",
    });
    assert_eq!(bad["errors"][0], first);
    assert_eq!(output("nodes: []")["dialect"], "workflow");
    assert_eq!(output("")["dialect"], Value::Null);
}

#[test]
fn a_file_that_cannot_be_read_exits_2() {
    let (code, out, err) = validate(&["no/such/file.yaml"], "");
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.starts_with("error: cannot read no/such/file.yaml"), "{err}");
    let folder = env!("CARGO_MANIFEST_DIR");
    assert_eq!(validate(&[folder], "").0, 2);
}

#[test]
fn every_example_is_valid_without_a_warning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let all = std::fs::read_dir(folder).expect("examples").map(|file| file.expect("a file").path());
    let is_definition = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "yaml");
    let files: Vec<PathBuf> = all.filter(is_definition).collect();
    assert!(files.len() >= 3);
    for file in files {
        let name = file.display().to_string();
        let (code, out, err) = validate(&[&name], "");
        assert_eq!((code, err.as_str()), (0, ""), "{name}");
        assert!(out.ends_with("no problem\n"), "{out}");
    }
}

#[test]
fn schemas_of_dialects_and_of_the_api_are_printed() {
    let schema = |dialect: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass")).args(["schema", dialect]).output();
        let output = output.expect("windlass ends");
        (output.status.code(), output.stdout, String::from_utf8(output.stderr).expect("text"))
    };
    let (code, out, err) = schema("playbook");
    let output: Value = serde_json::from_slice(&out).expect("one JSON object");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(output["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(output["properties"]["kind"]["const"], "Playbook");
    let (code, out, _) = schema("api");
    let document: Value = serde_json::from_slice(&out).expect("one JSON object");
    assert_eq!((code, document["paths"]["/healthz"].is_object()), (Some(0), true));
    let (code, out, err) = schema("recipe");
    assert_eq!((code, out.len()), (Some(2), 0));
    assert_eq!(
        err,
        "error: there is no schema of `recipe`\n  hint: schemas exist for: playbook, workflow, actions, plan, api\n"
    );
}
