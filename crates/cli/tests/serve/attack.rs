//! One tenant against another, over every route there is: the OpenAPI document says which.

use crate::rig::{Place, Server, read_answer, until};
use crate::rows::{self, Rows};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

const PLAYBOOK: &str = "metadata: {name: hello}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n";

/// Things of the tenant `default`, by the part of a path that they follow.
struct Things(Vec<(&'static str, String)>);

impl Things {
    fn make(server: &Server) -> Things {
        let workflow = server.define(PLAYBOOK);
        let (_, token) = server.post("/api/v1/tokens", &json!({ "name": "ann", "role": "viewer" }));
        let secret =
            server.request(Method::PUT, "/api/v1/secrets/api-key").json(&json!({ "value": "hunter22" }));
        assert_eq!(secret.send().unwrap().status(), StatusCode::OK);
        let group = server.request(Method::PUT, "/api/v1/runner-groups/lab").json(&json!({}));
        assert_eq!(group.send().unwrap().status(), StatusCode::OK);
        for noun in ["clusters", "sandboxes", "route-groups"] {
            let put = server.request(Method::PUT, &format!("/api/v1/{noun}/lab")).json(&json!({}));
            assert_eq!(put.send().unwrap().status(), StatusCode::OK);
        }
        let plan = planned(server);
        let token = token["id"].as_str().unwrap().to_owned();
        let (execution, delivery) = executed(server, &workflow);
        let artifact = artifact(server, &execution);
        let named = [("versions", "1"), ("tenants", "default"), ("secrets", "api-key"), ("actions", "start")];
        let mut things: Vec<_> = named.map(|(place, id)| (place, id.to_owned())).into();
        things.extend([("workflows", workflow), ("tokens", token)]);
        things.extend(["quarantine", "plan-executions"].map(|noun| (noun, execution.clone())));
        let labs = ["runner-groups", "clusters", "sandboxes", "route-groups"];
        things.extend(labs.map(|noun| (noun, "lab".to_owned())));
        things.push(("values", value(server, &execution)));
        things.extend([("executions", execution), ("webhook-deliveries", delivery), ("artifacts", artifact)]);
        things.extend(scheduled(server));
        things.extend(plan);
        Things(things)
    }

    /// The path with an id in every place for one.
    fn in_path(&self, path: &str) -> String {
        let parts: Vec<&str> = path.split('/').collect();
        let filled = parts.iter().enumerate().map(|(place, part)| {
            if !part.starts_with('{') {
                return (*part).to_owned();
            }
            let before = parts[place - 1];
            let known = self.0.iter().find(|(name, _)| *name == before);
            known.unwrap_or_else(|| panic!("{path}: make something for `{before}` in this test")).1.clone()
        });
        filled.collect::<Vec<_>>().join("/")
    }
}

/// An execution that has ended, and an event of it that is not delivered.
fn executed(server: &Server, workflow: &str) -> (String, String) {
    let options = json!({ "async": false, "webhookUrl": "http://127.0.0.1:9/hook" });
    let body = json!({ "options": options, "inputs": { "large": "x".repeat(100_000) } });
    let (status, reported_of) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &body);
    assert_eq!(status, StatusCode::OK, "{reported_of}");
    let execution = reported_of["executionId"].as_str().unwrap().to_owned();
    let delivery = until("a delivery is listed", || {
        read_answer(server.get("/api/v1/webhook-deliveries")).1["deliveries"][0]["id"]
            .as_str()
            .map(str::to_owned)
    });
    (execution, delivery)
}

/// A plan, and an action with the name of a node.
fn planned(server: &Server) -> Vec<(&'static str, String)> {
    let action =
        server.request(Method::PUT, "/api/v1/actions/start").header("Content-Type", "application/yaml");
    assert_eq!(action.body("script: 'true'").send().unwrap().status(), StatusCode::OK);
    let spec = json!({ "steps": [{ "id": "start", "action": "start" }] });
    let (status, plan) = server.post("/api/v1/plans", &json!({ "spec": spec }));
    assert_eq!(status, StatusCode::CREATED, "{plan}");
    let (step, output) = ("start".to_owned(), "none".to_owned());
    vec![("plans", plan["id"].as_str().unwrap().to_owned()), ("steps", step), ("outputs", output)]
}

/// A schedule whose only run has failed.
fn scheduled(server: &Server) -> [(&'static str, String); 3] {
    let document = json!({ "name": "fails", "schedule": { "kind": "cron", "expr": "0 0 1 1 *" },
        "target": { "kind": "shell", "command": "false" } });
    let (status, schedule) = server.post("/api/v1/schedules", &document);
    assert_eq!(status, StatusCode::CREATED, "{schedule}");
    let id = schedule["id"].as_str().unwrap().to_owned();
    server.post(&format!("/api/v1/schedules/{id}/trigger"), &json!({ "reason": "test" }));
    let letter = until("a dead letter is listed", || {
        read_answer(server.get("/api/v1/dead-letters")).1["items"].get(0).cloned()
    });
    let text = |key: &str| letter[key].as_str().unwrap().to_owned();
    [("schedules", id), ("runs", text("run_id")), ("dead-letters", text("id"))]
}

/// Key of a large value of the execution, for its own tenant.
fn artifact(server: &Server, execution: &str) -> String {
    let events = read_answer(server.get(&format!("/api/v1/executions/{execution}/events"))).1.to_string();
    let at = events.find("sha256:").expect("a large value");
    let key = events[at..at + "sha256:".len() + 64].to_owned();
    assert_eq!(
        server.get(&format!("/api/v1/executions/{execution}/artifacts/{key}")).status(),
        StatusCode::OK
    );
    key
}

/// The address of a node's result, which the execution has for its own tenant.
fn value(server: &Server, execution: &str) -> String {
    let path = |address: &String| format!("/api/v1/executions/{execution}/values/{address}");
    let mut addresses = (1..100).map(|record| format!("{record}.0"));
    addresses.find(|address| server.get(&path(address)).status() == StatusCode::OK).expect("a value")
}

/// Paths whose last part is no id of a tenant. Artifacts of workers are found by a session and a unit in headers.
fn is_for_all(path: &str) -> bool {
    ["/api/v1/nodes/", "/api/v1/schemas/", "/api/v1/workers/artifacts/", "/hooks/"]
        .iter()
        .any(|place| path.starts_with(place))
}

/// The least that a schema takes.
fn least(schema: &Value, document: &Value) -> Value {
    if let Some(place) = schema["$ref"].as_str() {
        return least(document.pointer(place.trim_start_matches('#')).unwrap(), document);
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        let is_null = |one: &&Value| one["type"] != "null";
        if let Some(first) = schema[several].as_array().and_then(|all| all.iter().find(is_null)) {
            return least(first, document);
        }
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("string") if schema["format"] == "date-time" => json!("2100-01-01T00:00:00Z"),
        Some("string") => json!("xxxxxxxx"),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        _ => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let fields = required.iter().map(|name| {
                let name = name.as_str().unwrap();
                (name.to_owned(), least(&schema["properties"][name], document))
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

struct Attack<'s> {
    server: &'s Server,
    token: String,
    document: Value,
}

impl Attack<'_> {
    fn send(&self, method: &str, path: &str, operation: &Value) -> (StatusCode, Value) {
        let request = self.server.bare(method.to_uppercase().parse().unwrap(), path).bearer_auth(&self.token);
        let content = &operation["requestBody"]["content"];
        let response = if content.get("application/yaml").is_some() {
            request.header("Content-Type", "application/yaml").body(PLAYBOOK).send()
        } else if let Some(json) = content.get("application/json") {
            request.json(&least(&json["schema"], &self.document)).send()
        } else {
            request.send()
        };
        read_answer(response.unwrap())
    }
}

/// Everything but secrets, of which a tenant may have one of the same name, and webhooks, which are tried meanwhile.
fn others(place: &Place) -> Rows {
    let mut rows = rows::all(&place.data());
    rows.retain(|table, _| !["secrets", "tellers", "deliveries"].contains(&table.as_str()));
    rows
}

#[test]
fn wfl_06_another_tenants_things_are_not_there_on_any_route() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let things = Things::make(&server);
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Other" }));
    let (_, made) =
        server.post("/api/v1/tokens", &json!({ "name": "eve", "role": "owner", "tenantId": tenant["id"] }));
    let token = made["token"].as_str().unwrap().to_owned();
    let attack = Attack { server: &server, token, document: read_answer(server.get("/api/openapi.json")).1 };
    let before = others(&place);
    let mut tried = 0;
    for (path, item) in attack.document["paths"].as_object().unwrap() {
        if !path.contains('{') || is_for_all(path) || path.starts_with("/ws/") {
            continue;
        }
        for (method, operation) in item.as_object().unwrap() {
            // These have a name, not an id: a caller sets the one of their own tenant.
            if path.ends_with("/{name}") && method == "put" {
                continue;
            }
            let (status, body) = attack.send(method, &things.in_path(path), operation);
            assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}: {body}");
            assert_eq!(body["error"]["code"], "RESOURCE_NOT_FOUND", "{method} {path}");
            tried += 1;
        }
    }
    assert!(tried >= 25, "only {tried} routes were tried");
    assert_eq!(others(&place), before, "nothing was written");
}

#[test]
fn every_route_needs_a_token_but_those_for_machines() {
    let place = Place::new();
    let server = place.serve();
    let document = read_answer(server.get("/api/openapi.json")).1;
    let open = ["/healthz", "/readyz", "/metrics"];
    for (path, item) in document["paths"].as_object().unwrap() {
        if open.contains(&path.as_str()) || path.starts_with("/ws/") || path.starts_with("/hooks/") {
            continue;
        }
        for method in item.as_object().unwrap().keys() {
            // A browser sends the token in the body, or the code of a link.
            let is_sign_in = ["/api/v1/session", "/api/v1/session/preview"].contains(&path.as_str());
            if is_sign_in && method == "post" {
                continue;
            }
            let sent = path.replace(['{', '}'], "x");
            let response = server.bare(method.to_uppercase().parse().unwrap(), &sent).send().unwrap();
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{method} {path}");
        }
    }
}

#[test]
fn a_tenant_has_its_own_secrets() {
    let place = Place::new();
    let server = place.serve();
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Other" }));
    let id = tenant["id"].as_str().unwrap();
    let put = |tenant: Option<&str>, value: &str| {
        let request = server.request(Method::PUT, "/api/v1/secrets/api-key").json(&json!({ "value": value }));
        let request = tenant.into_iter().fold(request, |request, id| request.header("X-Tenant-ID", id));
        read_answer(request.send().unwrap()).1["version"].clone()
    };
    assert_eq!(put(None, "mine-mine"), 1);
    assert_eq!(put(Some(id), "theirs-theirs"), 1);
    assert_eq!(put(Some(id), "theirs-again"), 2);
    let list = read_answer(server.get("/api/v1/secrets")).1;
    assert_eq!(list["secrets"][0]["version"], 1, "{list}");
    let gone =
        server.request(Method::DELETE, "/api/v1/secrets/api-key").header("X-Tenant-ID", id).send().unwrap();
    assert_eq!(gone.status(), StatusCode::NO_CONTENT);
    assert_eq!(read_answer(server.get("/api/v1/secrets")).1, list);
    drop(server);
    for file in crate::rig::files(&place.data()) {
        let bytes = std::fs::read(&file).unwrap();
        for value in ["mine-mine", "theirs-theirs", "theirs-again"] {
            assert!(!bytes.windows(value.len()).any(|part| part == value.as_bytes()), "{}", file.display());
        }
    }
}

/// The same path with ids that do not exist.
fn missing(things: &Things, path: &str) -> String {
    let ids = things.0.iter().map(|(place, id)| {
        let id = match id.rsplit_once('_') {
            Some((kind, digits)) if digits.len() == 32 => format!("{kind}_{}", "0".repeat(32)),
            _ => "0".to_owned(),
        };
        (*place, id)
    });
    Things(ids.collect()).in_path(path)
}

/// Reports whether the role may use the route. Callers know their own tenant.
fn may(role: &str, method: &str, path: &str) -> bool {
    let is_administrative = ["tokens", "secrets"].iter().any(|noun| path.contains(noun));
    path.contains("tenants") || role == "viewer" && method == "get" && !is_administrative
}

#[test]
fn a_refused_role_does_not_learn_what_exists() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let things = Things::make(&server);
    let document = read_answer(server.get("/api/openapi.json")).1;
    let attacks = ["worker", "viewer"].map(|role| {
        let made = server.post("/api/v1/tokens", &json!({ "name": "eve", "role": role })).1;
        let token = made["token"].as_str().unwrap().to_owned();
        (role, Attack { server: &server, token, document: document.clone() })
    });
    let written = || {
        let mut rows = others(&place);
        // Refusals are audited.
        rows.retain(|table, _| !table.starts_with("audit"));
        rows
    };
    let (before, mut wrong) = (written(), Vec::new());
    for (path, item) in document["paths"].as_object().unwrap() {
        if !path.contains('{') || is_for_all(path) || path.starts_with("/ws/") {
            continue;
        }
        for (method, operation) in item.as_object().unwrap() {
            for (role, attack) in attacks.iter().filter(|(role, _)| !may(role, method, path)) {
                let existing = attack.send(method, &things.in_path(path), operation);
                let absent = attack.send(method, &missing(&things, path), operation);
                let is_refused = [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&existing.0);
                if !is_refused || absent.0 != existing.0 {
                    wrong.push(format!(
                        "{role}: {method} {path}: {existing:?}, and if it is absent: {absent:?}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let after = written();
    let changed: Vec<&String> = after.keys().filter(|table| after[*table] != before[*table]).collect();
    assert!(changed.is_empty(), "rows were written: {changed:?}");
}
