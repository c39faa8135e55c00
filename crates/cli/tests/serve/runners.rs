//! `windlass worker` as a process of its own: it takes what is bound to its group, and nothing else.

use crate::evidence::sha256;
use crate::executions::{get, until};
use crate::rig::{self, Place, Running, Server, read_answer};
use reqwest::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// Seconds of a lease: a worker that is killed is missed soon.
const TTL: &str = "4";

pub(crate) fn place() -> Place {
    Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", TTL)
}

pub(crate) fn token(server: &Server, body: Value) -> String {
    let (status, made) = server.post("/api/v1/tokens", &body);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["token"].as_str().unwrap().to_owned()
}

pub(crate) fn worker_token(server: &Server) -> String {
    token(server, json!({ "name": "w", "role": "worker", "group": "lab" }))
}

/// Starts a worker and waits until it has registered.
pub(crate) fn worker(place: &Place, server: &Server, token: &str, args: &[&str]) -> Running {
    worker_of(place, server.url(), token, args)
}

/// Starts a worker of the server with this URL.
pub(crate) fn worker_of(place: &Place, url: &str, token: &str, args: &[&str]) -> Running {
    let mut running = start_worker(place, url, token, args);
    running.until_says("working for the group");
    running
}

fn start_worker(place: &Place, url: &str, token: &str, args: &[&str]) -> Running {
    let mut command = rig::windlass();
    command.args(["worker", "--server", url, "--data"]).arg(place.path("workers")).args(args);
    command.env("WINDLASS_TOKEN", token).current_dir(place.path("."));
    Running::start(command)
}

pub(crate) const LAB: [&str; 4] = ["--group", "lab", "--cluster", "eu"];

/// A step that notes its beginning and waits until it may end.
fn gated(place: &Place) -> String {
    let (began, gate) = (place.path("began"), place.path("gate"));
    let command =
        format!("echo $PPID >> {}; while [ ! -e {} ]; do sleep 0.05; done", began.display(), gate.display());
    format!(
        "metadata: {{name: gated}}\nworkflow:\n- {{step: a, tool: {{kind: shell, command: '{command}'}}}}\n"
    )
}

pub(crate) fn start(server: &Server, workflow: &str) -> String {
    let options = json!({ "runner": { "group": "lab", "cluster": "eu" } });
    crate::executions::start(server, workflow, options)
}

fn began(place: &Place) -> usize {
    std::fs::read_to_string(place.path("began")).unwrap_or_default().lines().count()
}

fn until_begun(place: &Place, times: usize) {
    rig::until("the step begins", || (began(place) == times).then_some(()));
}

#[test]
fn a_worker_process_runs_steps_of_its_group_with_logs_secrets_and_large_values() {
    let place = place();
    let server = place.serve();
    let put = server.request(Method::PUT, "/api/v1/secrets/key").json(&json!({ "value": "s3cr3t-value" }));
    assert!(put.send().unwrap().status().is_success());
    let book = "metadata: {name: far}\nkeychain:\n- {name: k, kind: secret, secret: key}\nworkflow:\n\
- step: a\n  tool: {kind: shell, command: 'echo here; echo {{ keychain.k.token }}'}\n  next: b\n\
                - step: b\n  tool: {kind: python, code: 'return {\"text\": \"x\" * 300000}'}\n  next: c\n\
                - step: c\n  tool: {kind: python, code: 'return {\"size\": len(text)}', args: {text: '{{ b.text }}'}}\n";
    let id = start(&server, &server.define(book));
    assert_eq!(get(&server, &id, "")["status"], "running", "it waits for a worker of the group");
    let mut running = worker(&place, &server, &worker_token(&server), &LAB);
    let ended = until(&server, &id, "completed");
    assert!(ended["outputs"]["size"] == 300_000, "{ended}");
    let logs = get(&server, &id, "/logs?limit=50").to_string();
    assert!(logs.contains("here") && !logs.contains("s3cr3t-value"), "{logs}");
    running.signal(Signal::TERM);
    running.until_says("all work is finished");
}

#[test]
fn pln_38_a_worker_of_another_group_cluster_or_tenant_gets_nothing() {
    let place = place();
    let server = place.serve();
    let id = start(
        &server,
        &server.define("metadata: {name: s}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'true'}}\n"),
    );
    let (_, other) = server.post("/api/v1/tenants", &json!({ "name": "other" }));
    let foreign =
        token(&server, json!({ "name": "f", "role": "worker", "group": "lab", "tenantId": other["id"] }));
    let any = token(&server, json!({ "name": "any", "role": "worker" }));
    let _strangers = [
        worker(&place, &server, &any, &["--group", "other", "--cluster", "eu"]),
        worker(&place, &server, &any, &["--group", "lab", "--cluster", "us"]),
        worker(&place, &server, &any, &["--group", "lab"]),
        worker(&place, &server, &foreign, &LAB),
    ];
    // Each of them has had its chance: what comes later is given out in the order of registration.
    assert_eq!(get(&server, &id, "")["nodeExecutions"][0]["status"], "pending");
    let (_, groups) = read_answer(server.get("/api/v1/runner-groups"));
    let lab = groups["groups"].as_array().unwrap().iter().find(|group| group["name"] == "lab").unwrap();
    assert_eq!(json!([lab["waiting"], lab["claimed"]]), json!([1, 0]), "{groups}");
    let _right = worker(&place, &server, &worker_token(&server), &LAB);
    until(&server, &id, "completed");
}

#[test]
fn a_killed_worker_loses_its_step_to_another_one() {
    let place = place();
    let server = place.serve();
    let token = worker_token(&server);
    let id = start(&server, &server.define(&gated(&place)));
    let first = worker(&place, &server, &token, &LAB);
    until_begun(&place, 1);
    first.signal(Signal::KILL);
    let _second = worker(&place, &server, &token, &LAB);
    until_begun(&place, 2);
    place.write("gate", "");
    until(&server, &id, "completed");
    assert_eq!(began(&place), 2);
}

#[test]
fn a_worker_outlives_a_killed_server_and_its_step_is_not_run_again() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "30");
    let mut server = place.serve();
    let token = worker_token(&server);
    let id = start(&server, &server.define(&gated(&place)));
    let _worker = worker(&place, &server, &token, &LAB);
    until_begun(&place, 1);
    for _ in 0..3 {
        let address = server.address().to_owned();
        server.kill();
        server = place.serve_on(&address);
    }
    place.write("gate", "");
    until(&server, &id, "completed");
    assert_eq!(began(&place), 1, "what the worker held was not given to anyone");
    let next = start(
        &server,
        &server.define("metadata: {name: n}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'true'}}\n"),
    );
    until(&server, &next, "completed");
}

#[test]
fn a_worker_that_is_asked_to_end_finishes_its_step_and_takes_nothing_new() {
    let place = place();
    let server = place.serve();
    let token = worker_token(&server);
    let workflow = server.define(&gated(&place));
    let first = start(&server, &workflow);
    let mut worker = worker(&place, &server, &token, &LAB);
    until_begun(&place, 1);
    worker.signal(Signal::TERM);
    worker.until_says("finishing running work");
    rig::until("the server knows", || {
        // A worker that drains has no free slot: what is started now waits.
        let (_, groups) = read_answer(server.get("/api/v1/runner-groups"));
        (groups["groups"][0]["claimed"] == 1).then_some(())
    });
    place.write("gate", "");
    until(&server, &first, "completed");
    let (code, _, said) = worker.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("all work is finished"), "{said}");
    let second = start(&server, &workflow);
    let (_, groups) = read_answer(server.get("/api/v1/runner-groups"));
    assert_eq!(groups["groups"][0]["workers"], 0, "its session is closed: {groups}");
    assert_eq!(get(&server, &second, "")["nodeExecutions"][0]["status"], "pending");
}

#[test]
fn a_second_signal_returns_the_step_at_once() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "600");
    let server = place.serve();
    let token = worker_token(&server);
    let id = start(&server, &server.define(&gated(&place)));
    let mut first = worker(&place, &server, &token, &LAB);
    until_begun(&place, 1);
    first.signal(Signal::TERM);
    first.until_says("finishing running work");
    first.signal(Signal::TERM);
    first.until_says("returning running work");
    let _second = worker(&place, &server, &token, &LAB);
    until_begun(&place, 2);
    place.write("gate", "");
    until(&server, &id, "completed");
}

#[test]
fn another_version_of_the_protocol_is_refused_with_both_versions() {
    let place = place();
    let server = place.serve();
    let token = worker_token(&server);
    let new = json!({ "protocol": 99, "release": "9.9.9", "worker": "w", "group": "lab", "slots": 1 });
    let (status, answer) = call(&server, &token, "register", &new);
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    for part in ["release 9.9.9", "version 99", "version 3", "run the same release of both"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn every_request_of_a_worker_that_outlives_an_upgrade_is_refused() {
    let place = place();
    let server = place.serve();
    let token = worker_token(&server);
    let (session, _) = register(&server, &token);
    let key = format!("artifacts/sha256:{}", "a".repeat(64));
    for (method, path) in [
        (Method::POST, "register"),
        (Method::POST, "orders"),
        (Method::POST, "calls"),
        (Method::PUT, key.as_str()),
        (Method::GET, key.as_str()),
    ] {
        for version in [None, Some("2"), Some("x")] {
            let request = server.bare(method.clone(), &format!("/api/v1/workers/{path}")).bearer_auth(&token);
            let request = request.header("windlass-session", session.as_str().unwrap());
            let request = version
                .into_iter()
                .fold(request, |request, version| request.header("windlass-protocol", version));
            let body = json!({ "session": session, "calls": [] });
            let (status, answer) = read_answer(request.json(&body).send().unwrap());
            assert_eq!(status, StatusCode::CONFLICT, "{method} {path} {version:?}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("run the same release of both"), "{message}");
        }
    }
}

#[test]
fn large_messages_are_received_only_for_a_session_that_exists() {
    let place = place();
    let server = place.serve();
    let token = worker_token(&server);
    let (session, _) = register(&server, &token);
    let unknown = format!("wks_{}", "A".repeat(43));
    // Only the head of the request is sent: the server answers without the body.
    let address = server.url().trim_start_matches("http://");
    let mut connection = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /api/v1/workers/calls HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         windlass-protocol: {PROTOCOL}\r\nwindlass-session: {unknown}\r\nContent-Length: 90000000\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).unwrap();
    let mut status = [0; 12];
    connection.read_exact(&mut status).unwrap();
    assert_eq!(String::from_utf8_lossy(&status), "HTTP/1.1 404");
    let long = "x".repeat(100_000);
    for path in ["register", "orders"] {
        let body = json!({ "session": session, "more": long });
        assert_eq!(call(&server, &token, path, &body).0, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
    let calls = json!({ "session": session, "calls": [], "more": long });
    assert_eq!(call(&server, &token, "calls", &calls).0, StatusCode::OK);
    let (other, _) = register(&server, &token);
    let request = server.bare(Method::POST, "/api/v1/workers/calls").bearer_auth(&token);
    let request = request.header("windlass-protocol", PROTOCOL);
    let request = request.header("windlass-session", other.as_str().unwrap()).json(&calls);
    assert_eq!(read_answer(request.send().unwrap()).0, StatusCode::CONFLICT, "two sessions");
}

#[test]
fn a_worker_that_is_refused_ends_and_says_why() {
    let place = place();
    let server = place.serve();
    let token = worker_token(&server);
    for (token, args, why) in [
        ("wdl_wrong", &LAB[..], "token"),
        (token.as_str(), &["--group", "other"][..], "the token is for the group `lab` only"),
    ] {
        let (code, _, said) = start_worker(&place, server.url(), token, args).end();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("the server refuses this worker") && said.contains(why), "{said}");
    }
}

pub(crate) fn call(server: &Server, token: &str, path: &str, body: &Value) -> (StatusCode, Value) {
    let request = server.bare(Method::POST, &format!("/api/v1/workers/{path}"));
    let mut request = request.bearer_auth(token).header("windlass-protocol", PROTOCOL).json(body);
    if let Some(session) = body["session"].as_str() {
        request = request.header("windlass-session", session);
    }
    read_answer(request.send().unwrap())
}

/// Version of the worker protocol.
pub(crate) const PROTOCOL: u32 = 3;

/// A worker whose calls a test makes.
pub(crate) fn register(server: &Server, token: &str) -> (Value, Value) {
    let new = json!({ "protocol": PROTOCOL, "release": "1", "worker": "by hand", "group": "lab", "cluster": "eu", "slots": 1 });
    let (status, opened) = call(server, token, "register", &new);
    assert_eq!(status, StatusCode::CREATED, "{opened}");
    (opened["session"].clone(), opened["registered"]["session"].clone())
}

#[test]
fn a_session_speaks_for_its_own_units_only() {
    let place = place();
    let server = place.serve();
    let token = worker_token(&server);
    let id = start(
        &server,
        &server.define("metadata: {name: s}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'true'}}\n"),
    );
    let (holder, _) = register(&server, &token);
    let (status, orders) = call(&server, &token, "orders", &json!({ "session": holder }));
    assert_eq!(status, StatusCode::OK, "{orders}");
    let unit = &orders["orders"][0]["run"]["unit"];
    assert_eq!(unit["execution"], id.strip_prefix("exec_").unwrap(), "{orders}");
    let report = json!({ "report": { "unit": unit, "outcome": { "done": { "output": { "n": 1 } } } } });
    let secret = json!({ "resource": { "unit": unit, "ask": { "open_secret": { "name": "key" } } } });
    let (stranger, number) = register(&server, &token);
    let calls = json!({ "session": stranger, "calls": [report, secret] });
    let (status, answer) = call(&server, &token, "calls", &calls);
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["replies"], json!([{ "verdict": "stale" }, { "resource": "stale" }]));
    // Under the number of another session nothing is renewed or ended.
    let leave = json!({ "session": holder, "calls": [{ "leave": number }] });
    assert_eq!(call(&server, &token, "calls", &leave).0, StatusCode::NOT_FOUND);
    for _ in 0..2 {
        let calls = json!({ "session": holder, "calls": [report] });
        let (status, answer) = call(&server, &token, "calls", &calls);
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert_eq!(answer["replies"][0]["verdict"], "accepted", "a repeated report as well: {answer}");
    }
    until(&server, &id, "completed");
    let (_, other) = server.post("/api/v1/tenants", &json!({ "name": "other" }));
    let foreign = self::token(&server, json!({ "name": "f", "role": "worker", "tenantId": other["id"] }));
    for path in ["orders", "calls"] {
        let (status, answer) =
            call(&server, &foreign, path, &json!({ "session": holder, "calls": [report] }));
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {answer}");
    }
    for body in [json!({}), json!({ "session": 7, "calls": [] }), json!({ "session": holder, "calls": [{}] })]
    {
        let (status, answer) = call(&server, &token, "calls", &body);
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    }
    let viewer = self::token(&server, json!({ "name": "v", "role": "viewer" }));
    assert_eq!(
        call(&server, &viewer, "calls", &json!({ "session": holder, "calls": [] })).0,
        StatusCode::FORBIDDEN
    );
}

/// Sends or fetches an artifact by hand.
pub(crate) fn artifact(
    server: &Server,
    token: &str,
    (session, unit): (&Value, &Value),
    (key, bytes): (&str, Option<Vec<u8>>),
) -> (StatusCode, Vec<u8>) {
    let method = if bytes.is_some() { Method::PUT } else { Method::GET };
    let request = server.bare(method, &format!("/api/v1/workers/artifacts/{key}"));
    let request = request.bearer_auth(token).body(bytes.unwrap_or_default());
    let request = request
        .header("windlass-protocol", PROTOCOL)
        .header("windlass-session", session.as_str().unwrap())
        .header("windlass-unit", unit.to_string());
    let answer = request.send().unwrap();
    (answer.status(), answer.bytes().unwrap().to_vec())
}

#[test]
fn artifacts_are_sent_and_fetched_by_the_session_that_holds_the_unit_only() {
    let place = place();
    let server = place.serve();
    let token = worker_token(&server);
    start(&server, &server.define(&gated(&place)));
    let (holder, _) = register(&server, &token);
    let (_, orders) = call(&server, &token, "orders", &json!({ "session": holder }));
    let unit = &orders["orders"][0]["run"]["unit"];
    let (stranger, _) = register(&server, &token);
    let bytes = vec![b'a'; 3 << 20];
    let key = format!("sha256:{}", sha256(&bytes));
    let send = |session, key: &str, bytes: &[u8]| {
        let (status, reply) = artifact(&server, &token, (session, unit), (key, Some(bytes.to_vec())));
        assert_eq!(status, StatusCode::OK);
        serde_json::from_slice::<Value>(&reply).unwrap()
    };
    assert_eq!(send(&stranger, &key, &bytes), "stale");
    let cut = send(&holder, &key, &bytes[1..]);
    assert_eq!(cut["failed"]["code"], "ARTIFACT_NOT_KEPT", "{cut}");
    let fetched = |session| artifact(&server, &token, (session, unit), (&key, None)).1;
    let refused: Value = serde_json::from_slice(&fetched(&holder)).unwrap();
    assert_eq!(refused["failed"]["code"], "PERMISSION_DENIED", "what was refused is not there: {refused}");
    assert_eq!(send(&holder, &key, &bytes), "stored");
    assert_eq!(send(&holder, &key, &bytes), "stored", "it may be sent again");
    assert!(fetched(&holder) == bytes);
    assert_eq!(fetched(&stranger), b"\"stale\"");
    let path = format!("sha256:{}", "../".repeat(21) + "x");
    assert_ne!(
        artifact(&server, &token, (&holder, unit), (&path, None)).0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    let viewer = self::token(&server, json!({ "name": "v", "role": "viewer" }));
    assert_eq!(artifact(&server, &viewer, (&holder, unit), (&key, None)).0, StatusCode::FORBIDDEN);
    let wrong = json!({ "unit": 7 });
    assert_eq!(artifact(&server, &token, (&holder, &wrong), (&key, None)).0, StatusCode::BAD_REQUEST);
    let ask = json!({ "resource": { "unit": unit, "ask": { "get_artifact": { "key": key } } } });
    let (status, answer) = call(&server, &token, "calls", &json!({ "session": holder, "calls": [ask] }));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    assert!(answer.to_string().contains("/api/v1/workers/artifacts/"), "{answer}");
    let left = std::fs::read_dir(place.data().join("artifacts.uploads")).unwrap().count();
    assert_eq!(left, 0, "nothing unfinished is left");
}
