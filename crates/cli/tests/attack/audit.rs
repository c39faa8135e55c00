//! Traces that an attacker leaves, and an attacker with the database who wants to remove them.

use crate::rig::Place;
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const SECRETIVE: &str = "metadata: {name: secretive}\nkeychain:\n- {name: api, kind: bearer, token: literal-token-1234}\n\
                         workflow:\n- {step: use, tool: {kind: http, url: 'https://example.com', auth: api}}\n";

#[test]
fn refused_requests_and_reads_of_secrets_are_written_down() {
    let stage = Stage::new();
    let (viewer, admin) = (stage.token("viewer"), stage.token("admin"));
    for _ in 0..50 {
        let (status, _) =
            stage.send(&viewer, Method::POST, "/api/v1/tokens", &json!({ "name": "x", "role": "owner" }));
        assert_eq!(status, StatusCode::FORBIDDEN);
    }
    let foreign = stage.server.bare(Method::GET, "/api/v1/workflows").bearer_auth(&viewer);
    assert_eq!(foreign.header("X-Tenant-ID", "default").send().unwrap().status(), StatusCode::FORBIDDEN);
    for _ in 0..50 {
        let wrong = stage.server.bare(Method::GET, "/api/v1/workflows").bearer_auth("wl_wrong");
        assert_eq!(wrong.send().unwrap().status(), StatusCode::UNAUTHORIZED);
    }
    let (status, _) = stage.send(&admin, Method::GET, "/api/v1/webhook-secret", &json!({}));
    assert_eq!(status, StatusCode::OK);
    let (status, made) = stage.upload(&admin, SECRETIVE);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let change = json!({ "programs": "allowed" });
    let path = format!("/api/v1/tenants/{}", stage.tenant);
    assert_eq!(stage.send(stage.server.token(), Method::PATCH, &path, &change).0, StatusCode::OK);
    let count = |token: &str, action: &str| entries(&stage, token, action).len();
    // A few rows for a flood, and the caller's own tenant has them.
    let refused = crate::rig::until("refused requests are written", || {
        Some(count(&admin, "access.refused")).filter(|count| *count >= 10)
    });
    assert!(refused <= 20, "{refused}");
    let owner = stage.server.token().to_owned();
    let unknown = crate::rig::until("requests without a good token are written", || {
        Some(count(&owner, "access.unauthenticated")).filter(|count| *count >= 10)
    });
    assert!(unknown <= 20, "{unknown}");
    assert_eq!(count(&admin, "webhook-secret.read"), 1);
    assert_eq!(count(&admin, "tenant.change"), 1);
    let set = entries(&stage, &admin, "secret.set");
    assert!(set.iter().any(|entry| entry["details"]["source"] == "definition"), "{set:?}");
    assert!(!format!("{set:?}").contains("literal-token"), "{set:?}");
}

#[test]
fn an_edited_audit_log_is_found_out() {
    // Removes or changes one row, like an attacker with access to the file.
    for (change, named) in [
        ("UPDATE audit SET actor = 'user_other' WHERE seq = ?1", "row"),
        ("DELETE FROM audit WHERE seq = ?1", "row"),
        ("UPDATE audit SET seal = NULL WHERE seq = ?1", "has no seal"),
        ("DELETE FROM audit WHERE seq > ?1", "are missing"),
    ] {
        let place = attacked(|conn, seq| assert!(conn.execute(change, [seq]).unwrap() > 0));
        let answer = place.windlass(&["admin", "check"]);
        assert_eq!(answer.code, 1, "{change}: {answer:?}");
        assert!(answer.out.contains("audit: ") && answer.out.contains(named), "{change}: {answer:?}");
    }
}

#[test]
fn a_chain_recomputed_without_the_key_is_found_out() {
    let place = attacked(|conn, seq| {
        conn.execute("UPDATE audit SET target = 'elsewhere' WHERE seq = ?1", [seq]).unwrap();
        let mut statement =
            conn.prepare("SELECT seq, actor || action || target || details FROM audit ORDER BY seq").unwrap();
        let rows =
            statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))).unwrap();
        let mut last = Vec::new();
        for (seq, text) in rows.map(Result::unwrap).collect::<Vec<_>>() {
            last = Sha256::digest([&last[..], text.as_bytes()].concat()).to_vec();
            conn.execute("UPDATE audit SET seal = ?2 WHERE seq = ?1", rusqlite::params![seq, last]).unwrap();
        }
        conn.execute("UPDATE audit_heads SET seal = ?1", [last]).unwrap();
    });
    let answer = place.windlass(&["admin", "check"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.out.contains("its seal differs"), "{answer:?}");
}

#[test]
fn evidence_with_an_anchor_is_verified_and_a_forged_one_is_not() {
    let stage = Stage::new();
    let text = "metadata: {name: a}\nworkflow:\n- {step: a, tool: {kind: noop}, next: b}\n- {step: b, tool: {kind: noop}}\n";
    let workflow = stage.server.define(text);
    let body = json!({ "options": { "async": false } });
    let (_, answer) = stage.server.post(&format!("/api/v1/workflows/{workflow}/execute"), &body);
    let path = format!("/api/v1/executions/{}/evidence", answer["executionId"].as_str().unwrap());
    let exported: Value = serde_json::from_str(&stage.server.get(&path).text().unwrap()).unwrap();
    assert!(exported["anchor"]["hmac"].is_string(), "{exported}");
    let verify = |evidence: &Value| {
        stage.place.write("evidence.json", &evidence.to_string());
        stage.place.windlass(&["evidence", "verify", "evidence.json"])
    };
    verify(&exported).expect(0);
    let mut changed = exported.clone();
    changed["evidence"][0]["outcome"] = json!("Failed");
    let answer = verify(&changed);
    assert!(answer.code == 1 && answer.out.contains(".1 "), "{answer:?}");
    // Cut off at the end, with a chain and an anchor that fit each other.
    let mut cut = exported.clone();
    cut["evidence"].as_array_mut().unwrap().pop();
    let last = cut["evidence"].as_array().unwrap().last().unwrap().clone();
    cut["anchor"]["evidenceId"] = last["evidenceId"].clone();
    cut["anchor"]["hashSha256"] = last["hashSha256"].clone();
    let answer = verify(&cut);
    assert!(answer.code == 1 && answer.out.contains("the anchor"), "{answer:?}");
}

/// A folder whose audit log has some rows of the attacker's tenant, after this was done to the one in the middle.
fn attacked(attack: impl FnOnce(&Connection, i64)) -> Place {
    let stage = Stage::new();
    for _ in 0..5 {
        stage.token("viewer");
    }
    let Stage { place, server, .. } = stage;
    server.stop();
    assert_eq!(place.windlass(&["admin", "check"]).code, 0);
    let conn = Connection::open(place.data().join("windlass.db")).unwrap();
    let sql = "SELECT seq FROM audit WHERE action = 'token.create' ORDER BY seq LIMIT 1 OFFSET 2";
    let seq = conn.query_row(sql, [], |row| row.get(0)).unwrap();
    attack(&conn, seq);
    place
}

fn entries(stage: &Stage, token: &str, action: &str) -> Vec<Value> {
    let path = format!("/api/v1/audit?limit=100&action={action}");
    let (status, answer) = stage.send(token, Method::GET, &path, &json!({}));
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer["entries"].as_array().unwrap().clone()
}
