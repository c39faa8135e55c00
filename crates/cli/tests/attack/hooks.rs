//! Hooks: paths of other tenants, floods by strangers, credentials in what is stored.

use crate::rig::{Place, read_answer, until};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

fn hooked(name: &str, path: &str) -> String {
    let config = json!({ "triggerMode": "webhook", "webhookConfig": { "path": path, "requireAuth": false } });
    json!({ "name": name, "nodes": [{ "id": "t", "type": "trigger", "config": config }], "edges": [] })
        .to_string()
}

/// A request without a token.
fn knock(stage: &Stage, path: &str) -> (StatusCode, Value) {
    read_answer(stage.server.bare(Method::POST, path).json(&json!({})).send().unwrap())
}

fn put(stage: &Stage, token: &str, id: &Value, text: String) -> (StatusCode, Value) {
    let path = format!("/api/v1/workflows/{}", id.as_str().unwrap());
    let request = stage.server.bare(Method::PUT, &path).bearer_auth(token);
    read_answer(request.header("Content-Type", "application/json").body(text).send().unwrap())
}

#[test]
fn a_path_is_not_taken_over_by_an_older_workflow_of_another_tenant() {
    let stage = Stage::new();
    let developer = stage.token("developer");
    let (status, older) = stage.upload(&developer, &hooked("older", "mine"));
    assert_eq!(status, StatusCode::CREATED, "{older}");
    let victim = stage.server.define(&hooked("payments", "payments"));
    assert_eq!(knock(&stage, "/hooks/payments").1["workflowId"], json!(victim));
    // The workflow that is older than the victim's claims the path now.
    let (status, changed) = put(&stage, &developer, &older["id"], hooked("older", "payments"));
    assert_eq!(status, StatusCode::OK, "the namespace is their own, so nothing is revealed: {changed}");
    assert_eq!(knock(&stage, "/hooks/payments").1["workflowId"], json!(victim));
    assert_eq!(knock(&stage, "/hooks/default/payments").1["workflowId"], json!(victim));
    let theirs = format!("/hooks/{}/payments", stage.tenant);
    assert_eq!(knock(&stage, &theirs).1["workflowId"], older["id"]);
    // Also when the victim's workflow is gone.
    let deleted =
        stage.server.request(Method::DELETE, &format!("/api/v1/workflows/{victim}")).send().unwrap();
    assert!(deleted.status().is_success());
    assert_eq!(knock(&stage, "/hooks/payments").0, StatusCode::NOT_FOUND);
    // Nor is another tenant reached by its id with a token that is not of it.
    let (status, _) = stage.send(&developer, Method::POST, "/hooks/default/payments", &json!({}));
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, refused) = stage.upload(&developer, &hooked("forged", "default/payments"));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
}

#[test]
fn a_path_has_one_workflow_within_a_tenant_until_that_gives_it_up() {
    let stage = Stage::new();
    let developer = stage.token("developer");
    let (_, first) = stage.upload(&developer, &hooked("first", "p"));
    let (status, refused) = stage.upload(&developer, &hooked("second", "p"));
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    assert_eq!(refused["error"]["message"], "POST /hooks/p already starts the workflow `first`");
    let (_, second) = stage.upload(&developer, &hooked("second", "q"));
    assert_eq!(put(&stage, &developer, &second["id"], hooked("second", "p")).0, StatusCode::CONFLICT);
    let p = format!("/hooks/{}/p", stage.tenant);
    assert_eq!(knock(&stage, &p).1["workflowId"], first["id"]);
    // A copy does not take the path of its original.
    let copy = format!("/api/v1/workflows/{}/duplicate", first["id"].as_str().unwrap());
    let (status, copied) = stage.send(&developer, Method::POST, &copy, &json!({}));
    assert_eq!((status, &copied["warnings"][0]["code"]), (StatusCode::CREATED, &json!("W0247")), "{copied}");
    assert_eq!(knock(&stage, &p).1["workflowId"], first["id"]);
    assert_eq!(put(&stage, &developer, &first["id"], hooked("first", "elsewhere")).0, StatusCode::OK);
    assert_eq!(knock(&stage, &p).0, StatusCode::NOT_FOUND);
    assert_eq!(put(&stage, &developer, &second["id"], hooked("second", "p")).0, StatusCode::OK);
    assert_eq!(knock(&stage, &p).1["workflowId"], second["id"]);
}

#[test]
fn hooks_of_a_folder_without_claims_are_claimed_at_the_next_start() {
    let place = Place::new();
    let server = place.serve();
    let first = server.define(&hooked("first", "p"));
    server.define(&hooked("second", "q"));
    drop(server);
    // As an earlier version left it, where two workflows could have the same path.
    let store = rusqlite::Connection::open(place.data().join("windlass.db")).unwrap();
    let forget = "DELETE FROM hooks; INSERT INTO hooks_unread SELECT key FROM workflows; \
                  UPDATE definitions SET source = replace(source, '\"q\"', '\"p\"'), compiler = 0";
    store.execute_batch(forget).unwrap();
    drop(store);
    let stage = Stage::at(place);
    assert_eq!(knock(&stage, "/hooks/p").1["workflowId"], json!(first));
    let (_, said) = stage.server.stop();
    assert!(said.contains("POST /hooks/p of tenant default starts the oldest workflow"), "{said}");
}

#[test]
fn strangers_use_up_the_limits_of_a_hook_and_not_those_of_the_tenants_users() {
    let stage = Stage::new();
    let developer = stage.token("developer");
    for path in ["open", "other"] {
        assert_eq!(stage.upload(&developer, &hooked(path, path)).0, StatusCode::CREATED);
    }
    let limit = |change: Value| {
        let path = format!("/api/v1/tenants/{}", stage.tenant);
        let (status, changed) =
            read_answer(stage.server.request(Method::PATCH, &path).json(&change).send().unwrap());
        assert_eq!(status, StatusCode::OK, "{changed}");
    };
    let at = |path: &str| format!("/hooks/{}/{path}", stage.tenant);
    let flood = |path: &str| {
        until("a stranger is refused", || {
            let (status, refused) = knock(&stage, path);
            (status == StatusCode::TOO_MANY_REQUESTS).then_some(refused)
        })
    };
    limit(json!({ "hookRateLimit": 1 }));
    let refused = flood(&at("open"));
    assert!(refused["error"]["message"].as_str().unwrap().contains("the hook accepts 1"), "{refused}");
    assert_eq!(knock(&stage, &at("other")).0, StatusCode::ACCEPTED, "another hook has a limit of its own");
    let mine = stage.send(&developer, Method::POST, "/hooks/open", &json!({}));
    assert_eq!(mine.0, StatusCode::ACCEPTED, "a user of the tenant is no stranger: {}", mine.1);
    // The tenant's own limit holds for all of its hooks together.
    limit(json!({ "hookRateLimit": 0, "rateLimit": 1, "rateBurst": 1 }));
    let refused = flood(&at("other"));
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("the hooks of the tenant accept 1"),
        "{refused}"
    );
}

#[test]
fn credentials_in_the_headers_of_a_hook_are_kept_nowhere() {
    let stage = Stage::new();
    stage.server.define(&hooked("hooked", "p"));
    let mut request = stage.server.bare(Method::POST, "/hooks/p").json(&json!({}));
    for name in ["X-Gitlab-Token", "X-Auth-Token", "Api-Key", "X-API-Key", "Cookie", "X-Vault-Secret"] {
        request = request.header(name, "very-private");
    }
    let request = request.header("X-Hub-Signature-256", "sha256=0").header("X-Gitlab-Event", "Push");
    let (status, started) = read_answer(request.send().unwrap());
    assert_eq!(status, StatusCode::ACCEPTED, "{started}");
    let path = format!("/api/v1/executions/{}", started["executionId"].as_str().unwrap());
    let ended = until("it completes", || {
        let (_, seen) = read_answer(stage.server.get(&path));
        (seen["status"] == "completed").then_some(seen)
    });
    let headers = &ended["inputs"]["hook"]["headers"];
    assert_eq!(
        (&headers["x-hub-signature-256"], &headers["x-gitlab-event"]),
        (&json!("sha256=0"), &json!("Push"))
    );
    assert!(!ended.to_string().contains("very-private"), "{ended}");
    drop(stage.server);
    for file in crate::rig::files(&stage.place.data()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(12).any(|part| part == b"very-private"), "{}", file.display());
    }
}
