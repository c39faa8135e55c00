//! Clients without a token: silent sockets, odd methods, WebSockets that never say who they are, clients that never read.

use crate::rig::{Place, Server, read_answer, until};
use crate::stage::Stage;
use reqwest::blocking::Client;
use reqwest::{Method, StatusCode};
use serde_json::json;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio_tungstenite::tungstenite::{self, Message};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Open files of the server.
fn open_files(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.process())).unwrap().count()
}

fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.address()).unwrap()
}

/// Comes back only when the server has ended the connection.
fn is_ended(mut stream: &TcpStream) -> bool {
    loop {
        match stream.read(&mut [0; 65_536]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// Runs one step with a process and waits for it; the requests come from another address of this machine.
fn runs_a_process(server: &Server) {
    let client = Client::builder().local_address("127.0.0.2".parse::<IpAddr>().unwrap()).build().unwrap();
    let post = |path: &str, kind: &str, body: String| {
        let request = client.post(format!("{}{path}", server.url())).bearer_auth(server.token());
        read_answer(request.header("Content-Type", kind).body(body).send().unwrap()).1
    };
    let text =
        "metadata: {name: process}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'echo done'}}\n";
    let made = post("/api/v1/workflows", "application/yaml", text.to_owned());
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let ended = post(&path, "application/json", r#"{"options": {"async": false}}"#.to_owned());
    assert_eq!(ended["status"], "completed", "{ended}");
}

#[test]
fn a_connection_that_says_nothing_or_too_little_is_closed() {
    let place = Place::new().with(&["--header-timeout", "100ms", "--idle-timeout", "200ms"]);
    let server = place.serve();
    let (silent, preface, head, used) =
        (connect(&server), connect(&server), connect(&server), connect(&server));
    (&preface).write_all(b"PRI * HTTP/2.0\r\n").unwrap();
    (&head).write_all(b"GET /healthz HTTP/1.1\r\nX-Slow: ").unwrap();
    (&used).write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    for (stream, what) in
        [(silent, "silent"), (preface, "half a preface"), (head, "half a head"), (used, "idle")]
    {
        assert!(is_ended(&stream), "{what}");
    }
    let http2 = connect(&server);
    (&http2).write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    assert!(is_ended(&http2), "HTTP/2 without a request");
}

/// The command with another limit on open files.
fn with_open_files(command: &Command, limit: u32) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {limit}; exec \"$@\""), "sh"]).arg(command.get_program());
    limited.args(command.get_args()).current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    limited
}

#[test]
fn silent_connections_leave_open_files_for_steps_and_places_for_others() {
    let flags = ["--slots", "4", "--header-timeout", "1h", "--max-connections-per-address", "150"];
    let place = Place::new().with(&flags);
    let server = Server::start(with_open_files(&place.server_command(), 800), &place.data());
    let silent: Vec<TcpStream> = (0..790).map(|_| connect(&server)).collect();
    runs_a_process(&server);
    assert!(open_files(&server) < 400, "the engine's part is left");
    drop(silent);
}

#[test]
fn a_limit_on_open_files_that_leaves_nothing_for_connections_is_reported_at_the_start() {
    let place = Place::new().with(&["--slots", "4"]);
    let limited = with_open_files(&place.server_command(), 300);
    let answer = crate::rig::CommandOutput::of(limited);
    assert_ne!(answer.code, 0);
    assert!(answer.err.contains("300 open files") && answer.err.contains("LimitNOFILE"), "{}", answer.err);
    let asked = Place::new().with(&["--slots", "4", "--max-connections", "5000"]);
    let mut server = crate::rig::Running::start(with_open_files(&asked.server_command(), 800));
    server.until_says("max-connections is 5000, but the limit on open files permits 224");
}

#[test]
fn programs_of_steps_have_the_attributes_that_the_server_was_started_with() {
    let place = Place::new();
    let mut command = place.server_command();
    command.env("WINDLASS_SLOTS", "2");
    let mut limited = Command::new("sh");
    limited.args(["-c", "umask 027; ulimit -S -n 700; exec \"$@\"", "sh"]).arg(command.get_program());
    limited.args(command.get_args()).current_dir(command.get_current_dir().unwrap());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = Server::start(limited, &place.data());
    let text = "metadata: {name: limits}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'umask; ulimit -S -n; grep THP_enabled /proc/self/status'}}\n";
    let path = format!("/api/v1/workflows/{}/execute", server.define(text));
    let (_, ended) = server.post(&path, &json!({ "options": { "async": false } }));
    assert_eq!(ended["outputs"]["stdout"], "0027\n700\nTHP_enabled:\t1\n", "{ended}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process())).unwrap();
    assert!(status.contains("THP_enabled:\t0"), "{status}");
}

#[test]
fn unknown_methods_are_one_label_of_the_metrics() {
    let stage = Stage::new();
    let metrics = || stage.server.get("/metrics").text().unwrap();
    let before = metrics().len();
    let stream = connect(&stage.server);
    let mut request = String::new();
    for number in 0..2_000 {
        let token = stage.server.token();
        request +=
            &format!("ODD{number} /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    }
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(request.as_bytes()));
    let mut answered = 0;
    let (mut reader, mut buffer) = (&stream, vec![0; 65_536]);
    while answered < 2_000 {
        let read = reader.read(&mut buffer).unwrap();
        assert_ne!(read, 0, "the connection ended after {answered} answers");
        answered += String::from_utf8_lossy(&buffer[..read]).matches("HTTP/1.1 405").count();
    }
    writing.join().unwrap().unwrap();
    let after = metrics();
    assert!(!after.contains("ODD") && after.contains("method=\"other\""), "{after}");
    assert!(after.len() < before + 10_000, "{before} bytes have become {}", after.len());
}

#[test]
fn a_websocket_takes_a_place_only_when_it_has_said_who_it_is() {
    let place = Place::new().with(&["--max-streams", "2", "--tenant-streams", "1"]);
    let stage = Stage::at(place);
    let asks =
        json!({ "name": "asks", "nodes": [{ "id": "ask", "type": "approval", "config": {} }], "edges": [] });
    let workflow = stage.server.define(&asks.to_string());
    let (_, started) = stage.server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({}));
    let id = started["executionId"].as_str().unwrap();
    let address = stage.server.address();
    let open = || {
        let url = format!("ws://{address}/ws/executions/{id}");
        tungstenite::client(url, connect(&stage.server)).unwrap().0
    };
    let _strangers: Vec<_> = (0..20).map(|_| open()).collect();
    let subscribe = || {
        let mut socket = open();
        let message = json!({ "type": "subscribe", "token": stage.server.token() });
        socket.send(Message::Text(message.to_string().into())).unwrap();
        let first = socket.read().unwrap();
        (socket, first)
    };
    let (held, first) = subscribe();
    assert!(matches!(first, Message::Text(_)), "strangers took no place: {first:?}");
    match subscribe().1 {
        Message::Close(Some(frame)) => {
            assert_eq!(u16::from(frame.code), 4429);
            assert!(frame.reason.contains("the tenant has 1 streams open"), "{frame}");
        }
        other => panic!("{other:?}"),
    }
    drop(held);
    until("the place is free", || matches!(subscribe().1, Message::Text(_)).then_some(()));
}

#[test]
fn pings_of_a_client_that_reads_no_answer_take_no_memory() {
    let stage = Stage::new();
    let mut socket = connect(&stage.server);
    let path = format!("/ws/executions/exec_{}", "0".repeat(32));
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).unwrap();
    assert!(socket.read(&mut [0; 4096]).unwrap() > 0);
    let before = stage.memory_mib();
    // Pings with 125 bytes each, under a mask of zeros; sent until the server takes no more.
    let pings = [&[0x89, 0xFD, 0, 0, 0, 0][..], &[b'x'; 125]].concat().repeat(500);
    socket.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let sent = (0..4000).take_while(|_| socket.write_all(&pings).is_ok()).count();
    assert!(sent < 4000, "the server takes pings without end");
    let after = stage.memory_mib();
    assert!(after < before + 64, "{after} MiB after {sent} parts of pings, {before} MiB before");
}

#[test]
fn a_client_that_never_reads_is_cut_off() {
    let place = Place::new().with(&["--write-timeout", "200ms"]);
    let server = place.serve();
    let mut stream = connect(&server);
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let token = server.token();
    let one = format!("GET /api/openapi.json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    // The server stops to read when its answers are not taken: only its end of the connection ends this.
    let written = stream.write_all(one.repeat(100_000).as_bytes());
    let cut = written.expect_err("more than the buffers of both sides hold").kind();
    assert!(matches!(cut, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{cut:?}");
    assert_eq!(server.get("/api/v1/workflows").status(), StatusCode::OK);
}

#[test]
fn requests_without_a_good_token_are_counted_by_their_address_and_good_ones_are_not() {
    let place = Place::new().with(&["--anonymous-rate-limit", "1"]);
    let server = place.serve();
    let refused = |what: &str, ask: &dyn Fn() -> StatusCode| {
        until(what, || (ask() == StatusCode::TOO_MANY_REQUESTS).then_some(()));
    };
    let bare = |path: &str| server.bare(Method::GET, path);
    refused("guesses of tokens", &|| bare("/api/v1/workflows").bearer_auth("wdl_x").send().unwrap().status());
    refused("no token", &|| bare("/metrics").send().unwrap().status());
    refused("search for hooks", &|| bare("/hooks/nowhere").send().unwrap().status());
    let response = bare("/api/v1/workflows").send().unwrap();
    assert!(response.headers().contains_key("Retry-After"), "{response:?}");
    for _ in 0..20 {
        assert_eq!(bare("/healthz").send().unwrap().status(), StatusCode::OK);
        assert_eq!(server.get("/api/v1/workflows").status(), StatusCode::OK);
    }
}

#[test]
fn responses_are_neither_kept_nor_guessed_at_by_browsers_and_links_name_no_strangers_host() {
    let place = Place::new();
    let server = place.serve();
    for (path, status) in [("/api/v1/workflows", 200), ("/nowhere", 404), ("/healthz", 200)] {
        let response = server.get(path);
        assert_eq!(response.status().as_u16(), status);
        let header =
            |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header("X-Content-Type-Options").as_deref(), Some("nosniff"), "{path}");
        assert_eq!(header("Cache-Control").as_deref(), Some("no-store"), "{path}");
        assert_eq!(header("Referrer-Policy").as_deref(), Some("no-referrer"), "{path}");
        assert!(header("Content-Security-Policy").unwrap().contains("default-src 'none'"), "{path}");
    }
    let link = |server: &Server| {
        let text = "metadata: {name: a}\nworkflow:\n- {step: a, tool: {kind: noop}}\n";
        let path = format!("/api/v1/workflows/{}/execute", server.define(text));
        let request = server.request(Method::POST, &path).json(&json!({}));
        let request = request.header("X-Forwarded-Host", "evil.example").header("X-Forwarded-Proto", "https");
        read_answer(request.send().unwrap()).1["links"]["websocket"].as_str().unwrap().to_owned()
    };
    assert!(link(&server).starts_with(&format!("ws://{}/", server.address())), "{}", link(&server));
    drop(server);
    let proxied = Place::new().with(&["--trust-proxy", "127.0.0.1"]).serve();
    assert!(link(&proxied).starts_with("wss://evil.example/"), "a proxy that is trusted is believed");
}
