//! The audit log: one row for every change, written to disk together with it.

use crate::executions::{start, until};
use crate::rig::{Place, Server, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PLAYBOOK: &str = "metadata: {name: hello}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n";

/// Routes that change nothing, or whose change is recorded elsewhere: an execution records who started it.
const NOT_LISTED: [&str; 11] = [
    "post /api/v1/workers/calls",
    "post /api/v1/workers/heartbeat",
    "post /api/v1/workers/orders",
    // The report that refers to the artifact is a part of the execution.
    "put /api/v1/workers/artifacts/{key}",
    // It makes a group like a claim, which leaves its row.
    "post /api/v1/workers/register",
    "post /api/v1/workers/report",
    "post /hooks/{path}",
    "post /api/v1/validate",
    "post /api/v1/workflows/{workflowId}/execute",
    "post /hooks/{tenant}/{path}",
    "put /hooks/{tenant}/{path}",
];

/// An admin who does everything, and what was written about that.
struct Admin<'s> {
    server: &'s Server,
    id: String,
    token: String,
    /// Routes as the document names them.
    asked: BTreeSet<String>,
    seen: usize,
}

impl Admin<'_> {
    fn of(server: &Server) -> Admin<'_> {
        let (_, made) = server.post("/api/v1/tokens", &json!({ "name": "ann", "role": "admin" }));
        let text = |key: &str| made[key].as_str().unwrap().to_owned();
        Admin { server, id: text("id"), token: text("token"), asked: BTreeSet::new(), seen: 0 }
    }

    fn rows(&self) -> Vec<Value> {
        let page = read_answer(self.server.get(&format!("/api/v1/audit?actor={}&limit=100", self.id))).1;
        page["entries"].as_array().unwrap().clone()
    }

    fn send(
        &mut self,
        method: &Method,
        route: &str,
        ids: &[&str],
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        self.asked.insert(format!("{} {route}", method.as_str().to_lowercase()));
        let mut path = route.to_owned();
        for id in ids {
            let (from, to) = (path.find('{').unwrap(), path.find('}').unwrap());
            path.replace_range(from..=to, id);
        }
        let request = self.server.bare(method.clone(), &path).bearer_auth(&self.token);
        let request = match body {
            Some(Value::String(text)) => request.header("Content-Type", "text/yaml").body(text),
            Some(body) => request.json(&body),
            None => request,
        };
        let response = request.send().unwrap();
        if response.status() == StatusCode::NO_CONTENT {
            (response.status(), Value::Null)
        } else {
            read_answer(response)
        }
    }

    /// One more row, which says what was done to what.
    #[track_caller]
    fn does(
        &mut self,
        (method, route): (Method, &str),
        ids: &[&str],
        body: Option<Value>,
        action: &str,
    ) -> Value {
        let (status, answer) = self.send(&method, route, ids, body);
        assert!(status.is_success(), "{method} {route}: {status} {answer}");
        let rows = self.rows();
        assert_eq!(rows.len(), self.seen + 1, "{method} {route} must leave one row: {rows:?}");
        self.seen = rows.len();
        let row = &rows[0];
        assert_eq!((&row["action"], &row["role"]), (&json!(action), &json!("admin")), "{row}");
        assert!(row["timestamp"].as_str().unwrap().ends_with('Z'), "{row}");
        if let Some(id) = ids.first() {
            assert_eq!(row["target"], *id, "{row}");
        }
        answer
    }

    /// Checks that a request fails without an effect and without a row.
    #[track_caller]
    fn fails(&mut self, (method, route): (Method, &str), ids: &[&str], body: Option<Value>, expected: u16) {
        let (status, answer) = self.send(&method, route, ids, body);
        assert_eq!(status.as_u16(), expected, "{method} {route}: {answer}");
        assert_eq!(self.rows().len(), self.seen, "{method} {route} changed nothing");
    }
}

fn id(answer: &Value) -> String {
    answer["id"].as_str().unwrap().to_owned()
}

#[test]
fn every_change_leaves_one_row_and_what_changes_nothing_leaves_none() {
    let place = Place::new().with(&["--egress-allow", "127.0.0.0/8"]);
    let server = place.serve();
    let mut admin = Admin::of(&server);
    definitions(&mut admin);
    access(&mut admin);
    executions(&mut admin, &server);
    schedules(&mut admin, &server);
    registry(&mut admin);
    plans(&mut admin);
    let document = read_answer(server.get("/api/openapi.json")).1;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in ["post", "put", "patch", "delete"] {
            let route = format!("{method} {path}");
            let is_new = !methods[method].is_null()
                && !admin.asked.contains(&route)
                && !NOT_LISTED.contains(&route.as_str());
            assert!(!is_new, "{route}: add to this test which audit entries it writes");
        }
    }
}

fn definitions(admin: &mut Admin<'_>) {
    let text = |source: &str| Some(json!(source));
    let (one, two) = (PLAYBOOK, PLAYBOOK.replace("start", "begin"));
    let all = "/api/v1/workflows";
    let each = "/api/v1/workflows/{id}";
    let made = id(&admin.does((Method::POST, all), &[], text(one), "workflow.create"));
    assert_eq!(admin.rows()[0]["target"], *made);
    assert_eq!(admin.rows()[0]["details"], json!({ "name": "hello", "version": 1 }));
    admin.does((Method::PUT, each), &[&made], text(&two), "workflow.change");
    assert_eq!(admin.rows()[0]["details"]["version"], 2);
    admin.fails((Method::PUT, each), &[&made], text("metadata: {}"), 400);
    admin.does((Method::PATCH, each), &[&made], Some(json!({ "status": "paused" })), "workflow.status");
    let copy = admin.send(&Method::POST, "/api/v1/workflows/{id}/duplicate", &[&made], None).1;
    assert_eq!((admin.rows()[0]["target"].clone(), admin.rows().len()), (copy["id"].clone(), admin.seen + 1));
    admin.seen += 1;
    admin.does((Method::DELETE, each), &[&made], None, "workflow.delete");
    admin.fails((Method::DELETE, each), &[&made], None, 404);
    admin.asked.insert("put /api/v1/workflows".to_owned());
    let named = "/api/v1/workflows?name=named";
    admin.does((Method::PUT, named), &[], text(one), "workflow.create");
    let (status, _) = admin.send(&Method::PUT, named, &[], text(one));
    assert_eq!((status, admin.rows().len()), (StatusCode::OK, admin.seen), "the same text is no change");
}

fn registry(admin: &mut Admin<'_>) {
    let nouns = [
        ("/api/v1/clusters/{name}", "cluster"),
        ("/api/v1/sandboxes/{name}", "sandbox"),
        ("/api/v1/route-groups/{name}", "route-group"),
    ];
    for (each, action) in nouns {
        admin.does((Method::PUT, each), &["lab"], Some(json!({ "ready": true })), &format!("{action}.put"));
        admin.fails((Method::PUT, each), &["lab"], Some(json!({ "unknown": 1 })), 400);
        admin.does((Method::DELETE, each), &["lab"], None, &format!("{action}.delete"));
        admin.fails((Method::DELETE, each), &["lab"], None, 404);
    }
}

fn plans(admin: &mut Admin<'_>) {
    let each = "/api/v1/actions/{name}";
    let text = |source: &str| Some(json!(source));
    admin.does((Method::PUT, each), &["greet"], text("script: 'true'"), "action.put");
    let (status, _) = admin.send(&Method::PUT, each, &["greet"], text("script: 'true'"));
    assert_eq!((status, admin.rows().len()), (StatusCode::OK, admin.seen), "the same document is no change");
    admin.does((Method::PATCH, each), &["greet"], Some(json!({ "enabled": false })), "action.disable");
    admin.does((Method::PATCH, each), &["greet"], Some(json!({ "enabled": true })), "action.enable");
    let spec = json!({ "steps": [{ "id": "a", "action": "greet" }] });
    let plan =
        admin.does((Method::POST, "/api/v1/plans"), &[], Some(json!({ "spec": spec })), "workflow.create");
    let nowhere = json!({ "planID": plan["id"], "cluster": "mars", "runner": "default" });
    admin.fails((Method::POST, "/api/v1/plan-executions"), &[], Some(json!({ "spec": nowhere })), 400);
    let (cancel, unknown) = ("/api/v1/plan-executions/{id}/cancel", "0".repeat(32));
    admin.fails((Method::PUT, cancel), &[&unknown], Some(json!({})), 404);
    admin.does((Method::DELETE, each), &["greet"], None, "action.delete");
    admin.fails((Method::DELETE, each), &["greet"], None, 404);
}

/// A link is in memory only; the session that it begins is a token.
fn session(admin: &mut Admin<'_>) {
    let link = admin.send(&Method::POST, "/api/v1/session/link", &[], None).1;
    assert_eq!(admin.rows().len(), admin.seen, "{link}");
    let code = link["path"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let preview = || (Method::POST, "/api/v1/session/preview");
    admin.fails(preview(), &[], Some(json!({ "code": code })), 200);
    let route = || (Method::POST, "/api/v1/session");
    admin.does(route(), &[], Some(json!({ "code": code })), "session.create");
    admin.fails(route(), &[], Some(json!({ "code": code })), 401);
    admin.fails(route(), &[], Some(json!({})), 400);
    admin.fails((Method::DELETE, "/api/v1/session"), &[], None, 204);
}

fn access(admin: &mut Admin<'_>) {
    let tokens = (Method::POST, "/api/v1/tokens");
    let made = admin.does(tokens, &[], Some(json!({ "name": "ci", "role": "viewer" })), "token.create");
    let revoke = || (Method::DELETE, "/api/v1/tokens/{id}");
    admin.does(revoke(), &[&id(&made)], None, "token.revoke");
    admin.fails(revoke(), &[&id(&made)], None, 404);
    session(admin);
    let secret = |method| (method, "/api/v1/secrets/{name}");
    for version in [1, 2] {
        admin.does(secret(Method::PUT), &["api"], Some(json!({ "value": "hunter22" })), "secret.set");
        assert_eq!(admin.rows()[0]["details"], json!({ "version": version }));
    }
    admin.fails(secret(Method::PUT), &["api"], Some(json!({ "value": "" })), 400);
    admin.does(secret(Method::DELETE), &["api"], None, "secret.delete");
    admin.fails(secret(Method::DELETE), &["api"], None, 404);
    admin.does((Method::POST, "/api/v1/webhook-secret/rotate"), &[], None, "webhook-secret.rotate");
    let group = |method| (method, "/api/v1/runner-groups/{name}");
    admin.does(group(Method::PUT), &["gpu"], Some(json!({ "cluster": "eu" })), "runner-group.put");
    admin.fails(group(Method::PUT), &["gpu"], Some(json!({ "cluster": "a b" })), 400);
    admin.does(group(Method::DELETE), &["gpu"], None, "runner-group.delete");
    admin.fails(group(Method::DELETE), &["gpu"], None, 404);
    let claim = Some(json!({ "group": "gpu", "slots": 1, "waitMs": 0 }));
    admin.does((Method::POST, "/api/v1/workers/claim"), &[], claim.clone(), "runner-group.create");
    let (status, _) = admin.send(&Method::POST, "/api/v1/workers/claim", &[], claim);
    assert_eq!((status, admin.rows().len()), (StatusCode::OK, admin.seen), "the group exists");
    let tenants = (Method::POST, "/api/v1/tenants");
    let made = id(&admin.does(tenants, &[], Some(json!({ "name": "Acme" })), "tenant.create"));
    let change = (Method::PATCH, "/api/v1/tenants/{id}");
    admin.does(change, &[&made], Some(json!({ "rateLimit": 9 })), "tenant.change");
}

fn executions(admin: &mut Admin<'_>, server: &Server) {
    let approval = json!({
        "name": "asks",
        "nodes": [
            { "id": "t", "type": "trigger", "config": {} },
            { "id": "ask", "type": "approval", "config": {} },
        ],
        "edges": [{ "id": "e", "source": "t", "target": "ask" }],
    });
    let workflow = server.define(&approval.to_string());
    let options = json!({ "webhookUrl": "http://127.0.0.1:9/hook" });
    let first = start(server, &workflow, options);
    until(server, &first, "paused");
    let post = |what: &str| (Method::POST, format!("/api/v1/executions/{{executionId}}/{what}"));
    let mut on = |(method, route): (Method, String), ids: &[&str], body, action: &str| {
        admin.does((method, &route), ids, body, action)
    };
    on(post("pause"), &[&first], Some(json!({ "reason": "lunch" })), "execution.pause");
    on(post("resume"), &[&first], None, "execution.resume");
    let context = (Method::PATCH, "/api/v1/executions/{executionId}/context".to_owned());
    on(context, &[&first], Some(json!({ "k": 1 })), "execution.patch");
    on(post("cancel"), &[&first], Some(json!({ "reason": "enough" })), "execution.cancel");
    let again = on(post("retry"), &[&first], None, "execution.retry");
    let again = again["executionId"].as_str().unwrap().to_owned();
    assert_eq!(admin.rows()[0]["details"], json!({ "executionId": again }));
    admin.fails((Method::POST, "/api/v1/executions/{executionId}/cancel"), &[&first], None, 409);
    admin.fails((Method::POST, "/api/v1/quarantine/{executionId}/release"), &[&first], None, 404);
    until(server, &again, "paused");
    let complete = || (Method::POST, "/api/v1/executions/{executionId}/actions/{actionId}/complete");
    let done = json!({ "outcome": "Succeeded" });
    admin.does(complete(), &[&again, "ask"], Some(done.clone()), "execution.complete");
    assert_eq!(admin.rows()[0]["details"], json!({ "action": "ask", "outcome": "Succeeded" }));
    let (status, _) = admin.send(&Method::POST, complete().1, &[&again, "ask"], Some(done));
    assert_eq!((status, admin.rows().len()), (StatusCode::OK, admin.seen), "the same again is no change");
    let delivery = loop {
        if let Some(first) =
            read_answer(server.get("/api/v1/webhook-deliveries")).1["deliveries"][0]["id"].as_str()
        {
            break first.to_owned();
        }
        std::thread::yield_now();
    };
    let redeliver = || (Method::POST, "/api/v1/webhook-deliveries/{deliveryId}/redeliver");
    admin.does(redeliver(), &[&delivery], None, "webhook-delivery.redeliver");
    admin.fails(redeliver(), &["msg_00000000000000000000000000000001_1"], None, 404);
}

fn schedules(admin: &mut Admin<'_>, server: &Server) {
    server.define("metadata: {name: breaks}\nworkflow:\n- {step: a, tool: {kind: shell, command: exit 3}}\n");
    server.define("name: waits\nnodes:\n- {id: ask, type: approval, config: {message: may it}}\n");
    let document = |workflow: &str| {
        let target = json!({ "kind": "workflow", "workflow_id": workflow });
        Some(
            json!({ "name": workflow, "schedule": { "kind": "cron", "expr": "0 0 1 1 *" }, "target": target }),
        )
    };
    let (all, each) = ("/api/v1/schedules", "/api/v1/schedules/{id}");
    let breaks = id(&admin.does((Method::POST, all), &[], document("breaks"), "schedule.create"));
    admin.fails((Method::POST, all), &[], document("breaks"), 409);
    admin.does((Method::PUT, each), &[&breaks], document("breaks"), "schedule.change");
    admin.does((Method::PATCH, each), &[&breaks], Some(json!({ "start_at": null })), "schedule.change");
    admin.does((Method::POST, "/api/v1/schedules/{id}/pause"), &[&breaks], None, "schedule.pause");
    admin.does((Method::POST, "/api/v1/schedules/{id}/resume"), &[&breaks], None, "schedule.resume");
    let trigger = || (Method::POST, "/api/v1/schedules/{id}/trigger");
    let reason = || Some(json!({ "reason": "test" }));
    for _ in 0..2 {
        admin.does(trigger(), &[&breaks], reason(), "schedule.trigger");
    }
    admin.fails(trigger(), &[&breaks], Some(json!({ "reason": " " })), 400);
    let letters = crate::rig::until("both runs have failed", || {
        let listed = read_answer(server.get("/api/v1/dead-letters")).1["items"].as_array().unwrap().clone();
        (listed.len() == 2).then_some(listed)
    });
    let (first, second) = (id(&letters[0]), id(&letters[1]));
    let redrive = || (Method::POST, "/api/v1/dead-letters/{id}/redrive");
    admin.does(redrive(), &[&first], None, "dead_letter.redrive");
    admin.fails(redrive(), &[&first], None, 409);
    admin.does((Method::POST, "/api/v1/dead-letters/{id}/discard"), &[&second], None, "dead_letter.discard");
    let backfill = || (Method::POST, "/api/v1/schedules/{id}/backfill");
    let past = |dry_run: bool| {
        Some(json!({ "from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z", "dry_run": dry_run }))
    };
    admin.fails(backfill(), &[&breaks], past(true), 200);
    admin.does(backfill(), &[&breaks], past(false), "schedule.backfill");
    let waits = id(&admin.does((Method::POST, all), &[], document("waits"), "schedule.create"));
    let runs: Vec<String> = (0..2)
        .map(|_| {
            let run = admin.does(trigger(), &[&waits], reason(), "schedule.trigger");
            run["run_id"].as_str().unwrap().to_owned()
        })
        .collect();
    let status = |run: &str| read_answer(server.get(&format!("/api/v1/runs/{run}"))).1["status"].clone();
    crate::rig::until("the first run is running", || (status(&runs[0]) == "running").then_some(()));
    let cancel = || (Method::POST, "/api/v1/runs/{id}/cancel");
    admin.does(cancel(), &[&runs[1]], None, "run.cancel");
    admin.does(cancel(), &[&runs[0]], None, "run.cancel");
    crate::rig::until("the first run is cancelled", || (status(&runs[0]) == "cancelled").then_some(()));
    admin.fails(cancel(), &[&runs[0]], None, 409);
    admin.does((Method::DELETE, each), &[&waits], None, "schedule.delete");
}

/// Versions of definitions, of secrets, and tokens on one side; what was written about them on the other.
fn ledger(server: &Server) -> ([usize; 3], [usize; 3]) {
    let list = |path: &str, key: &str| read_answer(server.get(path)).1[key].as_array().unwrap().clone();
    let versions = |rows: Vec<Value>| rows.iter().map(|row| row["version"].as_u64().unwrap() as usize).sum();
    let there = [
        versions(list("/api/v1/workflows?limit=100", "workflows")),
        versions(list("/api/v1/secrets", "secrets")),
        list("/api/v1/tokens", "tokens").len(),
    ];
    let (mut reported_of, mut query) = ([0; 3], "?limit=100".to_owned());
    loop {
        let page = read_answer(server.get(&format!("/api/v1/audit{query}"))).1;
        for row in page["entries"].as_array().unwrap() {
            match row["action"].as_str().unwrap() {
                "workflow.create" | "workflow.change" => reported_of[0] += 1,
                "secret.set" => reported_of[1] += 1,
                "token.create" => reported_of[2] += 1,
                other => panic!("unexpected action {other}"),
            }
        }
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { return (there, reported_of) };
        query = format!("?limit=100&cursor={cursor}");
    }
}

#[test]
fn a_server_killed_at_any_moment_leaves_no_change_without_its_actor() {
    let place = Place::new();
    for round in 0..6_u64 {
        let server = place.serve();
        let (url, token) = (server.url().to_owned(), server.token().to_owned());
        let busy: Vec<_> = (0..3)
            .map(|kind| {
                let (url, token) = (url.clone(), token.clone());
                std::thread::spawn(move || change_until_it_is_gone(kind, &url, &token))
            })
            .collect();
        // Somewhere in the middle of what they do, each round a little later.
        let enough = 5 + 7 * round as usize;
        while ledger(&server).0.iter().sum::<usize>() < enough {}
        drop(server);
        let done: usize = busy.into_iter().map(|thread| thread.join().unwrap()).sum();
        let server = place.serve();
        let (there, reported_of) = ledger(&server);
        assert_eq!(there, reported_of, "round {round}");
        assert!(there.iter().sum::<usize>() >= done, "what was answered is there");
    }
}

/// Sends changes until the server is gone; returns the number of those that were answered.
fn change_until_it_is_gone(kind: usize, url: &str, token: &str) -> usize {
    let client = reqwest::blocking::Client::new();
    let ask = |count: usize| match kind {
        0 => client
            .put(format!("{url}/api/v1/workflows?name=one"))
            .header("Content-Type", "text/yaml")
            .body(PLAYBOOK.replace("start", &format!("s{count}"))),
        1 => {
            client.put(format!("{url}/api/v1/secrets/one")).json(&json!({ "value": format!("value{count}") }))
        }
        _ => client.post(format!("{url}/api/v1/tokens")).json(&json!({ "name": "x", "role": "viewer" })),
    };
    let is_done = |count: &usize| {
        let sent = ask(*count).bearer_auth(token).send();
        sent.is_ok_and(|response| response.status().is_success())
    };
    (0..).take_while(is_done).count()
}
