use crate::rig::{Place, files, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn the_first_start_makes_an_owners_token_that_later_starts_keep() {
    let place = Place::new();
    let server = place.serve();
    assert!(server.url().starts_with("http://127.0.0.1:"), "{}", server.url());
    let first = server.token().to_owned();
    let file = place.data().join("owner.token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    assert_eq!(place.serve().token(), first);
}

#[test]
fn the_token_is_nowhere_but_in_its_file() {
    let place = Place::new().variable("WINDLASS_LOG", "debug");
    let server = place.serve();
    let token = server.token().to_owned();
    assert_eq!(server.get("/api/v1/nowhere").status(), StatusCode::NOT_FOUND);
    let (_, said) = server.stop();
    assert!(!said.contains(&token[4..]), "{said}");
    for file in files(&place.data()) {
        if file.file_name().is_some_and(|name| name != "owner.token") {
            let bytes = std::fs::read(&file).unwrap();
            let found = bytes.windows(token.len()).any(|part| part == token.as_bytes());
            assert!(!found, "{} holds the token", file.display());
        }
    }
}

#[test]
fn keep_has_one_meaning_and_a_server_that_keeps_nothing_warns() {
    for (keep, warns) in [("0d", true), ("forever", false), ("30d", false)] {
        let place = Place::new().with(&["--keep", keep]);
        let (_, said) = place.serve().stop();
        let expected = "`--keep 0d` deletes executions as soon as they have ended";
        assert_eq!(said.contains(expected), warns, "{keep}: {said}");
    }
    let (status, said) = Place::new().with(&["--keep", "ever"]).refuse();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("--keep: `ever` is not a time as in 12h or 30d, or `forever`"), "{said}");
}

#[test]
fn a_public_address_without_tls_is_refused_with_the_ways_out() {
    let place = Place::new().with(&["--listen", "0.0.0.0:0"]);
    let (status, said) = place.refuse();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("--tls-cert") && said.contains("--allow-public-http"), "{said}");
    assert!(!place.data().exists(), "nothing was made");
}

#[test]
fn a_second_server_on_the_folder_learns_who_has_it() {
    let place = Place::new();
    let _first = place.serve();
    let (status, said) = place.refuse();
    assert!(!status.success());
    assert!(said.contains("windlass serve"), "{said}");
}

#[test]
fn unknown_routes_and_methods_are_reported_as_json() {
    let place = Place::new();
    let server = place.serve();
    let (status, body) = read_answer(server.get("/api/v1/nowhere"));
    assert_eq!((status, &body["error"]["code"]), (StatusCode::NOT_FOUND, &"RESOURCE_NOT_FOUND".into()));
    let (status, body) = server.post("/healthz", &json!({}));
    assert_eq!(
        (status, &body["error"]["code"]),
        (StatusCode::METHOD_NOT_ALLOWED, &"METHOD_NOT_ALLOWED".into())
    );
    let (status, body) = read_answer(server.bare(Method::GET, "/api/openapi.json").send().unwrap());
    assert_eq!((status, &body["openapi"]), (StatusCode::OK, &"3.1.0".into()));
}
