//! `windlass admin check`, and data that is not as it was written.

use crate::rig::{Place, playbook, process_of};
use rusqlite::Connection;
use rustix::process::Signal;
use std::fs;

const STEPS: &str = "workflow:\n- {step: a, tool: {kind: shell, command: 'true'}, next: b}\n- {step: b}\n";

fn database(place: &Place) -> Connection {
    Connection::open(place.path("data/windlass.db")).expect("the database opens")
}

fn ran() -> (Place, String) {
    let place = Place::playing(STEPS);
    let id = place.run(&[], 0)["executionId"].as_str().expect("an id").to_owned();
    (place, id)
}

#[test]
fn a_good_folder_passes() {
    let (place, _) = ran();
    place.run(&[], 0);
    let output = place.windlass(&["admin", "check"]).expect(0);
    assert!(output.out.contains("2 executions") && output.out.contains("no problem"), "{}", output.out);
    let output = place.windlass(&["admin", "check", "--json"]).expect(0).json();
    assert_eq!((&output["executions"], &output["problems"]), (&2.into(), &serde_json::json!([])));
}

#[test]
fn executions_of_plans_pass_after_their_end_and_after_the_death_of_their_worker() {
    let place = Place::new();
    place.write(
        "play.yaml",
        "steps: [{id: a, action: {script: 'true'}}, {id: b, action: {script: 'exit 3'}}]\n",
    );
    place.run(&[], 1);
    place.windlass(&["admin", "check"]).expect(0);
    let script = format!("echo $$ > {}; exec sleep 1000", place.path("pid").display());
    let plan = serde_json::json!({ "steps": [{ "id": "a", "action": { "script": script } }] });
    place.write("play.yaml", &plan.to_string());
    let running = place.start(&["run", "play.yaml"]);
    process_of(&place, "pid");
    running.signal(Signal::KILL);
    running.end();
    let output = place.windlass(&["admin", "check"]).expect(0);
    assert!(output.out.contains("2 executions") && output.out.contains("no problem"), "{}", output.out);
}

#[test]
fn a_changed_journal_row_is_reported_with_its_place() {
    let (place, id) = ran();
    let changed = database(&place)
        .execute("UPDATE journal SET records = CAST(replace(CAST(records AS TEXT), 'offered', 'offerEd') AS BLOB) WHERE version = 0", [])
        .expect("the row changes");
    assert_eq!(changed, 1);
    let bare = id.strip_prefix("exec_").expect("a prefix");
    for args in [&["admin", "check"][..], &["executions", "get", &id], &["executions", "events", &id]] {
        let output = place.windlass(args).expect(1);
        let all = format!("{}{}", output.out, output.err);
        assert!(
            all.contains(bare) && all.contains("version 0") && all.contains("checksum"),
            "{args:?}: {all}"
        );
    }
    let output = place.windlass(&["admin", "check", "--json"]).expect(1).json();
    assert_eq!(output["problems"].as_array().map(Vec::len), Some(1), "{output}");
}

#[test]
fn rows_that_do_not_follow_from_the_journal_are_reported() {
    let (place, id) = ran();
    database(&place).execute("UPDATE heads SET at = at + 1", []).expect("the row changes");
    let output = place.windlass(&["admin", "check"]).expect(1);
    let bare = id.strip_prefix("exec_").expect("a prefix");
    assert!(output.out.contains(bare), "{}", output.out);
}

#[test]
fn a_damaged_execution_is_quarantined_and_others_run() {
    let place = Place::playing(
        "workflow:\n- {step: a, tool: {kind: shell, command: 'echo $$ > pid; exec sleep 1000'}}\n",
    );
    let running = place.start(&["run", "play.yaml"]);
    process_of(&place, "pid");
    running.signal(Signal::KILL);
    running.end();
    database(&place).execute("UPDATE heads SET state = x'c1'", []).expect("the row changes");
    place.write("other.yaml", &playbook("tested", "workflow:\n- {step: b, tool: {kind: noop}}\n"));
    place.windlass(&["run", "other.yaml"]).expect(0);
    let listed = place.windlass(&["admin", "quarantine", "list"]).expect(0);
    assert!(listed.out.contains("state row"), "{}", listed.out);
}

#[test]
fn data_of_a_newer_version_is_refused_and_left_alone() {
    let (place, id) = ran();
    database(&place)
        .execute("INSERT INTO migrations (number, name, sha256) VALUES (999, 'later', x'00')", [])
        .expect("the row is added");
    let before = fs::read(place.path("data/windlass.db")).expect("the file is there");
    for args in [
        &["run", "play.yaml"][..],
        &["run", "--resume"],
        &["executions", "get", &id],
        &["executions", "cancel", &id],
        &["admin", "check"],
    ] {
        place.windlass(args).expect(1).says("newer version").says("999");
    }
    assert!(before == fs::read(place.path("data/windlass.db")).expect("the file is there"));
}
