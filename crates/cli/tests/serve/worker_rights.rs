//! Data for workers outside of the server: they receive what the definition of their step names, and nothing else of the
//! tenant.

use crate::evidence::sha256;
use crate::executions::{get, until};
use crate::plan_executions::begin;
use crate::rig::{self, Place, Server, read_answer};
use crate::runners::{self, LAB, artifact, call, register, start, worker_token};
use crate::workers::{Worker, playbook};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Playbooks that a hostile worker of the group `lab` gets steps of.
const ONE_SECRET: &str = "metadata: {name: one}\nkeychain:\n- {name: k, kind: secret, secret: named}\nworkflow:\n\
                          - {step: a, tool: {kind: shell, command: 'echo {{ keychain.k.token }}'}}\n";

fn store_secret(server: &Server, name: &str) {
    let put = server.request(Method::PUT, &format!("/api/v1/secrets/{name}"));
    let stored = put.json(&json!({ "value": format!("value-of-{name}") })).send().unwrap();
    assert!(stored.status().is_success(), "{}", stored.text().unwrap());
}

/// A registered worker that asks for whatever it likes.
struct Hostile<'s> {
    server: &'s Server,
    token: String,
    session: Value,
    /// Number of the session in the protocol.
    number: Value,
}

impl<'s> Hostile<'s> {
    fn new(server: &'s Server) -> Hostile<'s> {
        let token = worker_token(server);
        let (session, number) = register(server, &token);
        Hostile { server, token, session, number }
    }

    /// Returns the unit of the next order to run something.
    #[track_caller]
    fn unit(&self) -> Value {
        rig::until("there is an order", || {
            let (status, answer) =
                call(self.server, &self.token, "orders", &json!({ "session": self.session }));
            assert_eq!(status, StatusCode::OK, "{answer}");
            let orders = answer["orders"].as_array().unwrap();
            orders.iter().find_map(|order| Some(order.get("run")?["unit"].clone()))
        })
    }

    #[track_caller]
    fn calls(&self, calls: &[Value]) -> Vec<Value> {
        let body = json!({ "session": self.session, "calls": calls });
        let (status, answer) = call(self.server, &self.token, "calls", &body);
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["replies"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn ask(&self, unit: &Value, ask: Value) -> Value {
        self.calls(&[json!({ "resource": { "unit": unit, "ask": ask } })]).remove(0)["resource"].take()
    }

    #[track_caller]
    fn open(&self, unit: &Value, name: &str) -> Value {
        self.ask(unit, json!({ "open_secret": { "name": name } }))
    }

    #[track_caller]
    fn report(&self, unit: &Value, outcome: Value) {
        let reply = self.calls(&[json!({ "report": { "unit": unit, "outcome": outcome } })]).remove(0);
        assert_eq!(reply["verdict"], "accepted", "{reply}");
    }

    fn fetch(&self, unit: &Value, key: &str) -> Vec<u8> {
        artifact(self.server, &self.token, (&self.session, unit), (key, None)).1
    }

    #[track_caller]
    fn put(&self, unit: &Value, bytes: &[u8]) -> String {
        let key = format!("sha256:{}", sha256(bytes));
        let put = artifact(self.server, &self.token, (&self.session, unit), (&key, Some(bytes.to_vec())));
        assert_eq!(put.1, b"\"stored\"");
        key
    }
}

#[track_caller]
fn assert_denied(reply: &Value) {
    assert_eq!(reply["failed"]["code"], "PERMISSION_DENIED", "{reply}");
}

fn audited(server: &Server, action: &str) -> Vec<Value> {
    let (_, answer) = read_answer(server.get(&format!("/api/v1/audit?limit=100&action={action}")));
    answer["entries"].as_array().expect("entries").clone()
}

#[test]
fn a_worker_opens_only_the_secrets_that_its_step_names() {
    let place = Place::new();
    let server = place.serve();
    ["named", "admin"].iter().for_each(|name| store_secret(&server, name));
    let hostile = Hostile::new(&server);
    start(&server, &server.define(ONE_SECRET));
    let unit = hostile.unit();
    assert_eq!(hostile.open(&unit, "named"), json!({ "secret": "value-of-named" }));
    for name in ["admin", "missing", ".audit-seal", ""] {
        let refused = hostile.open(&unit, name);
        assert_denied(&refused);
        assert!(refused.to_string().contains("does not name the secret"), "{refused}");
    }
    let flood =
        vec![json!({ "resource": { "unit": unit, "ask": { "open_secret": { "name": "admin" } } } }); 100];
    for _ in 0..3 {
        hostile.calls(&flood).iter().for_each(|reply| assert_denied(&reply["resource"]));
    }
    let entries = rig::until("refused calls are audited", || {
        Some(audited(&server, "worker.refused")).filter(|entries| entries.len() >= 10)
    });
    assert!(entries.len() <= 20, "a flood is counted in one entry: {}", entries.len());
    assert!(entries.iter().any(|entry| entry["target"] == "secret admin"), "{entries:?}");
    hostile.report(&unit, json!({ "done": { "output": 1 } }));
    assert_eq!(hostile.open(&unit, "named"), "stale", "its work has ended");
}

#[test]
fn a_name_of_a_secret_that_the_worker_computes_is_refused() {
    let place = Place::new();
    let server = place.serve();
    ["first", "admin"].iter().for_each(|name| store_secret(&server, name));
    let hostile = Hostile::new(&server);
    let by_input = "metadata: {name: by-input}\nworkload: {which: first}\nworkflow:\n\
                    - {step: a, tool: {kind: secrets, name: '{{ workload.which }}'}}\n";
    start(&server, &server.define(by_input));
    let unit = hostile.unit();
    assert_eq!(hostile.open(&unit, "first"), json!({ "secret": "value-of-first" }));
    assert_denied(&hostile.open(&unit, "admin"));
    hostile.report(&unit, json!({ "done": { "output": 1 } }));
    let by_result = "metadata: {name: by-result}\nworkflow:\n- step: a\n  tool: {kind: noop, result: first}\n  next: b\n\
                     - {step: b, tool: {kind: secrets, name: '{{ a }}'}}\n";
    let workflow = server.define(by_result);
    start(&server, &workflow);
    let unit = hostile.unit();
    hostile.report(&unit, json!({ "done": { "output": "admin" } }));
    let unit = hostile.unit();
    let refused = hostile.open(&unit, "admin");
    assert_denied(&refused);
    assert!(refused.to_string().contains("outside of the server"), "{refused}");
    // In the server itself, nobody else computes the name.
    let id = crate::executions::start(&server, &workflow, json!({}));
    until(&server, &id, "completed");
}

#[test]
fn a_worker_chooses_no_secret_through_the_inputs_of_a_sub_workflow() {
    let place = Place::new();
    let server = place.serve();
    ["first", "admin", "written"].iter().for_each(|name| store_secret(&server, name));
    server.define(
        "metadata: {name: child, path: child}\nworkload: {which: first}\nworkflow:\n- step: a\n  tool: {kind: secrets, name: \
         '{{ workload.which }}'}\n  next: b\n- {step: b, tool: {kind: secrets, name: written}}\n",
    );
    let parent = "metadata: {name: parent}\nworkflow:\n- {step: sub, tool: [{x: {kind: noop}}, {y: {kind: playbook, path: child}}]}\n";
    let hostile = Hostile::new(&server);
    start(&server, &server.define(parent));
    let unit = hostile.unit();
    let cursor = json!({ "version": 1, "at": "a" });
    let inputs = json!({ "which": "admin" });
    let child = json!({ "definition": { "path": "child" }, "inputs": inputs, "cursor": cursor });
    hostile.report(&unit, json!({ "child": child }));
    let unit = hostile.unit();
    let refused = hostile.open(&unit, "admin");
    assert_denied(&refused);
    assert!(refused.to_string().contains("outside of the server"), "{refused}");
    hostile.report(&unit, json!({ "done": { "output": 1 } }));
    let unit = hostile.unit();
    assert_eq!(hostile.open(&unit, "written"), json!({ "secret": "value-of-written" }));
}

#[test]
fn a_handle_opens_the_secret_of_the_step_that_a_step_reads() {
    let place = Place::new();
    let server = place.serve();
    ["read", "other"].iter().for_each(|name| store_secret(&server, name));
    let book = "metadata: {name: handles}\nworkflow:\n- step: token\n  tool: {kind: secrets, name: read}\n  next: use\n\
                - step: use\n  tool: {kind: shell, env: {T: '{{ token.value }}'}, command: 'test \"$T\" = value-of-read'}\n  \
                next: other\n- {step: other, tool: {kind: shell, command: 'true'}}\n";
    let workflow = server.define(book);
    let hostile = Hostile::new(&server);
    start(&server, &workflow);
    let unit = hostile.unit();
    hostile.report(&unit, json!({ "done": { "output": { "value": { "$secret": "other" } } } }));
    let unit = hostile.unit();
    assert_eq!(hostile.open(&unit, "read"), json!({ "secret": "value-of-read" }));
    assert_denied(&hostile.open(&unit, "other"));
    hostile.report(&unit, json!({ "done": { "output": 1 } }));
    let unit = hostile.unit();
    assert_denied(&hostile.open(&unit, "read"));
    hostile.report(&unit, json!({ "done": { "output": 1 } }));
    hostile.calls(&[json!({ "leave": hostile.number })]);
    let _honest = runners::worker(&place, &server, &hostile.token, &LAB);
    until(&server, &start(&server, &workflow), "completed");
}

#[test]
fn a_worker_of_a_plan_opens_only_what_the_execution_binds() {
    let place = Place::new();
    let server = place.serve();
    ["bound", "unread", "admin"].iter().for_each(|name| store_secret(&server, name));
    let action = json!({ "script": "true", "params": [{ "name": "token" }] });
    let plan = json!({
        "params": [{ "name": "token" }, { "name": "spare" }],
        "steps": [{ "id": "s", "action": action, "args": { "refs": { "token": "params.token" } } }],
    });
    let token = runners::token(&server, json!({ "name": "w", "role": "worker", "group": "default" }));
    let new = json!({ "protocol": runners::PROTOCOL, "release": "1", "worker": "w", "group": "default", "cluster": "local", "slots": 2 });
    let (status, opened) = call(&server, &token, "register", &new);
    assert_eq!(status, StatusCode::CREATED, "{opened}");
    let (session, number) = (opened["session"].clone(), opened["registered"]["session"].clone());
    let hostile = Hostile { server: &server, token, session, number };
    begin(&server, &plan, &json!({ "secrets": { "token": "bound", "spare": "unread" } }));
    let whole = hostile.unit();
    assert_eq!(whole["run"], u64::MAX >> 1);
    for (name, value) in [("bound", "value-of-bound"), ("unread", "value-of-unread")] {
        assert_eq!(hostile.open(&whole, name), json!({ "secret": value }));
    }
    for name in ["admin", "token"] {
        assert_denied(&hostile.open(&whole, name));
    }
    assert_denied(&hostile.ask(&whole, json!({ "find_routing_key": { "target": { "sandbox": "any" } } })));
    hostile.calls(&[json!({ "checkpoint": { "unit": whole, "number": 1, "cursor": {} } })]);
    let step = hostile.unit();
    assert_eq!(hostile.open(&step, "bound"), json!({ "secret": "value-of-bound" }));
    for name in ["unread", "admin"] {
        assert_denied(&hostile.open(&step, name));
    }
    // An execution without secrets gives none.
    hostile.report(&step, json!({ "done": { "output": {} } }));
    let plain = json!({ "steps": [{ "id": "s", "action": { "script": "true" } }] });
    begin(&server, &plain, &json!({}));
    let whole =
        rig::until("the next execution is ordered", || Some(hostile.unit()).filter(|unit| *unit != whole));
    assert_denied(&hostile.open(&whole, "bound"));
}

#[test]
fn a_worker_uses_memories_agents_and_sub_workflows_only_if_its_step_does() {
    let place = Place::new();
    let server = place.serve();
    store_secret(&server, "named");
    let target = server.define("metadata: {name: target}\nworkflow:\n- {step: a, tool: {kind: noop}}\n");
    store_secret(&server, "named");
    let hostile = Hostile::new(&server);
    let id = start(&server, &server.define(ONE_SECRET));
    let unit = hostile.unit();
    let search = json!({ "key": null, "prefix": null, "words": [], "limit": 10 });
    assert_denied(&hostile.ask(&unit, json!({ "search_memory": search })));
    assert_denied(&hostile.ask(&unit, json!({ "store_memory": { "key": "k", "value": 1 } })));
    assert_denied(&hostile.ask(&unit, json!({ "find_routing_key": { "target": { "sandbox": "any" } } })));
    for ask in [json!({ "pause": { "reason": "x" } }), json!({ "fail": { "failure": failure() } })] {
        let agent = json!({ "agent": { "unit": unit, "call": "1", "ask": ask } });
        let reply = hostile.calls(&[agent]).remove(0);
        assert!(reply["agent"]["refused"]["why"].is_string(), "{reply}");
    }
    let line = json!({ "at": 1, "stream": "out", "text": "forged" });
    hostile.calls(&[json!({ "log": { "unit": unit, "step": "other", "attempt": 1, "lines": [line] } })]);
    let child =
        json!({ "definition": { "path": "target" }, "inputs": {}, "cursor": { "version": 1, "at": "a" } });
    hostile.report(&unit, json!({ "child": child }));
    let ended = until(&server, &id, "failed");
    assert_eq!(ended["errors"][0]["code"], "PERMISSION_DENIED", "{ended}");
    for target in ["decision of an agent", "sub-workflow"] {
        rig::until("the refused call is audited", || {
            let entries = audited(&server, "worker.refused");
            entries.iter().any(|entry| entry["target"] == target).then_some(())
        });
    }
    let logs = get(&server, &id, "/logs?limit=50").to_string();
    assert!(logs.contains("forged") && !logs.contains("\"other\""), "{logs}");
    let (_, executions) = read_answer(server.get(&format!("/api/v1/executions?workflowId={target}")));
    assert_eq!(executions["executions"].as_array().map(Vec::len), Some(0), "{executions}");
}

fn failure() -> Value {
    json!({ "class": "policy", "code": "X", "message": "x", "details": null })
}

#[test]
fn a_claimed_call_brings_nothing_but_its_input() {
    let place = Place::new();
    let server = place.serve();
    store_secret(&server, "admin");
    let workflow = server.define(&playbook("{kind: worker, group: lab}"));
    crate::executions::start(&server, &workflow, json!({}));
    let mut plain = Worker::new(&server);
    let claimed = plain.claim(1).remove(0);
    let unit = unsealed(claimed["unit"].as_str().unwrap());
    let ask = json!({ "resource": { "unit": unit, "ask": { "open_secret": { "name": "admin" } } } });
    let (status, refused) = plain.call("calls", &json!({ "session": plain.session, "calls": [ask] }));
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    assert!(refused.to_string().contains("claims calls of its group"), "{refused}");
    assert_eq!(plain.call("orders", &json!({ "session": plain.session })).0, StatusCode::NOT_FOUND);
    let fetched = artifact(
        &server,
        &plain.token,
        (&plain.session, &unit),
        (&format!("sha256:{}", "0".repeat(64)), None),
    );
    assert_eq!(fetched.0, StatusCode::FORBIDDEN);
    // A worker that gets orders claims nothing in addition, because it would hold both.
    crate::executions::start(&server, &workflow, json!({}));
    let token = worker_token(&server);
    let (session, _) = register(&server, &token);
    let claim = json!({ "group": "lab", "cluster": "eu", "slots": 1, "waitMs": 10, "session": session });
    assert_eq!(call(&server, &token, "claim", &claim).0, StatusCode::NOT_FOUND);
    assert_eq!(
        call(&server, &token, "heartbeat", &json!({ "session": session, "held": [] })).0,
        StatusCode::NOT_FOUND
    );
    let report = json!({ "session": plain.session, "unit": claimed["unit"], "result": 1 });
    assert_eq!(plain.call("report", &report).0, StatusCode::OK);
}

/// The unit in the text that a claim returns: execution, run, fence, and a seal.
fn unsealed(text: &str) -> Value {
    use base64::Engine as _;
    let bytes =
        base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text.trim_start_matches("wku_")).unwrap();
    let hex: String = bytes[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
    json!({ "execution": hex, "run": number(16), "fence": number(24) })
}

#[test]
fn a_worker_fetches_only_artifacts_of_its_execution() {
    let place = Place::new();
    let server = place.serve();
    let large = |text: char| text.to_string().repeat(100_000);
    let print = |text: char| {
        let code = format!("return \"{text}\" * 100000");
        format!(
            "metadata: {{name: p{text}}}\nworkflow:\n- {{step: a, tool: {{kind: python, code: '{code}'}}}}\n"
        )
    };
    let id = crate::executions::start(&server, &server.define(&print('v')), json!({}));
    until(&server, &id, "completed");
    let victim = format!("sha256:{}", sha256(json!(large('v')).to_string().as_bytes()));
    let hostile = Hostile::new(&server);
    let book = "metadata: {name: two}\nworkload: {big: x}\nworkflow:\n- step: a\n  tool: {kind: noop, result: 1}\n  next: b\n\
                - {step: b, tool: {kind: noop, result: '{{ a }}'}}\n";
    let workflow = server.define(book);
    let body = json!({ "inputs": { "big": large('i') }, "options": { "runner": { "group": "lab" } } });
    let (status, started) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &body);
    assert!(status.is_success(), "{started}");
    let unit = hostile.unit();
    let denied = |unit: &Value, key: &str| {
        let reply: Value = serde_json::from_slice(&hostile.fetch(unit, key)).unwrap_or_default();
        assert_denied(&reply);
    };
    denied(&unit, &victim);
    let own = hostile.put(&unit, b"\"own bytes\"");
    assert_eq!(hostile.fetch(&unit, &own), b"\"own bytes\"");
    let inputs = format!("sha256:{}", sha256(json!({ "big": large('i') }).to_string().as_bytes()));
    assert!(hostile.fetch(&unit, &inputs).len() > 100_000, "the inputs of the execution");
    // A reference in a result is no proof that the worker had the value.
    hostile.report(&unit, json!({ "done": { "output": { "$artifact": victim, "bytes": 100_002 } } }));
    let unit = hostile.unit();
    denied(&unit, &victim);
    assert_eq!(hostile.fetch(&unit, &own), b"\"own bytes\"", "of an earlier step");
    let refused = rig::until("refused calls are audited", || {
        Some(audited(&server, "worker.refused")).filter(|entries| !entries.is_empty())
    });
    assert_eq!(refused[0]["target"], format!("artifact {victim}"), "{refused:?}");
    let Hostile { token, session, .. } = hostile;
    server.kill();
    let server = place.serve();
    let fetched = rig::until("the server knows the unit again", || {
        let (status, bytes) = artifact(&server, &token, (&session, &unit), (&own, None));
        (status == StatusCode::OK).then_some(bytes)
    });
    assert_eq!(fetched, b"\"own bytes\"", "after a restart of the server");
}

#[test]
fn large_values_pass_between_steps_sub_workflows_and_retries_of_workers() {
    let place = Place::new();
    let server = place.serve();
    server.define(
        "metadata: {name: child, path: child}\nworkload: {text: ''}\nworkflow:\n\
         - {step: make, tool: {kind: python, code: 'return {\"text\": text + \"y\" * 200000}', args: {text: '{{ workload.text }}'}}}\n",
    );
    let gate = place.path("gate");
    let book = format!(
        "metadata: {{name: parent}}\nworkload: {{given: ''}}\nworkflow:\n- step: sub\n  tool: {{kind: playbook, path: child, args: {{text: '{{{{ \
         workload.given }}}}'}}}}\n  next: read\n- step: read\n  tool: {{kind: python, code: 'return {{\"size\": len(str(got)), \
         \"text\": \"z\" * 100000}}', args: {{got: '{{{{ sub }}}}'}}}}\n  next: end\n- step: end\n  tool: {{kind: python, code: 'import os\n\n      \
         assert os.path.exists(\"{}\")\n\n      return {{\"n\": len(text)}}', args: {{text: '{{{{ read.text }}}}'}}}}\n",
        gate.display()
    );
    let workflow = server.define(&book);
    let _worker = runners::worker(&place, &server, &worker_token(&server), &LAB);
    let body = json!({ "inputs": { "given": "x".repeat(100_000) }, "options": { "runner": { "group": "lab", "cluster": "eu" } } });
    let (status, started) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &body);
    assert!(status.is_success(), "{started}");
    let id = started["executionId"].as_str().or(started["id"].as_str()).unwrap().to_owned();
    let failed = until(&server, &id, "failed");
    assert!(!failed.to_string().contains("PERMISSION_DENIED"), "{failed}");
    place.write("gate", "");
    let (status, again) = server.post(&format!("/api/v1/executions/{id}/retry"), &json!({}));
    assert!(status.is_success(), "{again}");
    let id = again["executionId"].as_str().or(again["id"].as_str()).unwrap().to_owned();
    let ended = until(&server, &id, "completed");
    assert_eq!(ended["outputs"]["n"], 100_000, "{ended}");
}

#[test]
fn a_token_of_one_group_does_not_take_the_sessions_of_all_groups() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "600");
    let server = place.serve();
    let token =
        |group: &str| runners::token(&server, json!({ "name": group, "role": "worker", "group": group }));
    let greedy = token("greedy");
    let claim = |token: &str, group: &str, session: &Value| {
        let body = json!({ "group": group, "slots": 1, "waitMs": 0, "session": session });
        call(&server, token, "claim", &body)
    };
    let mut refused = None;
    for _ in 0..1_100 {
        let (status, answer) = claim(&greedy, "greedy", &Value::Null);
        if status != StatusCode::OK {
            refused = Some((status, answer));
            break;
        }
    }
    let (status, answer) = refused.expect("the tenant has a maximum");
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    let modest = token("modest");
    let sessions: Vec<Value> = (0..3)
        .map(|_| {
            let (status, answer) = claim(&modest, "modest", &Value::Null);
            assert_eq!(status, StatusCode::OK, "{answer}");
            answer["session"].clone()
        })
        .collect();
    let (_, groups) = read_answer(server.get("/api/v1/runner-groups"));
    let workers =
        groups["groups"].as_array().unwrap().iter().map(|group| (&group["name"], &group["workers"]));
    assert_eq!(workers.collect::<Vec<_>>(), [(&json!("greedy"), &json!(997)), (&json!("modest"), &json!(3))]);
    assert_eq!(claim(&greedy, "greedy", &Value::Null).0, StatusCode::CONFLICT);
    for session in &sessions {
        assert_eq!(claim(&modest, "modest", session).0, StatusCode::OK, "sessions of the smaller group stay");
    }
    let (session, _) = register(&server, &worker_token(&server));
    let orders = json!({ "session": session, "calls": [] });
    assert_eq!(call(&server, &worker_token(&server), "calls", &orders).0, StatusCode::OK);
}
