//! Retries, timeouts and classes of errors of actions.

use crate::actions::{acting, action, events, states};
use crate::receiver::Receiver;
use crate::rig::Place;
use serde_json::{Value, json};

/// Delays between the failed attempts of the only action and the next one, as the journal has them.
fn delays_ms(place: &Place) -> Vec<i64> {
    let at = |time: &Value| {
        time.as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok()).expect("a time").as_millisecond()
    };
    let planned = events(place).into_iter().filter(|event| event["event"] == "step.retry_scheduled");
    planned.map(|event| at(&event["data"]["until"]) - at(&event["timestamp"])).collect()
}

/// One action whose operation is a command.
fn one(fields: &str, command: &str) -> Place {
    let fields = if fields.is_empty() { String::new() } else { format!(", {fields}") };
    acting(
        "",
        &format!("- {{actionId: a, order: 1, operation: 'thing:do'{fields}}}"),
        &[("thing:do", command)],
    )
}

#[test]
fn act_07_without_a_policy_there_are_three_attempts_after_one_and_two_seconds() {
    let place = one("", "echo try >> log; exit 1");
    let run = place.run(&[], 1);
    assert_eq!(place.lines("log").len(), 3);
    assert_eq!(states(&run["view"]), "a Failed 3");
    assert_eq!(delays_ms(&place), [1_000, 2_000], "no jitter");
}

#[test]
fn act_07_delays_grow_by_the_factor_up_to_the_cap() {
    let policy =
        "retryPolicy: {maxAttempts: 5, initialBackoffMs: 10, backoffMultiplier: 3, maxBackoffMs: 50}";
    let place = one(policy, "exit 1");
    place.run(&[], 1);
    assert_eq!(delays_ms(&place), [10, 30, 50, 50]);
}

#[test]
fn act_07_values_outside_of_the_bounds_are_refused() {
    for (policy, message) in [
        ("maxAttempts: 0", "`maxAttempts` of action `a` must be a whole number from 1 to 10"),
        ("maxAttempts: 11", "`maxAttempts` of action `a` must be a whole number from 1 to 10"),
        ("maxAttempts: 1.5", "`maxAttempts` of action `a` must be a whole number from 1 to 10"),
        ("initialBackoffMs: -1", "`initialBackoffMs` of action `a` must be a whole number"),
        ("backoffMultiplier: 0.5", "`backoffMultiplier` of action `a` must be a number from 1 to 1000"),
        ("maxBackoffMs: soon", "`maxBackoffMs` of action `a` must be a number, not a string"),
        ("retryableErrors: [validation]", "errors of the class or code `validation` can never be retried"),
        ("retryableErrors: [policy_deny]", "can never be retried"),
        ("retryableErrors: [timeouts]", "there is no class of errors `timeouts`"),
        ("attempts: 3", "has no key `attempts`"),
    ] {
        let place = one(&format!("retryPolicy: {{{policy}}}"), "true");
        place.windlass(&["run", "play.yaml"]).expect(2).says(message);
    }
    one("timeoutMs: 0", "true").windlass(&["run", "play.yaml"]).expect(2).says("`timeoutMs` of action `a`");
}

/// Runs one action against a server that answers with `answer`, and returns the number of calls and the error.
fn calls(answer: &'static str, policy: &str) -> (usize, Value, Place) {
    let server = Receiver::answering(move |_, _| answer.to_owned());
    let text = format!(
        "schemaVersion: 1\nworkflowId: tested\nname: tested\nactions:\n- {{actionId: a, order: 1, operation: 'thing:do', retryPolicy: {{maxAttempts: 2, initialBackoffMs: 1, {policy}}}}}\n\
         adapters: {{operations: {{'thing:do': {{kind: http, method: POST, url: '{}', json: '{{{{ args }}}}'}}}}}}\n",
        server.url
    );
    let place = Place::new();
    place.write("play.yaml", &text);
    let run = place.run(&[], 1);
    (server.all().len(), action(&run["view"], "a")["error"].clone(), place)
}

#[test]
fn act_08_classes_decide_what_is_retried() {
    for (answer, class, tries) in [
        ("503 Service Unavailable", "transient_5xx", 2),
        ("429 Too Many Requests", "rate_limit", 2),
        ("400 Bad Request", "validation", 1),
        ("401 Unauthorized", "auth", 1),
        ("403 Forbidden", "policy", 1),
        ("409 Conflict", "conflict", 1),
    ] {
        let (made, error, _) = calls(answer, "");
        assert_eq!((made, &error["class"]), (tries, &json!(class)), "{answer}: {error}");
    }
    // An exit code says nothing about the reason: it is unknown, and retried until the attempts are used up.
    let place = one("retryPolicy: {maxAttempts: 4, initialBackoffMs: 1}", "echo try >> log; exit 1");
    let run = place.run(&[], 1);
    assert_eq!(
        (place.lines("log").len(), &action(&run["view"], "a")["error"]["class"]),
        (4, &json!("unknown"))
    );
}

#[test]
fn act_08_a_list_of_errors_replaces_the_usual_ones_and_unknown_errors_stay_retryable() {
    assert_eq!(calls("503 Service Unavailable", "retryableErrors: [timeout]").0, 1);
    assert_eq!(calls("503 Service Unavailable", "retryableErrors: [5xx]").0, 2);
    assert_eq!(calls("503 Service Unavailable", "retryableErrors: [SERVICE_UNAVAILABLE]").0, 2);
    let place = one(
        "retryPolicy: {maxAttempts: 2, initialBackoffMs: 1, retryableErrors: [timeout]}",
        "echo try >> log; exit 1",
    );
    place.run(&[], 1);
    assert_eq!(place.lines("log").len(), 2);
}

#[test]
fn act_08_the_delay_that_a_server_requests_is_respected_within_the_cap() {
    let answer = "429 Too Many Requests\r\nRetry-After: 1";
    assert_eq!(delays_ms(&calls(answer, "maxBackoffMs: 5000").2), [1_000]);
    assert_eq!(delays_ms(&calls(answer, "maxBackoffMs: 40").2), [40]);
}

/// The first attempt outlives its timeout: it answers the request to stop by ending well, with a result.
const LATE: &str = "if [ -e begun ]; then echo in time; else touch begun; \
                    trap 'echo late >> log; echo late; exit 0' TERM; while true; do sleep 0.02; done; fi";

#[test]
fn act_09_a_timed_out_attempt_is_retried_and_its_late_result_is_ignored() {
    let place = one("timeoutMs: 2000, retryPolicy: {initialBackoffMs: 1}", LATE);
    let run = place.run(&[], 0);
    assert_eq!(run["outputs"]["stdout"], "in time\n");
    assert_eq!(
        place.lines("log"),
        ["late"],
        "the process of the first attempt ended well, after its timeout"
    );
    let scheduled = events(&place).into_iter().find(|event| event["event"] == "step.retry_scheduled");
    assert_eq!(scheduled.expect("a retry")["data"]["error"]["class"], "timeout");
}

#[test]
fn act_09_an_action_whose_attempts_all_time_out_has_failed() {
    let place = one("timeoutMs: 100, retryPolicy: {maxAttempts: 2, initialBackoffMs: 1}", "sleep 60");
    let run = place.run(&[], 1);
    assert_eq!(states(&run["view"]), "a Failed 2");
    assert_eq!(action(&run["view"], "a")["error"]["class"], "timeout");
}

#[test]
fn act_09_the_timeout_does_not_run_while_a_person_is_asked() {
    let place = one("timeoutMs: 1000, completionMode: manual", "true");
    let run = place.run(&[], 5);
    let id = run["executionId"].as_str().expect("an id");
    assert_eq!(states(&run["view"]), "a WaitingForManualCompletion 1");
    // Commands take longer than the timeout in sum.
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 1_200 {
        place.windlass(&["run", "--resume", id]).expect(5);
    }
    place.windlass(&["executions", "signal", id, "a", "--outcome", "succeeded"]).expect(0);
    place.windlass(&["run", "--resume", id]).expect(0);
}

#[test]
fn act_16_every_attempt_has_the_same_idempotency_key() {
    let command = "echo $WINDLASS_IDEMPOTENCY_KEY >> log; test $(wc -l < log) -ge 3";
    let place = one("retryPolicy: {maxAttempts: 3, initialBackoffMs: 1}", command);
    let run = place.run(&[], 0);
    let key = format!("{}:a", run["executionId"].as_str().expect("an id"));
    assert_eq!(place.lines("log"), [key.clone(), key.clone(), key]);
}
