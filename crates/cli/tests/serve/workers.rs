//! Workers in other languages, over HTTP: the protocol by hand, and the worker of examples/worker.py.

use crate::executions::{get, start, until};
use crate::rig::{self, Place, Running, Server, read_answer};
use reqwest::blocking::RequestBuilder;
use reqwest::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// A playbook whose first step is done by the group `lab`.
pub(crate) fn playbook(tool: &str) -> String {
    format!("metadata: {{name: remote}}\nworkload: {{n: 7}}\nworkflow:\n  - step: work\n    tool: {tool}\n")
}

const ECHO: &str = "{kind: worker, group: lab, operation: echo, args: {n: '{{ workload.n }}'}}";

fn token(server: &Server, body: Value) -> String {
    let (status, made) = server.post("/api/v1/tokens", &body);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["token"].as_str().unwrap().to_owned()
}

/// A worker whose calls a test makes.
pub(crate) struct Worker<'s> {
    pub(crate) server: &'s Server,
    pub(crate) token: String,
    pub(crate) session: Value,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(server: &'s Server) -> Worker<'s> {
        let token = token(server, json!({ "name": "w", "role": "worker" }));
        Worker { server, token, session: Value::Null }
    }

    pub(crate) fn request(&self, path: &str, body: &Value) -> RequestBuilder {
        let request = self.server.bare(Method::POST, &format!("/api/v1/workers/{path}"));
        let request = request.header("windlass-protocol", crate::runners::PROTOCOL).bearer_auth(&self.token);
        let session = body["session"].as_str().into_iter();
        session.fold(request, |request, session| request.header("windlass-session", session)).json(body)
    }

    pub(crate) fn call(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        read_answer(self.request(path, body).send().unwrap())
    }

    /// Claims at most that many units, and waits for the first.
    #[track_caller]
    pub(crate) fn claim(&mut self, slots: u32) -> Vec<Value> {
        rig::until("there is work", || Some(self.claim_now(slots, 1_000)).filter(|work| !work.is_empty()))
    }

    #[track_caller]
    pub(crate) fn claim_now(&mut self, slots: u32, wait_ms: u64) -> Vec<Value> {
        let body = json!({ "group": "lab", "slots": slots, "waitMs": wait_ms, "session": self.session });
        let (status, answer) = self.call("claim", &body);
        assert_eq!(status, StatusCode::OK, "{answer}");
        self.session = answer["session"].clone();
        answer["work"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn beat(&self, held: &[&Value]) -> Value {
        let (status, answer) = self.call("heartbeat", &json!({ "session": self.session, "held": held }));
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    }

    pub(crate) fn report(&self, unit: &Value, result: Value) -> (StatusCode, Value) {
        self.call("report", &json!({ "session": self.session, "unit": unit["unit"], "result": result }))
    }

    #[track_caller]
    pub(crate) fn done(&self, unit: &Value, result: Value) {
        let (status, answer) = self.report(unit, result);
        assert_eq!((status, &answer["accepted"]), (StatusCode::OK, &json!(true)), "{answer}");
    }

    #[track_caller]
    pub(crate) fn failed(&self, unit: &Value, error: Value) {
        let body = json!({ "session": self.session, "unit": unit["unit"], "error": error });
        let (status, answer) = self.call("report", &body);
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
}

/// The worker of the examples, in a process of its own.
fn python(place: &Place, server: &Server, token: &str, slots: u32) -> Running {
    let mut command = Command::new("python3");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/worker.py");
    command.args([script, "lab", &slots.to_string()]).current_dir(place.path("."));
    command.env("WINDLASS_URL", server.url()).env("WINDLASS_TOKEN", token);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command)
}

pub(crate) fn waiting(server: &Server) -> Value {
    let (_, groups) = read_answer(server.get("/api/v1/runner-groups"));
    groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["name"] == "lab")
        .cloned()
        .unwrap_or_default()
}

pub(crate) fn start_all(server: &Server, workflow: &str, count: usize) -> Vec<String> {
    let ids: Vec<String> = (0..count).map(|_| start(server, workflow, json!({}))).collect();
    rig::until("all wait for a worker", || (waiting(server)["waiting"] == count).then_some(()));
    ids
}

#[test]
fn a_worker_claims_a_step_and_its_result_is_the_steps() {
    let place = Place::new();
    let server = place.serve();
    let next = "\n    next: {arcs: [{step: after, args: {got: '{{ work.twice }}'}}]}\n  - step: after\n    tool: {kind: noop, result: '{{ args.got }}'}";
    let id = start(&server, &server.define(&playbook(&format!("{ECHO}{next}"))), json!({}));
    let mut worker = Worker::new(&server);
    let work = worker.claim(4);
    let [unit] = &work[..] else { panic!("{work:?}") };
    assert_eq!(unit["executionId"], id);
    let shown = json!([unit["stepId"], unit["kind"], unit["input"], unit["attempt"], unit["deadline"]]);
    assert_eq!(shown, json!(["work", "echo", { "n": 7 }, 1, null]));
    assert!(unit["idempotencyKey"].as_str().unwrap().contains(':'), "{unit}");
    assert_eq!(get(&server, &id, "")["status"], "running");
    worker.done(unit, json!({ "twice": 14 }));
    let ended = until(&server, &id, "completed");
    assert_eq!(ended["outputs"], json!({ "after": 14 }), "{ended}");
}

#[test]
fn the_python_example_does_the_work_of_many_executions() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(&playbook(ECHO));
    let token = token(&server, json!({ "name": "w", "role": "worker", "group": "lab" }));
    let _workers = [python(&place, &server, &token, 3), python(&place, &server, &token, 3)];
    let ids: Vec<String> = (0..30).map(|_| start(&server, &workflow, json!({}))).collect();
    for id in &ids {
        let ended = until(&server, id, "completed");
        assert_eq!(ended["outputs"]["echo"], json!({ "n": 7 }), "{ended}");
        assert_eq!(ended["outputs"]["attempt"], 1, "{ended}");
    }
}

#[test]
fn rules_retry_a_reported_error_and_every_try_is_reported() {
    let place = Place::new();
    let server = place.serve();
    let tool = "{kind: worker, group: lab, retry: {max_attempts: 3, delay: 0.01}}";
    let workflow = server.define(&playbook(tool));
    let mut worker = Worker::new(&server);
    let id = start(&server, &workflow, json!({}));
    let error = json!({ "code": "SERVICE_UNAVAILABLE", "message": "busy", "retryable": true });
    let first = worker.claim(1).remove(0);
    worker.failed(&first, error.clone());
    let second = worker.claim(1).remove(0);
    assert_eq!((&first["attempt"], &second["attempt"]), (&json!(1), &json!(2)));
    assert_eq!(first["idempotencyKey"], second["idempotencyKey"]);
    assert_ne!(first["unit"], second["unit"]);
    worker.done(&second, json!({ "ok": true }));
    let ended = until(&server, &id, "completed");
    assert_eq!(ended["nodeExecutions"][0]["retryCount"], 1, "{ended}");
    let id = start(&server, &workflow, json!({}));
    for _ in 0..3 {
        let unit = worker.claim(1).remove(0);
        worker.failed(&unit, error.clone());
    }
    let ended = until(&server, &id, "failed");
    assert_eq!(ended["errors"][0]["code"], "SERVICE_UNAVAILABLE", "{ended}");
    assert_eq!(ended["errors"][0]["attempt"], 3, "{ended}");
}

#[test]
fn a_long_message_of_a_reported_error_is_cut() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&playbook("{kind: worker, group: lab}")), json!({}));
    let mut worker = Worker::new(&server);
    let unit = worker.claim(1).remove(0);
    worker.failed(&unit, json!({ "code": "BROKEN", "message": "long ".repeat(100_000), "retryable": false }));
    let ended = until(&server, &id, "failed");
    let message = ended["errors"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("long long ") && message.ends_with('…'), "{message}");
    assert!(message.len() < 5_000, "{} bytes are kept in every commit of the execution", message.len());
}

#[test]
fn a_call_that_takes_too_long_fails_and_its_late_result_is_refused() {
    let place = Place::new();
    let server = place.serve();
    let tool = "{kind: worker, group: lab, spec: {timeout: 0.3}}";
    let id = start(&server, &server.define(&playbook(tool)), json!({}));
    let mut worker = Worker::new(&server);
    let unit = worker.claim(1).remove(0);
    assert!(unit["deadline"].as_str().is_some_and(|time| time.ends_with('Z')), "{unit}");
    let ended = until(&server, &id, "failed");
    assert_eq!(ended["errors"][0]["class"], "timeout", "{ended}");
    let (status, answer) = worker.report(&unit, json!(1));
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::CONFLICT, &json!("CONFLICT")), "{answer}");
    assert_eq!(worker.beat(&[&unit["unit"]]), json!({ "lost": [unit["unit"]], "stop": [] }));
}

#[test]
fn a_cancelled_unit_is_to_be_stopped_until_its_worker_has() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&playbook(ECHO)), json!({}));
    let mut worker = Worker::new(&server);
    let unit = worker.claim(1).remove(0);
    assert_eq!(worker.beat(&[&unit["unit"]]), json!({ "lost": [], "stop": [] }));
    server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
    until(&server, &id, "cancelled");
    let stop = json!({ "lost": [], "stop": [unit["unit"]] });
    assert_eq!([worker.beat(&[&unit["unit"]]), worker.beat(&[&unit["unit"]])], [stop.clone(), stop]);
    assert_eq!(worker.beat(&[]), json!({ "lost": [], "stop": [] }));
    assert_eq!(worker.beat(&[&unit["unit"]]), json!({ "lost": [unit["unit"]], "stop": [] }));
    assert_eq!(waiting(&server)["claimed"], 0);
}

#[test]
fn work_of_a_killed_worker_is_done_by_another() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "2");
    let server = place.serve();
    let tool = "{kind: worker, group: lab, operation: sleep, args: {seconds: 600}}";
    let id = start(&server, &server.define(&playbook(tool)), json!({}));
    let token = token(&server, json!({ "name": "w", "role": "worker" }));
    let killed = python(&place, &server, &token, 1);
    rig::until("the worker has it", || (waiting(&server)["claimed"] == 1).then_some(()));
    killed.signal(Signal::KILL);
    let mut worker = Worker::new(&server);
    let unit = worker.claim(1).remove(0);
    assert_eq!(unit["executionId"], id);
    worker.done(&unit, json!("by another"));
    let ended = until(&server, &id, "completed");
    assert_eq!(ended["outputs"], json!({ "work": "by another" }), "{ended}");
}

#[test]
fn a_worker_keeps_what_it_holds_when_the_server_is_killed() {
    let place = Place::new();
    let server = place.serve();
    let address = server.address().to_owned();
    let workflow = server.define(&playbook(ECHO));
    let ids = start_all(&server, &workflow, 4);
    let mut before = Worker::new(&server);
    let mut work = before.claim_now(3, 0);
    assert_eq!(work.len(), 3, "{work:?}");
    let (token, session) = (before.token.clone(), before.session.clone());
    // One of them is cancelled: the order to stop survives as well.
    let cancelled = work.remove(0);
    let id = cancelled["executionId"].as_str().unwrap();
    server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
    until(&server, id, "cancelled");
    before.done(&work[0], json!({ "before": 1 }));
    server.kill();
    let server = place.serve_on(&address);
    let mut other = Worker::new(&server);
    let rest = other.claim(9);
    assert_eq!(rest.len(), 1, "only what no worker held: {rest:?}");
    assert!(!work.iter().any(|unit| unit["executionId"] == rest[0]["executionId"]), "{rest:?}");
    let worker = Worker { server: &server, token, session };
    let held = worker.beat(&[&work[1]["unit"], &cancelled["unit"]]);
    assert_eq!(held, json!({ "lost": [], "stop": [cancelled["unit"]] }));
    worker.done(&work[1], json!({ "after": 2 }));
    // What was reported before is accepted again, and only that.
    worker.done(&work[0], json!({ "before": 1 }));
    assert_eq!(worker.report(&work[0], json!({ "before": 2 })).0, StatusCode::CONFLICT);
    other.done(&rest[0], json!({}));
    for id in ids.iter().filter(|id| **id != cancelled["executionId"]) {
        let ended = until(&server, id, "completed");
        assert_eq!(ended["nodeExecutions"].as_array().unwrap().len(), 1, "{ended}");
        assert_eq!(ended["nodeExecutions"][0]["retryCount"], 0, "{ended}");
    }
    assert_eq!(other.claim_now(9, 0), Vec::<Value>::new());
}

#[test]
fn the_python_example_outlives_the_server() {
    let place = Place::new();
    let mut server = place.serve();
    let address = server.address().to_owned();
    let tool = "{kind: worker, group: lab, operation: sleep, args: {seconds: 1}}";
    let workflow = server.define(&playbook(tool));
    let token = token(&server, json!({ "name": "w", "role": "worker" }));
    let mut worker = python(&place, &server, &token, 5);
    let ids: Vec<String> = (0..5).map(|_| start(&server, &workflow, json!({}))).collect();
    // A call that the server has written down may still be on its way to the worker.
    for _ in &ids {
        worker.until_says("of exec_");
    }
    for _ in 0..2 {
        server.kill();
        server = place.serve_on(&address);
    }
    for id in &ids {
        let ended = until(&server, id, "completed");
        assert_eq!(ended["outputs"]["attempt"], 1, "{ended}");
    }
    let metrics = server.get("/metrics").text().unwrap();
    assert!(metrics.contains("windlass_group_workers 1"), "{metrics}");
}

#[test]
fn a_report_is_accepted_again_and_another_one_is_a_conflict() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&playbook(ECHO)), json!({}));
    let mut worker = Worker::new(&server);
    let unit = worker.claim(1).remove(0);
    worker.done(&unit, json!({ "a": 1 }));
    worker.done(&unit, json!({ "a": 1 }));
    assert_eq!(worker.report(&unit, json!({ "a": 2 })).0, StatusCode::CONFLICT);
    until(&server, &id, "completed");
    worker.done(&unit, json!({ "a": 1 }));
    assert_eq!(get(&server, &id, "")["outputs"], json!({ "a": 1 }));
}

#[test]
fn claims_take_batches_and_two_workers_share() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(&playbook(ECHO));
    let ids = start_all(&server, &workflow, 20);
    let (mut one, mut two) = (Worker::new(&server), Worker::new(&server));
    let (a, b) = (one.claim_now(8, 0), two.claim_now(100, 0));
    assert_eq!((a.len(), b.len()), (8, 12));
    let group = waiting(&server);
    assert_eq!([&group["waiting"], &group["claimed"], &group["workers"]], [0, 20, 2], "{group}");
    a.iter().for_each(|unit| one.done(unit, json!({})));
    b.iter().for_each(|unit| two.done(unit, json!({})));
    ids.iter().for_each(|id| drop(until(&server, id, "completed")));
    assert_eq!(waiting(&server)["claimed"], 0);
}

#[test]
fn a_claim_names_the_operations_that_it_takes() {
    let place = Place::new();
    let server = place.serve();
    let cut = server.define(&playbook("{kind: worker, group: lab, operation: cut}").replace("remote", "cut"));
    let glue =
        server.define(&playbook("{kind: worker, group: lab, operation: glue}").replace("remote", "glue"));
    start(&server, &cut, json!({}));
    let glued = start(&server, &glue, json!({}));
    rig::until("both wait", || (waiting(&server)["waiting"] == 2).then_some(()));
    let worker = Worker::new(&server);
    let body = json!({ "group": "lab", "slots": 9, "waitMs": 0, "kinds": ["glue"] });
    let (_, answer) = worker.call("claim", &body);
    assert_eq!(answer["work"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(answer["work"][0]["executionId"], glued);
}

#[test]
fn a_pipeline_is_handed_to_the_worker_for_its_task_and_returned() {
    let place = Place::new();
    let server = place.serve();
    let tool = "[{first: {kind: shell, command: echo one}}, {second: {kind: worker, group: lab, args: {got: '{{ first.stdout }}'}}}, {third: {kind: noop, result: 'did {{ second }}'}}]";
    let id = start(&server, &server.define(&playbook(tool)), json!({}));
    let mut worker = Worker::new(&server);
    let unit = worker.claim(1).remove(0);
    assert!(unit["input"]["got"].as_str().is_some_and(|got| got.trim() == "one"), "{unit}");
    worker.done(&unit, json!("it"));
    let ended = until(&server, &id, "completed");
    assert_eq!(ended["outputs"]["result"], "did it", "{ended}");
}

#[test]
fn work_that_waits_for_a_group_takes_no_slot_of_the_server() {
    let place = Place::new().with(&["--slots", "1"]);
    let server = place.serve();
    let workflow = server.define(&playbook(ECHO));
    start_all(&server, &workflow, 30);
    let own = server
        .define("metadata: {name: own}\nworkflow:\n  - step: a\n    tool: {kind: shell, command: echo hi}\n");
    until(&server, &start(&server, &own, json!({})), "completed");
    drop(server);
    // They still wait after a restart, and still take no slot.
    let server = place.serve();
    rig::until("all wait again", || (waiting(&server)["waiting"] == 30).then_some(()));
    until(&server, &start(&server, &own, json!({})), "completed");
}

#[test]
fn a_token_of_a_worker_claims_for_its_group_and_does_nothing_else() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(&playbook(ECHO));
    let token = token(&server, json!({ "name": "w", "role": "worker", "group": "lab" }));
    let as_worker = |method: Method, path: &str, body: Value| {
        read_answer(server.bare(method, path).bearer_auth(&token).json(&body).send().unwrap())
    };
    for path in
        ["workflows", "executions", "tokens", "tenants", "secrets", "audit", "runner-groups", "quarantine"]
    {
        let (status, answer) = as_worker(Method::GET, &format!("/api/v1/{path}"), json!(null));
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {answer}");
    }
    let (status, _) = as_worker(Method::POST, &format!("/api/v1/workflows/{workflow}/execute"), json!({}));
    assert_eq!(status, StatusCode::FORBIDDEN);
    let claim = |group: &str| {
        as_worker(Method::POST, "/api/v1/workers/claim", json!({ "group": group, "slots": 1, "waitMs": 0 }))
    };
    assert_eq!(claim("lab").0, StatusCode::OK);
    let (status, answer) = claim("other");
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(answer["error"]["message"].as_str().unwrap().contains("`lab`"), "{answer}");
    let viewer = super::workers::token(&server, json!({ "name": "v", "role": "viewer" }));
    let body = json!({ "group": "lab", "slots": 1, "waitMs": 0 });
    let request = server.bare(Method::POST, "/api/v1/workers/claim").bearer_auth(viewer).json(&body);
    assert_eq!(request.send().unwrap().status(), StatusCode::FORBIDDEN);
    let (status, answer) =
        server.post("/api/v1/tokens", &json!({ "name": "x", "role": "viewer", "group": "lab" }));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
}

#[test]
fn a_group_belongs_to_one_tenant() {
    let place = Place::new();
    let server = place.serve();
    start_all(&server, &server.define(&playbook(ECHO)), 1);
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Other" }));
    let token = token(&server, json!({ "name": "w", "role": "worker", "tenantId": tenant["id"] }));
    let mut other = Worker { server: &server, token, session: Value::Null };
    assert_eq!(other.claim_now(9, 0), Vec::<Value>::new());
    let mut own = Worker::new(&server);
    let unit = own.claim(1).remove(0);
    // The session of another tenant, and a unit of another session, are as good as unknown.
    let stolen = Worker { server: &server, token: other.token.clone(), session: own.session.clone() };
    let (status, answer) = stolen.report(&unit, json!(1));
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
    assert_eq!(other.report(&unit, json!(1)).0, StatusCode::NOT_FOUND);
    assert_eq!(other.beat(&[&unit["unit"]]), json!({ "lost": [unit["unit"]], "stop": [] }));
    own.done(&unit, json!(1));
}

#[test]
fn a_group_is_restricted_to_a_cluster() {
    let place = Place::new();
    let server = place.serve();
    let put = server.request(Method::PUT, "/api/v1/runner-groups/lab").json(&json!({ "cluster": "eu" }));
    let (status, group) = read_answer(put.send().unwrap());
    assert_eq!((status, &group["cluster"]), (StatusCode::OK, &json!("eu")), "{group}");
    let worker = Worker::new(&server);
    let claim = |cluster: Value| {
        worker.call("claim", &json!({ "group": "lab", "cluster": cluster, "slots": 1, "waitMs": 0 }))
    };
    assert_eq!(claim(json!("eu")).0, StatusCode::OK);
    for wrong in [json!(null), json!("us")] {
        let (status, answer) = claim(wrong);
        assert_eq!(status, StatusCode::CONFLICT, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("`eu`"), "{answer}");
    }
    assert_eq!(read_answer(server.get("/api/v1/runner-groups/lab")).1["workers"], 1);
    let delete = || server.request(Method::DELETE, "/api/v1/runner-groups/lab").send().unwrap().status();
    assert_eq!((delete(), delete()), (StatusCode::NO_CONTENT, StatusCode::NOT_FOUND));
    assert_eq!(claim(json!("us")).0, StatusCode::OK);
}

#[test]
fn a_secret_reaches_the_worker_and_nothing_else() {
    let place = Place::new();
    let server = place.serve();
    let put = server.request(Method::PUT, "/api/v1/secrets/key").json(&json!({ "value": "hunter2-hunter2" }));
    assert!(put.send().unwrap().status().is_success());
    let text = "metadata: {name: s}\nkeychain: [{name: k, kind: secret, secret: key}]\nworkflow:\n  - step: work\n    tool: {kind: worker, group: lab, args: {key: '{{ keychain.k.token }}'}}\n";
    let id = start(&server, &server.define(text), json!({}));
    let mut worker = Worker::new(&server);
    let unit = worker.claim(1).remove(0);
    assert_eq!(unit["input"], json!({ "key": "hunter2-hunter2" }));
    worker.done(&unit, json!({ "said": "it is hunter2-hunter2" }));
    let ended = until(&server, &id, "completed");
    assert_eq!(ended["outputs"], json!({ "said": "it is [redacted]" }), "{ended}");
    for rest in ["/events", "/evidence"] {
        let shown = get(&server, &id, rest).to_string();
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn bad_calls_of_workers_name_what_is_wrong() {
    let place = Place::new();
    let server = place.serve();
    let worker = Worker::new(&server);
    let check = |path: &str, body: Value, status: u16, part: &str| {
        let (answered, answer) = worker.call(path, &body);
        assert_eq!(answered.as_u16(), status, "{body}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{body}: {message}");
    };
    check("claim", json!({ "group": "lab", "slots": 0 }), 400, "`slots`");
    check("claim", json!({ "group": "lab", "slots": 1001 }), 400, "between 1 and 1000");
    check("claim", json!({ "group": "a b", "slots": 1 }), 400, "`group`");
    check("claim", json!({ "group": "lab", "slots": 1, "other": 1 }), 400, "`other`");
    let kinds: Vec<u32> = (0..101).collect();
    let kinds: Vec<String> = kinds.iter().map(u32::to_string).collect();
    check("claim", json!({ "group": "lab", "slots": 1, "kinds": kinds }), 400, "`kinds`");
    check(
        "claim",
        json!({ "group": "lab", "slots": 1, "session": "wks_made-up" }),
        404,
        "claim without `session`",
    );
    check("heartbeat", json!({ "session": "wks_made-up", "held": [] }), 404, "claim without `session`");
    let session =
        worker.call("claim", &json!({ "group": "lab", "slots": 1, "waitMs": 0 })).1["session"].clone();
    check("report", json!({ "session": session, "unit": "wku_made-up", "result": 1 }), 404, "unit");
    check("report", json!({ "session": session, "unit": "wku_made-up" }), 404, "unit");
    let lost = worker.call("heartbeat", &json!({ "session": session, "held": ["wku_made-up"] })).1;
    assert_eq!(lost, json!({ "lost": ["wku_made-up"], "stop": [] }));
    let held = vec!["wku_made-up"; 10_001];
    check("heartbeat", json!({ "session": session, "held": held }), 400, "at most 10000");
    let template = playbook("{kind: worker, group: '{{ workload.n }}'}");
    let request =
        server.request(Method::POST, "/api/v1/workflows").header("Content-Type", "application/yaml");
    let (status, answer) = read_answer(request.body(template).send().unwrap());
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    assert!(answer.to_string().contains("not a plain name"), "{answer}");
}

#[test]
fn an_operation_of_actions_is_bound_to_a_group_and_carries_its_key() {
    let place = Place::new();
    let server = place.serve();
    let text = "schemaVersion: 1
workflowId: billing
name: Billing
adapters: {operations: {'invoice:write': {kind: worker, group: lab}}}
actions:
  - {actionId: bill, order: 1, operation: 'invoice:write', input: {amount: 3}, retryPolicy: {maxAttempts: 2, initialBackoffMs: 1}}
";
    let id = start(&server, &server.define(text), json!({}));
    let mut worker = Worker::new(&server);
    let first = worker.claim(1).remove(0);
    assert_eq!(json!([first["kind"], first["input"]]), json!(["invoice:write", { "amount": 3 }]), "{first}");
    assert_eq!(first["idempotencyKey"], format!("{id}:bill"));
    worker.failed(&first, json!({ "code": "SERVICE_UNAVAILABLE", "message": "busy" }));
    let second = worker.claim(1).remove(0);
    assert_eq!(json!([second["attempt"], second["idempotencyKey"]]), json!([2, format!("{id}:bill")]));
    worker.done(&second, json!({ "invoice": 9 }));
    let ended = until(&server, &id, "completed");
    assert_eq!(ended["outputs"], json!({ "invoice": 9 }), "{ended}");
}

#[test]
fn a_kind_of_tool_is_bound_to_a_group() {
    let place = Place::new();
    let server = place.serve();
    let text = "metadata: {name: bound}
adapters: {tools: {nats: {kind: worker, group: lab}}}
workflow:
  - step: publish
    tool: {kind: nats, args: {subject: orders}}
";
    let id = start(&server, &server.define(text), json!({}));
    let mut worker = Worker::new(&server);
    let unit = worker.claim(1).remove(0);
    assert_eq!(json!([unit["kind"], unit["input"]]), json!(["nats", { "subject": "orders" }]), "{unit}");
    worker.done(&unit, json!({ "sent": true }));
    until(&server, &id, "completed");
}

#[test]
fn the_example_worker_repeats_requests_whose_answers_are_truncated() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{",
        "HTTP/1.1 500 Broken\r\nContent-Length: 100\r\n\r\nhalf",
        "HTTP/1.1 400 Bad\r\nContent-Length: 4\r\n\r\nover",
    ];
    let serving = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut piece) = (Vec::new(), [0; 4096]);
            while !request.ends_with(b"}") {
                let read = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..read]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let mut command = Command::new("python3");
    command.args([concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/worker.py"), "lab"]);
    command.env("WINDLASS_URL", url).env("WINDLASS_TOKEN", "t");
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(said.trim(), "400: over");
    serving.join().unwrap();
}
