//! Programs of plans that do not do what they should: they ignore signals, write very much, prepare links for others, or kill
//! the process that starts them.

use crate::rig::{Place, process_of, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn planning(plan: &Value) -> Place {
    let place = Place::new();
    place.write("play.yaml", &plan.to_string());
    place
}

fn step(id: &str, script: &str) -> Value {
    json!({ "id": id, "action": { "script": script, "outputs": [{ "name": "o" }] } })
}

#[track_caller]
fn find<'v>(run: &'v Value, id: &str) -> &'v Value {
    let steps = run["view"]["status"]["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["id"] == id).unwrap_or_else(|| panic!("no step {id}: {run}"))
}

#[track_caller]
fn text<'v>(run: &'v Value, id: &str) -> &'v str {
    let step = find(run, id);
    step["outputs"][0]["value"].as_str().unwrap_or_else(|| panic!("no output: {step}"))
}

/// Writes a line, ignores TERM and continues.
const STUBBORN: &str = "trap '' TERM; echo begun; echo $$ > PID; while :; do sleep 0.1; done";

#[test]
fn pln_30_a_program_that_ignores_term_is_killed_at_its_timeout_and_its_log_is_shown() {
    let mut stubborn = step("a", &STUBBORN.replace("PID", "/dev/null"));
    stubborn["action"]["timeout"] = json!("1s");
    let run = planning(&json!({ "steps": [stubborn] })).run(&[], 1);
    let a = find(&run, "a");
    assert!(a["error"].as_str().is_some_and(|error| error.contains("timeout of 1000 ms")), "{a}");
    assert_eq!(a["logs"][0], json!({ "stream": "stdout", "value": "begun\n" }), "{a}");
}

#[test]
fn pln_30_the_log_of_a_step_that_was_cancelled_is_shown() {
    let place = Place::new();
    let script = STUBBORN.replace("PID", &place.path("pid").display().to_string());
    place.write("play.yaml", &json!({ "steps": [step("a", &script)] }).to_string());
    let running = place.start(&["run", "play.yaml"]);
    process_of(&place, "pid");
    until("the line is logged", || {
        let logs = place.windlass(&["executions", "logs", "@last"]).expect(0);
        logs.out.contains("begun").then_some(())
    });
    place.windlass(&["executions", "cancel", "@last"]).expect(0);
    assert_eq!(running.end().0, Some(3));
    let run = place.windlass(&["executions", "get", "@last", "--json"]).expect(0).json();
    let a = find(&run, "a");
    let logs = json!([{ "stream": "stdout", "value": "begun\n" }, { "stream": "stderr", "value": "" }]);
    assert_eq!((&a["phase"], &a["logs"]), (&json!("failed"), &logs), "{a}");
}

#[test]
fn pln_30_a_long_log_is_an_artifact_with_all_of_it() {
    let script = "yes 0123456789 | head -c 40000000; echo THE-END";
    let run = planning(&json!({ "steps": [step("a", script)] })).run(&[], 0);
    assert_eq!(find(&run, "a")["logs"][0]["artifact"]["size"], 40_000_008, "{run}");
}

#[test]
fn links_and_folders_that_a_step_prepares_for_another_are_not_used() {
    let place = Place::new();
    let marks = place.path("marks");
    fs::create_dir(&marks).expect("a folder");
    fs::write(marks.join("kept"), "kept").expect("a file");
    let at = marks.display();
    let prepare = format!(
        "mkdir -p ../z ../../logs/z ../y/context; ln -s {at} ../z/context; ln -s {at} ../z/outputs; \
         ln -s {at}/kept ../../logs/z/stdout; ln -s {at}/kept ../z/.script; echo old > ../y/context/old; \
         ln -s {at}/kept ../y/context/x; ln -s {at} ../w; echo done > outputs/o"
    );
    let reads = |id: &str, script: &str| {
        json!({ "id": id, "args": { "refs": { "q": "params.q", "x": "steps.x.outputs.o" } }, "action": {
            "params": [{ "name": "q" }, { "name": "x" }], "outputs": [{ "name": "o" }], "script": script,
        } })
    };
    let script = "echo said; cat context/q; ls context | tr '\\n' ' ' > outputs/o";
    place.write(
        "play.yaml",
        &json!({ "params": [{ "name": "q" }], "steps": [
            step("x", &prepare), reads("z", script), reads("y", script), reads("w", script),
        ] })
        .to_string(),
    );
    place.given(&["secrets", "set", "prod"], "first-value").expect(0);
    let run = place.run(&["--param-secret", "q=prod"], 0);
    for id in ["z", "y", "w"] {
        assert_eq!(text(&run, id), "q x ", "{id}");
        assert!(find(&run, id)["logs"][0]["value"].as_str().is_some_and(|log| log.starts_with("said\n")));
    }
    let left: Vec<_> =
        fs::read_dir(&marks).expect("a folder").map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["kept"]);
    assert_eq!(fs::read_to_string(marks.join("kept")).expect("a file"), "kept");
}

#[test]
fn folders_of_all_steps_that_a_step_replaces_by_links_are_created_again() {
    let place = Place::new();
    let marks = place.path("marks");
    fs::create_dir(&marks).expect("a folder");
    let at = marks.display();
    let replace = format!(
        "echo done > outputs/o; cd ../..; for folder in logs scratch; do rm -rf $folder; ln -s {at} $folder; done; \
         mv steps elsewhere; ln -s {at} steps"
    );
    let mut last = step("last", "echo said; echo here > outputs/o");
    last["action"]["params"] = json!([{ "name": "x" }]);
    last["args"] = json!({ "refs": { "x": "steps.first.outputs.o" } });
    place.write("play.yaml", &json!({ "steps": [step("first", &replace), last] }).to_string());
    let run = place.run(&[], 0);
    assert_eq!((text(&run, "first"), text(&run, "last")), ("done\n", "here\n"));
    assert_eq!(find(&run, "last")["logs"][0]["value"], "said\n");
    assert_eq!(fs::read_dir(&marks).expect("a folder").count(), 0, "nothing was written through the links");
}

#[test]
fn pln_33_a_failure_of_the_container_engine_is_reported_with_its_reason() {
    let place = planning(&json!({ "steps": [
        { "id": "a", "action": "run-image", "args": { "values": { "image": "alpine:3" } } },
    ] }));
    let bin = place.path("bin");
    fs::create_dir(&bin).expect("a folder");
    place.write(
        "bin/docker",
        "#!/bin/sh\necho 'docker: Cannot connect to the Docker daemon.' >&2\necho >&2\necho \"Run 'docker run --help' for more information\" >&2\nexit 125\n",
    );
    fs::set_permissions(bin.join("docker"), fs::Permissions::from_mode(0o755)).expect("an executable");
    let run = place.variable("PATH", &format!("{}:/usr/bin:/bin", bin.display())).run(&[], 1);
    let expected =
        "docker could not run the container (exit code 125): docker: Cannot connect to the Docker daemon.";
    assert_eq!(find(&run, "a")["error"], expected);
    assert!(find(&run, "a")["logs"][1]["value"].as_str().is_some_and(|log| log.contains("Cannot connect")));
}

#[test]
fn pln_33_the_container_engine_has_the_home_of_the_worker_and_the_program_that_of_the_step() {
    let place = planning(&json!({ "steps": [
        { "id": "a", "action": "run-image", "args": { "values": { "image": "alpine:3" } } },
    ] }));
    let bin = place.path("bin");
    fs::create_dir(&bin).expect("a folder");
    place.write("bin/podman", "#!/bin/sh\n[ \"$1\" = run ] || exit 0\necho \"home $HOME\"\necho \"$@\"\n");
    fs::set_permissions(bin.join("podman"), fs::Permissions::from_mode(0o755)).expect("an executable");
    let home = place.path("worker-home").display().to_string();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let run = place.variable("PATH", &path).variable("HOME", &home).run(&[], 0);
    let log = find(&run, "a")["logs"][0]["value"].as_str().expect("a text");
    assert!(log.starts_with(&format!("home {home}\n")), "{log}");
    assert!(log.contains("steps/a/home --env TMPDIR="), "{log}");
    assert!(log.contains("--env WINDLASS_ATTEMPT "), "{log}");
}

#[test]
fn pln_33_the_own_command_of_an_image_has_the_bin_dir_before_the_path_of_the_image() {
    let values = json!({ "image": "tools:1" });
    let place = planning(&json!({ "steps": [
        { "id": "own", "action": { "image": "tools:1" } },
        { "id": "built", "action": "run-image", "args": { "values": values } },
        { "id": "script", "action": { "image": "tools:1", "script": "id" } },
    ] }));
    let bin = place.path("bin");
    fs::create_dir(&bin).expect("a folder");
    let pulled = place.path("pulled").display().to_string();
    let engine = format!(
        "#!/bin/sh\ncase \"$1 $2\" in\n\
         'image inspect') [ -e {pulled} ] && echo '[\"LANG=C\",\"PATH=/image/bin:/bin\"]';;\n\
         'pull --quiet') echo $3 >> {pulled}; echo $3;;\n\
         run*) echo \"$@\";;\nesac\n"
    );
    place.write("bin/podman", &engine);
    fs::set_permissions(bin.join("podman"), fs::Permissions::from_mode(0o755)).expect("an executable");
    let run = place.variable("PATH", &format!("{}:/usr/bin:/bin", bin.display())).run(&[], 0);
    let line = |id| find(&run, id)["logs"][0]["value"].as_str().expect("a text");
    for id in ["own", "built"] {
        assert!(line(id).contains("/scratch/bin:/image/bin:/bin --env "), "{}", line(id));
        assert!(line(id).trim_end().ends_with(" tools:1"), "{}", line(id));
    }
    assert!(!line("script").contains("--env PATH"), "a script extends the PATH itself: {}", line("script"));
}

#[test]
fn a_step_that_kills_its_supervisor_has_an_unknown_result() {
    let run = planning(&json!({ "steps": [step("a", "echo begun; sleep 0.5; kill -9 $PPID; sleep 600")] }))
        .run(&[], 1);
    let a = find(&run, "a");
    let error = a["error"].as_str().unwrap_or_default();
    assert!(error.contains("ran, and its result is unknown"), "{a}");
    assert_eq!(a["logs"][0]["value"], "begun\n", "{a}");
}

#[test]
fn a_step_of_a_plan_sees_how_often_its_work_has_begun() {
    let place = Place::new();
    let (seen, go) = (place.path("seen").display().to_string(), place.path("go").display().to_string());
    let script = format!(
        "echo $WINDLASS_ATTEMPT >> {seen}; echo $$ > {seen}.pid; while [ ! -e {go} ]; do sleep 0.05; done"
    );
    place.write("plan.yaml", &json!({ "steps": [step("a", &script)] }).to_string());
    let running = place.start(&["run", "plan.yaml"]);
    process_of(&place, "seen.pid");
    running.signal(Signal::KILL);
    running.end();
    place.write("go", "");
    place.windlass(&["run", "--resume"]).expect(0);
    assert_eq!(place.lines("seen"), ["1", "2"]);
}
