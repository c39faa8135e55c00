//! Redaction as an oracle: what a step's output has redacted says something about the values it is searched for. And
//! redaction as a load: texts and values that are expensive to search.

use crate::rig::{Place, Server, files, until};
use crate::stage::Stage;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::time::{Duration, Instant};

const SECRET: &str = "Tr0ub4dor-und-3-Pferde";
const OTHER: &str = "another-secret-of-the-tenant";
const MASTER_KEY: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
const JWT_SECRET: &str = "jwt-signing-secret-of-this-server";

/// A step that is given the secret `api` and prints an input.
const ECHO: &str = "metadata: {name: echo}\nworkload: {text: ''}\nworkflow:\n\
- step: say\n  tool:\n  - token: {kind: secrets, name: api}\n  - echo: {kind: noop, result: {said: '{{ workload.text }}'}}\n";

/// Characters of one echo, so that its output is not set aside as an artifact.
const BATCH: usize = 12_000;

#[test]
fn an_echo_recovers_neither_secrets_of_the_tenant_nor_keys_of_the_server() {
    let place = Place::new()
        .variable("WINDLASS_MASTER_KEY", MASTER_KEY)
        .variable("WINDLASS_JWT_SECRET", JWT_SECRET)
        .with(&["--jwt-issuer", "https://id.example", "--jwt-audience", "windlass"]);
    let stage = Stage::at(place);
    set(&stage, "api", SECRET);
    set(&stage, "other", OTHER);
    let echo = Echo::new(&stage, ECHO);
    for target in [SECRET, OTHER, MASTER_KEY, JWT_SECRET] {
        let guesses: Vec<String> = (1..target.len()).flat_map(|length| guesses(target, length)).collect();
        echo.all_unchanged(&guesses);
    }
    // A value that the step was not given is a text like any other, even as a whole.
    echo.all_unchanged(&[OTHER, MASTER_KEY, JWT_SECRET].map(str::to_owned));
    let whole = format!("{SECRET} {}", STANDARD.encode(format!("user:{SECRET}")));
    assert_eq!(echo.said(&whole), "[redacted] dXNlcj[redacted]");
}

/// The text before the mark of a cut, right and wrong, in the forms that are searched for.
fn guesses(target: &str, length: usize) -> Vec<String> {
    let right = &target[..length];
    let wrong = format!("{}~", &target[..length - 1]);
    let forms = |guess: &str| {
        let hex: String = guess.bytes().map(|byte| format!("{byte:02x}")).collect();
        [guess.to_owned(), hex, STANDARD.encode(guess), format!("{guess}\\n")]
    };
    let all = [right, &wrong].into_iter().flat_map(forms);
    all.flat_map(|text| [format!("{text}…"), format!("{text} x")]).collect()
}

#[test]
fn a_secret_that_can_be_guessed_is_not_confirmed_and_warned_of() {
    let stage = Stage::new();
    let credential = r#"{"user": "admin", "pin": "4711"}"#;
    for (value, warned) in [("4711", "the value can be guessed"), (credential, "`pin`")] {
        let answer = set(&stage, "api", value);
        let warning = answer["warnings"][0].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(warning.contains(warned) && !warning.contains("4711"), "{warning}");
        let echo = Echo::new(&stage, ECHO);
        let pins: Vec<String> = (0..10_000).map(|pin| format!("{pin:04}")).collect();
        echo.all_unchanged(&pins);
        echo.all_unchanged(&[credential.to_owned(), format!("{credential:?}")]);
    }
    let strong = set(&stage, "api", SECRET);
    assert_eq!(strong.get("warnings"), None, "{strong}");
}

#[test]
fn no_error_holds_a_part_of_a_secret_that_a_cut_ran_through() {
    let stage = Stage::at(Place::new().with(&["--egress-allow", "127.0.0.0/8"]));
    let long: String = (0..100).map(|number| format!("k{number}ey-")).collect();
    set(&stage, "api", &long);
    let token = stage.token("developer");
    let definition = |url: &str, fields: &str| {
        format!(
            "metadata: {{name: cut}}\nworkload: {{url: ''}}\nworkflow:\n- {{step: get, tool: {{kind: secrets, name: api}}, next: ask}}\n\
             - {{step: ask, tool: {{kind: http, url: '{url}'{fields}}}}}\n"
        )
    };
    let answer = run(&stage, &token, &definition("{{ get.value }}", ""), &json!({}));
    assert!(
        answer.to_string().contains("[redacted]") && !answer.to_string().contains("k0ey-k1ey"),
        "{answer}"
    );
    // A server that repeats what it was given where the excerpt of its answer ends.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let body = format!("{}{long}{}", "x".repeat(4 * 1024 - 30), "y".repeat(9_000));
    let server = std::thread::spawn(move || answer_once(&listener, &body));
    let answer =
        run(&stage, &token, &definition("{{ workload.url }}", ", auth: api"), &json!({ "url": url }));
    server.join().unwrap();
    let answer = answer.to_string();
    assert!(answer.contains("xx[redacted]…") && !answer.contains("k0ey"), "{answer}");
}

#[test]
fn a_text_of_marks_does_not_stop_the_steps_of_others() {
    let stage = Stage::new();
    set(&stage, "api", SECRET);
    let token = stage.token("developer");
    let (status, made) = stage.upload(&token, ECHO);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let mine = stage.server.define("metadata: {name: mine}\nworkflow:\n- {step: a, tool: {kind: noop}}\n");
    for mark in ["…", "%25", "\\\\"] {
        let text = mark.repeat(900_000 / mark.len());
        let (status, answer) =
            stage.send(&token, Method::POST, &path, &json!({ "inputs": { "text": text } }));
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        let begun = Instant::now();
        let body = json!({ "options": { "async": false } });
        let (status, other) = stage.server.post(&format!("/api/v1/workflows/{mine}/execute"), &body);
        assert_eq!((status, &other["status"]), (StatusCode::OK, &json!("completed")), "{other}");
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "another tenant's step took {:?}",
            begun.elapsed()
        );
        let path = format!("/api/v1/executions/{}", answer["executionId"].as_str().unwrap());
        until("the attacker's execution ends", || {
            let (_, answer) = stage.send(&token, Method::GET, &path, &json!({}));
            (answer["status"] == "completed").then_some(())
        });
    }
}

#[test]
fn values_of_a_keychain_are_forgotten_with_their_step() {
    const TIMES: usize = 12;
    let stage = Stage::new();
    let token = stage.token("developer");
    let keychain = "metadata: {name: chain}\nworkload: {value: ''}\nkeychain:\n\
- {name: k, kind: static, map: {key: '{{ workload.value }}'}}\nworkflow:\n\
- {step: say, tool: {kind: noop, result: {said: '{{ keychain.k.key }}'}}}\n";
    for number in 0..TIMES {
        let value: String = (0..4_000).map(|count| format!("{number}-{count}/")).collect();
        let answer = run(&stage, &token, keychain, &json!({ "value": value }));
        assert_eq!(
            answer["nodeResults"]["say"]["output"]["said"],
            "[redacted]",
            "{}",
            &answer.to_string()[..200]
        );
    }
    let memory = stage.memory_mib();
    assert!(memory < 400, "{memory} MiB after {TIMES} executions");
    let twice = keychain.replace("'{{ workload.value }}'", "'{{ workload.value }}{{ workload.value }}'");
    let answer = run(&stage, &token, &twice, &json!({ "value": "0123456789abcdef".repeat(2_500) }));
    assert!(answer["nodeResults"].to_string().contains("SECRET_LIMIT"), "{}", answer["nodeResults"]);
}

#[test]
fn a_strong_secret_that_its_own_step_prints_is_nowhere() {
    let place = Place::new();
    let server = place.serve();
    let secret = server.request(Method::PUT, "/api/v1/secrets/api").json(&json!({ "value": SECRET }));
    assert_eq!(secret.send().unwrap().status(), StatusCode::OK);
    let id = server.define(
        "metadata: {name: careless}\nworkflow:\n- {step: get, tool: {kind: secrets, name: api}, next: print}\n\
- step: print\n  tool:\n    kind: shell\n    env: {A: '{{ get.value }}'}\n    command: 'echo \"out $A\"; echo \"err $A\" >&2; printf %s \"$A\" | base64; exit 3'\n",
    );
    let body = json!({ "options": { "async": false } });
    let (_, answer) = server.post(&format!("/api/v1/workflows/{id}/execute"), &body);
    let execution = answer["executionId"].as_str().unwrap();
    let mut seen = answer.to_string();
    for part in ["", "/logs", "/events", "/progress"] {
        seen.push_str(&server.get(&format!("/api/v1/executions/{execution}{part}")).text().unwrap());
    }
    assert!(seen.contains("out [redacted]") && seen.contains("err [redacted]"), "{seen}");
    let encoded = STANDARD.encode(SECRET);
    assert!(!seen.contains(SECRET) && !seen.contains(&encoded), "{seen}");
    drop(server);
    for file in files(&place.data()) {
        let bytes = std::fs::read(&file).unwrap();
        for form in [SECRET, &encoded] {
            assert!(!bytes.windows(form.len()).any(|window| window == form.as_bytes()), "{}", file.display());
        }
    }
}

/// Steps are processes of the server's user. Under /proc they could read what the server holds.
#[test]
fn a_step_cannot_look_into_the_process_of_the_server() {
    const NOBODY: u32 = 65_534;
    let place = Place::new();
    let mut command = place.server_command();
    // Root may read the memory of every process, so the server runs as another user.
    if rustix::process::getuid().is_root() {
        chown(place.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let server = Server::start(command, &place.data());
    let id = server.define(
        "metadata: {name: look}\nworkload: {pid: 0}\nworkflow:\n- step: look\n  tool:\n    kind: shell\n    env: {P: '{{ workload.pid }}'}\n    command: 'cat /proc/self/environ > /dev/null && echo own; cat /proc/$P/environ > /dev/null && echo server'\n",
    );
    let body = json!({ "inputs": { "pid": server.process() }, "options": { "async": false } });
    let (_, answer) = server.post(&format!("/api/v1/workflows/{id}/execute"), &body);
    let error = answer["nodeResults"].to_string();
    assert!(error.contains("\"stdout\":\"own\\n\"") && error.contains("Permission denied"), "{answer}");
}

struct Echo<'s> {
    stage: &'s Stage,
    token: String,
    path: String,
}

impl Echo<'_> {
    fn new<'s>(stage: &'s Stage, definition: &str) -> Echo<'s> {
        let token = stage.token("developer");
        let (status, made) = stage.upload(&token, definition);
        assert!(status.is_success(), "{made}");
        let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
        Echo { stage, token: stage.token("member"), path }
    }

    /// What the step printed of the text, as a member of the tenant sees it.
    fn said(&self, text: &str) -> String {
        let body = json!({ "inputs": { "text": text }, "options": { "async": false } });
        let (status, answer) = self.stage.send(&self.token, Method::POST, &self.path, &body);
        assert_eq!(status, StatusCode::OK, "{answer}");
        let output = &answer["nodeResults"]["say"]["output"];
        let said = output.get("said").or_else(|| output["results"]["echo"].get("said"));
        said.and_then(Value::as_str).unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    #[track_caller]
    fn all_unchanged(&self, guesses: &[String]) {
        let mut batch = String::new();
        for (at, guess) in guesses.iter().enumerate() {
            batch.push_str(guess);
            batch.push_str(" | ");
            if batch.len() > BATCH || at + 1 == guesses.len() {
                assert_eq!(self.said(&batch), batch);
                batch.clear();
            }
        }
    }
}

#[test]
fn a_secret_in_the_host_of_a_url_is_found_in_lower_case() {
    let stage = Stage::new();
    let token = stage.token("developer");
    set(&stage, "SHOP_KEY", SECRET);
    set(&stage, "SHOP_URL", &format!("https://{SECRET}.Invalid/Path"));
    for url in ["https://{{ SHOP_KEY }}.invalid/x", "https://a.{{ SHOP_KEY }}.invalid", "{{ SHOP_URL }}"] {
        let node = json!({ "id": "a", "type": "http_api", "config": { "url": url }, "retryPolicy": { "maxRetries": 0 } });
        let ended = stage
            .ended(&token, &stage.start(&token, &json!({ "name": "shop", "nodes": [node], "edges": [] })));
        assert_eq!(ended["status"], "failed", "{ended}");
        let message = ended["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains("[redacted]"), "the URL is reported: {ended}");
        assert!(!ended.to_string().to_lowercase().contains(&SECRET.to_lowercase()), "{ended}");
    }
    drop(stage.server);
    for file in files(&stage.place.data()) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).to_lowercase();
        assert!(!text.contains(&SECRET.to_lowercase()), "{}", file.display());
    }
}

fn set(stage: &Stage, name: &str, value: &str) -> Value {
    let admin = stage.token("admin");
    let path = format!("/api/v1/secrets/{name}");
    let (status, answer) = stage.send(&admin, Method::PUT, &path, &json!({ "value": value }));
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

fn run(stage: &Stage, token: &str, definition: &str, inputs: &Value) -> Value {
    let (status, made) = stage.upload(token, definition);
    assert!(status.is_success(), "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let body = json!({ "inputs": inputs, "options": { "async": false } });
    stage.send(token, Method::POST, &path, &body).1
}

fn answer_once(listener: &TcpListener, body: &str) {
    let (mut asked, _) = listener.accept().unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && asked.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n";
    write!(asked, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
}
