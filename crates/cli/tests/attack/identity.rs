//! JWTs that claim to be another identity.

use crate::rig::{Place, jwt, read_answer};
use reqwest::Method;
use serde_json::{Value, json};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn signed(header: &Value, subject: &str, role: &str) -> String {
    let claims = json!({ "sub": subject, "tenant": "default", "role": role, "exp": 4_000_000_000_i64,
        "iss": "https://id.example", "aud": "windlass" });
    jwt::sign(SECRET, header, &claims)
}

fn place() -> Place {
    let flags = ["--jwt-issuer", "https://id.example", "--jwt-audience", "windlass"];
    Place::new().variable("WINDLASS_JWT_SECRET", SECRET).with(&flags)
}

#[test]
fn a_subject_is_neither_a_role_nor_a_user_nor_the_server() {
    let place = place();
    let server = place.serve();
    let header = json!({ "alg": "HS256", "typ": "JWT" });
    let (_, made) = server.post("/api/v1/tokens", &json!({ "name": "boss", "role": "member" }));
    let boss = made["id"].as_str().unwrap();
    let answer = |approvers: &Value, subject: &str| {
        let node = json!({ "id": "ask", "type": "approval", "config": { "approvers": approvers } });
        let workflow = server.define(&json!({ "name": "asks", "nodes": [node], "edges": [] }).to_string());
        let path = format!("/api/v1/workflows/{workflow}/execute");
        let (_, asked) = server.post(&path, &json!({ "options": { "async": false } }));
        let path =
            format!("/api/v1/executions/{}/actions/ask/complete", asked["executionId"].as_str().unwrap());
        let token = signed(&header, subject, "member");
        let request =
            server.bare(Method::POST, &path).bearer_auth(token).json(&json!({ "outcome": "Succeeded" }));
        request.send().unwrap().status().as_u16()
    };
    for (approver, subject) in [("owner", "owner"), (boss, boss), ("webhook", "webhook"), ("ann", "ann")] {
        assert_eq!(answer(&json!([approver]), subject), 403, "{approver}");
    }
    assert_eq!(answer(&json!(["jwt:ann"]), "ann"), 200, "who is meant says so");
}

#[test]
fn a_jwt_whose_header_asks_for_unknown_extensions_is_refused() {
    let place = place();
    let server = place.serve();
    let ask = |header: &Value| {
        let token = signed(header, "ann", "viewer");
        let (status, said) =
            read_answer(server.bare(Method::GET, "/api/v1/workflows").bearer_auth(token).send().unwrap());
        (status.as_u16(), said["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(ask(&json!({ "alg": "HS256", "typ": "JWT" })).0, 200);
    let (status, said) = ask(&json!({ "alg": "HS256", "crit": ["exp"], "exp": 1 }));
    assert!(status == 401 && said.contains("crit"), "{status}: {said}");
}
