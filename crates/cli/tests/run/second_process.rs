//! A second process while another one holds the data folder.

use crate::rig::{Place, Running, until};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::fs::File;

/// Runs until the file `go` is there.
const LASTING: &str = "workflow:
- step: lasting
  tool: {kind: shell, command: 'echo begun; while ! test -e go; do sleep 0.02; done; echo over'}
  next: gate
- step: gate
  spec: {policy: {admit: {rules: [{when: '{{ ctx.open }}', then: {allow: true}}]}}}
";

/// The program at work, and its execution's id.
fn lasting(place: &Place) -> (Running, String) {
    let mut running = place.start(&["run", "play.yaml"]);
    let line = running.until_says("exec_");
    running.until_says("lasting | begun");
    (running, line.split(':').next().expect("an id").to_owned())
}

/// Another definition, which ends by itself.
const SHORT: &str = "workflow:\n- {step: short, tool: {kind: shell, command: 'true'}}\n";

#[test]
fn a_second_run_in_the_same_folder_runs_in_the_process_that_holds_it() {
    let place = Place::playing(LASTING);
    let (running, first) = lasting(&place);
    place.write("short.yaml", &crate::rig::playbook("short", SHORT));
    let holder = format!("process {} (windlass run play.yaml) holds the data folder and runs", running.pid());
    let output = place.windlass(&["run", "short.yaml", "--json"]).expect(0).says(&holder);
    let output = output.says("hint: `windlass serve` shares one folder among many runs").json();
    assert_eq!(output["status"], "completed");
    let list = place.windlass(&["executions", "list"]).expect(0).out;
    assert!(list.contains(&first) && list.contains(output["executionId"].as_str().expect("an id")), "{list}");
    place.write("go", "");
    assert_eq!(running.end().0, Some(5));
}

#[test]
fn a_run_carries_on_by_itself_when_the_process_that_held_the_folder_is_killed() {
    let place = Place::playing(LASTING);
    let (running, _) = lasting(&place);
    place.write(
        "second.yaml",
        &crate::rig::playbook(
            "second",
            "workflow:\n- step: wait\n  tool: {kind: shell, command: 'echo begun >> second; while ! test -e go; do sleep 0.02; done'}\n",
        ),
    );
    let second = place.start(&["run", "second.yaml"]);
    until("the first process runs it", || (place.lines("second").len() == 1).then_some(()));
    running.signal(rustix::process::Signal::KILL);
    running.end();
    until("the second process runs it", || (place.lines("second").len() == 2).then_some(()));
    place.write("go", "");
    let (code, _, err) = second.end();
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("the process that ran it has ended; this process continues it"), "{err}");
}

#[test]
fn the_socket_in_the_folder_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::playing(LASTING);
    let (running, _) = lasting(&place);
    let mode =
        std::fs::metadata(place.path("data/api.sock")).expect("the socket is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    place.write("go", "");
    running.end();
    assert!(!place.path("data/api.sock").exists(), "the socket is removed with the process");
}

#[test]
fn reading_commands_work_while_an_engine_runs() {
    let place = Place::playing(LASTING);
    let (running, id) = lasting(&place);
    let output = place.windlass(&["executions", "get", &id, "--json"]).expect(0).json();
    assert_eq!(
        (&output["status"], &output["progress"]["currentNode"]),
        (&"running".into(), &"lasting".into())
    );
    assert_eq!(output["nodeExecutions"][0]["status"], "running");
    assert!(place.windlass(&["executions", "list", "--status", "running"]).expect(0).out.contains(&id));
    assert!(place.windlass(&["executions", "events", &id]).expect(0).out.contains("step.offered"));
    assert_eq!(place.windlass(&["executions", "logs", &id]).expect(0).out, "lasting | begun\n");
    place.windlass(&["admin", "check"]).expect(0);
    place.write("go", "");
    running.end();
}

#[test]
fn a_gate_is_opened_from_a_second_process_before_it_is_reached() {
    let place = Place::playing(LASTING);
    let (running, id) = lasting(&place);
    let output = place.windlass(&["executions", "patch", &id, "open=true", "--json"]).expect(0).json();
    assert_eq!(output["status"], "running");
    place.write("go", "");
    let (code, _, err) = running.end();
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("context changed by owner: open"), "{err}");
}

#[test]
fn a_cancel_from_a_second_process_ends_the_run_with_3() {
    let place = Place::playing(LASTING);
    let (running, id) = lasting(&place);
    let output = place.windlass(&["executions", "cancel", &id, "--reason", "enough"]).expect(0);
    assert_eq!(output.out, format!("{id} cancelled\n"));
    let (code, _, err) = running.end();
    assert_eq!((code, err.contains("enough (CANCELLED)")), (Some(3), true), "{err}");
}

#[test]
fn a_refusal_by_the_holder_says_why() {
    let place = Place::playing(LASTING);
    let (running, id) = lasting(&place);
    place.windlass(&["executions", "resume", &id]).expect(1).says("it is not held");
    place.write("go", "");
    running.end();
}

#[test]
fn a_change_waits_for_a_process_that_holds_the_folder_without_an_engine() {
    let place = Place::playing(
        "workflow:\n- {step: g, spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}}\n",
    );
    let output = place.run(&[], 5);
    let lock = File::open(place.path("data/lock")).expect("the lock is there");
    flock(&lock, FlockOperation::LockExclusive).expect("no process holds the folder");
    let mut running =
        place.start(&["executions", "patch", output["executionId"].as_str().expect("an id"), "go=true"]);
    running.until_says("to release the data folder");
    drop(lock);
    let (code, out, err) = running.end();
    assert_eq!((code, out.ends_with(" completed\n")), (Some(0), true), "{out}{err}");
}

#[test]
fn a_hold_from_a_second_process_keeps_the_next_step_back() {
    let place = Place::playing(LASTING);
    let (mut running, id) = lasting(&place);
    place.windlass(&["executions", "patch", &id, "open=true"]).expect(0);
    assert_eq!(place.windlass(&["executions", "pause", &id]).expect(0).out, format!("{id} paused\n"));
    place.write("go", "");
    running.until_says("step lasting done");
    let output = place.windlass(&["executions", "get", &id, "--json"]).expect(0).json();
    assert_eq!(
        (&output["status"], &output["nodeExecutions"][1]["status"]),
        (&"paused".into(), &"pending".into())
    );
    place.windlass(&["executions", "resume", &id]).expect(0);
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn what_is_followed_comes_as_it_happens_and_ends_with_the_execution() {
    let place = Place::playing(LASTING);
    let (running, id) = lasting(&place);
    let mut watch = place.start(&["executions", "watch", &id]);
    watch.until_says("lasting | begun");
    let events = place.start(&["executions", "events", &id, "--follow", "--json"]);
    let logs = place.start(&["executions", "logs", &id, "--follow"]);
    place.windlass(&["executions", "patch", &id, "open=true"]).expect(0);
    place.write("go", "");
    assert_eq!(watch.end().0, Some(0));
    assert_eq!(logs.end().1, "lasting | begun\nlasting | over\n");
    let (code, out, _) = events.end();
    let last: Value = serde_json::from_str(out.lines().last().expect("a line")).expect("an object");
    assert_eq!((code, last["event"].as_str()), (Some(0), Some("execution.completed")));
    assert_eq!(running.end().0, Some(0));
}

/// The process that holds the folder.
fn holder(place: &Place) -> Option<rustix::process::Pid> {
    let note = std::fs::read_to_string(place.path("data/lock")).ok()?;
    rustix::process::Pid::from_raw(note.strip_prefix("process ")?.split(' ').next()?.parse().ok()?)
}

#[test]
fn runs_in_one_folder_all_end_although_their_holders_end_and_one_is_killed() {
    let place = Place::playing(
        "workflow:
- {step: a, tool: {kind: shell, command: 'echo begun >> begun; sleep 0.2'}, next: b}
- {step: b, tool: {kind: shell, command: 'sleep 0.2; echo over >> over'}}
",
    );
    let runs: Vec<Running> = (0..8).map(|_| place.start(&["run", "play.yaml"])).collect();
    until("some of them run", || (place.lines("begun").len() >= 4).then_some(()));
    // A holder may end by itself at this moment; then the next one is killed.
    until("the holder is killed", || {
        rustix::process::kill_process(holder(&place)?, rustix::process::Signal::KILL).ok()
    });
    let codes: Vec<Option<i32>> = runs.into_iter().map(|run| run.end().0).collect();
    let succeeded = codes.iter().filter(|code| **code == Some(0)).count();
    assert!(succeeded >= 7 && codes.iter().all(|code| matches!(code, None | Some(0))), "{codes:?}");
    place.windlass(&["run", "--resume"]).expect(0);
    assert!(place.lines("over").len() >= 8);
    place.windlass(&["admin", "check"]).expect(0);
}
