//! Webhooks: what comes, how it is signed, how it is tried again, and what a crash does to it.

use crate::executions::{FAILS, TWO, get, start, until, waits_for};
use crate::receiver::{Received, Receiver};
use crate::rig::{self, Place, Server, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ALL: [&str; 7] = [
    "execution.started",
    "execution.completed",
    "execution.failed",
    "execution.cancelled",
    "node.started",
    "node.completed",
    "node.failed",
];

/// A place whose webhooks may go to this machine.
fn place() -> Place {
    Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1")
}

fn events(received: &[Received]) -> Vec<String> {
    received.iter().map(Received::event).collect()
}

fn has_ended(received: &[Received]) -> bool {
    let ends = ["execution.completed", "execution.failed", "execution.cancelled"];
    received.iter().any(|one| ends.contains(&one.event().as_str()))
}

fn deliveries(server: &Server, query: &str) -> Vec<Value> {
    let (status, body) = read_answer(server.get(&format!("/api/v1/webhook-deliveries{query}")));
    assert_eq!(status, StatusCode::OK, "{body}");
    body["deliveries"].as_array().unwrap().clone()
}

/// The oldest delivery, when it was tried.
fn first_try(server: &Server, query: &str) -> Value {
    rig::until("it is tried", || deliveries(server, query).pop().filter(|first| first["attempts"] != 0))
}

#[test]
fn wfl_16_the_events_that_were_asked_for_come_in_order() {
    let (place, receiver) = (place(), Receiver::new());
    let server = place.serve();
    let workflow = server.define(TWO);
    let id = start(&server, &workflow, json!({ "webhookUrl": receiver.url, "webhookEvents": ALL }));
    let received = receiver.until(has_ended);
    let expected = [
        "execution.started",
        "node.started",
        "node.completed",
        "node.started",
        "node.completed",
        "execution.completed",
    ];
    assert_eq!(events(&received), expected);
    for (one, number) in received.iter().zip(1..) {
        let body = one.json();
        let fields: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["data", "event", "signature", "timestamp"], "canonical: sorted");
        assert_eq!(
            (&body["data"]["executionId"], &body["data"]["workflowId"]),
            (&json!(id), &json!(workflow))
        );
        assert_eq!(body["data"]["sequence"], number);
        assert_eq!(one.path, "/in");
    }
    let last = received.last().unwrap().json();
    assert_eq!(last["data"]["status"], "completed");
    assert!(last["data"]["duration"].is_u64() && last["data"]["outputs"].is_object(), "{last}");
    assert_eq!(received[1].json()["data"]["nodeId"], "a");
}

#[test]
fn wfl_16_without_a_list_the_four_events_of_the_execution_come() {
    let (place, receiver) = (place(), Receiver::new());
    let server = place.serve();
    start(&server, &server.define(FAILS), json!({ "webhookUrl": receiver.url }));
    assert_eq!(events(&receiver.until(has_ended)), ["execution.started", "execution.failed"]);

    let receiver = Receiver::new();
    let waits = server.define(&waits_for(&place.data().join("never")));
    let options =
        json!({ "webhookUrl": receiver.url, "webhookEvents": ["execution.cancelled", "node.failed"] });
    let id = start(&server, &waits, options);
    server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
    assert_eq!(
        events(&receiver.until(has_ended)),
        ["execution.cancelled"],
        "what was cancelled has not failed"
    );

    let receiver = Receiver::new();
    let options =
        json!({ "webhookUrl": receiver.url, "webhookEvents": ["node.failed"], "notifyOnError": true });
    start(&server, &server.define(FAILS), options);
    let received = receiver.until(has_ended);
    assert_eq!(events(&received), ["node.failed", "execution.failed"]);
    assert_eq!(received[0].json()["data"]["error"]["maxRetries"], 0);
    for one in &received {
        let error = &one.json()["data"]["error"];
        let (id, name, code) = (&error["nodeId"], &error["nodeName"], &error["code"]);
        assert_eq!((id, name, code), (&json!("b"), &json!("b"), &json!("SHELL_EXIT")), "{}", one.json());
    }
}

#[test]
fn wfl_16_a_receiver_that_fails_gets_it_again_and_nothing_overtakes() {
    let place = place();
    // The second delivery is refused once.
    let receiver = Receiver::answering(|before, _| match before {
        1 => "503 Service Unavailable\r\nRetry-After: 1".to_owned(),
        _ => "204 No Content".to_owned(),
    });
    let server = place.serve();
    let id = start(&server, &server.define(TWO), json!({ "webhookUrl": receiver.url, "webhookEvents": ALL }));
    let received = receiver.until(has_ended);
    let ids: Vec<&String> = received.iter().map(|one| &one.headers["webhook-id"]).collect();
    assert_eq!(ids[1], ids[2], "the same id on every try");
    assert_eq!(received[1].body, received[2].body);
    let numbers: Vec<u64> =
        received.iter().map(|one| one.json()["data"]["sequence"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 2, 3, 4, 5, 6]);
    let log = rig::until("all are delivered", || {
        let log = deliveries(&server, &format!("?executionId={id}&status=delivered"));
        Some(log).filter(|log| log.len() == 6)
    });
    let second = log.iter().find(|delivery| delivery["sequence"] == 2).unwrap();
    assert_eq!(
        (&second["attempts"], &second["responseStatus"], &second["id"]),
        (&json!(2), &json!(204), &json!(ids[1]))
    );
}

/// The log of an execution, the first event first, as soon as it is like this.
fn log_when(server: &Server, id: &str, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    rig::until("the log of deliveries", || {
        let mut log = deliveries(server, &format!("?executionId={id}"));
        log.reverse();
        is_so(&log).then_some(log)
    })
}

fn redeliver(server: &Server, delivery: &Value) {
    let path = format!("/api/v1/webhook-deliveries/{}/redeliver", delivery["id"].as_str().unwrap());
    let response = server.request(Method::POST, &path).send().unwrap();
    assert_eq!(response.status(), StatusCode::ACCEPTED);
}

fn is_given_up(delivery: &Value) -> bool {
    delivery["status"] == "given_up"
}

#[test]
fn wfl_16_a_receiver_that_never_answers_delays_no_other() {
    const HELD_UP: usize = 1_100;
    let place = place();
    let silent = Receiver::answering(|_, _| {
        loop {
            std::thread::park();
        }
    });
    let server = place.serve();
    let workflow = server.define("metadata: {name: short}\nworkflow:\n- {step: a, tool: {kind: noop}}\n");
    for _ in 0..HELD_UP {
        start(&server, &workflow, json!({ "webhookUrl": silent.url }));
    }
    silent.until(|received| !received.is_empty());
    let well = Receiver::new();
    start(&server, &workflow, json!({ "webhookUrl": well.url }));
    assert_eq!(events(&well.until(has_ended)), ["execution.started", "execution.completed"]);
}

#[test]
fn wfl_16_a_receiver_that_responds_410_gets_no_further_events() {
    let (place, server, receiver, file) = gone("go");
    let id = start(
        &server,
        &server.define(&waits_for(&file)),
        json!({ "webhookUrl": receiver.url, "webhookEvents": ALL }),
    );
    log_when(&server, &id, |log| log.len() >= 4 && log.iter().all(is_given_up));
    place.write("go", "");
    let ended = |log: &[Value]| log.last().is_some_and(|last| last["event"] == "execution.completed");
    let log = log_when(&server, &id, ended);
    assert!(log.len() == 8 && log.iter().all(is_given_up), "{log:?}");
    assert_eq!(log[7]["error"], "not sent: delivery 1 before it was given up");
    assert_eq!(receiver.all().len(), 1, "{:?}", events(&receiver.all()));
}

#[test]
fn wfl_16_a_receiver_that_responded_410_gets_events_again_after_a_redelivery() {
    let (place, server, receiver, file) = gone("go");
    let id = start(
        &server,
        &server.define(&waits_for(&file)),
        json!({ "webhookUrl": receiver.url, "webhookEvents": ALL }),
    );
    let log = log_when(&server, &id, |log| log.len() >= 4 && log.iter().all(is_given_up));
    redeliver(&server, &log[0]);
    log_when(&server, &id, |log| log[0]["status"] == "delivered");
    place.write("go", "");
    let received = receiver.until(has_ended);
    let answer =
        ["execution.started", "execution.started", "node.completed", "node.started", "node.completed"];
    assert_eq!(events(&received)[..5], answer);
    assert!(
        log_when(&server, &id, |log| log.len() == 8)[1..4].iter().all(is_given_up),
        "what was not sent stays so"
    );
}

/// A receiver that is gone when it is asked first, and there again later.
fn gone(file: &str) -> (Place, Server, Receiver, std::path::PathBuf) {
    let place = place();
    let receiver = Receiver::answering(|before, _| match before {
        0 => "410 Gone".to_owned(),
        _ => "200 OK".to_owned(),
    });
    let (server, file) = (place.serve(), place.path(file));
    (place, server, receiver, file)
}

/// The courier hears of a change once. What it cannot look up at that moment it looks up later.
#[test]
fn wfl_16_what_cannot_be_read_when_it_is_wanted_is_reported_as_soon_as_it_can() {
    let (place, receiver) = (place(), Receiver::new());
    let mut server = place.serve();
    let workflow = server.define(TWO);
    let first = start(&server, &workflow, json!({ "webhookUrl": receiver.url }));
    let store = rusqlite::Connection::open(place.data().join("windlass.db")).unwrap();
    let reported_all = "SELECT count(*) = 0 FROM tellers WHERE open = 1";
    let is_reported =
        || store.query_row(reported_all, [], |row| row.get::<_, bool>(0)).unwrap().then_some(());
    receiver.until(has_ended);
    rig::until("everything is reported", is_reported);
    let delivery = log_when(&server, &first, |log| log.len() == 2).remove(0);
    store.execute_batch("ALTER TABLE workflows RENAME TO hidden").unwrap();
    redeliver(&server, &delivery);
    server.until_said("cannot read executions with webhooks");
    store.execute_batch("ALTER TABLE hidden RENAME TO workflows").unwrap();
    let received = receiver.until(|received| received.len() == 3);
    assert_eq!(received[2].headers["webhook-id"], delivery["id"].as_str().unwrap());
}

#[test]
fn wfl_16_what_comes_later_waits_for_what_was_refused() {
    let place = place();
    let receiver = Receiver::answering(|before, _| match before {
        0 => "503 Service Unavailable".to_owned(),
        _ => "204 No Content".to_owned(),
    });
    let server = place.serve();
    let go = place.path("go");
    let workflow = server.define(&waits_for(&go));
    start(&server, &workflow, json!({ "webhookUrl": receiver.url, "webhookEvents": ALL }));
    receiver.until(|received| received.len() == 1);
    // The rest happens while the first is to be tried again.
    std::fs::write(&go, "").unwrap();
    let received = receiver.until(has_ended);
    let numbers: Vec<u64> =
        received.iter().map(|one| one.json()["data"]["sequence"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn wfl_16_each_event_has_its_time_and_status() {
    let (place, receiver) = (place(), Receiver::new());
    let server = place.serve();
    // The second node fails twice: its server does not exist.
    let text = json!({ "name": "two kinds",
        "nodes": [
            { "id": "greet", "name": "Greeter", "type": "shell", "config": { "command": "echo hi" } },
            { "id": "call", "name": "Caller", "type": "http_api", "config": { "url": "http://127.0.0.1:1/",
                "retryPolicy": { "maxRetries": 1, "initialDelayMs": 1 } } },
        ],
        "edges": [{ "source": "greet", "target": "call" }] });
    let workflow = server.define(&text.to_string());
    let id = start(&server, &workflow, json!({ "webhookUrl": receiver.url, "webhookEvents": ALL }));
    let received = receiver.until(has_ended);
    let answer: Vec<Value> = received.iter().map(Received::json).collect();
    let brief: Vec<String> = answer
        .iter()
        .map(|body| {
            format!("{} {}", body["event"].as_str().unwrap(), body["data"]["status"].as_str().unwrap())
        })
        .collect();
    let expected = [
        "execution.started running",
        "node.started running",
        "node.completed completed",
        "node.started running",
        "node.failed failed",
        "execution.failed failed",
    ];
    assert_eq!(brief, expected, "a node starts once and fails once, however often it is tried");
    let whole = until(&server, &id, "failed");
    let times: Vec<&str> = answer.iter().map(|body| body["timestamp"].as_str().unwrap()).collect();
    assert!(
        times.is_sorted() && times[0] == whole["startedAt"] && times[5] == whole["completedAt"],
        "{times:?}"
    );
    let end = &answer[5]["data"];
    assert_eq!((&end["duration"], &end["outputs"]), (&whole["duration"], &whole["outputs"]));
    assert_eq!(answer[2]["data"]["output"], whole["nodeExecutions"][0]["output"]);
    assert_eq!(answer[4]["data"]["error"]["retryCount"], 1);
    assert_eq!(
        (&answer[3]["data"]["nodeName"], &answer[3]["data"]["nodeType"]),
        (&json!("Caller"), &json!("http_api"))
    );
}

#[test]
fn wfl_16_two_options_ask_for_the_end_and_may_leave_it_out() {
    let place = place();
    let server = place.serve();
    let (two, fails) = (server.define(TWO), server.define(FAILS));
    let come = |workflow: &str, more: Value, count: usize| {
        let receiver = Receiver::new();
        let mut options = json!({ "webhookUrl": receiver.url });
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = start(&server, workflow, options);
        let all = events(&receiver.until(|received| received.len() == count));
        // All its reported events are delivered.
        let left = || deliveries(&server, &format!("?executionId={id}")).len();
        rig::until("it ends", || get(&server, &id, "")["completedAt"].is_string().then_some(()));
        assert_eq!(left(), count);
        all
    };
    let listed =
        json!({ "webhookEvents": ["execution.started"], "notifyOnComplete": true, "notifyOnError": true });
    assert_eq!(come(&two, listed.clone(), 2), ["execution.started", "execution.completed"]);
    assert_eq!(come(&fails, listed, 2), ["execution.started", "execution.failed"]);
    assert_eq!(come(&two, json!({ "notifyOnComplete": false }), 1), ["execution.started"]);
    assert_eq!(come(&fails, json!({ "notifyOnError": false }), 1), ["execution.started"]);
}

#[test]
fn deliveries_are_listed_page_by_page_and_sent_once_more_on_demand() {
    let (place, receiver) = (place(), Receiver::new());
    let server = place.serve();
    let id = start(&server, &server.define(TWO), json!({ "webhookUrl": receiver.url }));
    receiver.until(has_ended);
    let log = rig::until("both are delivered", || {
        Some(deliveries(&server, "?status=delivered")).filter(|log| log.len() == 2)
    });
    assert_eq!(deliveries(&server, "?event=execution.started").len(), 1);
    let (_, page) = read_answer(server.get("/api/v1/webhook-deliveries?limit=1"));
    let cursor = page["pagination"]["cursor"].as_str().unwrap();
    assert_eq!(deliveries(&server, &format!("?limit=1&cursor={cursor}")), log[1..]);
    let first = log[1]["id"].as_str().unwrap();
    let again = |id: &str| {
        server.request(Method::POST, &format!("/api/v1/webhook-deliveries/{id}/redeliver")).send().unwrap()
    };
    assert_eq!(again(first).status(), StatusCode::ACCEPTED);
    let received = receiver.until(|received| received.len() == 3);
    assert_eq!(received[2].headers["webhook-id"], *first);
    assert_eq!(received[2].json()["data"]["executionId"], id);
    for bad in ["msg_1", "msg_00000000000000000000000000000001_1"] {
        assert_eq!(again(bad).status(), StatusCode::NOT_FOUND);
    }
    for bad in ["status=lost", "limit=0", "cursor=x", "executionId=x"] {
        assert_eq!(
            server.get(&format!("/api/v1/webhook-deliveries?{bad}")).status(),
            StatusCode::BAD_REQUEST
        );
    }
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Acme" }));
    let made = json!({ "name": "ann", "role": "owner", "tenantId": tenant["id"] });
    let theirs = server.post("/api/v1/tokens", &made).1["token"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/webhook-deliveries/{first}/redeliver");
    let response = server.bare(Method::POST, &path).bearer_auth(&theirs).send().unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND, "another tenant's is not there");
}

#[test]
fn a_name_that_leads_to_this_machine_is_not_reached_and_no_redirect_is_followed() {
    let receiver = Receiver::new();
    let port = receiver.url.split(':').nth(2).unwrap().to_owned();
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(TWO), json!({ "webhookUrl": format!("http://localhost:{port}") }));
    until(&server, &id, "completed");
    let first = first_try(&server, &format!("?executionId={id}"));
    assert!(first["error"].as_str().unwrap().contains("WINDLASS_EGRESS_ALLOW"), "{first}");
    assert!(receiver.all().is_empty());
    drop(server);

    let place = self::place();
    let elsewhere = receiver.url.clone();
    let redirects =
        Receiver::answering(move |_, _| format!("307 Temporary Redirect\r\nLocation: {elsewhere}"));
    let server = place.serve();
    start(&server, &server.define(TWO), json!({ "webhookUrl": redirects.url }));
    redirects.until(|received| !received.is_empty());
    let first = first_try(&server, "");
    assert_eq!((&first["responseStatus"], &first["status"]), (&json!(307), &json!("pending")));
    assert!(receiver.all().is_empty());
}

/// `#` of the library's users verify like this.
const VERIFY: &str = r#"
import sys, json
from standardwebhooks import Webhook
secret, headers, body = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
print(json.dumps(Webhook(secret).verify(body, headers)))
"#;

/// The document's own signature, checked with nothing but Python.
const VERIFY_BODY: &str = r#"
import sys, json, hmac, hashlib, base64
secret, body = sys.argv[1], json.loads(sys.argv[2])
signature = body.pop("signature")
canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
mac = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), canonical.encode(), hashlib.sha256)
print(hmac.compare_digest(signature, "sha256=" + mac.hexdigest()))
"#;

fn python(code: &str, arguments: &[&str]) -> (bool, String) {
    let program = std::env::var("WINDLASS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = std::process::Command::new(program).arg("-c").arg(code).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (
        output.status.success(),
        if output.status.success() { said } else { String::from_utf8_lossy(&output.stderr).into_owned() },
    )
}

#[test]
fn wfl_16_signatures_are_verified_by_the_stock_library_also_while_the_secret_changes() {
    let (place, receiver) = (place(), Receiver::new());
    let server = place.serve();
    let workflow = server.define(TWO);
    let secret = |server: &Server| {
        read_answer(server.get("/api/v1/webhook-secret")).1["secret"].as_str().unwrap().to_owned()
    };
    let first = secret(&server);
    start(
        &server,
        &workflow,
        json!({ "webhookUrl": receiver.url, "webhookEvents": ["execution.completed"] }),
    );
    let one = receiver.until(|received| received.len() == 1)[0].clone();
    let (_, rotated) =
        read_answer(server.request(Method::POST, "/api/v1/webhook-secret/rotate").send().unwrap());
    let second = rotated["secret"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    start(
        &server,
        &workflow,
        json!({ "webhookUrl": receiver.url, "webhookEvents": ["execution.completed"] }),
    );
    let two = receiver.until(|received| received.len() == 2)[1].clone();
    let verify = |secret: &str, received: &Received| {
        python(VERIFY, &[secret, &json!(received.headers).to_string(), &received.body])
    };
    let (verified, said) = verify(&first, &one);
    assert!(verified, "{said}");
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), one.json());
    assert!(!verify(&second, &one).0, "signed before there was a second one");
    assert!(verify(&first, &two).0 && verify(&second, &two).0, "for a while both sign");
    let tampered = Received { body: two.body.replace("completed", "failed"), ..two.clone() };
    assert!(!verify(&second, &tampered).0);
    assert_eq!(python(VERIFY_BODY, &[&second, &two.body]), (true, "True".to_owned()));
    assert_eq!(python(VERIFY_BODY, &[&second, &tampered.body]), (true, "False".to_owned()));
}

/// kill -9 in the middle of everything: all of it ends, every event comes, none overtakes another.
#[test]
fn wfl_16_a_killed_server_reports_every_event_at_least_once_and_in_order() {
    const EXECUTIONS: usize = 500;
    let place = place().with(&["--slots", "8"]);
    let receiver = Receiver::new();
    let server = place.serve();
    let workflow = server.define(
        "metadata: {name: chain}\nworkflow:\n- {step: a, tool: {kind: noop}, next: b}\n\
         - {step: b, tool: {kind: shell, command: 'true'}, next: c}\n- {step: c, tool: {kind: noop}}\n",
    );
    let options = json!({ "webhookUrl": receiver.url, "webhookEvents": ALL });
    let started: Vec<String> = (0..EXECUTIONS).map(|_| start(&server, &workflow, options.clone())).collect();
    // Some have been reported of, most have not, and many run.
    receiver.until(|received| received.len() >= 100);
    drop(server);
    let before = receiver.all().len();
    let mut server = place.serve();
    receiver.until(|received| received.len() >= before + 200);
    drop(server);
    server = place.serve();
    for id in &started {
        until(&server, id, "completed");
    }
    let received = receiver.until(|received| {
        let ends = received.iter().filter(|one| one.event() == "execution.completed");
        let ended: std::collections::BTreeSet<_> =
            ends.map(|one| one.headers["webhook-id"].clone()).collect();
        ended.len() == EXECUTIONS
    });
    let mut answer: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for one in &received {
        let body = one.json();
        let id = body["data"]["executionId"].as_str().unwrap().to_owned();
        answer.entry(id).or_default().push((body["data"]["sequence"].as_u64().unwrap(), one.event()));
    }
    assert_eq!(answer.len(), EXECUTIONS);
    for (id, events) in answer {
        assert!(events.is_sorted_by(|left, right| left.0 <= right.0), "{id}: {events:?}");
        let mut once = events.clone();
        once.dedup();
        let numbers: Vec<u64> = once.iter().map(|(number, _)| *number).collect();
        assert_eq!(
            numbers,
            (1..=once.len() as u64).collect::<Vec<_>>(),
            "{id}: a gap, or one number for two events"
        );
        let count = |name: &str| once.iter().filter(|(_, event)| event == name).count();
        let counts =
            ["execution.started", "node.started", "node.completed", "execution.completed"].map(count);
        assert_eq!(counts, [1, 3, 3, 1], "{id}: {once:?}");
    }
}
