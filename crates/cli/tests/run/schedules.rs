//! Schedules on the command line.

use crate::rig::{Place, until};
use rustix::process::Signal;
use serde_json::json;

/// The lines that are printed for an expression.
fn check(args: &[&str], expected: &str) {
    let output = Place::new().windlass(&[&["schedules", "next"], args].concat()).expect(0);
    assert_eq!(output.out.trim_end(), expected, "{args:?}");
}

#[test]
fn sch_16_the_next_times_of_an_expression_are_local_times_of_its_zone() {
    check(
        &["30 2 * * *", "--tz", "Europe/Berlin", "-n", "3", "--after", "2026-03-27T12:00:00Z"],
        "2026-03-28 02:30:00 +01:00  2026-03-28T01:30:00.000Z
2026-03-29 03:00:00 +02:00  2026-03-29T01:00:00.000Z
2026-03-30 02:30:00 +02:00  2026-03-30T00:30:00.000Z",
    );
    check(
        &["30 * * * *", "--tz", "Europe/Berlin", "-n", "2", "--after", "2026-10-25T00:00:00Z"],
        "2026-10-25 02:30:00 +02:00  2026-10-25T00:30:00.000Z
2026-10-25 02:30:00 +01:00  2026-10-25T01:30:00.000Z",
    );
    check(
        &["15 0 9 LW * *", "-n", "1", "--after", "2026-02-01T00:00:00Z"],
        "2026-02-27 09:00:15 +00:00  2026-02-27T09:00:15.000Z",
    );
}

#[test]
fn the_next_times_as_json_are_a_list_of_instants() {
    let args = ["schedules", "next", "0 6 * * *", "-n", "2", "--after", "2026-01-01T06:00:00Z", "--json"];
    let output = Place::new().windlass(&args).expect(0).json();
    assert_eq!(output, json!(["2026-01-02T06:00:00.000Z", "2026-01-03T06:00:00.000Z"]));
    let now = Place::new().windlass(&["schedules", "next", "* * * * *", "--json"]).expect(0).json();
    assert_eq!(now.as_array().map(Vec::len), Some(5));
}

#[test]
fn sch_16_an_expression_that_never_occurs_is_refused_as_are_wrong_ones() {
    let refuse = |args: &[&str], part: &str| {
        Place::new().windlass(&[&["schedules", "next"], args].concat()).expect(2).says(part);
    };
    refuse(&["0 0 30 2 *"], "`0 0 30 2 *`: no such time exists; check the day and the month");
    refuse(&["0 25 * * *"], "`25` in the field hour: expected a number from 0 to 23");
    refuse(&["0 6 * *"], "5 fields (minute, hour, day of month, month, day of week)");
    refuse(&["0 6 * * *", "--tz", "Mars/Base"], "`Mars/Base` is not a time zone of the IANA database");
    refuse(&["0 6 * * *", "-n", "0"], "1..=1000");
    refuse(&["0 6 * * *", "--after", "tomorrow"], "--after");
}

const PLAYBOOK: &str = "metadata: {name: greet, path: greet}\nworkload: {who: none}\nworkflow:\n\
                        - {step: hi, tool: {kind: shell, command: 'echo {{ workload.who }}'}}\n";

#[test]
fn a_definition_gets_a_schedule_in_one_command_and_a_folder_runs_it_in_the_foreground() {
    let place = Place::new();
    place.write("greet.yaml", PLAYBOOK);
    let file = place.path("greet.yaml");
    let file = file.to_str().unwrap();
    let args = ["schedules", "create", file, "--every", "1s", "--input", "who=ada", "--json"];
    let made = place.windlass(&args).expect(0).json();
    assert_eq!(
        (
            &made["name"],
            &made["target"]["workflow_id"],
            &made["target"]["input"],
            &made["schedule"]["every_seconds"]
        ),
        (&json!("greet"), &json!("greet"), &json!({ "who": "ada" }), &json!(1))
    );
    let mut running = place.start(&["schedules", "run"]);
    running.until_says("starting schedules");
    let done = until("a run has succeeded", || {
        let found = place.windlass(&["runs", "list", "--status", "succeeded", "--json"]).expect(0).json();
        found["items"].get(0).cloned()
    });
    let run = place.windlass(&["runs", "get", done["id"].as_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!(run["result_json"]["stdout"], "ada\n", "{run}");
    place.windlass(&["schedules", "run"]).expect(2).says("another process");
    running.signal(Signal::INT);
    let (code, out, _) = running.end();
    assert_eq!(code, Some(0));
    assert!(out.contains("succeeded"), "{out}");
}

#[test]
fn a_time_is_needed_and_a_definition_must_exist() {
    let place = Place::new();
    place.windlass(&["schedules", "create", "greet"]).expect(2).says("--cron");
    place.windlass(&["schedules", "create"]).expect(2).says("--file");
    place
        .windlass(&["schedules", "create", "greet", "--cron", "0 6 * * *"])
        .expect(2)
        .says("no workflow `greet`");
    place
        .windlass(&["schedules", "create", "greet", "--every", "1ms"])
        .expect(2)
        .says("--every must be a time");
    place.windlass(&["schedules", "create", "greet", "--every", "1m", "--tz", "UTC"]).expect(2).says("--tz");
}

#[test]
fn files_are_all_checked_before_one_of_them_is_applied() {
    let place = Place::new();
    std::fs::create_dir(place.path("dir")).unwrap();
    let file = |name: &str, more: &str| {
        let text = format!(
            "name: {name}\nschedule: {{kind: cron, expr: '0 6 * * *'}}\ntarget: {{kind: shell, command: 'true'}}\n{more}"
        );
        place.write(&format!("dir/{name}.yaml"), &text);
    };
    let dir = place.path("dir");
    let apply = |more: &[&str]| {
        place.windlass(&[&["schedules", "apply", "-f", dir.to_str().unwrap()], more].concat())
    };
    let actions = |more: &[&str]| {
        let applied = apply(&[more, &["--json"]].concat()).expect(0).json();
        let applied = applied["applied"].as_array().unwrap().clone();
        applied.iter().map(|one| (one["name"].clone(), one["action"].clone())).collect::<Vec<_>>()
    };
    file("a", "retry: {max_attempts: 3}\n");
    file("b", "timezone: Mars/Base\n");
    apply(&[]).expect(2).says("b.yaml").says("must be a valid IANA timezone");
    let listed = place.windlass(&["schedules", "list", "--json"]).expect(0).json();
    assert_eq!(listed["items"], json!([]), "the good file was not applied alone");
    file("b", "");
    let created = [(json!("a"), json!("created")), (json!("b"), json!("created"))];
    assert_eq!(actions(&["--dry-run"]), created);
    assert_eq!(actions(&[]), created);
    assert_eq!(
        actions(&[]).iter().map(|(_, action)| action.clone()).collect::<Vec<_>>(),
        ["unchanged", "unchanged"]
    );
    // A field that a file leaves out has its default again.
    file("a", "");
    let shown = apply(&["--dry-run"]).expect(0);
    assert_eq!(shown.out, "changed    a\n  retry.max_attempts: 3 -> 0\nunchanged  b\n");
    assert_eq!(actions(&[])[0].1, "changed");
    let now = place.windlass(&["schedules", "get", "a", "--json"]).expect(0).json();
    assert_eq!(now["retry"]["max_attempts"], 0);
    std::fs::copy(place.path("dir/a.yaml"), place.path("dir/c.yaml")).unwrap();
    apply(&[]).expect(2).says("describe the same schedule `a`");
}
