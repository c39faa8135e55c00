//! TLS, and secrets that the environment gave.

use crate::rig::Place;
use reqwest::{Method, StatusCode};
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
    assert!(!status.success() && said.contains("there is no certificate in it"), "{said}");
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
    let environment = std::fs::read(format!("/proc/{}/environ", server.process())).unwrap();
    let text = String::from_utf8_lossy(&environment);
    assert!(text.contains("WINDLASS_JWT_ISSUER"), "{text}");
    assert!(!text.contains(secret) && !text.contains("WINDLASS_TOKEN"), "{text}");
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    // It was used all the same: without the audience it would be refused.
    let half = Place::new().variable("WINDLASS_JWT_SECRET", secret);
    let (status, said) = half.refuse();
    assert!(!status.success() && said.contains("jwt-issuer and jwt-audience are needed"), "{said}");
}

#[test]
fn a_connection_that_does_not_ask_is_ended() {
    use std::io::{Read as _, Write as _};
    let place = Place::new().with(&["--header-timeout", "50ms"]);
    let server = place.serve();
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let mut connection = std::net::TcpStream::connect(address).unwrap();
    connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
    let mut answer = Vec::new();
    // Comes back only when the server ends it.
    let _ = connection.read_to_end(&mut answer);
    assert_eq!(server.bare(Method::GET, "/healthz").send().unwrap().status(), StatusCode::OK);
}
