//! Error bodies of the API, compared with `refusals.txt`. After a deliberate change of a message, run the test with
//! `UPDATE_EXPECT=1` and review the difference.

use crate::executions::{TWO, finish, start, until_node, waits_for};
use crate::rig::{Place, Server, read_answer};
use expect_test::expect_file;
use reqwest::Method;
use reqwest::blocking::RequestBuilder;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Collects one paragraph per refused request.
struct Transcript<'s> {
    server: &'s Server,
    text: String,
    /// Strings that differ from run to run, and the words that replace them.
    replaced: Vec<(String, &'static str)>,
}

impl Transcript<'_> {
    fn send(&mut self, title: &str, request: RequestBuilder) {
        let (status, body) = read_answer(request.send().unwrap());
        assert!(!status.is_success(), "{title}: {body}");
        let body = serde_json::to_string_pretty(&body["error"]).unwrap();
        let mut paragraph = format!("# {title}\n{} {body}\n\n", status.as_u16());
        for (found, word) in &self.replaced {
            paragraph = paragraph.replace(found, word);
        }
        self.text.write_str(&paragraph).unwrap();
    }

    fn json(&mut self, title: &str, method: Method, path: &str, body: &Value) {
        let request = self.server.request(method, path).json(body);
        self.send(title, request);
    }

    fn get(&mut self, title: &str, path: &str) {
        let request = self.server.request(Method::GET, path);
        self.send(title, request);
    }

    fn raw(&mut self, title: &str, kind: &str, body: impl Into<Vec<u8>>) {
        let request = self.server.request(Method::POST, "/api/v1/tokens").header("Content-Type", kind);
        self.send(title, request.body(body.into()));
    }
}

fn token(server: &Server, role: &str) -> (String, String) {
    let (_, made) = server.post("/api/v1/tokens", &json!({ "name": role, "role": role }));
    (made["id"].as_str().unwrap().to_owned(), made["token"].as_str().unwrap().to_owned())
}

const APPROVAL: &str = r#"{"name": "approval", "nodes": [
    {"id": "t", "type": "trigger", "name": "Start", "config": {}},
    {"id": "ask", "type": "approval", "name": "Ask", "config": {"approvers": ["user_ann"]}}],
  "edges": [{"source": "t", "target": "ask"}]}"#;

#[test]
fn refused_requests_have_the_error_bodies_of_the_snapshot() {
    let place = Place::new().with(&["--body-limit", "64KiB"]);
    let server = place.serve();
    let workflow = server.define(TWO);
    let ended = finish(&server, &workflow, json!({}))["executionId"].as_str().unwrap().to_owned();
    let waiting = server.define(&waits_for(&place.data().join("never")));
    let running = start(&server, &waiting, json!({}));
    until_node(&server, &running, "wait", "running");
    let inactive = server.define(&TWO.replace("name: two", "name: inactive"));
    let (viewer_id, viewer) = token(&server, "viewer");
    let (revoked_id, revoked) = token(&server, "member");
    server.request(Method::DELETE, &format!("/api/v1/tokens/{revoked_id}")).send().unwrap();
    let replaced = vec![
        (ended.clone(), "ENDED"),
        (running.clone(), "RUNNING"),
        (workflow.clone(), "WORKFLOW"),
        (inactive.clone(), "INACTIVE"),
        (viewer_id, "VIEWER"),
        (ended.trim_start_matches("exec_").to_owned(), "ENDED"),
        (running.trim_start_matches("exec_").to_owned(), "RUNNING"),
    ];
    let mut all = Transcript { server: &server, text: String::new(), replaced };
    refuse_callers(&mut all, &viewer, &revoked);
    refuse_bodies(&mut all);
    refuse_fields(&mut all, &workflow);
    refuse_executions(&mut all, &workflow, &ended, &running);
    refuse_workflows(&mut all, &inactive);
    refuse_approvals(&mut all);
    expect_file!["./refusals.txt"].assert_eq(all.text.trim_end());
}

fn refuse_callers(all: &mut Transcript<'_>, viewer: &str, revoked: &str) {
    let server = all.server;
    let bare = |method, path: &str| server.bare(method, path);
    all.send("no token", bare(Method::GET, "/api/v1/workflows"));
    all.send("another scheme", bare(Method::GET, "/api/v1/workflows").header("Authorization", "Basic eDp5"));
    all.send("revoked token", bare(Method::GET, "/api/v1/workflows").bearer_auth(revoked));
    all.send("unknown token", bare(Method::GET, "/api/v1/workflows").bearer_auth("wdl_x"));
    let secret = bare(Method::PUT, "/api/v1/secrets/a").bearer_auth(viewer);
    all.send("wrong role", secret.json(&json!({ "value": "long-enough" })));
    all.send("not an operator", bare(Method::GET, "/api/v1/tenants").bearer_auth(viewer));
    let other = bare(Method::GET, "/api/v1/workflows").bearer_auth(viewer).header("X-Tenant-ID", "tnt_other");
    all.send("tenant header of a viewer", other);
    let missing = server.request(Method::GET, "/api/v1/workflows").header("X-Tenant-ID", "tnt_none");
    all.send("tenant header of an unknown tenant", missing);
}

fn refuse_bodies(all: &mut Transcript<'_>) {
    all.raw("broken JSON", "application/json", "{");
    all.raw("JSON too deep", "application/json", vec![b'['; 60_000]);
    all.raw("body too large", "application/json", vec![b' '; 70_000]);
    all.raw("wrong media type", "text/plain", "{}");
    let untyped = all.server.request(Method::POST, "/api/v1/tokens").body("{}");
    all.send("no media type", untyped);
    all.get("unknown route", "/api/v1/nothing");
    all.json("wrong method", Method::DELETE, "/api/v1/workflows", &json!({}));
}

fn refuse_fields(all: &mut Transcript<'_>, workflow: &str) {
    let tokens = "/api/v1/tokens";
    let mut post = |title: &str, body: Value| all.json(title, Method::POST, tokens, &body);
    post("unknown field", json!({ "name": "ci", "role": "viewer", "rank": 1 }));
    post("wrong type", json!({ "name": 7, "role": "viewer" }));
    post("missing field", json!({ "name": "ci" }));
    post("unknown role", json!({ "name": "ci", "role": "king" }));
    post("empty name", json!({ "name": " ", "role": "viewer" }));
    post("name with a control character", json!({ "name": "a\nb", "role": "viewer" }));
    post("bad time", json!({ "name": "ci", "role": "viewer", "expiresAt": "tomorrow" }));
    post(
        "expired from the start",
        json!({ "name": "ci", "role": "viewer", "expiresAt": "2020-01-01T00:00:00Z" }),
    );
    post("token of an unknown tenant", json!({ "name": "ci", "role": "viewer", "tenantId": "tnt_none" }));
    all.get("unknown token id", "/api/v1/tokens/user_none");
    let mut patch =
        |title: &str, body: Value| all.json(title, Method::PATCH, "/api/v1/tenants/default", &body);
    patch("negative limit of a tenant", json!({ "rateLimit": -1 }));
    patch("too large a limit of a tenant", json!({ "rateLimit": 4_000_000_000_u32 }));
    patch("unknown limit of a tenant", json!({ "speedLimit": 1 }));
    all.get("unknown tenant", "/api/v1/tenants/tnt_none");
    let mut put = |title: &str, name: &str, value: &str| {
        all.json(title, Method::PUT, &format!("/api/v1/secrets/{name}"), &json!({ "value": value }));
    };
    put("reserved secret name", ".webhook", "long-enough");
    put("secret name with a space", "a%20b", "long-enough");
    put("short secret", "a", "abc");
    all.json("unknown secret", Method::DELETE, "/api/v1/secrets/none", &json!({}));
    all.get("limit of a page", "/api/v1/audit?limit=0");
    all.get("limit that is no number", "/api/v1/audit?limit=many");
    all.get("bad cursor", "/api/v1/audit?cursor=abc");
    all.get("cursor of another list", &format!("/api/v1/workflows/{workflow}/executions?cursor=abc"));
    all.get("unknown parameter", "/api/v1/audit?colour=red");
    all.get("bad time in a query", "/api/v1/audit?since=yesterday");
    all.get("bad state of deliveries", "/api/v1/webhook-deliveries?status=lost");
    all.json("unknown delivery", Method::POST, "/api/v1/webhook-deliveries/msg_x/redeliver", &json!({}));
    all.get("unknown node type", "/api/v1/nodes/types/none/schema");
    all.get("unknown dialect of a schema", "/api/v1/schemas/none");
    let hook = all.server.bare(Method::POST, "/hooks/none");
    all.send("unknown hook", hook.json(&json!({})));
}

fn refuse_executions(all: &mut Transcript<'_>, workflow: &str, ended: &str, running: &str) {
    let of = |id: &str, rest: &str| format!("/api/v1/executions/{id}{rest}");
    all.get("malformed execution id", &of("42", ""));
    all.get("unknown execution", &of(&format!("exec_{}", "0".repeat(32)), ""));
    all.get("malformed artifact", &of(ended, "/artifacts/sha256:1"));
    let mut post = |title: &str, id: &str, rest: &str, body: Value| {
        all.json(title, Method::POST, &of(id, rest), &body);
    };
    post("cancel of an ended execution", ended, "/cancel", json!({}));
    post("too long a reason", running, "/cancel", json!({ "reason": "x".repeat(2_001) }));
    post("pause of an ended execution", ended, "/pause", json!({}));
    post("resume of a running execution", running, "/resume", json!({}));
    post("retry of a running execution", running, "/retry", json!({}));
    post("retry of a completed execution", ended, "/retry", json!({}));
    post("retry from an unknown node", ended, "/retry", json!({ "fromNode": "none" }));
    post(
        "completion of an unknown action",
        running,
        "/actions/none/complete",
        json!({ "outcome": "Succeeded" }),
    );
    post(
        "completion of an action without a person",
        running,
        "/actions/wait/complete",
        json!({ "outcome": "Failed" }),
    );
    all.json(
        "context patch of an ended execution",
        Method::PATCH,
        &of(ended, "/context"),
        &json!({ "a": 1 }),
    );
    all.json("context patch that is a list", Method::PATCH, &of(ended, "/context"), &json!([1]));
    let release = format!("/api/v1/quarantine/{running}/release");
    all.json("release of an execution that is not quarantined", Method::POST, &release, &json!({}));
    let execute = format!("/api/v1/workflows/{workflow}/execute");
    let long = all.server.request(Method::POST, &execute).header("X-Idempotency-Key", "k".repeat(256));
    all.send("too long an idempotency key", long.json(&json!({})));
    all.server
        .request(Method::POST, &execute)
        .header("X-Idempotency-Key", "k")
        .json(&json!({}))
        .send()
        .unwrap();
    let other = all.server.request(Method::POST, &execute).header("X-Idempotency-Key", "k");
    all.send("idempotency key of another request", other.json(&json!({ "inputs": { "n": 1 } })));
}

fn refuse_workflows(all: &mut Transcript<'_>, inactive: &str) {
    all.get("unknown workflow", &format!("/api/v1/workflows/{}", "0".repeat(32)));
    let path = format!("/api/v1/workflows/{inactive}");
    all.server.request(Method::PATCH, &path).json(&json!({ "status": "archived" })).send().unwrap();
    all.json("start of an inactive workflow", Method::POST, &format!("{path}/execute"), &json!({}));
    let yaml = all.server.request(Method::POST, "/api/v1/workflows").header("Content-Type", "text/yaml");
    all.send("no definition", yaml.body("a: b"));
}

fn refuse_approvals(all: &mut Transcript<'_>) {
    let server = all.server;
    let workflow = server.define(APPROVAL);
    let id = finish(server, &workflow, json!({}))["executionId"].as_str().unwrap().to_owned();
    all.replaced.push((id.clone(), "APPROVAL"));
    let path = format!("/api/v1/executions/{id}/actions/ask/complete");
    let mut post = |title: &str, body: Value| all.json(title, Method::POST, &path, &body);
    post("unknown outcome", json!({ "outcome": "Maybe" }));
    post("another actor", json!({ "outcome": "Succeeded", "actorUserId": "user_other" }));
    post("too long notes", json!({ "outcome": "Succeeded", "notes": "x".repeat(10_001) }));
    post("empty evidence", json!({ "outcome": "Succeeded", "evidence": [""] }));
    let (_, member) = token(server, "member");
    let request = server.bare(Method::POST, &path).bearer_auth(&member);
    all.send("answer of another person", request.json(&json!({ "outcome": "Succeeded" })));
}
