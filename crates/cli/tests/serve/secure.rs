//! TLS, and secrets that the environment gave.

use crate::rig::{Place, Running, jwt, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::process::Command;

fn openssl(args: &[&str], folder: &std::path::Path) {
    let output = Command::new("openssl").args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn with_a_certificate_it_speaks_https_alone() {
    let folder = tempfile::tempdir().unwrap();
    let subject = ["-subj", "/CN=localhost", "-days", "1"];
    let key = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"];
    openssl(&[&key[..], &subject[..]].concat(), folder.path());
    let at = |name: &str| folder.path().join(name).display().to_string();
    let place = Place::new().with(&["--tls-cert", &at("cert.pem"), "--tls-key", &at("key.pem")]);
    let server = place.serve();
    assert!(server.url().starts_with("https://"), "{}", server.url());
    assert_eq!(server.get("/healthz").status(), StatusCode::OK);
    let plain = server.url().replace("https://", "http://");
    assert!(reqwest::blocking::get(format!("{plain}/healthz")).is_err());

    let wrong = Place::new().with(&["--tls-cert", &at("key.pem"), "--tls-key", &at("key.pem")]);
    let (status, said) = wrong.refuse();
    assert!(!status.success() && said.contains("the file has no certificate"), "{said}");
}

#[test]
fn secrets_of_the_engine_are_not_in_its_environment() {
    let secret = "a-secret-that-nobody-may-find-here";
    let place = Place::new()
        .variable("WINDLASS_JWT_SECRET", secret)
        .variable("WINDLASS_TOKEN", secret)
        .variable("WINDLASS_JWT_ISSUER", "https://id.example")
        .variable("WINDLASS_JWT_AUDIENCE", "windlass");
    let server = place.serve();
    match std::fs::read(format!("/proc/{}/environ", server.process())) {
        // Root reads it all the same.
        Ok(environment) => {
            let text = String::from_utf8_lossy(&environment);
            assert!(text.contains("WINDLASS_JWT_ISSUER"), "{text}");
            assert!(!text.contains(secret) && !text.contains("WINDLASS_TOKEN"), "{text}");
        }
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}"),
    }
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    // It was used all the same: without the audience it would be refused.
    let half = Place::new().variable("WINDLASS_JWT_SECRET", secret);
    let (status, said) = half.refuse();
    assert!(!status.success() && said.contains("not both jwt-issuer and jwt-audience"), "{said}");
}

fn hs256(secret: &str, claims: &Value) -> String {
    jwt::sign(secret, &json!({ "alg": "HS256", "typ": "JWT" }), claims)
}

#[test]
fn wfl_06_a_jwt_of_the_identity_provider_is_a_token_too() {
    let secret = "0123456789abcdef0123456789abcdef";
    let place = Place::new().variable("WINDLASS_JWT_SECRET", secret).with(&[
        "--jwt-issuer",
        "https://id.example",
        "--jwt-audience",
        "windlass",
    ]);
    let server = place.serve();
    let claims = |tenant: &str, role: &str, exp: i64| {
        json!({
            "sub": "ann", "tenant": tenant, "role": role, "exp": exp, "iss": "https://id.example", "aud": "windlass",
        })
    };
    let ask = |token: &str, method: Method, path: &str| {
        server.bare(method, path).bearer_auth(token).send().unwrap().status().as_u16()
    };
    let viewer = hs256(secret, &claims("default", "viewer", 4_000_000_000));
    assert_eq!(ask(&viewer, Method::GET, "/api/v1/workflows"), 200);
    assert_eq!(ask(&viewer, Method::GET, "/api/v1/audit"), 403);
    for refused in [
        hs256(secret, &claims("default", "viewer", 1_000_000_000)),
        hs256(secret, &claims("tnt_nowhere", "viewer", 4_000_000_000)),
        hs256(&secret.replace('0', "1"), &claims("default", "viewer", 4_000_000_000)),
    ] {
        assert_eq!(ask(&refused, Method::GET, "/api/v1/workflows"), 401);
    }
    let admin = hs256(secret, &claims("default", "admin", 4_000_000_000));
    let asked = json!({ "name": "made by ann", "role": "viewer" });
    let made = server.bare(Method::POST, "/api/v1/tokens").bearer_auth(&admin).json(&asked).send().unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
    let audit = read_answer(server.get("/api/v1/audit?actor=jwt:ann")).1;
    assert_eq!(audit["entries"][0]["action"], "token.create", "{audit}");
}

#[test]
fn a_lost_owners_token_is_replaced_only_on_request() {
    let place = Place::new();
    let server = place.serve();
    let first = server.token().to_owned();
    drop(server);
    let file = place.data().join("owner.token");
    std::fs::remove_file(&file).unwrap();
    let mut without = Running::start(place.server_command());
    without.until_says("listening on ");
    assert!(!file.exists(), "a token that its owner has put elsewhere is not made again");
    drop(without);
    let place = place.with(&["--new-owner-token"]);
    let server = place.serve();
    assert_ne!(server.token(), first);
    assert_eq!(server.get("/api/v1/tokens").status(), StatusCode::OK);
    let old = server.bare(Method::GET, "/api/v1/tokens").bearer_auth(&first).send().unwrap();
    assert_eq!(old.status(), StatusCode::OK, "the first one is not revoked by this");
}
