//! Tokens, tenants, roles, limits, and the record of who did what.

use crate::executions::{start, until, waits_for};
use crate::rig::{self, Place, Server, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const PLAYBOOK: &str = "metadata: {name: hello}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n";

fn token(server: &Server, body: Value) -> (String, String) {
    let (status, made) = server.post("/api/v1/tokens", &body);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    (made["id"].as_str().unwrap().to_owned(), made["token"].as_str().unwrap().to_owned())
}

fn as_user(server: &Server, token: &str, method: Method, path: &str) -> StatusCode {
    server.bare(method, path).bearer_auth(token).send().unwrap().status()
}

#[test]
fn wfl_06_a_token_is_needed_and_must_be_good() {
    let place = Place::new();
    let server = place.serve();
    let check = |authorization: Option<&str>| {
        let request = server.bare(Method::GET, "/api/v1/workflows");
        let request =
            authorization.into_iter().fold(request, |request, value| request.header("Authorization", value));
        let response = request.send().unwrap();
        assert_eq!(response.headers().get("WWW-Authenticate").unwrap(), "Bearer");
        let (status, body) = read_answer(response);
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{authorization:?}");
        assert_eq!(body["error"]["code"], "AUTHENTICATION_FAILED");
    };
    let good = server.token().to_owned();
    let wrong = format!("Bearer wdl_{}", "A".repeat(good.len() - 4));
    for authorization in ["Bearer", "Bearer ", "Basic b3duZXI6", &good, &wrong, "Bearer a.b.c"] {
        check(Some(authorization));
    }
    check(None);
    assert_eq!(server.get("/api/v1/workflows").status(), StatusCode::OK);
}

#[test]
fn tokens_are_managed_by_commands() {
    let server_place = Place::new();
    let server = server_place.serve();
    let place = Place::new().at(&server);
    let made = place.windlass(&["tokens", "create", "ann", "--role", "viewer"]).expect(0);
    let made = made.says("is shown once");
    let (text, id) = (made.out.trim().to_owned(), made.err.split(' ').nth(1).expect("an id").to_owned());
    assert_eq!(as_user(&server, &text, Method::GET, "/api/v1/workflows"), StatusCode::OK);
    let listed = place.windlass(&["tokens", "list"]).expect(0).out;
    let line = listed.lines().find(|line| line.starts_with(&id)).expect("it is listed");
    assert!(line.contains("  ann") && line.contains("  viewer") && line.contains("used 0 s ago"), "{listed}");
    assert!(!listed.contains(&text), "{listed}");
    place.windlass(&["tokens", "list", "--json"]).expect(0).json();
    let as_ann = Place::new().variable("WINDLASS_URL", server.url()).variable("WINDLASS_TOKEN", &text);
    as_ann.windlass(&["tokens", "create", "eve", "--role", "owner"]).expect(2).says("PERMISSION_DENIED");
    place.windlass(&["tokens", "delete", &id]).expect(0).says("is revoked");
    assert_eq!(as_user(&server, &text, Method::GET, "/api/v1/workflows"), StatusCode::UNAUTHORIZED);
    place.windlass(&["tokens", "delete", "user_nothing"]).expect(2).says("there is no token `user_nothing`");
    as_ann.windlass(&["tokens", "list"]).expect(2).says("WINDLASS_TOKEN");
}

#[test]
fn tokens_are_named_expire_are_revoked_and_remember_their_last_use() {
    let place = Place::new();
    let server = place.serve();
    let (id, text) = token(&server, json!({ "name": "ci", "role": "developer" }));
    assert!(id.starts_with("user_") && text.starts_with("wdl_"), "{id} {text}");
    let view = || read_answer(server.get(&format!("/api/v1/tokens/{id}"))).1;
    assert_eq!((view()["name"].clone(), view()["lastUsedAt"].clone()), (json!("ci"), Value::Null));
    assert_eq!(as_user(&server, &text, Method::GET, "/api/v1/workflows"), StatusCode::OK);
    assert!(view()["lastUsedAt"].is_string());
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");

    let server = place.serve();
    let view = read_answer(server.get(&format!("/api/v1/tokens/{id}"))).1;
    assert!(view["lastUsedAt"].is_string(), "{view}");
    assert_eq!(as_user(&server, &text, Method::GET, "/api/v1/workflows"), StatusCode::OK);
    let revoke = || server.request(Method::DELETE, &format!("/api/v1/tokens/{id}")).send().unwrap().status();
    assert_eq!(revoke(), StatusCode::NO_CONTENT);
    assert_eq!(revoke(), StatusCode::NOT_FOUND);
    assert_eq!(as_user(&server, &text, Method::GET, "/api/v1/workflows"), StatusCode::UNAUTHORIZED);
    drop(server);
    let server = place.serve();
    assert_eq!(as_user(&server, &text, Method::GET, "/api/v1/workflows"), StatusCode::UNAUTHORIZED);

    let stale = json!({ "name": "old", "role": "viewer", "expiresAt": "2020-01-01T00:00:00Z" });
    let (status, body) = server.post("/api/v1/tokens", &stale);
    assert_eq!(
        (status, &body["error"]["details"][0]["path"]),
        (StatusCode::BAD_REQUEST, &json!("expiresAt"))
    );
}

#[test]
fn roles_have_the_permissions_of_their_table_and_grant_no_more_than_their_own() {
    let place = Place::new();
    let server = place.serve();
    let id = server.define(PLAYBOOK);
    let path = format!("/api/v1/workflows/{id}");
    // View, edit, delete of something that is not there, administer.
    let table = [
        ("viewer", [true, false, false, false]),
        ("member", [true, false, false, false]),
        ("developer", [true, true, false, false]),
        ("admin", [true, true, true, true]),
        ("owner", [true, true, true, true]),
    ];
    for (role, expected) in table {
        let (_, text) = token(&server, json!({ "name": role, "role": role }));
        let edit = server
            .bare(Method::PUT, &path)
            .bearer_auth(&text)
            .header("Content-Type", "text/yaml")
            .body(PLAYBOOK);
        let missing = format!("/api/v1/workflows/{}", "0".repeat(32));
        let answers = [
            as_user(&server, &text, Method::GET, &path),
            edit.send().unwrap().status(),
            as_user(&server, &text, Method::DELETE, &missing),
            as_user(&server, &text, Method::GET, "/api/v1/audit"),
        ];
        assert_eq!(answers.map(|status| status != StatusCode::FORBIDDEN), expected, "{role}: {answers:?}");
    }
    let (_, admin) = token(&server, json!({ "name": "a", "role": "admin" }));
    let asked = json!({ "name": "more", "role": "owner" });
    let response =
        server.bare(Method::POST, "/api/v1/tokens").bearer_auth(&admin).json(&asked).send().unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let owners = read_answer(server.get("/api/v1/tokens")).1;
    let owner =
        owners["tokens"].as_array().unwrap().iter().find(|token| token["name"] == "owner").unwrap().clone();
    let path = format!("/api/v1/tokens/{}", owner["id"].as_str().unwrap());
    assert_eq!(as_user(&server, &admin, Method::DELETE, &path), StatusCode::FORBIDDEN);
}

#[test]
fn wfl_06_the_tenant_header_is_for_those_who_run_the_server() {
    let place = Place::new();
    let server = place.serve();
    let (_, made) = server.post("/api/v1/tenants", &json!({ "name": "Acme" }));
    let tenant = made["id"].as_str().unwrap().to_owned();
    let (_, theirs) = token(&server, json!({ "name": "ann", "role": "owner", "tenantId": tenant }));
    let (_, developer) = token(&server, json!({ "name": "dev", "role": "developer" }));
    let list = |token: &str, header: Option<&str>| {
        let request = server.bare(Method::GET, "/api/v1/workflows").bearer_auth(token);
        let request =
            header.into_iter().fold(request, |request, tenant| request.header("X-Tenant-ID", tenant));
        let (status, body) = read_answer(request.send().unwrap());
        (status.as_u16(), body["workflows"].as_array().map_or(0, Vec::len))
    };
    let owner = server.token();
    server.define(PLAYBOOK);
    assert_eq!(list(owner, None), (200, 1));
    assert_eq!(list(owner, Some("default")), (200, 1));
    assert_eq!(list(owner, Some(&tenant)), (200, 0));
    assert_eq!(list(owner, Some("tnt_nowhere")), (404, 0));
    assert_eq!(list(&theirs, None), (200, 0));
    assert_eq!(list(&theirs, Some(&tenant)), (200, 0), "their own");
    assert_eq!(list(&theirs, Some("default")), (403, 0));
    assert_eq!(list(&theirs, Some("tnt_nowhere")), (403, 0));
    assert_eq!(list(&developer, Some(&tenant)), (403, 0));
}

#[test]
fn a_tenants_limit_on_requests_is_reported_with_when_to_come_back() {
    let place = Place::new();
    let server = place.serve();
    let (_, made) = server.post("/api/v1/tenants", &json!({ "name": "Busy" }));
    let id = made["id"].as_str().unwrap();
    let (_, theirs) = token(&server, json!({ "name": "ann", "role": "owner", "tenantId": id }));
    let change = json!({ "rateLimit": 1, "rateBurst": 2 });
    let path = format!("/api/v1/tenants/{id}");
    let response = server.request(Method::PATCH, &path).json(&change).send().unwrap();
    let (status, changed) = read_answer(response);
    assert_eq!((status, &changed["limits"]["rateLimit"]), (StatusCode::OK, &json!(1)), "{changed}");
    let ask = || server.bare(Method::GET, "/api/v1/workflows").bearer_auth(&theirs).send().unwrap();
    // However slowly this runs, a third request within the same second is refused at last.
    let refused = (0..1_000).map(|_| ask()).find(|response| response.status() != StatusCode::OK).unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["Retry-After"], "1");
    assert_eq!(read_answer(refused).1["error"]["code"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(server.get("/api/v1/workflows").status(), StatusCode::OK, "the limit is theirs alone");
    // A tenant cannot change its own limits.
    let own = server.request(Method::PATCH, &path).json(&json!({ "rateLimit": null })).send().unwrap();
    assert_eq!(own.status(), StatusCode::OK);
    let response = server.bare(Method::PATCH, &path).bearer_auth(&theirs).json(&change).send().unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
}

#[test]
fn who_did_what_is_listed_page_by_page() {
    let place = Place::new();
    let server = place.serve();
    let id = server.define(PLAYBOOK);
    let (user, _) = token(&server, json!({ "name": "ci", "role": "viewer" }));
    let patch = server
        .request(Method::PATCH, &format!("/api/v1/workflows/{id}"))
        .json(&json!({ "status": "paused" }));
    assert_eq!(patch.send().unwrap().status(), StatusCode::OK);
    let page = |query: &str| read_answer(server.get(&format!("/api/v1/audit{query}"))).1;
    let actions = |page: &Value| -> Vec<String> {
        let entries = page["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["action"].as_str().unwrap().to_owned()).collect()
    };
    let all = page("");
    assert_eq!(actions(&all), ["workflow.status", "token.create", "workflow.create", "token.create"]);
    assert_eq!(all["entries"][0]["target"], id);
    assert_eq!(actions(&page(&format!("?target={user}"))), ["token.create"]);
    assert_eq!(actions(&page("?action=workflow.create")), ["workflow.create"]);
    assert_eq!(actions(&page("?until=2020-01-01T00:00:00Z")), Vec::<String>::new());
    let (mut seen, mut query) = (Vec::new(), "?limit=3".to_owned());
    loop {
        let page = page(&query);
        seen.extend(actions(&page));
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
        query = format!("?limit=3&cursor={cursor}");
    }
    assert_eq!(seen, actions(&all));
}

#[test]
fn the_webhook_secret_is_made_once_and_renewed_on_demand() {
    let place = Place::new();
    let server = place.serve();
    let get = |server: &Server| read_answer(server.get("/api/v1/webhook-secret")).1;
    let first = get(&server);
    assert!(first["secret"].as_str().unwrap().starts_with("whsec_"), "{first}");
    assert_eq!(get(&server), first);
    drop(server);
    let server = place.serve();
    assert_eq!(get(&server), first, "it stays");
    let rotated =
        read_answer(server.request(Method::POST, "/api/v1/webhook-secret/rotate").send().unwrap()).1;
    assert_ne!(rotated["secret"], first["secret"]);
    assert!(rotated["previousUntil"].is_string());
    assert_eq!(get(&server), rotated);
    assert_eq!(
        read_answer(server.get("/api/v1/secrets")).1,
        json!({ "secrets": [] }),
        "it is not among the users' secrets"
    );
}

#[test]
fn a_tenants_limit_on_open_executions_holds_until_one_ends() {
    let place = Place::new();
    let server = place.serve();
    let go = place.data().join("go");
    let workflow = server.define(&waits_for(&go));
    let limit = |open: u32| {
        let request = server.request(Method::PATCH, "/api/v1/tenants/default");
        let response = request.json(&json!({ "openExecutions": open })).send().unwrap();
        assert_eq!(response.status(), StatusCode::OK);
    };
    limit(2);
    let first = start(&server, &workflow, json!({}));
    let second = start(&server, &workflow, json!({}));
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let refused = server.request(Method::POST, &path).json(&json!({})).send().unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("Retry-After"));
    assert!(read_answer(refused).1["error"]["message"].as_str().unwrap().contains("2 executions"));
    std::fs::write(&go, "").unwrap();
    until(&server, &first, "completed");
    until(&server, &second, "completed");
    start(&server, &workflow, json!({}));
    limit(0);
    for _ in 0..3 {
        start(&server, &workflow, json!({}));
    }
}

#[test]
fn a_tenants_slots_are_limited_and_its_work_waits_until_they_are_not() {
    let place = Place::new().with(&["--slots", "4", "--tenant-slots", "1"]);
    let server = place.serve();
    let go = place.data().join("go");
    let workflow = server.define(&waits_for(&go));
    let figure = |server: &Server, name: &str| -> u32 {
        let metrics = server.get("/metrics").text().unwrap();
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    // The running step holds its slot until the file exists, so the others continue to wait.
    let at_work_and_queued = |server: &Server| {
        (figure(server, "windlass_steps_in_flight"), figure(server, "windlass_queue_depth"))
    };
    let come_to = |server: &Server, expected: (u32, u32)| {
        while at_work_and_queued(server) != expected {
            assert!(at_work_and_queued(server).0 <= expected.0, "more than the tenant may have");
        }
    };
    let ids: Vec<String> = (0..3).map(|_| start(&server, &workflow, json!({}))).collect();
    come_to(&server, (1, 2));
    let change = server.request(Method::PATCH, "/api/v1/tenants/default").json(&json!({ "slots": 2 }));
    let (status, changed) = read_answer(change.send().unwrap());
    assert_eq!((status, &changed["limits"]["slots"]), (StatusCode::OK, &json!(2)));
    come_to(&server, (2, 1));
    drop(server);
    // The next process reads the tenant's own limit before it dispatches work.
    let server = place.serve();
    come_to(&server, (2, 1));
    std::fs::write(&go, "").unwrap();
    ids.iter().for_each(|id| drop(until(&server, id, "completed")));
}

#[test]
fn an_open_request_is_finished_before_the_server_ends() {
    let place = Place::new();
    let server = place.serve();
    let go = place.data().join("go");
    let workflow = server.define(&waits_for(&go));
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let (url, token) = (format!("{}{path}", server.url()), server.token().to_owned());
    let waiting = std::thread::spawn(move || {
        let client = reqwest::blocking::Client::new();
        let body = json!({ "options": { "async": false } });
        client.post(url).bearer_auth(token).json(&body).send().map(|response| response.status())
    });
    let open = || read_answer(server.get(&format!("/api/v1/workflows/{workflow}/executions"))).1;
    let id =
        rig::until("it is listed", || open()["executions"][0]["executionId"].as_str().map(str::to_owned));
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    // It is answered one way or the other, not cut off.
    waiting.join().unwrap().unwrap();
    std::fs::write(&go, "").unwrap();
    let server = place.serve();
    until(&server, &id, "completed");
}
