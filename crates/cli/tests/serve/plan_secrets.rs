//! A secret that many executions read, print, return and fail with is found nowhere: in no answer, no log, and no file of the
//! server or of its workers.
//!
//! `WINDLASS_PLANTED_EXECUTIONS` sets their number.

use crate::plan_executions::{self, begin};
use crate::plans::send;
use crate::rig::{self, Place, Running, Server};
use crate::runners;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SECRET: &str = "planted-S3cret-0f-many-executions";

fn executions() -> usize {
    std::env::var("WINDLASS_PLANTED_EXECUTIONS").ok().map_or(6, |text| text.parse().expect("a number"))
}

/// Every way out of a step that its author has.
fn plan() -> Value {
    let token = json!([{ "name": "token" }]);
    let args = json!({ "refs": { "token": "params.token" } });
    let says = "cat context/token; cat context/token >&2; cat context/token > outputs/plain; base64 -w0 context/token > outputs/coded; \
                yes \"$(cat context/token)\" | head -3000 > outputs/large; \
                cp context/token \"$SIGNADOT_PLAN_EXECUTION_SCRATCHDIR/copy\"; printf '{\"t\": \"%s\"}' \"$(cat context/token)\" > outputs/json.json; \
                echo $TOKEN";
    let outputs = json!([{ "name": "plain" }, { "name": "coded" }, { "name": "large" }, { "name": "json", "schema": {} }]);
    let leak = json!({ "script": says, "params": token, "outputs": outputs, "env": { "TOKEN": { "input": "token" } } });
    let fails = json!({ "script": "echo it is $(cat context/token) >&2; exit 7", "params": token });
    let read = json!({ "script": "cat context/before \"$SIGNADOT_PLAN_EXECUTION_SCRATCHDIR/copy\"", "params": [{ "name": "before" }] });
    json!({
        "params": [{ "name": "token", "required": true }, { "name": "number", "schema": { "type": "integer" } }],
        "steps": [
            { "id": "leak", "action": leak, "args": args },
            { "id": "fails", "action": fails, "args": args },
            { "id": "read", "action": read, "args": { "refs": { "before": "steps.leak.outputs.large" } } },
        ],
        "output": { "plain": "steps.leak.outputs.plain", "part": "steps.leak.outputs.json.t" },
    })
}

/// Texts that must not be found: the value, and its base64.
fn forms() -> [String; 2] {
    [SECRET.to_owned(), STANDARD.encode(SECRET).trim_end_matches('=').to_owned()]
}

fn find(bytes: &[u8]) -> bool {
    forms().iter().any(|form| {
        let first = form.as_bytes()[0];
        let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == first);
        starts.into_iter().any(|(at, _)| bytes[at..].starts_with(form.as_bytes()))
    })
}

#[track_caller]
fn check_answer(server: &Server, path: &str) {
    let answer = server.get(path);
    assert!(!answer.status().is_server_error(), "{path}: {}", answer.status());
    assert!(!find(&answer.bytes().unwrap()), "{path}");
}

fn until_ended(server: &Server, path: &str, end: Instant) {
    loop {
        let (_, execution) = rig::read_answer(server.get(path));
        assert!(Instant::now() < end, "{path} does not end: {execution}");
        if !execution["status"]["completedAt"].is_null() {
            assert_eq!(execution["status"]["phase"], "failed", "one step fails on purpose: {execution}");
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two steps that note the secret, the second after a file is there.
fn noting(place: &Place) -> Value {
    let (seen, gate) = (place.path("seen").display().to_string(), place.path("gate").display().to_string());
    let note = |step: &str| format!("echo {step} $(cat context/token) >> {seen}");
    let (token, token_and_n) = (json!([{ "name": "token" }]), json!([{ "name": "token" }, { "name": "n" }]));
    let first = format!("{}; echo 1 > outputs/n", note("first"));
    let second = format!("while [ ! -e {gate} ]; do sleep 0.05; done; {}", note("second"));
    let refs = |more: Value| {
        let mut refs = json!({ "token": "params.token" });
        refs.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "refs": refs })
    };
    json!({
        "params": [{ "name": "token", "required": true }],
        "steps": [
            { "id": "first", "action": { "script": first, "params": token, "outputs": [{ "name": "n" }] }, "args": refs(json!({})) },
            { "id": "second", "action": { "script": second, "params": token_and_n }, "args": refs(json!({ "n": "steps.first.outputs.n" })) },
        ],
    })
}

fn store(server: &Server, value: &str) {
    assert_eq!(send(server, Method::PUT, "/api/v1/secrets/rotated", &json!({ "value": value })).0, 200);
}

#[test]
fn pln_09_all_steps_read_the_secret_of_the_dispatch_and_a_new_dispatch_reads_it_again() {
    let place = Place::new();
    let server = place.serve();
    store(&server, "value-before-rotation");
    let path = begin(&server, &noting(&place), &json!({ "secrets": { "token": "rotated" } }));
    let mut first = plan_executions::worker(&place, &server);
    let until_noted = |lines: &[&str]| {
        rig::until("the steps note the secret", || (place.lines("seen").len() >= lines.len()).then_some(()));
        assert_eq!(place.lines("seen"), lines);
    };
    until_noted(&["first value-before-rotation"]);
    store(&server, "value-after-rotation");
    first.signal(Signal::TERM);
    first.until_says("finishing running work");
    first.signal(Signal::TERM);
    first.end();
    let _second = plan_executions::worker(&place, &server);
    until_noted(&["first value-before-rotation", "first value-after-rotation"]);
    store(&server, "value-after-both-steps");
    place.write("gate", "");
    plan_executions::until_phase(&server, &path, "completed");
    until_noted(&[
        "first value-before-rotation",
        "first value-after-rotation",
        "second value-after-rotation",
    ]);
}

#[test]
fn pln_09_a_secret_that_many_executions_read_is_found_nowhere() {
    let place = Place::new();
    let server = place.serve();
    assert_eq!(send(&server, Method::PUT, "/api/v1/secrets/planted", &json!({ "value": SECRET })).0, 200);
    let token = runners::token(&server, json!({ "name": "w", "role": "worker", "group": "default" }));
    let args = ["--group", "default", "--cluster", "local", "--slots", "4"];
    let workers: Vec<Running> = (0..2).map(|_| runners::worker(&place, &server, &token, &args)).collect();
    let (count, plan) = (executions(), plan());
    let bound = |number: usize| json!({ "params": { "number": number }, "secrets": { "token": "planted" } });
    let paths: Vec<String> = (0..count).map(|number| begin(&server, &plan, &bound(number))).collect();
    let end = Instant::now() + rig::PATIENCE + Duration::from_secs(5 * count as u64);
    let mut answers = 0;
    for path in &paths {
        until_ended(&server, path, end);
        let id = path.rsplit('/').next().unwrap();
        let common = format!("/api/v1/executions/{id}");
        let steps = ["leak", "fails", "read"];
        let logs = steps.iter().flat_map(|step| {
            ["stdout", "stderr"].map(|stream| format!("{path}/steps/{step}/logs?stream={stream}"))
        });
        let outputs =
            ["plain", "coded", "large", "json"].map(|name| format!("{path}/steps/leak/outputs/{name}"));
        let whole = ["", "/logs/live", "/outputs/plain", "/outputs/part"].map(|part| format!("{path}{part}"));
        let of_all = ["", "/events?limit=1000", "/evidence", "/logs?limit=1000", "/graph", "/status"];
        let all = of_all.map(|part| format!("{common}{part}"));
        let all: Vec<String> = logs.chain(outputs).chain(whole).chain(all).collect();
        answers += all.len();
        all.iter().for_each(|path| check_answer(&server, path));
    }
    let lists = ["plan-executions", "executions", "plans", "secrets", "audit", "workflows", "runner-groups"];
    lists.iter().for_each(|list| check_answer(&server, &format!("/api/v1/{list}")));
    check_answer(&server, "/metrics");
    for worker in workers {
        worker.signal(Signal::TERM);
        let (code, _, said) = worker.end();
        assert!(code == Some(0) && !find(said.as_bytes()), "{said}");
    }
    let (_, said) = server.stop();
    assert!(!find(said.as_bytes()), "{said}");
    let files: Vec<_> = [place.data(), place.path("workers")].iter().flat_map(|at| rig::files(at)).collect();
    for file in &files {
        assert!(!find(&std::fs::read(file).unwrap()), "{}", file.display());
    }
    println!("{count} executions, {answers} answers, {} files: the secret is in none", files.len());
}
