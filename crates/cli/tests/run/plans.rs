//! Plans: steps are real processes in work dirs of their own, and the view is the document's `{id, spec, status}`.

use crate::receiver;
use crate::rig::{CommandOutput, Place, files};
use serde_json::{Value, json};
use std::fs;

/// A folder with a plan in `play.yaml`.
pub fn planning(text: &str) -> Place {
    let place = Place::new();
    place.write("play.yaml", text);
    place
}

#[track_caller]
pub fn ran(place: &Place, args: &[&str], code: i32) -> Value {
    place.run(args, code)
}

pub fn refused(place: &Place, args: &[&str]) -> CommandOutput {
    let args: Vec<&str> = ["run", "play.yaml"].into_iter().chain(args.iter().copied()).collect();
    place.windlass(&args).expect(2)
}

pub fn find<'v>(run: &'v Value, id: &str) -> &'v Value {
    let steps = run["view"]["status"]["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["id"] == id).unwrap_or_else(|| panic!("no step {id}: {run}"))
}

pub fn output<'v>(entry: &'v Value, name: &str) -> &'v Value {
    let outputs = entry["outputs"].as_array().unwrap_or_else(|| panic!("no outputs: {entry}"));
    outputs
        .iter()
        .find(|output| output["name"] == name)
        .unwrap_or_else(|| panic!("no output {name}: {entry}"))
}

pub fn phases(run: &Value) -> String {
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
fn a_step_that_takes_longer_than_its_timeout_fails_with_what_it_wrote() {
    let place = planning("steps:\n- {id: a, action: {script: 'echo begun; sleep 600', timeout: 1s}}\n");
    let run = ran(&place, &[], 1);
    let a = find(&run, "a");
    assert!(a["error"].as_str().is_some_and(|error| error.contains("timeout of 1000 ms")), "{a}");
    assert_eq!(a["logs"][0], json!({ "stream": "stdout", "value": "begun\n" }));
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
