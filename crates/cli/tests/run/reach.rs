//! Addresses that http tasks can reach, with the environment of the process.

use crate::rig::{CommandOutput, Place};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

/// Serves forever, and sends the first line of each request to the test.
fn server(body: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut seen = [0; 4096];
            let _ = stream.read(&mut seen);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
        }
    });
    port
}

const FETCH: &str = "workload: {url: none}
workflow:
- step: fetch
  tool: {kind: http, url: '{{ workload.url }}'}
";

#[test]
fn a_run_reaches_this_machine_without_a_proxy_of_the_environment() {
    let (direct, proxy) = (server(r#"{"by": "the server"}"#), server(r#"{"by": "a proxy"}"#));
    let proxy = format!("http://127.0.0.1:{proxy}");
    let place = Place::playing(FETCH);
    let mut command = place.command(&["run", "play.yaml", "--json", "--input"]);
    command.arg(format!("url=http://127.0.0.1:{direct}/"));
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, &proxy);
    }
    let output = CommandOutput::of(command).expect(0).json();
    assert_eq!(output["outputs"]["data"]["by"], "the server");
}

#[test]
fn metadata_services_stay_closed_under_every_allow_list() {
    let place = Place::playing(FETCH);
    let mut command =
        place.command(&["run", "play.yaml", "--json", "--input", "url=http://169.254.169.254/"]);
    command.env("WINDLASS_EGRESS_ALLOW", "169.254.0.0/16,0.0.0.0/0");
    let output = CommandOutput::of(command).expect(1).json();
    assert_eq!(output["errors"][0]["code"], "EGRESS_REFUSED", "{output}");
}

#[test]
fn a_list_that_cannot_be_read_is_reported_before_anything_runs() {
    let place = Place::playing(FETCH);
    let mut command = place.command(&["run", "play.yaml"]);
    command.env("WINDLASS_EGRESS_ALLOW", "10.0.0.0/8,intranet");
    CommandOutput::of(command)
        .expect(2)
        .says("WINDLASS_EGRESS_ALLOW")
        .says("`intranet` is not a range of addresses");
}
