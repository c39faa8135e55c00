//! Reports of `windlass worker` behind a proxy that accepts only small requests, as proxies do.

use crate::executions::until;
use crate::rig::{Place, Running, Server};
use crate::runners::{self, LAB};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// Bytes of a request with calls that the proxy accepts.
const ACCEPTED: usize = 8_000;

const TOO_LARGE: &[u8] =
    b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 13\r\nconnection: close\r\n\r\n<html></html>";

/// Returns the URL of the proxy.
fn proxy(server: &Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let address = server.address().to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let address = address.clone();
            std::thread::spawn(move || pass_on(&client, &address));
        }
    });
    url
}

/// Passes one request on, and its answer back. Each has a connection of its own.
fn pass_on(mut client: &TcpStream, address: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut head: Vec<String> = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length =
        head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    if head[0].contains("/workers/calls") && body.len() > ACCEPTED {
        return client.write_all(TOO_LARGE);
    }
    let mut there = TcpStream::connect(address)?;
    write!(there, "{}\r\nconnection: close\r\n\r\n", head.join("\r\n"))?;
    there.write_all(&body)?;
    std::io::copy(&mut there, &mut client)?;
    client.shutdown(std::net::Shutdown::Both)
}

/// Starts a worker behind the proxy and waits until it has registered.
fn worker_behind(place: &Place, server: &Server) -> Running {
    let token = runners::worker_token(server);
    runners::worker_of(place, &proxy(server), &token, &LAB)
}

#[test]
fn a_report_that_is_too_large_fails_its_step_and_the_worker_goes_on() {
    let place = runners::place();
    let server = place.serve();
    let _worker = worker_behind(&place, &server);
    let large = "metadata: {name: large}\nworkflow:\n\
                 - step: a\n  tool: {kind: python, code: 'return {\"text\": \"x\" * 20000}'}\n";
    let id = runners::start(&server, &server.define(large));
    let failed = until(&server, &id, "failed");
    let error = &failed["nodeExecutions"][0]["error"];
    assert_eq!(error["code"], "RESULT_TOO_LARGE", "{failed}");
    let message = error["message"].as_str().unwrap();
    for part in ["the report of the step", "the request has 20", "413", "return less", "proxy"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let small =
        "metadata: {name: small}\nworkflow:\n- {step: a, tool: {kind: python, code: 'return {\"n\": 1}'}}\n";
    let id = runners::start(&server, &server.define(small));
    until(&server, &id, "completed");
}

#[test]
fn reports_that_are_too_large_together_arrive_each_once() {
    let place = runners::place();
    let server = place.serve();
    let _worker = worker_behind(&place, &server);
    let book = "metadata: {name: many}\nworkload: {items: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}\nworkflow:\n\
                - step: a\n  loop: {in: '{{ workload.items }}', iterator: item, spec: {mode: parallel, max_in_flight: 12}}\n\
                \x20 tool: {kind: python, code: 'return {\"text\": \"x\" * 5000}'}\n";
    let id = runners::start(&server, &server.define(book));
    let ended = until(&server, &id, "completed");
    let reports = ended.to_string().matches(&"x".repeat(5_000)).count();
    assert!(reports >= 12, "{reports} reports");
}
