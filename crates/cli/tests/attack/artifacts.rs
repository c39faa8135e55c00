//! Large values of another tenant, by their digests: as a way to read them, and as a way to learn that they are there.

use crate::rig::{Place, until};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// Part of the other tenant's value, which is repeated until it is an artifact.
const WORD: &str = "orchid ";
const ECHO: &str = "metadata: {name: echo}\nworkload: {text: ''}\nworkflow:\n\
                    - {step: say, tool: {kind: noop, result: '{{ workload.text }}'}}\n";

/// Ways to name an artifact, as definitions: the digest comes from an input, a program, an answer and a patch.
const WAYS: [(&str, &str); 5] = [
    ("text of an input", "- {step: read, tool: {kind: artifact, ref: '{{ workload.key }}'}}\n"),
    ("reference of an input", "- {step: read, tool: {kind: artifact, ref: '{{ workload.reference }}'}}\n"),
    (
        "program",
        "- {step: say, tool: {kind: python, code: 'result = {\"key\": \"KEY\"}'}, next: read}\n\
         - {step: read, tool: {kind: artifact, ref: '{{ say.key }}'}}\n",
    ),
    (
        "answer of a server",
        "- {step: say, tool: {kind: http, url: '{{ workload.url }}'}, next: read}\n\
         - {step: read, tool: {kind: artifact, ref: '{{ say.data.key }}'}}\n",
    ),
    (
        "patch",
        "- {step: say, tool: {kind: http, url: '{{ workload.url }}'}, next: read}\n\
         - {step: read, tool: {kind: artifact, ref: '{{ ctx.key }}'}}\n",
    ),
];

#[test]
fn a_digest_of_another_tenant_reads_nothing_and_reveals_nothing() {
    let stage = Stage::at(Place::new().with(&["--egress-allow", "127.0.0.0/8"]));
    let (theirs, theirs_url) = kept_by_default(&stage);
    let absent = format!("sha256:{}", "5".repeat(64));
    let change = json!({ "programs": "allowed" });
    let (status, changed) = stage.send(
        stage.server.token(),
        Method::PATCH,
        &format!("/api/v1/tenants/{}", stage.tenant),
        &change,
    );
    assert_eq!(status, StatusCode::OK, "{changed}");
    let token = stage.token("developer");
    for (way, steps) in WAYS {
        let [there, nowhere] = [&theirs, &absent].map(|key| attempt(&stage, &token, (way, steps), key));
        assert!(!there.to_string().contains(WORD), "{way}: {there}");
        assert_eq!(there, nowhere, "{way}");
        assert_eq!(there["code"], "REFERENCE_NOT_AVAILABLE", "{way}: {there}");
    }
    // The download, through an execution of the attacker whose journal names the digest, and through the other's.
    let own = ended(&stage, &token, ECHO, &json!({ "text": { "$artifact": theirs, "bytes": 140_002 } }));
    assert!(!own.to_string().contains(WORD), "{own}");
    let id = own["executionId"].as_str().unwrap();
    let download = |path: &str| {
        let (status, body) = stage.send(&token, Method::GET, path, &json!({}));
        (status, masked(&body, &[&theirs, &absent]))
    };
    let [there, nowhere] =
        [&theirs, &absent].map(|key| download(&format!("/api/v1/executions/{id}/artifacts/{key}")));
    assert_eq!((there.0, &there), (StatusCode::NOT_FOUND, &nowhere));
    assert_eq!(download(&theirs_url).0, StatusCode::NOT_FOUND);
    // The owner still has it.
    assert_eq!(stage.server.get(&theirs_url).status(), StatusCode::OK);
}

#[test]
fn an_equal_value_is_kept_for_each_tenant() {
    let stage = Stage::new();
    let (theirs, _) = kept_by_default(&stage);
    let token = stage.token("developer");
    let own = ended(&stage, &token, ECHO, &json!({ "text": WORD.repeat(20_000) }));
    let digits = theirs.strip_prefix("sha256:").unwrap();
    let files = crate::rig::files(&stage.place.data().join("artifacts"));
    let same = files.iter().filter(|path| path.ends_with(digits)).count();
    assert_eq!(same, 2, "{own} {files:?}");
}

/// Runs a workflow of `default` with a large value; its digest and where its owner has it.
fn kept_by_default(stage: &Stage) -> (String, String) {
    let token = stage.server.token().to_owned();
    let answer = ended(stage, &token, ECHO, &json!({ "text": WORD.repeat(20_000) }));
    let reference = &answer["nodeResults"]["say"]["output"];
    let text = |name: &str| reference[name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    (text("$artifact"), text("url"))
}

/// Returns what the execution says of the value behind the digest, without the digest itself.
fn attempt(stage: &Stage, token: &str, (way, steps): (&str, &str), key: &str) -> Value {
    let definition = format!(
        "metadata: {{name: read}}\nworkload: {{key: '', reference: null, url: ''}}\nworkflow:\n{}",
        steps.replace("KEY", key)
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let reference = json!({ "$artifact": key, "bytes": 140_002 });
    let inputs = json!({ "key": key, "reference": reference, "url": url });
    let id = started(stage, token, &definition, &inputs);
    let path = format!("/api/v1/executions/{id}");
    if steps.contains("http") {
        let (mut asked, _) = listener.accept().unwrap();
        if way == "patch" {
            let (status, answer) =
                stage.send(token, Method::PATCH, &format!("{path}/context"), &json!({ "key": key }));
            assert!(status.is_success(), "{answer}");
        }
        answer(&mut asked, &json!({ "key": key }));
    }
    let answer = until("it ends", || {
        let (_, answer) = stage.send(token, Method::GET, &path, &json!({}));
        answer["completedAt"].is_string().then_some(answer)
    });
    masked(&answer["errors"][0], &[key])
}

/// Code and message alone: the rest differs from execution to execution.
fn masked(answer: &Value, keys: &[&str]) -> Value {
    let error = answer.get("error").unwrap_or(answer);
    let message = error["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let message = keys.iter().fold(message.to_owned(), |message, key| message.replace(key, "KEY"));
    json!({ "code": error["code"], "message": message })
}

fn started(stage: &Stage, token: &str, definition: &str, inputs: &Value) -> String {
    let (status, made) = stage.upload(token, definition);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let (status, answer) = stage.send(token, Method::POST, &path, &json!({ "inputs": inputs }));
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    answer["executionId"].as_str().unwrap().to_owned()
}

fn ended(stage: &Stage, token: &str, definition: &str, inputs: &Value) -> Value {
    let (status, made) = stage.upload(token, definition);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let body = json!({ "inputs": inputs, "options": { "async": false } });
    let (status, answer) = stage.send(token, Method::POST, &path, &body);
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

fn answer(asked: &mut std::net::TcpStream, body: &Value) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && asked.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    let body = body.to_string();
    let length = body.len();
    write!(asked, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .unwrap();
}
