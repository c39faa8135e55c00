//! Plans: steps are real processes in work dirs of their own, and the view is the document's `{id, spec, status}`.

use crate::receiver;
use crate::rig::{CommandOutput, Place, files, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// A folder with a plan in `play.yaml`.
fn planning(text: &str) -> Place {
    let place = Place::new();
    place.write("play.yaml", text);
    place
}

#[track_caller]
fn ran(place: &Place, args: &[&str], code: i32) -> Value {
    place.run(args, code)
}

fn refused(place: &Place, args: &[&str]) -> CommandOutput {
    let args: Vec<&str> = ["run", "play.yaml"].into_iter().chain(args.iter().copied()).collect();
    place.windlass(&args).expect(2)
}

fn find<'v>(run: &'v Value, id: &str) -> &'v Value {
    let steps = run["view"]["status"]["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["id"] == id).unwrap_or_else(|| panic!("no step {id}: {run}"))
}

fn output<'v>(entry: &'v Value, name: &str) -> &'v Value {
    let outputs = entry["outputs"].as_array().unwrap_or_else(|| panic!("no outputs: {entry}"));
    outputs
        .iter()
        .find(|output| output["name"] == name)
        .unwrap_or_else(|| panic!("no output {name}: {entry}"))
}

fn phases(run: &Value) -> String {
    let steps = run["view"]["status"]["steps"].as_array().expect("steps");
    let each = steps.iter().map(|step| format!("{} {}", step["id"], step["phase"]).replace('"', ""));
    each.collect::<Vec<_>>().join(", ")
}

#[test]
fn pln_01_pln_13_pln_20_pln_21_pln_22_pln_28_a_plan_runs_in_the_order_of_its_references() {
    let place = planning(
        r#"
params: [{name: who, required: true}]
steps:
- {id: last, action: shell, extraInputs: [{name: a, schema: {}}, {name: b}], extraOutputs: [{name: all}],
   args: {values: {script: "cat context/a.json context/b > outputs/all"}, refs: {a: steps.first.outputs.data.list, b: steps.second.outputs.text}}}
- {id: second, action: {script: "cat context/who > outputs/text", params: [{name: who}], outputs: [{name: text, metadata: {contentType: text/plain}}]}, args: {refs: {who: steps.first.outputs.name}}}
- {id: first, action: {script: "cp context/who outputs/name; echo '{\"list\": [1, 2]}' > outputs/data.json", params: [{name: who}], outputs: [{name: name}, {name: data, schema: {type: object}}]}, args: {refs: {who: params.who}}}
output: {all: steps.last.outputs.all, second: "steps.first.outputs.data.list[1]", text: steps.second.outputs.text}
"#,
    );
    let run = ran(&place, &["--input", "who=Ada"], 0);
    assert_eq!(run["outputs"], json!({ "all": "[1,2]Ada", "second": 2, "text": "Ada" }));
    assert_eq!((&run["dialect"], &run["status"]), (&json!("plan"), &json!("completed")));
    let (view, status) = (&run["view"], &run["view"]["status"]);
    assert_eq!(view["id"], run["executionId"]);
    assert!(view["spec"]["planID"].as_str().is_some_and(|id| id.starts_with("pl_")), "{view}");
    assert_eq!(view["spec"]["params"], json!({ "who": "Ada" }));
    assert_eq!(phases(&run), "last completed, second completed, first completed");
    assert_eq!(status["phase"], "completed");
    let counts = json!({ "init": 0, "waiting": 0, "running": 0, "completed": 3, "failed": 0, "skipped": 0 });
    assert_eq!(status["stepCounts"], counts);
    assert!(status["runnerHost"].as_str().is_some_and(|host| !host.is_empty()), "{status}");
    for time in ["createdAt", "updatedAt", "completedAt"] {
        assert!(
            status[time].as_str().is_some_and(|at| at.ends_with('Z') && at.contains('T')),
            "{time}: {status}"
        );
    }
    assert_eq!(
        *output(status, "second"),
        json!({ "name": "second", "value": 2, "stepRef": { "stepID": "first", "outputName": "data" }, "drill": ["list", "1"] })
    );
    assert_eq!(output(status, "text")["metadata"], json!({ "contentType": "text/plain" }));
    assert!(output(status, "text").get("drill").is_none());
    assert!(status.get("error").is_none());
}

/// Notes when each step begins, in the folder of the test.
fn noting(place: &Place, script: &str) -> String {
    format!("echo $SIGNADOT_PLAN_STEP_ID >> {}; {script}", place.path("ran").display())
}

#[test]
fn pln_11_pln_12_pln_25_pln_26_pln_27_a_failed_step_is_not_retried_and_skips_only_its_dependents() {
    let place = Place::new();
    let script = |script: &str| json!(noting(&place, script));
    let step = |id: &str, script: Value, refs: Value| json!({ "id": id, "action": { "script": script, "params": [{ "name": "x" }], "outputs": [{ "name": "o" }] }, "args": { "refs": refs } });
    let plan = json!({ "steps": [
        step("bad", script("echo said; echo oh no >&2; echo 1 > outputs/o; exit 3"), json!({})),
        step("after", script("true"), json!({ "x": "steps.bad.outputs.o" })),
        step("later", script("true"), json!({ "x": "steps.after.outputs.o" })),
        step("apart", script("echo 1 > outputs/o"), json!({})),
        step("next", script("true"), json!({ "x": "steps.apart.outputs.o" })),
    ], "output": { "lost": "steps.later.outputs.o" } });
    place.write("play.yaml", &plan.to_string());
    let run = ran(&place, &[], 1);
    assert_eq!(phases(&run), "bad failed, after skipped, later skipped, apart completed, next completed");
    assert_eq!(run["view"]["status"]["phase"], "failed");
    let bad = find(&run, "bad");
    assert!(bad["error"].as_str().is_some_and(|error| error.contains("exit code 3: oh no")), "{bad}");
    assert!(bad.get("outputs").is_none(), "outputs belong to completed steps: {bad}");
    assert_eq!(
        bad["logs"],
        json!([{ "stream": "stdout", "value": "said\n" }, { "stream": "stderr", "value": "oh no\n" }])
    );
    let after = find(&run, "after");
    assert!(after.get("inputs").is_none() && after.get("logs").is_none(), "a skipped step has none: {after}");
    assert_eq!(output(find(&run, "apart"), "o")["value"], "1\n");
    let ran = fs::read_to_string(place.path("ran")).expect("notes");
    assert_eq!(ran.lines().filter(|line| *line == "bad").count(), 1, "{ran}");
    assert!(run["view"]["status"].get("error").is_none(), "the failure is the step's: {run}");
}

#[test]
fn pln_15_a_false_condition_skips_a_step_and_what_depends_on_it() {
    let place = planning(
        r#"
params: [{name: code, schema: {type: integer}, default: 200}]
steps:
- {id: alert, action: {script: "echo x > outputs/o", params: [{name: code}], outputs: [{name: o}]}, args: {refs: {code: params.code}}, condition: "code >= 500 and code != nil"}
- {id: page, action: {script: "true", params: [{name: o}]}, args: {refs: {o: steps.alert.outputs.o}}}
output: {o: steps.alert.outputs.o}
"#,
    );
    let run = ran(&place, &[], 0);
    assert_eq!(phases(&run), "alert skipped, page skipped");
    assert_eq!((&run["view"]["status"]["phase"], &run["outputs"]), (&json!("completed"), &json!({})));
    let run = ran(&place, &["--input", "code=503"], 0);
    assert_eq!(
        (phases(&run).as_str(), &run["outputs"]["o"]),
        ("alert completed, page completed", &json!("x\n"))
    );
}

#[test]
fn pln_15_a_condition_that_cannot_be_evaluated_fails_its_step_and_is_shown_as_it_was_written() {
    let place = planning(
        r#"
params: [{name: count}]
steps:
- {id: many, action: {script: "true", params: [{name: n}]}, args: {refs: {n: params.count}}, condition: "int(n) > 5"}
"#,
    );
    assert_eq!(phases(&ran(&place, &["--input", "count=7 \n"], 0)), "many completed");
    let run = ran(&place, &["--input", "count=several"], 1);
    let error = &run["errors"][0];
    let expected = "`int(n) > 5` cannot be evaluated: `int` needs a number, and the text is not one";
    assert_eq!((&error["nodeId"], &error["message"]), (&json!("many"), &json!(expected)), "{run}");
}

#[test]
fn pln_17_pln_18_pln_19_pln_36_steps_have_the_variables_and_dirs_of_the_document() {
    let place = planning(
        r#"
steps:
- id: stage
  action:
    outputs: [{name: env}, {name: dirs}]
    script: |
      env | sort > outputs/env
      printf '#!/bin/sh\necho staged' > "$SIGNADOT_PLAN_EXECUTION_BINDIR/staged-tool"; chmod +x "$SIGNADOT_PLAN_EXECUTION_BINDIR/staged-tool"
      touch "$HOME/h" "$TMPDIR/t" "$SIGNADOT_PLAN_EXECUTION_SCRATCHDIR/shared"
      [ "$PWD" = "$SIGNADOT_PLAN_WORKDIR" ] && ls > outputs/dirs
- id: use-it
  action:
    params: [{name: env}]
    outputs: [{name: env}, {name: said}]
    env: {LEVEL: high, COPY: {input: env}}
    script: |
      env | sort > outputs/env; ls "$SIGNADOT_PLAN_EXECUTION_SCRATCHDIR"; ls -A "$HOME" "$TMPDIR" >&2
      staged-tool > outputs/said
  args: {refs: {env: steps.stage.outputs.env}}
"#,
    );
    let place = place
        .variable("SIGNADOT_ROUTING_KEY", "leaked")
        .variable("SIGNADOT_SANDBOX_NAME", "leaked")
        .variable("INHERITED", "yes")
        .variable("WINDLASS_MASTER_KEY", "bGVha2VkIGxlYWtlZCBsZWFrZWQgbGVha2VkIGxlYWs=");
    let run = ran(&place, &[], 0);
    let variables = |id: &str| -> std::collections::BTreeMap<String, String> {
        let text = output(find(&run, id), "env")["value"].as_str().expect("text").to_owned();
        text.lines()
            .filter_map(|line| line.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    };
    let (first, second) = (variables("stage"), variables("use-it"));
    for name in [
        "SIGNADOT_PLAN_EXECUTION_ID",
        "SIGNADOT_PLAN_STEP_ID",
        "SIGNADOT_PLAN_WORKDIR",
        "SIGNADOT_PLAN_EXECUTION_SCRATCHDIR",
        "SIGNADOT_PLAN_EXECUTION_BINDIR",
        "SIGNADOT_CACHE_DIR",
        "HOME",
        "TMPDIR",
        "SSL_CERT_FILE",
    ] {
        assert!(first.get(name).is_some_and(|value| !value.is_empty()), "{name}: {first:?}");
    }
    assert_eq!(first["SIGNADOT_PLAN_EXECUTION_ID"], run["executionId"]);
    assert_eq!(
        (first["SIGNADOT_PLAN_STEP_ID"].as_str(), second["SIGNADOT_PLAN_STEP_ID"].as_str()),
        ("stage", "use-it")
    );
    assert_eq!((first["INHERITED"].as_str(), second["LEVEL"].as_str()), ("yes", "high"));
    let bin = format!("{}/bin", first["SIGNADOT_PLAN_EXECUTION_SCRATCHDIR"]);
    assert_eq!(first["SIGNADOT_PLAN_EXECUTION_BINDIR"], bin);
    assert!(first["PATH"].starts_with(&format!("{bin}:")), "{first:?}");
    for dir in ["HOME", "TMPDIR"] {
        assert!(
            first[dir].starts_with(&first["SIGNADOT_PLAN_WORKDIR"]) && first[dir] != second[dir],
            "{dir}"
        );
    }
    let hidden =
        ["SIGNADOT_ROUTING_KEY", "SIGNADOT_SANDBOX_NAME", "SIGNADOT_ROUTEGROUP_NAME", "WINDLASS_MASTER_KEY"];
    assert!(hidden.iter().all(|name| !first.contains_key(*name)), "{first:?}");
    assert_eq!(output(find(&run, "use-it"), "said")["value"], "staged\n");
    assert_eq!(find(&run, "use-it")["logs"][0]["value"], "bin\nshared\n", "the scratch dir is shared");
    let dirs = output(find(&run, "stage"), "dirs")["value"].as_str().expect("text").to_owned();
    assert_eq!(dirs, "context\nhome\noutputs\ntmp\n");
    assert!(
        !fs::exists(&first["SIGNADOT_PLAN_WORKDIR"]).unwrap_or(true),
        "the dirs are gone after the execution"
    );
    assert!(!fs::exists(&first["SIGNADOT_PLAN_EXECUTION_SCRATCHDIR"]).unwrap_or(true));
}

#[test]
fn pln_17_a_literal_routing_key_is_the_only_variable_of_its_routing_context() {
    let place = planning(
        "steps:\n- {id: a, action: {script: 'env | grep SIGNADOT_ROUTING > outputs/o; env | grep -c SIGNADOT_SANDBOX >> outputs/o; true', outputs: [{name: o}]}, routingContext: {literal: {routingKey: k-7}}}\n",
    );
    let run = ran(&place, &[], 0);
    assert_eq!(output(find(&run, "a"), "o")["value"], "SIGNADOT_ROUTING_KEY=k-7\n0\n");
}

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
fn a_condition_that_compares_a_text_with_a_number_fails_its_step() {
    let place = planning(
        r#"
steps:
- {id: count, action: {script: "printf 5 > outputs/n", outputs: [{name: n}]}}
- {id: many, action: {script: "touch ran-many", params: [{name: n}]}, args: {refs: {n: steps.count.outputs.n}}, condition: "n > 100"}
- {id: few, action: {script: "true", params: [{name: n}]}, args: {refs: {n: steps.count.outputs.n}}, condition: "int(n) <= 100 and n != 5 and n == '5'"}
"#,
    );
    let run = ran(&place, &[], 1);
    assert_eq!(phases(&run), "count completed, many failed, few completed");
    let error = find(&run, "many")["error"].as_str().expect("an error").to_owned();
    let expected = "`>` compares two numbers or two texts, not a text and a number: declare a schema";
    assert!(error.contains(expected), "{error}");
    let bad = |condition: &str| {
        place.write("bad.yaml", &json!({ "steps": [{ "id": "a", "action": { "script": "true", "params": [{ "name": "n" }] }, "condition": condition }] }).to_string());
        place.windlass(&["validate", "bad.yaml"]).expect(2).err
    };
    assert!(bad("1 <= 2 <= 3").contains("follows a comparison: write `a < b and b < c`"));
    assert!(bad("n matches '(a{1000}){1000}'").contains("is not a regular expression"));
}

#[test]
fn pln_15_a_condition_has_predicates_over_the_items_of_a_list() {
    let place = planning(
        r#"
params: [{name: least, schema: {type: integer}, default: 500}, {name: codes, schema: {}, default: [200, 503]}]
steps:
- {id: look, action: {script: "echo '[{\"name\": \"web\", \"ready\": true}, {\"name\": \"db\", \"ready\": false}]' > outputs/pods.json", outputs: [{name: pods, schema: {type: array}}]}}
- {id: alert, action: {script: "true", params: [{name: codes, schema: {}}, {name: least, schema: {}}]}, args: {refs: {codes: params.codes, least: params.least}}, condition: "any(codes, {# >= least})"}
- {id: calm, action: {script: "true", params: [{name: codes, schema: {}}]}, args: {refs: {codes: params.codes}}, condition: "all(codes, # in 200..299) or len(filter(codes, # == 404)) == 1"}
- {id: restart, action: {script: "true", params: [{name: pods, schema: {}}]}, args: {refs: {pods: steps.look.outputs.pods}}, condition: "map(filter(pods, not .ready), {.name}) == ['db'] and one(pods, {.ready}) and count(pods, .ready) == 1"}
- {id: judge, action: check, extraInputs: [{name: pods, schema: {}}, {name: names, schema: {}}], args: {values: {expression: "all(names, {any(pods, {.name == 'web'}) and # != ''})", names: [web]}, refs: {pods: steps.look.outputs.pods}}}
output: {result: steps.judge.outputs.result}
"#,
    );
    let run = ran(&place, &[], 0);
    assert_eq!(
        phases(&run),
        "look completed, alert completed, calm skipped, restart completed, judge completed"
    );
    assert_eq!(run["outputs"]["result"], json!({ "check": "check" }));
    let run = ran(&place, &["--input", "codes=[201, 404]"], 0);
    assert_eq!(
        phases(&run),
        "look completed, alert skipped, calm completed, restart completed, judge completed"
    );
    let error = |input: &str| {
        let run = ran(&place, &["--input", input], 1);
        find(&run, "alert")["error"].as_str().expect("an error").to_owned()
    };
    assert!(error("codes=null").contains("`any` needs a list, not nil: test first that the value is there"));
    assert!(error("codes=[1, \"x\"]").contains("not a text and a number"));
    let many = json!(vec![1; 20_000]).to_string();
    assert!(error(&format!("codes={many}")).contains("takes too long (limit: 50000 instructions)"));
}

#[test]
fn a_predicate_that_cannot_be_evaluated_is_refused_with_its_place() {
    let place = planning("");
    let bad = |condition: &str| {
        let plan = format!(
            "steps:\n- id: a\n  action: {{script: 'true', params: [{{name: n}}]}}\n  condition: {condition}\n"
        );
        place.write("bad.yaml", &plan);
        place.windlass(&["validate", "bad.yaml"]).expect(2).err
    };
    let found = bad("any(n, {# > 1) and true");
    assert!(found.contains("expected `}`, found `)`") && found.contains("bad.yaml:4:27"), "{found}");
    let found = bad("len(n) in 1..1_000_000_000");
    assert!(found.contains("has more than 10000 numbers") && found.contains("bad.yaml:4:25"), "{found}");
    let nested = format!("{}true{}", "any(n, {".repeat(5), "})".repeat(5));
    assert!(bad(&nested).contains("`any` is nested in more than 4 predicates"));
    assert!(bad("filter(n, {# > 1})").contains("the expression is a list, and a condition is true or false"));
    assert!(bad("'n == # and true'").contains("`#` is the item of a predicate"));
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
fn pln_13_everything_that_is_wrong_with_a_plan_is_reported_at_once() {
    let place = planning(
        "steps:\n- {id: a, action: {script: 'true', params: [{name: x}], outputs: [{name: o}]}, args: {refs: {x: steps.b.outputs.o}}}\n- {id: b, action: {script: 'true', params: [{name: x}], outputs: [{name: o}]}, args: {refs: {x: steps.a.outputs.o}}, condition: 'y > 1'}\n- {id: c, action: shell, args: {refs: {script: params.nope}}}\n",
    );
    let said = place.windlass(&["validate", "play.yaml"]).expect(2);
    let all = format!("{}{}", said.out, said.err);
    for part in ["E0183", "form a cycle", "E0186", "has no input `y`", "E0181", "the parameter `nope`"] {
        assert!(all.contains(part), "{part}: {all}");
    }
}

#[test]
fn pln_06_pln_08_pln_09_a_secret_is_a_private_file_of_its_step_and_nowhere_else() {
    const VALUE: &str = "k9-planted-value-71f3";
    let place = planning(
        r#"
params: [{name: token, required: true}]
steps:
- id: use
  action:
    params: [{name: token, required: true}]
    outputs: [{name: echo}, {name: mode}, {name: large}]
    script: |
      cp context/token outputs/echo
      stat -c %a context/token > outputs/mode
      yes "$(cat context/token)" | head -n 100000 > outputs/large
      echo "out $(cat context/token)"; echo "err $(cat context/token)" >&2
  args: {refs: {token: params.token}}
- {id: fail, action: {script: "cat context/token >&2; exit 1", params: [{name: token}]}, args: {refs: {token: params.token}}}
output: {echo: steps.use.outputs.echo}
"#,
    );
    let missing = place.windlass(&["run", "play.yaml", "--param-secret", "token=prod"]);
    assert_ne!(missing.code, 0);
    assert!(missing.err.contains("there is no secret `prod`"), "{}", missing.err);
    place.given(&["secrets", "set", "prod"], VALUE).expect(0);
    let run = ran(&place, &["--param-secret", "token=prod", "--keep-workdirs"], 1);
    let status = &run["view"]["status"];
    assert_eq!(run["view"]["spec"]["secrets"], json!({ "token": "prod" }));
    assert_eq!(
        status["inputs"],
        json!([{ "name": "token", "resolvedVia": "callerSecret", "secretName": "prod" }])
    );
    assert_eq!(output(find(&run, "use"), "mode")["value"], "600\n");
    assert!(!run.to_string().contains(VALUE), "{run}");
    assert!(
        output(find(&run, "use"), "large")["artifact"]["size"].as_u64().is_some_and(|size| size > 1_000_000)
    );
    for file in files(&place.data()) {
        let bytes = fs::read(&file).unwrap_or_default();
        let found = bytes.windows(VALUE.len()).any(|part| part == VALUE.as_bytes());
        // The program itself copied it into its own output, which is kept only because the test asked for it.
        assert!(
            !found || file.ends_with("outputs/echo") || file.ends_with("outputs/large"),
            "{}",
            file.display()
        );
    }
    let logs = place.windlass(&["executions", "logs", "@last"]).expect(0);
    assert!(!logs.out.contains(VALUE) && logs.out.contains("out "), "{}", logs.out);
}

#[test]
fn pln_25_pln_26_pln_30_large_outputs_and_logs_are_artifacts_with_size_and_checksum() {
    let place = planning(
        r#"
steps:
- id: make
  action: {script: "head -c 200000 /dev/zero | tr '\\0' x > outputs/big; cat outputs/big; printf 'a\\377b' > outputs/binary; echo '{\"$artifact\": \"sha256:0\"}' > outputs/fake.json; : > outputs/empty; head -c 3000000 /dev/zero | tr '\\0' y > outputs/huge", outputs: [{name: big}, {name: huge}, {name: binary}, {name: fake, schema: {}}, {name: empty}, {name: absent}]}
- {id: use, action: {script: "cat context/big context/huge | wc -c > outputs/n; cat context/fake.json > outputs/fake", params: [{name: big}, {name: huge}, {name: fake, schema: {}}], outputs: [{name: n}, {name: fake}]}, args: {refs: {big: steps.make.outputs.big, huge: steps.make.outputs.huge, fake: steps.make.outputs.fake}}}
output: {big: steps.make.outputs.big, n: steps.use.outputs.n}
"#,
    );
    let run = ran(&place, &[], 0);
    let make = find(&run, "make");
    // head -c 200000 /dev/zero | tr '\\0' x | sha256sum | xxd -r -p | base64
    let checksum = "keP6r9MivN8WDz8M6IassJK5ueKh6FJrQPIaiJiocAs=";
    assert_eq!(
        output(make, "big")["artifact"],
        json!({ "size": 200_000, "checksum": checksum, "ready": true })
    );
    assert!(output(make, "big").get("value").is_none(), "exactly one of value and artifact");
    assert_eq!(make["logs"][0]["artifact"]["checksum"], json!(checksum), "the same bytes");
    assert_eq!(output(make, "binary")["artifact"]["size"], 3);
    assert!(output(make, "fake").get("artifact").is_some(), "what looks like a reference is none");
    assert_eq!(output(make, "empty")["value"], "");
    assert!(make["outputs"].as_array().is_some_and(|all| all.iter().all(|one| one["name"] != "absent")));
    assert_eq!(output(find(&run, "use"), "n")["value"], "3200000\n");
    assert_eq!(output(find(&run, "use"), "fake")["value"], "{\"$artifact\": \"sha256:0\"}\n");
    assert_eq!(output(&run["view"]["status"], "big")["artifact"]["size"], 200_000);
}

#[test]
fn pln_27_pln_28_outputs_that_break_their_schema_or_lead_nowhere_are_failures() {
    let place = planning(
        "steps:\n- {id: a, action: {script: 'echo text > outputs/n', outputs: [{name: n, schema: {type: integer}}]}}\n",
    );
    let run = ran(&place, &[], 1);
    assert!(
        find(&run, "a")["error"].as_str().is_some_and(|error| error.contains("output `n` is not JSON")),
        "{run}"
    );
    place.write(
        "play.yaml",
        "steps:\n- {id: a, action: {script: 'echo {} > outputs/n', outputs: [{name: n, schema: {}}]}}\noutput: {part: steps.a.outputs.n.deep}\n",
    );
    let run = ran(&place, &[], 1);
    assert_eq!((phases(&run).as_str(), &run["view"]["status"]["phase"]), ("a completed", &json!("failed")));
    let error = run["view"]["status"]["error"].as_str().unwrap_or_default();
    assert_eq!(error, "output `part`: `n` of step `a` has no `deep`");
}

#[test]
fn an_output_that_is_not_written_has_its_default_and_is_a_failure_if_it_is_required() {
    let place = planning(
        r#"
steps:
- {id: a, action: {script: 'true', outputs: [{name: n, schema: {type: integer}, default: 7}, {name: t, default: none}, {name: free}]}}
- {id: b, action: {script: 'true', outputs: [{name: needed, required: true}]}}
"#,
    );
    let run = ran(&place, &[], 1);
    assert_eq!(phases(&run), "a completed, b failed");
    let a = find(&run, "a");
    assert_eq!((&output(a, "n")["value"], &output(a, "t")["value"]), (&json!(7), &json!("none")));
    assert!(!a["outputs"].to_string().contains("free"), "{a}");
    let error = find(&run, "b")["error"].as_str().unwrap_or_default();
    assert!(error.contains("output `needed` is required, and the step wrote neither"), "{error}");
}

#[test]
fn a_step_that_takes_longer_than_its_timeout_fails_with_what_it_wrote() {
    let place = planning("steps:\n- {id: a, action: {script: 'echo begun; sleep 600', timeout: 1s}}\n");
    let run = ran(&place, &[], 1);
    let a = find(&run, "a");
    assert!(a["error"].as_str().is_some_and(|error| error.contains("timeout of 1000 ms")), "{a}");
    assert_eq!(a["logs"][0], json!({ "stream": "stdout", "value": "begun\n" }));
}

#[test]
fn a_timeout_may_be_the_value_of_an_input() {
    let place = planning(
        r#"
params: [{name: limit}]
steps:
- {id: plan, action: {script: "echo '{\"most\": \"300ms\"}' > outputs/times.json", outputs: [{name: times, schema: {type: object}}]}}
- {id: slow, action: {script: "echo begun; sleep 600", params: [{name: most}], timeout: {input: most}}, args: {refs: {most: steps.plan.outputs.times.most}}}
- {id: given, action: {script: "sleep 600", params: [{name: most}], timeout: {input: most}}, args: {refs: {most: params.limit}}}
- {id: written, action: {script: "sleep 600", params: [{name: most, schema: {type: number}}], timeout: {input: most}}, args: {values: {most: 0.2}}}
- {id: usual, action: {script: "true", params: [{name: most}], timeout: {input: most}}}
"#,
    );
    let run = ran(&place, &["--input", "limit= 100ms "], 1);
    assert_eq!(phases(&run), "plan completed, slow failed, given failed, written failed, usual completed");
    let error = |run: &Value, id: &str| find(run, id)["error"].as_str().expect("an error").to_owned();
    for (id, limit) in [("slow", "300"), ("given", "100"), ("written", "200")] {
        let expected = format!("step `{id}` took longer than its timeout of {limit} ms and was stopped");
        assert!(error(&run, id).contains(&expected), "{}", error(&run, id));
    }
    assert_eq!(find(&run, "slow")["logs"][0], json!({ "stream": "stdout", "value": "begun\n" }));
    for bad in ["soon", "0", "400d", "-1"] {
        let run = ran(&place, &["--input", &format!("limit={bad}")], 1);
        let expected = format!(
            "the input `most` is the timeout of the step, and `{bad}` is not a duration: write seconds"
        );
        assert!(error(&run, "given").contains(&expected), "{}", error(&run, "given"));
    }
}

#[test]
fn built_in_actions_send_requests_and_check_values() {
    let receiver = receiver::Receiver::new();
    let place = planning(&format!(
        r#"
steps:
- {{id: send, action: request-http, args: {{values: {{url: "{}", method: POST, body: {{a: 1}}, headers: {{x-test: "1", authorization: hidden}}}}}}}}
- {{id: verify, action: check, extraInputs: [{{name: status, schema: {{}}}}], args: {{values: {{expression: status == 200, name: status}}, refs: {{status: steps.send.outputs.status}}}}}}
output: {{status: steps.send.outputs.capture.response.statusCode, verdict: steps.verify.outputs.result}}
"#,
        receiver.url
    ));
    let run = ran(&place, &[], 0);
    assert!(run["outputs"]["status"].as_u64().is_some_and(|status| (200..300).contains(&status)), "{run}");
    assert_eq!(run["outputs"]["verdict"]["check"], "status");
    assert!(!run.to_string().contains("hidden"), "credentials are not captured");
    assert_eq!(find(&run, "verify")["logs"][0]["value"], "");
}

#[test]
fn built_in_actions_read_outputs_that_are_stored_as_artifacts() {
    let place = planning(
        r#"
steps:
- id: make
  action:
    outputs: [{name: script}, {name: document}, {name: huge}]
    script: |
      { echo 'printf done > outputs/said'; head -c 40000 /dev/zero | tr '\0' '#'; } > outputs/script
      { printf '{"items": ["'; head -c 40000 /dev/zero | tr '\0' x; printf '"]}'; } > outputs/document.json
      head -c 2000000 /dev/zero | tr '\0' x > outputs/huge
- {id: say, action: shell, extraOutputs: [{name: said}], args: {refs: {script: steps.make.outputs.script}}}
- {id: verify, action: check, extraInputs: [{name: document}], args: {values: {expression: len(document.items) == 1}, refs: {document: steps.make.outputs.document}}}
- {id: refuse, action: check, extraInputs: [{name: huge}], args: {values: {expression: len(huge) > 1}, refs: {huge: steps.make.outputs.huge}}}
"#,
    );
    let run = ran(&place, &[], 1);
    assert_eq!(output(find(&run, "say"), "said")["value"], "done", "{run}");
    assert_eq!(output(find(&run, "verify"), "result")["value"], json!({ "check": "check" }), "{run}");
    let refused = find(&run, "refuse")["error"].as_str().unwrap_or_default();
    assert!(refused.contains("`huge` of a built-in action is a value of 2000000 bytes"), "{refused}");
}

#[test]
fn pln_33_an_image_without_a_container_engine_names_what_to_install() {
    let place = planning("steps:\n- {id: a, action: run-image, args: {values: {image: 'alpine:3'}}}\n");
    let folder = place.path("bin");
    fs::create_dir_all(&folder).expect("a folder");
    let place = place.variable("PATH", &folder.display().to_string());
    let run = ran(&place, &[], 1);
    let error = find(&run, "a")["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("neither docker nor podman is installed"), "{error}");
}

#[test]
fn pln_14_of_eleven_ready_steps_ten_run_at_the_same_time() {
    let place = Place::new();
    let barrier = place.path("begun").display().to_string();
    // Each waits until ten have begun. The eleventh begins when one of them has ended.
    let script = format!(
        "echo $SIGNADOT_PLAN_STEP_ID >> {barrier}; while [ $(wc -l < {barrier}) -lt 10 ]; do sleep 0.05; done; wc -l < {barrier} > outputs/seen"
    );
    let steps: Vec<Value> = (0..11)
        .map(|n| json!({ "id": format!("s{n}"), "action": { "script": script, "outputs": [{ "name": "seen" }] } }))
        .collect();
    place.write("play.yaml", &json!({ "steps": steps }).to_string());
    let run = ran(&place, &["--slots", "1"], 0);
    assert_eq!(run["view"]["status"]["stepCounts"]["completed"], 11);
    let begun = fs::read_to_string(place.path("begun")).expect("notes");
    assert_eq!(begun.lines().count(), 11);
    assert_eq!(begun.lines().last(), Some("s10"), "the eleventh begins last: {begun}");
}

#[test]
fn work_dirs_are_kept_on_request() {
    let place = planning(
        "steps:\n- {id: a, action: {script: 'echo x > outputs/o; echo y > left', outputs: [{name: o}]}}\n",
    );
    ran(&place, &["--keep-workdirs"], 0);
    let kept: Vec<_> =
        files(&place.data()).into_iter().filter(|file| file.ends_with("steps/a/left")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

/// Two steps that note what they find, the second of which waits for the file `go`.
fn interruptible(place: &Place) -> String {
    let at = |name: &str| place.path(name).display().to_string();
    let (seen, go) = (at("seen"), at("go"));
    json!({
        "params": [{ "name": "token", "required": true }],
        "steps": [
            { "id": "a", "args": { "refs": { "token": "params.token" } }, "action": {
                "params": [{ "name": "token" }], "outputs": [{ "name": "o" }],
                "script": format!("(ls $SIGNADOT_PLAN_EXECUTION_SCRATCHDIR; echo a; wc -c < context/token) | tr '\\n' ' ' >> {seen}; echo >> {seen}; touch $SIGNADOT_PLAN_EXECUTION_SCRATCHDIR/left; echo 1 > outputs/o"),
            } },
            { "id": "b", "args": { "refs": { "o": "steps.a.outputs.o" } }, "action": {
                "params": [{ "name": "o" }],
                "script": format!("echo b >> {seen}; while [ ! -e {go} ]; do sleep 0.05; done"),
            } },
        ],
    })
    .to_string()
}

#[test]
fn pln_10_pln_34_pln_35_an_execution_whose_worker_was_killed_starts_from_scratch_with_secrets_as_they_are_now()
 {
    let place = Place::new();
    place.write("play.yaml", &interruptible(&place));
    place.given(&["secrets", "set", "prod"], "first-value").expect(0);
    let running = place.start(&["run", "play.yaml", "--param-secret", "token=prod"]);
    until("the second step runs", || place.lines("seen").contains(&"b".to_owned()).then_some(()));
    running.signal(Signal::KILL);
    assert_eq!(running.end().0, None);
    place.given(&["secrets", "set", "prod"], "a-longer-second-value").expect(0);
    place.write("go", "");
    let run = place.windlass(&["run", "--resume", "--json"]).expect(0).json();
    assert_eq!(
        place.lines("seen"),
        ["bin a 11 ", "b", "bin a 21 ", "b"],
        "dirs are fresh, and the value is the new one"
    );
    assert_eq!(phases(&run), "a completed, b completed");
    assert_eq!(run["view"]["status"]["stepCounts"]["completed"], 2);
}

#[test]
fn pln_34_a_secret_that_was_deleted_before_another_dispatch_fails_the_execution() {
    let place = Place::new();
    place.write("play.yaml", &interruptible(&place));
    place.given(&["secrets", "set", "prod"], "first-value").expect(0);
    let running = place.start(&["run", "play.yaml", "--param-secret", "token=prod"]);
    until("the second step runs", || place.lines("seen").contains(&"b".to_owned()).then_some(()));
    running.signal(Signal::KILL);
    running.end();
    place.windlass(&["secrets", "delete", "prod"]).expect(0);
    let run = place.windlass(&["run", "--resume", "--json"]).expect(1).json();
    let status = &run["view"]["status"];
    let error = status["error"].as_str().unwrap_or_default();
    assert!(error.contains("parameter `token`: there is no secret `prod`"), "{status}");
    assert_eq!(status["phase"], "failed");
    assert_eq!(phases(&run), "a skipped, b skipped", "nothing ran in the new attempt");
}

#[test]
fn pln_32_a_running_execution_can_be_cancelled() {
    let place = Place::new();
    place.write("play.yaml", &interruptible(&place));
    let running = place.start(&["run", "play.yaml", "--input", "token=t", "--json"]);
    until("the second step runs", || place.lines("seen").contains(&"b".to_owned()).then_some(()));
    place.windlass(&["executions", "cancel", "@last"]).expect(0);
    let (code, out, err) = running.end();
    assert_eq!(code, Some(3), "{err}");
    let run: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(run["view"]["status"]["phase"], "cancelled");
    assert_eq!(phases(&run), "a completed, b failed");
    assert_eq!(find(&run, "b")["error"], "cancelled");
    assert_ne!(place.windlass(&["executions", "cancel", "@last"]).code, 0, "it is terminal");
}

#[test]
fn pln_16_pln_17_a_step_waits_until_its_sandbox_is_ready_and_then_runs_with_its_name_and_key() {
    let place = planning(
        r#"
params: [{name: box, required: true}]
steps:
- {id: routed, action: {script: "env | grep -E '^SIGNADOT_(ROUTING|SANDBOX|ROUTEGROUP)' | sort > outputs/o", outputs: [{name: o}]}, routingContext: {ref: {sandboxRef: params.box}}}
- {id: other, action: {script: "echo $SIGNADOT_SANDBOX_NAME > outputs/o", outputs: [{name: o}]}}
"#,
    );
    place.windlass(&["sandboxes", "put", "s1", "--routing-key", "k-1"]).expect(0);
    let running = place.start(&["run", "play.yaml", "--input", "box=s1", "--json"]);
    let waiting = until("one step waits and the other has ended", || {
        let got = place.windlass(&["executions", "get", "@last", "--json"]);
        let run = (got.code == 0).then(|| got.json())?;
        (phases(&run) == "routed waiting, other completed").then_some(run)
    });
    assert_eq!(waiting["view"]["status"]["stepCounts"]["waiting"], 1);
    assert_eq!(waiting["view"]["status"]["phase"], "running");
    place.windlass(&["sandboxes", "put", "s1", "--ready", "--routing-key", "k-1"]).expect(0);
    let (code, out, err) = running.end();
    assert_eq!(code, Some(0), "{err}");
    let run: Value = serde_json::from_str(&out).expect("JSON");
    let variables = "SIGNADOT_ROUTING_KEY=k-1\nSIGNADOT_SANDBOX_NAME=s1\n";
    assert_eq!(output(find(&run, "routed"), "o")["value"], variables);
    assert_eq!(output(find(&run, "other"), "o")["value"], "\n");
}

#[test]
fn a_routing_target_that_names_nothing_fails_its_step_at_once() {
    let place = planning(
        "params: [{name: target, schema: {}}]\nsteps:\n- {id: a, action: {script: 'touch ran'}, routingContext: {ref: {anyRef: params.target}}}\n",
    );
    for (target, expected) in [
        (r#"{"sandbox": "a", "routeGroup": "b"}"#, "it has 2 fields"),
        (r#"{"sandbox": "../x"}"#, "`sandbox` of the routing context has 1 to 64 letters"),
        (r#"{"sandbox": null}"#, "`sandbox` of the routing context is a name, and it has no value"),
        (r#"{"box": "a"}"#, "one of `sandbox`, `routeGroup` and `routingKey`"),
        ("null", "it has no value"),
    ] {
        let input = format!("target={target}");
        let run = ran(&place, &["--input", &input], 1);
        let error = find(&run, "a")["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains(expected), "{target}: {error}");
    }
    assert!(refused(&place, &[]).err.contains("the routing context of step `a` reads it"));
    let place = place.variable("WINDLASS_ROUTING_TIMEOUT_SECONDS", "1");
    let run = ran(&place, &["--input", r#"target={"sandbox": "pr-7"}"#], 1);
    let error = find(&run, "a")["error"].as_str().unwrap_or_default().to_owned();
    assert!(
        error.contains(r#"the awaited route {"sandbox":"pr-7"} did not become ready in time"#),
        "{error}"
    );
    place.write(
        "play.yaml",
        "steps: [{id: a, action: {script: 'true'}, routingContext: {literal: {sandbox: ../x}}}]",
    );
    assert!(refused(&place, &[]).err.contains("cannot be `../x`"));
}

#[test]
fn outputs_are_read_from_the_work_dir_only() {
    let place = Place::new();
    place.write("o", "not an output");
    let folder = place.path("").display().to_string();
    for script in [
        format!("ln -s {folder}o outputs/o"),
        format!("rm -r outputs; ln -s {folder} outputs"),
        "mkdir outputs/o".to_owned(),
    ] {
        let plan =
            json!({ "steps": [{ "id": "a", "action": { "script": script, "outputs": [{ "name": "o" }] } }] });
        place.write("play.yaml", &plan.to_string());
        let run = ran(&place, &[], 1);
        let error = find(&run, "a")["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.starts_with("output `o` cannot be read:"), "{script}: {error}");
    }
    place.write("play.yaml", "steps: [{id: a, action: {script: rm -r outputs, outputs: [{name: o}]}}]");
    assert_eq!(
        find(&ran(&place, &[], 0), "a")["outputs"],
        json!([]),
        "an output that was not written is absent"
    );
}
