//! Playbooks as people write them for other engines: forms that have a meaning here are accepted, and do what they say.

use crate::rig::Place;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn output(run: &Value) -> &Value {
    &run["nodeExecutions"][0]["output"]
}

#[test]
fn a_tool_is_tried_again_as_its_own_retry_says() {
    let flaky = |retry: &str| {
        let command = "echo try >> tries; test $(wc -l < tries) -ge 3";
        Place::playing(&format!(
            "workflow:\n- step: a\n  tool:\n    kind: shell\n    command: {command}\n    retry: {retry}\n"
        ))
    };
    for (retry, tries, code) in [
        ("{max_attempts: 3, initial_delay: 0.01, backoff_multiplier: 2}", 3, 0),
        ("{max_attempts: 2, initial_delay: 0.01}", 2, 1),
        ("{max_attempts: 3, delay: 0, retry_when: \"{{ outcome.error.code == 'SHELL_EXIT' }}\"}", 3, 0),
        ("{max_attempts: 3, delay: 0, stop_when: \"{{ outcome.error.code == 'SHELL_EXIT' }}\"}", 1, 1),
        ("false", 1, 1),
    ] {
        let place = flaky(retry);
        place.run(&[], code);
        assert_eq!(place.lines("tries").len(), tries, "{retry}");
    }
    let place = flaky("{max_attempts: many}");
    place.windlass(&["run", "play.yaml"]).expect(2).says("`max_attempts` must be a number");
}

#[test]
fn a_step_says_from_which_size_its_result_is_stored_outside_of_the_journal() {
    let place = Place::playing(
        "workflow:\n- step: a\n  result: {inline_max_bytes: 1024}\n  tool: {kind: python, code: 'result = {\"text\": \"x\" * 2000}'}\n  next: b\n- step: b\n  tool: {kind: noop, result: '{{ a.text | length }}'}\n",
    );
    let run = place.run(&[], 0);
    assert!(output(&run)["$artifact"].is_object() || output(&run)["$artifact"].is_string(), "{run}");
    assert_eq!(run["outputs"], json!({ "b": 2000 }));
}

#[test]
fn a_script_runs_with_its_interpreter() {
    let place = Place::playing(
        "workload: {name: \"O'Hara; id\"}
workflow:
- step: file
  tool: {kind: script, script: hello.sh, args: {who: '{{ workload.name }}'}}
  next: text
- step: text
  tool: {kind: script, code: 'echo {{ workload.name }}'}
  next: python
- step: python
  tool: {kind: script, script: {uri: double.py, source: {type: file}}, args: {n: 21}}
",
    );
    place.write("hello.sh", "grep -o '\"who\":.*' \"$WINDLASS_ARGS_FILE\"\n");
    place.write("double.py", "def main(n):\n    return {'doubled': n * 2}\n");
    let run = place.run(&[], 0);
    let outputs: Vec<&Value> =
        run["nodeExecutions"].as_array().expect("nodes").iter().map(|node| &node["output"]).collect();
    assert_eq!(outputs[0]["stdout"], "\"who\":\"O'Hara; id\"}\n");
    assert_eq!(outputs[1]["stdout"], "O'Hara; id\n", "a value is one word and never a command");
    assert_eq!(outputs[2], &json!({ "doubled": 42 }));
    place.write("hello.sh", "echo no >&2; exit 3\n");
    let run = place.run(&[], 1);
    assert_eq!(run["errors"][0]["message"], "the command ended with exit code 3: no");
}

#[test]
fn a_script_that_cannot_be_found_is_named() {
    let place = Place::playing("workflow:\n- {step: a, tool: {kind: script, script: gone.sh}}\n");
    let run = place.run(&[], 1);
    let message = run["errors"][0]["message"].as_str().expect("a message");
    assert!(message.starts_with("`script` of script, `gone.sh`, cannot be read"), "{message}");
}

const CONTAINER: &str = "workload: {greeting: 'hi; there'}
workflow:
- step: a
  tool:
    kind: container
    runtime: {image: 'alpine:3', command: [echo, '{{ workload.greeting }}']}
    env: {TOKEN: '{{ workload.greeting }}'}
    volumes: ['/tmp:/data']
";

/// A program in the place of docker that prints its arguments.
fn with_engine(place: Place, name: &str) -> Place {
    let folder = place.path("bin");
    fs::create_dir(&folder).expect("a folder");
    place.write(
        &format!("bin/{name}"),
        "#!/bin/sh\nprintf '<%s>' \"$@\" >> calls\necho >> calls\necho $TOKEN\n",
    );
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.join(name), executable).expect("an executable");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    place.variable("PATH", &path)
}

#[test]
fn a_container_runs_with_the_engine_that_is_there() {
    let place = with_engine(Place::playing(CONTAINER), "podman");
    let run = place.run(&[], 0);
    assert_eq!(output(&run)["stdout"], "hi; there\n");
    let calls = place.lines("calls");
    let [removed, ran] = &calls[..] else { panic!("{calls:?}") };
    assert!(removed.starts_with("<rm><--force><windlass-"), "{removed}");
    assert!(ran.starts_with("<run><--rm><--init><--name><windlass-"), "{ran}");
    assert!(
        ran.contains("<--env><TOKEN><--env>") && ran.contains("<--env><WINDLASS_IDEMPOTENCY_KEY>"),
        "{ran}"
    );
    assert!(ran.ends_with("<--volume></tmp:/data><alpine:3><echo><hi; there>"), "{ran}");
}

#[test]
fn a_container_without_an_engine_fails_with_what_is_missing() {
    let place = Place::playing(CONTAINER).variable("PATH", "/nowhere");
    let run = place.run(&[], 1);
    assert_eq!(run["errors"][0]["code"], "CONTAINER_ENGINE_MISSING");
    let message = "neither `docker` nor `podman` is installed on this worker; install it to run containers, or use `kind: shell`";
    assert_eq!(run["errors"][0]["message"], message);
}

#[test]
fn statements_come_from_a_file_below_the_folder_of_the_worker() {
    let place = |script: &str| {
        Place::playing(&format!(
            "workflow:\n- {{step: a, tool: {{kind: postgres, host: 127.0.0.1, port: 1, script: {script}}}}}\n"
        ))
    };
    let message = |place: &Place| {
        let run = place.run(&[], 1);
        run["errors"][0]["message"].as_str().expect("a message").to_owned()
    };
    let found = place("{uri: ./make.sql, source: {type: file}}");
    found.write("make.sql", "select 1; select 2;");
    assert!(message(&found).contains("connect"), "{}", message(&found));
    assert!(message(&place("gone.sql")).contains("`gone.sql`, cannot be read"));
    let outside = "`script` of postgres is a relative path without `..`, not `../secret.sql`";
    assert_eq!(message(&place("../secret.sql")), outside);
}
