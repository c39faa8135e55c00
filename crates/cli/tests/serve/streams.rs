//! Streams of a running execution: over WebSocket, and as server-sent events.

use crate::executions::{FAILS, TWO, finish, get, start, waits_for};
use crate::receiver::Receiver;
use crate::rig::{Place, Server};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::time::Duration;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// Long enough for a slow machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

struct Socket(WebSocket<TcpStream>);

enum Said {
    Json(Value),
    Closed(u16, String),
}

impl Socket {
    fn open(server: &Server, id: &str) -> Socket {
        let address = server.url().strip_prefix("http://").unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let url = format!("ws://{address}/ws/executions/{id}");
        Socket(tungstenite::client(url, stream).unwrap().0)
    }

    fn say(&mut self, message: &Value) {
        self.0.send(Message::Text(message.to_string().into())).unwrap();
    }

    fn subscribe(server: &Server, id: &str, last: Option<u64>) -> Socket {
        Socket::subscribe_as(server, id, last, server.token())
    }

    fn subscribe_as(server: &Server, id: &str, last: Option<u64>, token: &str) -> Socket {
        let mut socket = Socket::open(server, id);
        let mut message = json!({ "type": "subscribe", "token": format!("Bearer {token}") });
        if let Some(last) = last {
            message["lastSequence"] = json!(last);
        }
        socket.say(&message);
        socket
    }

    fn hear(&mut self) -> Said {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Said::Json(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(Some(frame))) => {
                    return Said::Closed(frame.code.into(), frame.reason.to_string());
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn next(&mut self) -> Value {
        match self.hear() {
            Said::Json(answer) => answer,
            Said::Closed(code, reason) => panic!("closed with {code}: {reason}"),
        }
    }

    /// Everything until it is closed, and why.
    fn rest(mut self) -> (Vec<Value>, u16) {
        let mut answer = Vec::new();
        loop {
            match self.hear() {
                Said::Json(message) => answer.push(message),
                Said::Closed(code, _) => return (answer, code),
            }
        }
    }
}

fn types(answer: &[Value]) -> Vec<&str> {
    answer.iter().map(|message| message["type"].as_str().unwrap()).filter(|kind| *kind != "log").collect()
}

fn sequences(answer: &[Value]) -> BTreeSet<u64> {
    answer.iter().map(|message| message["sequence"].as_u64().unwrap()).collect()
}

#[test]
fn wfl_19_wfl_20_a_late_subscriber_is_reported_everything_and_the_stream_ends() {
    let place = Place::new();
    let server = place.serve();
    let id = finish(&server, &server.define(TWO), json!({}))["executionId"].as_str().unwrap().to_owned();
    let (answer, code) = Socket::subscribe(&server, &id, None).rest();
    assert_eq!(code, u16::from(CloseCode::Normal));
    let expected = [
        "status_update",
        "status_update",
        "status_update",
        "node_started",
        "node_completed",
        "status_update",
        "node_started",
        "node_completed",
        "status_update",
        "execution_completed",
    ];
    assert_eq!(types(&answer), expected, "{answer:#?}");
    let logs: Vec<&Value> =
        answer.iter().filter(|message| message["type"] == "log").map(|log| &log["data"]).collect();
    assert!(logs.contains(&&json!({ "level": "info", "nodeId": "a", "message": "one" })), "{logs:?}");
    assert!(logs.contains(&&json!({ "level": "warn", "nodeId": "a", "message": "two" })), "{logs:?}");
    let last = answer.last().unwrap();
    assert_eq!((&last["data"]["status"], &last["data"]["executionId"]), (&json!("completed"), &json!(id)));
    assert!(last["data"]["duration"].is_u64() && last["data"]["outputs"].is_object(), "{last}");
    for message in &answer {
        assert!(
            message["timestamp"].is_string() && message["sequence"].is_u64() && message["data"].is_object()
        );
    }
    // From each place on, exactly the rest is reported.
    for (index, message) in answer.iter().enumerate() {
        let seen = message["sequence"].as_u64().unwrap();
        let (again, _) = Socket::subscribe(&server, &id, Some(seen)).rest();
        let (again, rest) = (sequences(&again), sequences(&answer[index + 1..]));
        let newer: BTreeSet<u64> = rest.into_iter().filter(|sequence| *sequence > seen).collect();
        assert!(newer.is_subset(&again), "after {message}: {newer:?} and {again:?}");
        // What may come once more is a start that was reported late, and the end.
        let older = again.iter().filter(|sequence| **sequence <= seen).count();
        assert!(older <= 2, "after {message}: {again:?}");
    }
}

#[test]
fn wfl_19_what_happens_is_reported_while_it_happens() {
    let place = Place::new();
    let file = place.data().join("go");
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&file)), json!({}));
    let mut socket = Socket::subscribe(&server, &id, None);
    let mut answer = Vec::new();
    loop {
        answer.push(socket.next());
        let last = answer.last().unwrap();
        if last["type"] == "node_started" && last["data"]["nodeId"] == "wait" {
            break;
        }
    }
    let fields: Vec<&String> = answer.last().unwrap()["data"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["executionId", "nodeId", "nodeName", "nodeType"]);
    socket.say(&json!({ "type": "ping" }));
    let pong = loop {
        let message = socket.next();
        if message["type"] == "pong" {
            break message;
        }
        answer.push(message);
    };
    assert!(pong["timestamp"].is_string(), "{pong}");
    for unknown in [json!({ "type": "dance" }), json!([1]), json!({ "type": "subscribe", "token": "x" })] {
        socket.say(&unknown);
        let answer = socket.next();
        assert_eq!(answer["type"], "error", "{unknown}: {answer}");
    }
    // A second reader that disconnects and reconnects gets the rest.
    let mut second = Socket::subscribe(&server, &id, None);
    let seen = second.next()["sequence"].as_u64().unwrap();
    drop(second);
    std::fs::write(&file, "").unwrap();
    let (rest, _) = socket.rest();
    answer.extend(rest);
    assert_eq!(answer.last().unwrap()["type"], "execution_completed");
    let (again, _) = Socket::subscribe(&server, &id, Some(seen)).rest();
    let missed: Vec<u64> = sequences(&answer)
        .into_iter()
        .filter(|one| *one > seen && !sequences(&again).contains(one))
        .collect();
    assert_eq!(missed, [0_u64; 0]);
}

fn keys(answer: &Value) -> Vec<&str> {
    answer.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn wfl_19_each_message_has_the_fields_of_the_document() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    // The second node fails twice: its server does not exist.
    let text = json!({ "name": "two kinds",
        "nodes": [
            { "id": "greet", "name": "Greeter", "type": "shell", "config": { "command": "echo hi" } },
            { "id": "call", "name": "Caller", "type": "http_api", "config": { "url": "http://127.0.0.1:1/",
                "retryPolicy": { "maxRetries": 1, "initialDelayMs": 1 } } },
        ],
        "edges": [{ "source": "greet", "target": "call" }] });
    let id = finish(&server, &server.define(&text.to_string()), json!({}))["executionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let whole = get(&server, &id, "");
    let (answer, _) = Socket::subscribe(&server, &id, None).rest();
    let of = |kind: &str| -> Vec<&Value> {
        let some = answer.iter().filter(|message| message["type"] == kind);
        some.map(|message| &message["data"]).collect()
    };
    for message in &answer {
        assert_eq!(keys(message), ["type", "timestamp", "sequence", "data"]);
        let at = &message["timestamp"];
        let between = |from: &Value, to: &Value| from.as_str() <= at.as_str() && at.as_str() <= to.as_str();
        assert!(between(&whole["createdAt"], &whole["completedAt"]), "{message}");
        assert!(message["type"] == "log" || message["data"]["executionId"] == id, "{message}");
    }
    for data in of("status_update") {
        assert_eq!(keys(data), ["executionId", "status", "progress"]);
        let progress = &data["progress"];
        assert_eq!(keys(progress)[..3], ["percentage", "completedNodes", "totalNodes"]);
        assert_eq!(progress["totalNodes"], 2, "{data}");
    }
    assert!(of("status_update").iter().any(|data| data["progress"]["currentNode"] == "call"), "{answer:#?}");
    let greeter = &whole["nodeExecutions"][0];
    let completed = json!({ "executionId": id, "nodeId": "greet", "nodeName": "Greeter", "duration": greeter["duration"], "output": greeter["output"] });
    assert_eq!((of("node_completed"), &completed["output"]["stdout"]), (vec![&completed], &json!("hi\n")));
    let started: Vec<(&Value, &Value, &Value)> = of("node_started")
        .iter()
        .map(|data| (&data["nodeId"], &data["nodeName"], &data["nodeType"]))
        .collect();
    let call = (&json!("call"), &json!("Caller"), &json!("http_api"));
    assert_eq!(started, [(&json!("greet"), &json!("Greeter"), &json!("shell")), call, call]);
    let message = &whole["errors"][0]["message"];
    let failed = |retry_count: u32| {
        json!({ "code": "CONNECTION_REFUSED", "class": "transport", "kind": "transport", "message": message,
            "retryable": true, "nodeId": "call", "nodeName": "Caller", "attempt": retry_count + 1,
            "retryCount": retry_count, "maxRetries": 1 })
    };
    let seen = of("node_failed");
    assert_eq!(seen.len(), 2, "{seen:?}");
    for (data, retry_count) in seen.into_iter().zip(0..) {
        let mut error = data["error"].clone();
        for other in ["timestamp", "details"] {
            error.as_object_mut().and_then(|fields| fields.remove(other)).expect("a field of every error");
        }
        assert_eq!((&error, &data["nodeId"]), (&failed(retry_count), &json!("call")), "{data}");
    }
    let ended = json!({ "executionId": id, "status": "failed", "duration": whole["duration"], "outputs": whole["outputs"] });
    assert_eq!(of("execution_completed"), [&ended]);
    let said: Vec<&Value> = of("log").into_iter().filter(|line| line["nodeId"] == "greet").collect();
    assert_eq!(said, [&json!({ "level": "info", "nodeId": "greet", "message": "hi" })]);
}

#[test]
fn wfl_19_nothing_is_reported_before_a_good_token() {
    let place = Place::new();
    let server = place.serve();
    let id = finish(&server, &server.define(TWO), json!({}))["executionId"].as_str().unwrap().to_owned();
    let refused = |message: &Value, id: &str| {
        let mut socket = Socket::open(&server, id);
        socket.say(message);
        match socket.hear() {
            Said::Closed(code, reason) => (code, reason),
            Said::Json(answer) => panic!("it was reported {answer}"),
        }
    };
    let subscribe = |token: &str| json!({ "type": "subscribe", "token": token });
    assert_eq!(refused(&subscribe("Bearer wdl_nonsense"), &id).0, 4401);
    assert_eq!(refused(&subscribe(""), &id).0, 4401);
    assert_eq!(refused(&json!({ "type": "ping" }), &id).0, 4400);
    assert_eq!(refused(&json!({ "type": "subscribe" }), &id).0, 4400);
    let good = subscribe(server.token());
    let (code, reason) = refused(&good, "exec_00000000000000000000000000000001");
    assert_eq!(code, 4404, "{reason}");
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Acme" }));
    let made = json!({ "name": "ann", "role": "owner", "tenantId": tenant["id"] });
    let theirs = server.post("/api/v1/tokens", &made).1["token"].as_str().unwrap().to_owned();
    assert_eq!(refused(&subscribe(&theirs), &id).0, 4404, "another tenant's is not there");
}

#[test]
fn wfl_36_failed_and_cancelled_end_the_stream_with_execution_completed() {
    let place = Place::new();
    let server = place.serve();
    let id = finish(&server, &server.define(FAILS), json!({}))["executionId"].as_str().unwrap().to_owned();
    let (answer, _) = Socket::subscribe(&server, &id, None).rest();
    let failed = answer.iter().find(|message| message["type"] == "node_failed").unwrap();
    let error: Vec<&String> = failed["data"]["error"].as_object().unwrap().keys().collect();
    assert_eq!(
        error,
        [
            "code",
            "class",
            "kind",
            "message",
            "nodeId",
            "nodeName",
            "timestamp",
            "retryable",
            "attempt",
            "details",
            "retryCount",
            "maxRetries",
        ]
    );
    let last = answer.last().unwrap();
    assert_eq!((&last["type"], &last["data"]["status"]), (&json!("execution_completed"), &json!("failed")));

    let waits = server.define(&waits_for(&place.data().join("never")));
    let id = start(&server, &waits, json!({}));
    let socket = Socket::subscribe(&server, &id, None);
    server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
    let (answer, code) = socket.rest();
    let last = answer.last().unwrap();
    assert_eq!(
        (&last["type"], &last["data"]["status"]),
        (&json!("execution_completed"), &json!("cancelled"))
    );
    assert!(!types(&answer).contains(&"node_failed"), "what was cancelled has not failed");
    assert_eq!(code, 1000);
}

#[test]
fn wfl_36_a_partial_success_ends_the_stream_and_the_webhook_as_completed_with_its_status() {
    let (place, receiver) = (Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1"), Receiver::new());
    let server = place.serve();
    let text = r#"{"name": "half", "settings": {"failureMode": "collect_errors"}, "nodes": [
        {"id": "good", "type": "shell", "config": {"command": "true"}},
        {"id": "bad", "type": "shell", "config": {"command": "exit 3"}}]}"#;
    let id = start(&server, &server.define(text), json!({ "webhookUrl": receiver.url }));
    let (answer, code) = Socket::subscribe(&server, &id, None).rest();
    let last = answer.last().unwrap();
    assert_eq!((code, &last["type"]), (1000, &json!("execution_completed")));
    assert_eq!(last["data"]["status"], "partial_success");
    let received = receiver.until(|received| received.len() == 2);
    let (event, body) = (received[1].event(), received[1].json());
    assert_eq!((event.as_str(), &body["data"]["status"]), ("execution.completed", &json!("partial_success")));
}

#[test]
fn the_same_is_reported_as_server_sent_events() {
    let place = Place::new();
    let server = place.serve();
    let id = finish(&server, &server.define(TWO), json!({}))["executionId"].as_str().unwrap().to_owned();
    let events = |last: Option<&str>| -> Vec<(u64, String, Value)> {
        let path = format!("/api/v1/executions/{id}/stream");
        let mut request = server.request(reqwest::Method::GET, &path);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (mut events, mut now) = (Vec::new(), (0, String::new()));
        for line in BufReader::new(response).lines() {
            let line = line.unwrap();
            match line.split_once(": ") {
                Some(("id", id)) => now.0 = id.parse().unwrap(),
                Some(("event", kind)) => now.1 = kind.to_owned(),
                Some(("data", data)) => {
                    events.push((now.0, now.1.clone(), serde_json::from_str(data).unwrap()))
                }
                _ => {}
            }
        }
        events
    };
    let all = events(None);
    let (answer, _) = Socket::subscribe(&server, &id, None).rest();
    assert_eq!(all.iter().map(|(_, _, data)| data.clone()).collect::<Vec<_>>(), answer);
    for (id, kind, data) in &all {
        assert_eq!((json!(id), json!(kind)), (data["sequence"].clone(), data["type"].clone()));
    }
    let half = all[all.len() / 2].0.to_string();
    let rest = events(Some(&half));
    assert!(rest.len() < all.len() && rest.last() == all.last());
    let path = format!("/api/v1/executions/{id}/stream");
    let bad = server.request(reqwest::Method::GET, &path).header("Last-Event-ID", "x").send().unwrap();
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST);
}

/// Opens a stream of events, and returns the response, which has begun.
fn open_events(server: &Server, id: &str, query: &str) -> reqwest::blocking::Response {
    let path = format!("/api/v1/executions/{id}/stream?{query}");
    let response = server.request(reqwest::Method::GET, &path).send().unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{query}");
    response
}

/// Reads the messages of a stream of events until it ends.
fn read_events(response: reqwest::blocking::Response) -> Vec<Value> {
    let lines = BufReader::new(response).lines().map(Result::unwrap);
    lines.filter_map(|line| Some(serde_json::from_str(line.strip_prefix("data: ")?).unwrap())).collect()
}

#[test]
fn a_stream_from_now_on_sends_later_messages_and_without_logs_no_lines() {
    let place = Place::new();
    let file = place.data().join("go");
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&file)), json!({}));
    let mut socket = Socket::subscribe(&server, &id, None);
    let mut before = vec![socket.next()];
    while before.last().unwrap()["data"]["nodeId"] != "wait" {
        before.push(socket.next());
    }
    let later = open_events(&server, &id, "lastSequence=now&logs=false");
    let mut by_socket = Socket::open(&server, &id);
    by_socket.say(&json!({ "type": "subscribe", "token": format!("Bearer {}", server.token()),
        "lastSequence": "now", "logs": false }));
    std::fs::write(&file, "").unwrap();
    let later = read_events(later);
    let (of_socket, _) = by_socket.rest();
    for found in [&later, &of_socket] {
        assert_eq!(found.last().unwrap()["type"], "execution_completed");
        assert!(found.iter().any(|message| message["type"] == "node_completed"), "{found:?}");
        assert!(found.iter().all(|message| message["type"] != "log"), "{found:?}");
    }
    // The start of the step that runs may be repeated, with its number.
    let started = before.last().unwrap()["sequence"].as_u64().unwrap();
    assert!(later.iter().all(|message| message["sequence"].as_u64().unwrap() >= started), "{later:?}");
    let id = finish(&server, &server.define(TWO), json!({}))["executionId"].as_str().unwrap().to_owned();
    let (all, silent) = (open_events(&server, &id, ""), open_events(&server, &id, "logs=false"));
    let (mut all, silent) = (read_events(all), read_events(silent));
    assert!(all.iter().any(|message| message["type"] == "log"), "{all:?}");
    all.retain(|message| message["type"] != "log");
    assert_eq!(silent, all);
    // The end is sent to every subscriber.
    let after = read_events(open_events(&server, &id, "lastSequence=now&logs=false"));
    assert_eq!(after, all[all.len() - 1..]);
    let path = format!("/api/v1/executions/{id}/stream?lastSequence=then");
    assert_eq!(server.get(&path).status(), StatusCode::BAD_REQUEST);
}

#[test]
fn a_stopping_server_closes_its_subscriptions_with_a_reason() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&place.data().join("never"))), json!({}));
    let mut socket = Socket::subscribe(&server, &id, None);
    socket.next();
    let stopping = std::thread::spawn(move || server.stop());
    let (_, code) = socket.rest();
    assert_eq!(code, 1001);
    assert!(stopping.join().unwrap().0.success());
}

/// A viewer's token, its id, and the lines of a stream of events that it opened.
fn viewer(
    server: &Server,
    id: &str,
    ends: Option<&str>,
) -> (String, String, impl Iterator<Item = String> + use<>) {
    let mut asked = json!({ "name": "v", "role": "viewer" });
    if let Some(ends) = ends {
        asked["expiresAt"] = json!(ends);
    }
    let (_, made) = server.post("/api/v1/tokens", &asked);
    let text = |key: &str| made[key].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let path = format!("/api/v1/executions/{id}/stream");
    let response = server.bare(reqwest::Method::GET, &path).bearer_auth(text("token")).send().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    (text("token"), text("id"), BufReader::new(response).lines().map_while(Result::ok))
}

#[test]
fn a_stream_ends_with_its_token_and_says_why() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&place.data().join("never"))), json!({}));
    let mut others = Socket::subscribe(&server, &id, None);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3);
    for ends in [None, Some(soon.to_string())] {
        let (token, user, events) = viewer(&server, &id, ends.as_deref());
        let mut socket = Socket::subscribe_as(&server, &id, None, &token);
        socket.next();
        if ends.is_none() {
            let revoked = server.request(reqwest::Method::DELETE, &format!("/api/v1/tokens/{user}")).send();
            assert_eq!(revoked.unwrap().status(), StatusCode::NO_CONTENT);
        }
        let closed = loop {
            if let Said::Closed(code, reason) = socket.hear() {
                break (code, reason);
            }
        };
        assert!(closed.0 == 4401 && closed.1.contains("expired or was revoked"), "{closed:?}");
        let events: Vec<String> = events.collect();
        let last = events.iter().rposition(|line| line == "event: error").expect("it says why it ends");
        assert!(events[last + 1].contains("expired or was revoked"), "{events:?}");
    }
    // Of another token, nothing ended.
    others.say(&json!({ "type": "ping" }));
    while others.next()["type"] != "pong" {}
}

#[test]
fn streams_have_a_limit_and_beyond_it_are_refused_until_one_ends() {
    let place = Place::new().with(&["--max-streams", "2"]);
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&place.data().join("never"))), json!({}));
    let mut first = Socket::subscribe(&server, &id, None);
    first.next();
    // One that has not said who it is has no place.
    let _stranger = Socket::open(&server, &id);
    let mut second = Socket::subscribe(&server, &id, None);
    second.next();
    match Socket::subscribe(&server, &id, None).hear() {
        Said::Closed(code, reason) => {
            assert!(code == 4429 && reason.contains("2 streams are open"), "{code}: {reason}");
        }
        Said::Json(answer) => panic!("{answer}"),
    }
    let (status, answer) = crate::rig::read_answer(server.get(&format!("/api/v1/executions/{id}/stream")));
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer["error"]["message"].as_str().unwrap().contains("2 streams are open"), "{answer}");
    assert_eq!(server.get("/api/v1/workflows").status(), StatusCode::OK, "requests are no streams");
    drop(second);
    crate::rig::until("a place is free", || {
        matches!(Socket::subscribe(&server, &id, None).hear(), Said::Json(_)).then_some(())
    });
}

/// A reader that takes nothing is cut off with a reason, and can go on where it was.
#[test]
fn wfl_20_a_slow_reader_is_disconnected_and_misses_nothing_when_it_reconnects() {
    let place = Place::new();
    let mut server = place.serve();
    let text = "metadata: {name: loud}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'for i in $(seq 60000); do echo \
                aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-$i; done'}}\n";
    let id = finish(&server, &server.define(text), json!({}))["executionId"].as_str().unwrap().to_owned();
    let socket = Socket::subscribe(&server, &id, None);
    // Nothing is read until the server has given up, which its log says.
    server.until_said("reads too slowly");
    let (answer, code) = socket.rest();
    assert_eq!(code, 4408);
    let seen = answer.last().unwrap()["sequence"].as_u64().unwrap();
    assert_ne!(answer.last().unwrap()["type"], "execution_completed");
    let (rest, code) = Socket::subscribe(&server, &id, Some(seen)).rest();
    assert_eq!(code, 1000);
    let lines = answer.iter().chain(&rest).filter(|message| message["data"]["level"] == "info");
    assert_eq!(lines.count(), 60_000, "none lost, none twice");
}

/// Kilobytes of memory that a process has.
fn memory_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_thousand_idle_subscribers_cost_less_than_50_mb() {
    const SUBSCRIBERS: usize = 1_000;
    rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit {
            current: Some(4_096),
            maximum: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
        },
    )
    .unwrap();
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&place.data().join("never"))), json!({}));
    let follow = || {
        let mut socket = Socket::subscribe(&server, &id, None);
        while socket.next()["data"]["nodeId"] != "wait" {}
        socket
    };
    // What the first ones cost is not theirs: threads, caches, the net.
    let first: Vec<Socket> = (0..20).map(|_| follow()).collect();
    let before = memory_kb(server.process());
    let sockets: Vec<Socket> = (0..SUBSCRIBERS).map(|_| follow()).collect();
    let cost = memory_kb(server.process()).saturating_sub(before);
    println!("{SUBSCRIBERS} idle subscribers cost {cost} kB");
    assert!(cost < 50 * 1_024, "{SUBSCRIBERS} subscribers cost {cost} kB");
    drop((first, sockets));
}

#[test]
fn wfl_19_a_client_that_does_not_subscribe_is_disconnected() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&place.data().join("never"))), json!({}));
    match Socket::open(&server, &id).hear() {
        Said::Closed(code, reason) => assert_eq!(code, 4401, "{reason}"),
        Said::Json(answer) => panic!("it was reported {answer}"),
    }
}

#[test]
fn wfl_01_only_the_transitions_of_the_document_are_seen() {
    let place = Place::new();
    let server = place.serve();
    let waits = server.define(&waits_for(&place.data().join("never")));
    let far = json!({ "scheduledAt": "2999-01-01T00:00:00Z" });
    let act = |id: &str, rest: &str, body: Value| {
        let (status, body) = server.post(&format!("/api/v1/executions/{id}/{rest}"), &body);
        assert_eq!(status, StatusCode::OK, "{rest}: {body}");
    };
    let id = |answer: Value| answer["executionId"].as_str().unwrap().to_owned();
    let completed = id(finish(&server, &server.define(TWO), json!({})));
    let failed = id(finish(&server, &server.define(FAILS), json!({})));
    let timed_out = start(&server, &waits, json!({ "timeout": 200 }));
    let never_began = start(&server, &waits, far);
    act(&never_began, "cancel", json!({}));
    let paused = start(&server, &waits, json!({}));
    for rest in ["pause", "resume", "pause", "cancel"] {
        act(&paused, rest, json!({}));
    }
    let asks = r#"{"name": "asks", "nodes": [{"id": "ask", "type": "approval"}]}"#;
    let approved = id(finish(&server, &server.define(asks), json!({})));
    act(&approved, "actions/ask/complete", json!({ "outcome": "Succeeded" }));
    let rejected = id(finish(&server, &server.define(asks), json!({})));
    act(&rejected, "actions/ask/complete", json!({ "outcome": "Failed" }));
    let half = r#"{"name": "half", "settings": {"failureMode": "collect_errors"}, "nodes": [
        {"id": "good", "type": "shell", "config": {"command": "true"}},
        {"id": "bad", "type": "shell", "config": {"command": "exit 3"}}]}"#;
    let partial = id(finish(&server, &server.define(half), json!({})));
    for (id, expected) in [
        (completed, "queued initializing running completed"),
        (failed, "queued initializing running failed"),
        (timed_out, "queued initializing running failed"),
        (never_began, "queued cancelled"),
        (paused, "queued initializing running paused running paused cancelled"),
        (approved, "queued initializing running paused running completed"),
        (rejected, "queued initializing running paused running failed"),
        (partial, "queued initializing running partial_success"),
    ] {
        let (answer, _) = Socket::subscribe(&server, &id, None).rest();
        let mut statuses: Vec<&str> = answer
            .iter()
            .filter(|message| message["type"] == "status_update")
            .map(|message| message["data"]["status"].as_str().unwrap())
            .collect();
        statuses.dedup();
        assert_eq!(statuses.join(" "), expected);
        let last = answer.last().unwrap();
        let end = expected.split(' ').next_back().unwrap();
        assert_eq!((&last["type"], &last["data"]["status"]), (&json!("execution_completed"), &json!(end)));
        let whole = get(&server, &id, "");
        assert_eq!(whole["status"], end, "and it is reported so ever after");
    }
}

/// Two branches at a time: both start before either ends, and a late subscriber sees that.
#[test]
fn a_late_subscriber_is_sent_starts_where_they_happened() {
    let place = Place::new();
    let server = place.serve();
    let wait = |name: &str, other: &str| {
        let dir = place.data().display().to_string();
        let command = format!("touch {dir}/{name}; until [ -e {dir}/{other} ]; do sleep 0.02; done");
        json!({ "id": name, "type": "shell", "config": { "command": command } })
    };
    let nodes =
        json!([{ "id": "t", "type": "trigger", "config": {} }, wait("left", "right"), wait("right", "left")]);
    let edges = json!([{ "source": "t", "target": "left" }, { "source": "t", "target": "right" }]);
    let workflow = server.define(&json!({ "name": "both", "nodes": nodes, "edges": edges }).to_string());
    let id = finish(&server, &workflow, json!({}))["executionId"].as_str().unwrap().to_owned();
    let (answer, _) = Socket::subscribe(&server, &id, None).rest();
    let nodes: Vec<&str> = answer
        .iter()
        .filter(|message| message["data"]["nodeId"] != "t")
        .filter_map(|message| message["type"].as_str())
        .filter(|kind| kind.starts_with("node_"))
        .collect();
    assert_eq!(nodes, ["node_started", "node_started", "node_completed", "node_completed"]);
    let all: Vec<u64> = answer.iter().filter_map(|message| message["sequence"].as_u64()).collect();
    let unique: BTreeSet<u64> = all.iter().copied().collect();
    assert_eq!(unique.len(), all.len(), "two messages share a number");
}
