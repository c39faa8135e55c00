//! Inputs of plans and of their steps: how they are bound, their defaults, their schemas, and bad ones.

use crate::plans::{find, output, planning, ran, refused};
use serde_json::json;
use std::fs;

#[test]
fn pln_23_pln_24_inputs_say_how_they_were_bound() {
    let place = planning(
        r#"
params: [{name: given}, {name: usual, default: u}, {name: open}]
steps:
- id: a
  action: {script: "ls context > outputs/files", params: [{name: one}, {name: two, default: 2}, {name: three}, {name: four, schema: {}}, {name: five}], outputs: [{name: files}]}
  args: {values: {one: 1}, refs: {four: params.usual, five: params.open}}
"#,
    );
    let run = ran(&place, &["--input", "given=x"], 0);
    assert_eq!(
        run["view"]["status"]["inputs"],
        json!([
            { "name": "given", "resolvedVia": "literal" },
            { "name": "usual", "resolvedVia": "default" },
            { "name": "open", "resolvedVia": "unbound" },
        ])
    );
    assert_eq!(
        find(&run, "a")["inputs"],
        json!([
            { "name": "one", "resolvedVia": "literal" },
            { "name": "two", "resolvedVia": "default" },
            { "name": "three", "resolvedVia": "unbound" },
            { "name": "four", "resolvedVia": "ref", "ref": "params.usual" },
            { "name": "five", "resolvedVia": "unbound" },
        ])
    );
    assert_eq!(
        output(find(&run, "a"), "files")["value"],
        "four.json\none\ntwo\n",
        "unbound inputs have no file"
    );
}

#[test]
fn pln_24_an_input_whose_reference_has_no_value_has_its_default() {
    let place = planning(
        r#"
params: [{name: c}, {name: obj, schema: {}, default: {}}, {name: known, default: k}]
steps:
- {id: make, action: {script: "echo '{}' > outputs/o.json", outputs: [{name: o, schema: {}}, {name: absent}]}}
- id: s
  action:
    params: [{name: b, default: DEF}, {name: r, required: true, default: RDEF}, {name: p, required: true, default: PDEF}, {name: a, default: ADEF}, {name: n, default: NDEF}, {name: none}, {name: k, default: KDEF}]
    outputs: [{name: all}]
    script: for f in b r p a n k; do echo $f $(cat context/$f); done > outputs/all; ls context/none
  args: {refs: {b: params.c, r: params.obj.q, p: steps.make.outputs.o.part, a: steps.make.outputs.absent, n: params.c, none: params.c, k: params.known}}
  condition: "n == 'NDEF' and p == 'PDEF' and k == 'k' and none == nil"
"#,
    );
    let run = ran(&place, &[], 1);
    let step = find(&run, "s");
    assert!(
        step["error"].as_str().is_some_and(|error| error.contains("context/none")),
        "it has no file: {run}"
    );
    let text = place.path("play.yaml");
    place.write("play.yaml", &fs::read_to_string(text).expect("the plan").replace("; ls context/none", ""));
    let run = ran(&place, &[], 0);
    let step = find(&run, "s");
    assert_eq!(output(step, "all")["value"], "b DEF\nr RDEF\np PDEF\na ADEF\nn NDEF\nk k\n");
    let via: Vec<&str> = step["inputs"]
        .as_array()
        .expect("inputs")
        .iter()
        .map(|input| input["resolvedVia"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(via, ["default", "default", "default", "default", "default", "unbound", "ref"]);
}

#[test]
fn a_required_input_without_a_value_is_refused_before_anything_runs() {
    let place = planning(
        "params: [{name: n}, {name: o, schema: {}}]\nsteps:\n- {id: a, action: {script: 'true', params: [{name: x, required: true}, {name: y, required: true}]}, args: {refs: {x: params.n, y: params.o.part}}}\n",
    );
    let said = refused(&place, &["--input", "o={}"]).err;
    for part in ["inputs.n", "it is the required input `x` of step `a`", "inputs.o", "has no `.part`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    ran(&place, &["--input", "n=1", "--input", "o={\"part\": 1}"], 0);
}

#[test]
fn a_parameter_without_a_schema_is_a_text() {
    let place = planning(
        "params: [{name: v}, {name: n, default: 1}, {name: s, schema: {}}]\nsteps:\n- {id: a, action: {script: 'cat context/v; echo; cat context/n; echo; cat context/s.json', params: [{name: v}, {name: n}, {name: s, schema: {}}]}, args: {refs: {v: params.v, n: params.n, s: params.s}}, condition: 'n > 1'}\n",
    );
    for (given, expected) in [
        ("1.10", "1.10"),
        ("1e3", "1e3"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("[1, 2]", "[1, 2]"),
    ] {
        let v = format!("v={given}");
        let run = ran(&place, &["--input", &v, "--input", "n=20", "--input", "s=1.10"], 0);
        assert_eq!(find(&run, "a")["logs"][0]["value"], format!("{expected}\n20\n1.1"), "{run}");
        assert_eq!(run["view"]["spec"]["params"], json!({ "v": expected, "n": 20, "s": 1.1 }));
    }
}

#[test]
fn pln_23_parameters_of_any_size_are_passed_on_with_the_secrets_next_to_them() {
    let place = planning(
        "params: [{name: p}, {name: q}, {name: r, default: d}, {name: t}]\nsteps:\n- {id: a, action: {script: 'wc -c < context/p; cat context/q; echo; wc -c < context/t', params: [{name: p}, {name: q}, {name: t, required: true}]}, args: {refs: {p: params.p, q: params.q, t: params.t}}}\n",
    );
    place.given(&["secrets", "set", "prod"], "large-planted-value").expect(0);
    for bytes in [1_000, 100_000, 1_060_000, 3_900_000] {
        place.write("in.json", &json!({ "p": "x".repeat(bytes), "q": "small" }).to_string());
        let run = ran(&place, &["--inputs", "@in.json", "--param-secret", "t=prod"], 0);
        let log = &find(&run, "a")["logs"][0]["value"];
        assert_eq!(*log, format!("{bytes}\nsmall\n19\n"));
        let (spec, status) = (&run["view"]["spec"], &run["view"]["status"]);
        assert_eq!((&spec["secrets"], &spec["params"]["q"]), (&json!({ "t": "prod" }), &json!("small")));
        let p = &spec["params"]["p"];
        let is_shown = p.as_str().is_some_and(|text| text.len() == bytes);
        assert!(is_shown || (p["$omitted"] == true && p["url"].is_string()), "{p}");
        assert_eq!(spec["params"].as_object().map(serde_json::Map::len), Some(2));
        assert_eq!(
            status["inputs"],
            json!([
                { "name": "p", "resolvedVia": "literal" },
                { "name": "q", "resolvedVia": "literal" },
                { "name": "r", "resolvedVia": "default" },
                { "name": "t", "resolvedVia": "callerSecret", "secretName": "prod" },
            ])
        );
    }
}

#[test]
fn pln_05_pln_29_bad_inputs_are_refused_before_anything_runs() {
    let place = planning(
        "params: [{name: n, required: true, schema: {type: integer}}]\nsteps:\n- {id: a, action: {script: 'touch ran', params: [{name: n}]}, args: {refs: {n: params.n}}}\n",
    );
    assert!(refused(&place, &[]).err.contains("is required: give it a value, or bind it to a secret"));
    assert!(refused(&place, &["--input", "n=x"]).err.contains("inputs.n"));
    assert!(refused(&place, &["--input", "n=1", "--input", "m=1"]).err.contains("m"));
    assert!(refused(&place, &["--input", "n=1", "--param-secret", "n=s"]).err.contains("keep one of them"));
    assert!(refused(&place, &["--param-secret", "m=s"]).err.contains("m"));
    assert!(refused(&place, &["--param-secret", "n"]).err.contains("PARAM=SECRET"));
}

#[test]
fn parameters_that_are_too_large_together_are_refused_before_the_plan_is_stored() {
    let default = "x".repeat(70_000);
    let place = planning(&format!(
        "params: [{{name: l, default: {default}}}]\nsteps: [{{id: a, action: {{script: 'true'}}}}]\n"
    ));
    let said = refused(&place, &[]).err;
    assert!(
        said.contains("the parameters are together no usable schema") && said.contains("play.yaml:1:17"),
        "{said}"
    );
}
