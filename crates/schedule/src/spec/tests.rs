use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn minimal() -> Value {
    json!({
        "name": "tick",
        "schedule": { "kind": "cron", "expr": "0 6 * * *" },
        "target": { "kind": "shell", "command": "true" },
    })
}

/// The document with some fields replaced.
fn with(changes: Value) -> Value {
    let mut document = minimal();
    if let (Some(fields), Value::Object(changes)) = (document.as_object_mut(), changes) {
        fields.extend(changes);
    }
    document
}

fn check_problems(document: &Value, expected: &[&str]) {
    let problems = ScheduleSpec::parse(document, now()).expect_err("it is refused");
    let found: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect();
    assert_eq!(found, expected, "{document}");
}

#[test]
fn fields_have_defaults_of_their_own() {
    let document = with(json!({ "policy": { "overlap": "replace" }, "retry": { "max_attempts": 3 } }));
    let spec = ScheduleSpec::parse(&document, now()).unwrap();
    assert_eq!(
        Value::Object(spec.to_json()),
        json!({
            "name": "tick", "enabled": true, "timezone": "UTC",
            "schedule": { "kind": "cron", "expr": "0 6 * * *" },
            "target": { "kind": "shell", "command": "true", "args": [], "env": {}, "cwd": null },
            "policy": { "overlap": "replace", "misfire": "run_once_if_late", "timeout_seconds": 300, "max_concurrency": 1,
                "jitter_seconds": 0 },
            "retry": { "max_attempts": 3, "strategy": "exponential", "initial_delay_seconds": 30, "max_delay_seconds": 900 },
            "start_at": null, "end_at": null, "dead_letter_webhook": null,
        })
    );
}

#[test]
fn a_document_that_was_read_can_be_sent_back() {
    let documents = [
        with(json!({ "schedule": { "kind": "interval", "every_seconds": 5 }, "timezone": "europe/berlin" })),
        with(
            json!({ "schedule": { "kind": "once", "at": "2030-01-01T00:00:00+02:00" }, "end_at": "2031-01-01T00:00:00Z" }),
        ),
        with(
            json!({ "target": { "kind": "http", "method": "post", "url": "https://a.example/", "body": { "a": 1 } } }),
        ),
        with(
            json!({ "target": { "kind": "workflow", "workflow_id": "w", "input": { "n": 1 }, "version": 2 } }),
        ),
    ];
    for document in documents {
        let spec = ScheduleSpec::parse(&document, now()).unwrap();
        let mut sent = spec.to_json();
        sent.insert("id".to_owned(), json!("sch_1"));
        sent.insert("next_run_at".to_owned(), Value::Null);
        assert_eq!(ScheduleSpec::parse(&Value::Object(sent), now()).unwrap(), spec, "{document}");
    }
}

#[test]
fn every_wrong_field_is_reported_at_once() {
    check_problems(
        &json!({
            "name": " ", "enabled": "yes", "timezone": "Mars/Base", "shedule": 1,
            "schedule": { "kind": "cron", "expr": "x" },
            "target": { "kind": "http", "headers": [] },
            "policy": { "overlap": "never", "timeout_seconds": 0 },
            "retry": { "max_attempts": -1, "initial_delay_seconds": 60, "max_delay_seconds": 30 },
            "start_at": "2031-01-01T00:00:00Z", "end_at": "2030-01-01T00:00:00Z",
        }),
        &[
            "schedule.expr: must parse as a cron expression: a cron expression has 5 fields (minute, hour, day of month, month, day of week) or 6 with seconds in front, not 1",
            "target.method: is required for http",
            "target.url: is required for http",
            "target.headers: must be an object of at most 1000 strings",
            "policy.overlap: must be one of allow, forbid, queue_latest, replace",
            "policy.timeout_seconds: must be a whole number from 1 to 31622400",
            "retry.max_attempts: must be a whole number from 0 to 1000",
            "retry.max_delay_seconds: must be >= initial_delay_seconds",
            "name: must be non-empty",
            "enabled: must be true or false",
            "timezone: must be a valid IANA timezone",
            "start_at: must be <= end_at",
            "shedule: is not a field that is known here",
        ],
    );
    check_problems(
        &json!([]),
        &["schedule: must be an object", "target: must be an object", ": must be an object"],
    );
    check_problems(
        &with(json!({ "schedule": { "kind": "daily", "at": 5 } })),
        &["schedule.kind: must be one of cron, interval, once"],
    );
    check_problems(
        &with(json!({ "schedule": { "kind": "once", "at": "soon" } })),
        &["schedule.at: must be a time as in 2030-01-31T00:00:00Z"],
    );
    check_problems(&with(json!({ "schedule": { "kind": "once" } })), &["schedule.at: is required for once"]);
    check_problems(
        &with(json!({ "schedule": { "kind": "interval" } })),
        &["schedule.every_seconds: must be > 0"],
    );
    check_problems(
        &with(json!({ "target": { "kind": "shell", "command": "true", "args": [1], "stdin": "x" } })),
        &[
            "target.args: must be a list of at most 1000 strings",
            "target.stdin: is not a field that is known here",
        ],
    );
    check_problems(
        &with(json!({ "target": { "kind": "http", "method": "LINK", "url": "/path" } })),
        &[
            "target.method: must be one of DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT",
            "target.url: must be an absolute http or https URL",
        ],
    );
}

#[test]
fn values_that_no_request_and_no_program_can_have_are_refused() {
    let http = |more: Value| {
        let mut target = json!({ "kind": "http", "method": "GET", "url": "https://example.com/a?b=c" });
        more.as_object().unwrap().iter().for_each(|(name, value)| target[name] = value.clone());
        with(json!({ "target": target }))
    };
    assert!(ScheduleSpec::parse(&http(json!({ "headers": { "X-A": "tab\tis fine" } })), now()).is_ok());
    let header = "target.headers: has a name or a value that no header can have";
    for headers in [json!({ "X-A": "a\r\nX-Evil: 1" }), json!({ "X A": "a" }), json!({ "": "a" })] {
        check_problems(&http(json!({ "headers": headers })), &[header]);
    }
    let host = "target.url: must name a host, and have no spaces and no control characters";
    for url in ["http://", "https:///path", "http://a b/", "http://a/\r\n"] {
        check_problems(&http(json!({ "url": url })), &[host]);
    }
    let shell = |more: Value| {
        let mut target = json!({ "kind": "shell", "command": "true" });
        more.as_object().unwrap().iter().for_each(|(name, value)| target[name] = value.clone());
        with(json!({ "target": target }))
    };
    assert!(ScheduleSpec::parse(&shell(json!({ "env": { "A_1": "x y" } })), now()).is_ok());
    for name in ["A=B", "1A", "A B", ""] {
        let env = "target.env: has a name that is not made of letters, digits and _";
        check_problems(&shell(json!({ "env": { name: "x" } })), &[env]);
    }
    for more in [json!({ "args": ["a\0b"] }), json!({ "env": { "A": "\0" } }), json!({ "cwd": "\0" })] {
        let nul = "target.command: must have no NUL characters, nor its arguments and variables";
        check_problems(&shell(more), &[nul]);
    }
    let large = shell(json!({ "args": ["x".repeat(70_000)] }));
    check_problems(&large, &[": must have at most 65536 bytes; large values belong into a workflow"]);
}

#[test]
fn sch_16_a_schedule_without_an_occurrence_is_refused() {
    let check = |document: Value, expected: &str| {
        let spec = ScheduleSpec::parse(&document, now()).unwrap();
        assert_eq!(spec.first_after(now()).expect_err("it has none").field, expected);
    };
    check(with(json!({ "schedule": { "kind": "cron", "expr": "0 0 30 2 *" } })), "schedule.expr");
    check(with(json!({ "end_at": "2026-01-01T01:00:00Z" })), "schedule.expr");
    check(with(json!({ "schedule": { "kind": "once", "at": "2025-01-01T00:00:00Z" } })), "schedule.at");
}

#[test]
fn sch_13_the_key_of_an_occurrence_is_its_time_in_seconds() {
    let key = occurrence_key("sch_1", "2026-04-01T09:00:00.250Z".parse().unwrap());
    assert_eq!(key, "sch_1:2026-04-01T09:00:00Z");
}
