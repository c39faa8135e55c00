//! Schedules on the command line.

use crate::rig::Place;
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
