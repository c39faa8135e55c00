//! Keychains through the binary: resolved before anything runs, usable by tools, and nowhere to be seen.

use crate::place::{assert_nowhere_on_disk, set};
use crate::rig::{Place, playbook};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

const VALUE: &str = "correct-horse-battery";

fn place(keychain: &str, steps: &str) -> Place {
    let place = Place::new();
    place.write("play.yaml", &playbook("tested", &format!("keychain:\n{keychain}workflow:\n{steps}")));
    place
}

#[test]
fn pbk_25_entries_resolve_before_the_first_step_and_are_redacted() {
    let place = place(
        "- {name: api, kind: secret}\n- {name: header, kind: static, map: {line: 'Bearer {{ keychain.api.token }}'}}\n- {name: db, kind: secret, secret: db-login}\n",
        "- {step: begin, next: use}
- step: use
  tool:
    kind: shell
    env: {H: '{{ keychain.header.line }}', U: '{{ keychain.db.user }}', P: '{{ keychain.db.password }}'}
    command: 'test \"$H $P\" = \"$(cat expected)\" && echo \"$H $U $P\"'
",
    );
    set(&place, "api", VALUE);
    place.write("expected", &format!("Bearer {VALUE} hunter2hunter2"));
    set(&place, "db-login", r#"{"user": "admin", "password": "hunter2hunter2", "port": 5432}"#);
    let output = place.run(&[], 0);
    let out = output["nodeExecutions"][1]["output"]["stdout"].as_str().expect("an output").to_owned();
    assert_eq!(out, "[redacted] admin [redacted]\n");
    for secret in [VALUE, "hunter2hunter2"] {
        assert_nowhere_on_disk(&place, secret.as_bytes());
    }
}

#[test]
fn pbk_25_a_missing_secret_is_refused_before_anything_runs() {
    let place = place(
        "- {name: api, kind: secret}\n",
        "- {step: begin, next: work}\n- step: work\n  tool: {kind: shell, command: 'touch done'}\n",
    );
    let refused = place.windlass(&["run", "play.yaml"]).expect(2);
    assert!(refused.err.contains("reads the secret `api`, which is not stored"), "{}", refused.err);
    assert!(refused.err.contains("windlass secrets set api"), "{}", refused.err);
    assert!(!place.path("done").exists());
    let listed = place.windlass(&["executions", "list", "--json"]).expect(0);
    assert!(!listed.out.contains("exec_"), "{}", listed.out);
    set(&place, "api", VALUE);
    place.run(&[], 0);
    assert!(place.path("done").exists());
}

#[test]
fn pbk_25_literals_of_a_keychain_are_stored_encrypted_only() {
    let place = place(
        "- {name: api, kind: bearer, token: s3cret-literal-token}\n- {name: db, kind: basic, username: admin, password: hunter2hunter2}\n",
        "- step: use
  tool: {kind: shell, command: 'printf %s \"$T$P\" | wc -c; echo \"$T as $U\"', env: {T: '{{ keychain.api.token }}', P: '{{ keychain.db.password }}', U: '{{ keychain.db.username }}'}}
",
    );
    let output = place.run(&[], 0);
    assert_eq!(output["nodeExecutions"][0]["output"]["stdout"], "34\n[redacted] as admin\n");
    let listed = place.windlass(&["secrets", "list"]).expect(0).out;
    assert!(listed.contains("keychain/tested/api/token/"), "{listed}");
    // The same definition again is no new version.
    place.run(&[], 0);
    assert_eq!(place.windlass(&["secrets", "list"]).expect(0).out.matches("version 1").count(), 2);
    for secret in ["s3cret-literal-token", "hunter2hunter2"] {
        assert_nowhere_on_disk(&place, secret.as_bytes());
    }
    place.windlass(&["validate", "play.yaml"]).expect(0);
}

#[test]
fn pbk_25_other_steps_go_on_with_the_keychain_after_an_interruption() {
    let place = place(
        "- {name: api, kind: secret}\n",
        "- step: wait
  spec: {policy: {admit: {rules: [{when: '{{ ctx.open }}', then: {allow: true}}]}}}
  next: use
- step: use
  tool: {kind: shell, command: 'test \"$T\" = correct-horse-battery', env: {T: '{{ keychain.api.token }}'}}
",
    );
    set(&place, "api", VALUE);
    let output = place.run(&[], 5);
    let id = output["executionId"].as_str().expect("an id");
    place.windlass(&["executions", "patch", id, "open=true"]).expect(0);
    place.windlass(&["run", "--resume", id]).expect(0);
}

/// Grants one token per request and says what it was asked: head and body.
fn granting(times: usize) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/token", listener.local_addr().expect("an address"));
    let asked = thread::spawn(move || (1..=times).map(|number| grant(&listener, number)).collect());
    (url, asked)
}

fn grant(listener: &TcpListener, number: usize) -> String {
    let (stream, _) = listener.accept().expect("a request");
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let before = head.len();
        reader.read_line(&mut head).expect("a line");
        if let Some(value) = head[before..].to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let answer = format!(
        "{{\"access_token\": \"granted-token-{number}\", \"expires_in\": 3600, \"token_type\": \"Bearer\"}}"
    );
    let reply = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    reader.into_inner().write_all(format!("{reply}{answer}").as_bytes()).expect("it is sent");
    format!("{head}{}", String::from_utf8(body).expect("text"))
}

#[test]
fn pbk_25_a_token_is_fetched_once_and_used_by_every_step_of_the_playbook() {
    let (url, asked) = granting(1);
    let place = place(
        &format!("- {{name: client, kind: secret}}\n- {{name: tok, kind: oauth2, scope: global, endpoint: '{url}', data: {{grant_type: client_credentials, client_secret: '{{{{ keychain.client.value }}}}'}}}}\n"),
        "- {step: begin, next: use}
- step: use
  tool: {kind: shell, command: 'test \"$T\" = \"$(cat expected)\" && echo \"$T\"', env: {T: '{{ keychain.tok.token }}'}}
",
    );
    set(&place, "client", VALUE);
    place.write("expected", "granted-token-1");
    let output = place.windlass(&["run", "play.yaml", "--json", "--times", "1"]).expect(0);
    let output: Value = output.json();
    assert_eq!(output["nodeExecutions"][1]["output"]["stdout"], "[redacted]\n");
    let asked = asked.join().expect("the server ends");
    assert!(
        asked[0].ends_with(&format!("\r\n\r\ngrant_type=client_credentials&client_secret={VALUE}")),
        "{asked:?}"
    );
    for secret in [VALUE, "granted-token"] {
        assert_nowhere_on_disk(&place, secret.as_bytes());
    }
}

#[test]
fn pbk_25_auth_of_a_request_names_a_keychain_entry_or_a_secret() {
    let (url, asked) = granting(3);
    let place = place(
        "- {name: api, kind: api_key, header: X-Key, key: {$secret: key}}\n",
        &format!(
            "- {{step: entry, tool: {{kind: http, url: '{url}', auth: api}}, next: text}}
- {{step: text, tool: {{kind: http, url: '{url}', auth: plain}}, next: map}}
- {{step: map, tool: {{kind: http, url: '{url}', auth: login}}}}
"
        ),
    );
    set(&place, "key", "the-key-of-the-api");
    set(&place, "plain", VALUE);
    set(&place, "login", r#"{"type": "basic", "username": "admin", "password": "hunter2hunter2"}"#);
    let output = place.run(&[], 0);
    let asked: Vec<String> =
        asked.join().expect("the server ends").iter().map(|head| head.to_lowercase()).collect();
    assert!(asked[0].contains("x-key: the-key-of-the-api"), "{asked:?}");
    assert!(asked[1].contains(&format!("authorization: bearer {VALUE}")), "{asked:?}");
    assert!(asked[2].contains("authorization: basic ywrtaw46ahvudgvymmh1bnrlcji="), "{asked:?}");
    for secret in [VALUE, "the-key-of-the-api", "hunter2hunter2"] {
        assert!(!output.to_string().contains(secret), "{output}");
        assert_nowhere_on_disk(&place, secret.as_bytes());
    }
}
