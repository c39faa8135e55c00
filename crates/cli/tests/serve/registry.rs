//! Objects that plans refer to: clusters, sandboxes, route groups.

use crate::rig::{Place, Server, read_answer};
use reqwest::Method;
use serde_json::{Value, json};

fn get(server: &Server, path: &str) -> (u16, Value) {
    let (status, answer) = read_answer(server.get(path));
    (status.as_u16(), answer)
}

fn put(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    let (status, answer) = read_answer(server.request(Method::PUT, path).json(body).send().unwrap());
    (status.as_u16(), answer)
}

fn delete(server: &Server, path: &str) -> u16 {
    server.request(Method::DELETE, path).send().unwrap().status().as_u16()
}

fn names(listed: &Value) -> Vec<&str> {
    listed["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

/// The wrong fields of a refused request.
fn paths(refused: &Value) -> Vec<&str> {
    let details = refused["error"]["details"].as_array().unwrap();
    details.iter().map(|detail| detail["path"].as_str().unwrap()).collect()
}

#[test]
fn sandboxes_and_route_groups_are_registered_changed_and_deleted() {
    let place = Place::new();
    let server = place.serve();
    for noun in ["sandboxes", "route-groups"] {
        let path = format!("/api/v1/{noun}/pr-7");
        assert_eq!(get(&server, &path).0, 404);
        let (status, made) = put(&server, &path, &json!({ "cluster": "local" }));
        assert_eq!(
            (status, &made["ready"], &made["cluster"]),
            (200, &json!(false), &json!("local")),
            "{made}"
        );
        let key = made["routingKey"].as_str().unwrap().to_owned();
        assert_eq!(key.len(), 20, "{made}");
        let (_, ready) = put(&server, &path, &json!({ "cluster": "local", "ready": true }));
        assert_eq!((&ready["ready"], &ready["routingKey"]), (&json!(true), &json!(key)), "the key is kept");
        assert_eq!(ready["createdAt"], made["createdAt"]);
        let (_, keyed) = put(&server, &path, &json!({ "routingKey": "mine", "ready": true }));
        assert_eq!((&keyed["routingKey"], &keyed["cluster"]), (&json!("mine"), &Value::Null), "{keyed}");
        assert_eq!(get(&server, &path), (200, keyed));
        put(&server, &format!("/api/v1/{noun}/a"), &json!({}));
        put(&server, &format!("/api/v1/{noun}/z"), &json!({}));
        let (_, first) = get(&server, &format!("/api/v1/{noun}?limit=2"));
        assert_eq!(names(&first), ["a", "pr-7"]);
        let cursor = first["nextCursor"].as_str().unwrap();
        let (_, last) = get(&server, &format!("/api/v1/{noun}?limit=2&cursor={cursor}"));
        assert_eq!((names(&last), &last["nextCursor"]), (vec!["z"], &Value::Null));
        assert_eq!((delete(&server, &path), delete(&server, &path)), (204, 404));
    }
    let (_, audit) = get(&server, "/api/v1/audit?target=pr-7");
    let actions: Vec<&str> =
        audit["entries"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions[..4], ["route-group.delete", "route-group.put", "route-group.put", "route-group.put"]);
}

#[test]
fn wrong_states_of_routing_targets_are_refused_by_field() {
    let place = Place::new();
    let server = place.serve();
    let cases = [
        (json!({ "cluster": "a b" }), "cluster"),
        (json!({ "routingKey": "" }), "routingKey"),
        (json!({ "routingKey": "a\r\nX-Evil: 1" }), "routingKey"),
        (json!({ "routingKey": "x".repeat(257) }), "routingKey"),
        (json!({ "ready": "yes" }), "ready"),
        (json!({ "readyUrl": "file:///etc/passwd" }), "readyUrl"),
        (json!({ "readyUrl": "nowhere" }), "readyUrl"),
        (json!({ "readyUrl": "http://169.254.169.254/latest" }), "readyUrl"),
        (json!({ "readyUrl": "http://127.0.0.1:1/" }), "readyUrl"),
        (json!({ "readyUrl": format!("http://example.com/{}", "x".repeat(2_100)) }), "readyUrl"),
        (json!({ "status": {} }), "status"),
    ];
    for (state, path) in cases {
        let (status, refused) = put(&server, "/api/v1/sandboxes/s", &state);
        assert_eq!((status, paths(&refused)), (400, vec![path]), "{state}: {refused}");
    }
    let (status, refused) = put(&server, "/api/v1/sandboxes/a%20b", &json!({}));
    assert_eq!((status, paths(&refused)), (400, vec!["name"]), "{refused}");
    assert_eq!(get(&server, "/api/v1/sandboxes").1["items"], json!([]), "nothing was registered");
}

#[test]
fn every_tenant_has_the_cluster_local_and_registers_others() {
    let place = Place::new();
    let server = place.serve();
    assert_eq!(names(&get(&server, "/api/v1/clusters").1), ["local"]);
    assert_eq!(put(&server, "/api/v1/clusters/eu", &json!({})).1["ready"], json!(true));
    let bare = server.request(Method::PUT, "/api/v1/clusters/us").send().unwrap();
    assert_eq!(bare.status().as_u16(), 200, "a body is not needed");
    assert_eq!(put(&server, "/api/v1/clusters/us", &json!({ "ready": false })).1["ready"], json!(false));
    assert_eq!(names(&get(&server, "/api/v1/clusters").1), ["local", "eu", "us"]);
    assert_eq!(get(&server, "/api/v1/clusters/local").1["ready"], json!(true));
    assert_eq!(put(&server, "/api/v1/clusters/local", &json!({ "ready": false })).0, 409);
    assert_eq!(delete(&server, "/api/v1/clusters/local"), 409);
    assert_eq!((delete(&server, "/api/v1/clusters/eu"), delete(&server, "/api/v1/clusters/eu")), (204, 404));
    let (status, refused) = put(&server, "/api/v1/clusters/x", &json!({ "routingKey": "k" }));
    assert_eq!((status, paths(&refused)), (400, vec!["routingKey"]));
}

#[test]
fn roles_decide_who_changes_what_plans_refer_to() {
    let place = Place::new();
    let server = place.serve();
    let token = |role: &str| {
        let (_, made) = server.post("/api/v1/tokens", &json!({ "name": role, "role": role }));
        made["token"].as_str().unwrap().to_owned()
    };
    let send = |role: &str, method: Method| {
        let request = server.bare(method, "/api/v1/sandboxes/s").bearer_auth(token(role));
        request.json(&json!({ "ready": true })).send().unwrap().status().as_u16()
    };
    let cases = [
        ("viewer", [403, 404, 403]),
        ("member", [403, 404, 403]),
        ("developer", [200, 200, 403]),
        ("admin", [200, 200, 204]),
        ("worker", [403, 403, 403]),
    ];
    for (role, expected) in cases {
        let found = [Method::PUT, Method::GET, Method::DELETE].map(|method| send(role, method));
        assert_eq!(found, expected, "{role}");
    }
}
