//! Sessions of the web page: they end with the token behind them, and one user cannot crowd out others.

use crate::rig::read_answer;
use crate::stage::Stage;
use reqwest::header::SET_COOKIE;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Maximum number of sessions of a user, as in docs/page.md.
const SESSIONS_MAX: usize = 10;

struct Token {
    id: String,
    text: String,
}

fn token(stage: &Stage, body: &Value) -> Token {
    let (status, made) = stage.server.post("/api/v1/tokens", body);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    Token { id: text("id"), text: text("token") }
}

/// A link's code, for the tenant.
fn link(stage: &Stage, token: &str, tenant: &str) -> String {
    let request = stage.server.bare(Method::POST, "/api/v1/session/link").bearer_auth(token);
    let (status, made) = read_answer(request.header("X-Tenant-ID", tenant).send().unwrap());
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["path"].as_str().unwrap().split_once('#').unwrap().1.to_owned()
}

/// The name of the cookie has the port of the server.
fn cookie_name(stage: &Stage) -> String {
    format!("windlass_session_{}", stage.server.url().rsplit_once(':').unwrap().1)
}

/// The token in the cookie that a code is exchanged for.
fn redeem(stage: &Stage, code: &str) -> Result<String, (StatusCode, Value)> {
    let request = stage.server.bare(Method::POST, "/api/v1/session").json(&json!({ "code": code }));
    let answer = request.send().unwrap();
    let cookie = answer.headers().get(SET_COOKIE).map(|cookie| cookie.to_str().unwrap().to_owned());
    match (cookie, read_answer(answer)) {
        (Some(cookie), (StatusCode::OK, _)) => {
            let value = cookie.strip_prefix(&format!("{}=", cookie_name(stage))).unwrap();
            Ok(value.split(';').next().unwrap().to_owned())
        }
        (_, refused) => Err(refused),
    }
}

fn session(stage: &Stage, token: &str, tenant: &str) -> String {
    redeem(stage, &link(stage, token, tenant)).unwrap()
}

fn me(stage: &Stage, token: &str) -> (StatusCode, Value) {
    read_answer(stage.server.bare(Method::GET, "/api/v1/me").bearer_auth(token).send().unwrap())
}

fn revoke(stage: &Stage, id: &str) {
    let answer = stage.server.request(Method::DELETE, &format!("/api/v1/tokens/{id}")).send().unwrap();
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
}

#[test]
fn a_link_of_a_revoked_token_begins_no_session() {
    let stage = Stage::new();
    let ann = token(&stage, &json!({ "name": "ann", "role": "admin" }));
    let (own, of_session) =
        (link(&stage, &ann.text, "default"), link(&stage, &session(&stage, &ann.text, "default"), "default"));
    revoke(&stage, &ann.id);
    for code in [own, of_session] {
        let (status, refused) = redeem(&stage, &code).unwrap_err();
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{refused}");
    }
}

#[test]
fn sessions_in_every_tenant_end_with_the_token_whose_link_began_them() {
    let stage = Stage::new();
    let operator = token(&stage, &json!({ "name": "op", "role": "admin" }));
    let first = session(&stage, &operator.text, &stage.tenant);
    let second = session(&stage, &first, &stage.tenant);
    let other = token(&stage, &json!({ "name": "op2", "role": "admin" }));
    let of_other = session(&stage, &other.text, &stage.tenant);
    for token in [&first, &second] {
        let (status, me) = me(&stage, token);
        assert_eq!(
            (status, &me["tenantId"], &me["id"]),
            (StatusCode::OK, &json!(stage.tenant), &json!(operator.id))
        );
    }
    // A crash forgets nothing of what a session depends on.
    let stage = stage.restarted();
    revoke(&stage, &operator.id);
    for token in [&first, &second] {
        assert_eq!(me(&stage, token).0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(me(&stage, &of_other).0, StatusCode::OK);
    let stage = stage.restarted();
    assert_eq!(me(&stage, &first).0, StatusCode::UNAUTHORIZED);
    assert_eq!(me(&stage, &of_other).0, StatusCode::OK);
}

#[test]
fn a_user_has_few_sessions_and_the_oldest_ends_for_a_new_one() {
    let stage = Stage::new();
    let (ann, bob) = (stage.token("viewer"), stage.token("viewer"));
    let of_bob = session(&stage, &bob, &stage.tenant);
    let all: Vec<String> = (0..=SESSIONS_MAX).map(|_| session(&stage, &ann, &stage.tenant)).collect();
    let valid = |token: &String| me(&stage, token).0 == StatusCode::OK;
    assert_eq!(all.iter().filter(|token| !valid(token)).collect::<Vec<_>>(), [&all[0]]);
    assert!(valid(&of_bob));
    let listed = stage.server.request(Method::GET, "/api/v1/tokens").header("X-Tenant-ID", &stage.tenant);
    let (_, listed) = read_answer(listed.send().unwrap());
    let sessions = listed["tokens"].as_array().unwrap().iter().filter(|token| token["name"] == "web page");
    assert_eq!(sessions.count(), SESSIONS_MAX + 1, "and that of another user");
    let audit = stage.server.request(Method::GET, "/api/v1/audit?action=session.delete");
    let (_, audit) = read_answer(audit.header("X-Tenant-ID", &stage.tenant).send().unwrap());
    assert_eq!(audit["entries"].as_array().unwrap().len(), 1, "{audit}");
}

#[test]
fn links_of_one_user_leave_those_of_others() {
    let stage = Stage::new();
    let (ann, bob) = (stage.token("viewer"), stage.token("viewer"));
    let (of_owner, of_bob) =
        (link(&stage, stage.server.token(), "default"), link(&stage, &bob, &stage.tenant));
    let of_ann: Vec<String> = (0..100).map(|_| link(&stage, &ann, &stage.tenant)).collect();
    assert!(redeem(&stage, &of_owner).is_ok() && redeem(&stage, &of_bob).is_ok());
    assert!(redeem(&stage, &of_ann[0]).is_err() && redeem(&stage, &of_ann[99]).is_ok());
}

#[test]
fn signing_out_removes_the_cookie_of_a_session_that_has_ended() {
    let stage = Stage::new();
    let ann = token(&stage, &json!({ "name": "ann", "role": "viewer" }));
    let ended = session(&stage, &ann.text, "default");
    let open = session(&stage, &ann.text, "default");
    let sign_out = |token: &str, site: &'static str| {
        let request = stage.server.bare(Method::DELETE, "/api/v1/session");
        let name = cookie_name(&stage);
        let request = request.header("Cookie", format!("{name}={token}"));
        let answer = request.header("Sec-Fetch-Site", site).send().unwrap();
        let cookie = answer.headers().get(SET_COOKIE).map(|cookie| cookie.to_str().unwrap().to_owned());
        (
            answer.status(),
            cookie
                .is_some_and(|cookie| cookie.contains(&format!("{name}=; ")) && cookie.contains("Max-Age=0")),
        )
    };
    assert_eq!(sign_out(&open, "same-origin"), (StatusCode::NO_CONTENT, true));
    assert_eq!(sign_out(&open, "same-origin"), (StatusCode::UNAUTHORIZED, true));
    revoke(&stage, &ann.id);
    assert_eq!(sign_out(&ended, "same-site"), (StatusCode::UNAUTHORIZED, false), "a page of another origin");
    assert_eq!(sign_out(&ended, "same-origin"), (StatusCode::UNAUTHORIZED, true));
}

#[test]
fn a_preview_of_a_link_names_both_users_and_leaves_the_link_unused() {
    let stage = Stage::new();
    let ann = token(&stage, &json!({ "name": "ann", "role": "admin" }));
    let bob = token(&stage, &json!({ "name": "bob", "role": "viewer" }));
    let code = link(&stage, &ann.text, "default");
    let preview = |code: &str, cookie: Option<&str>| {
        let request = stage.server.bare(Method::POST, "/api/v1/session/preview");
        let request = request.header("Sec-Fetch-Site", "same-origin").json(&json!({ "code": code }));
        let cookie = cookie.map(|token| format!("{}={token}", cookie_name(&stage)));
        let request = cookie.into_iter().fold(request, |request, cookie| request.header("Cookie", cookie));
        read_answer(request.send().unwrap())
    };
    let (status, found) = preview(&code, Some(&bob.text));
    assert_eq!(
        (status, &found["link"]["id"], &found["current"]["id"]),
        (StatusCode::OK, &json!(ann.id), &json!(bob.id))
    );
    assert_eq!(preview(&code, None).1["current"], Value::Null);
    assert!(redeem(&stage, &code).is_ok());
    assert_eq!(preview(&code, None).0, StatusCode::UNAUTHORIZED, "it was used");
    let revoked = link(&stage, &ann.text, "default");
    revoke(&stage, &ann.id);
    assert_eq!(preview(&revoked, None).0, StatusCode::UNAUTHORIZED);
}

#[test]
fn a_token_of_a_worker_begins_no_session() {
    let stage = Stage::new();
    let worker = token(&stage, &json!({ "name": "crane", "role": "worker", "group": "cranes" }));
    let request = stage.server.bare(Method::POST, "/api/v1/session").json(&json!({ "token": worker.text }));
    let answer = request.send().unwrap();
    assert!(answer.headers().get(SET_COOKIE).is_none());
    let (status, refused) = read_answer(answer);
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("role `worker`"), "{refused}");
}
