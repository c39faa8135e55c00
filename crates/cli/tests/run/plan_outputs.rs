//! Outputs, logs and secrets of the steps of plans.

use crate::plans::{find, output, phases, planning, ran};
use crate::rig::{Place, files};
use serde_json::json;
use std::fs;

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
