//! A server of the attacker that answers requests of steps.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Answers every request with the same bytes.
pub struct Origin {
    pub url: String,
}

impl Origin {
    /// Starts an origin that sends JSON, in an encoding if one is given.
    pub fn json(encoding: Option<&str>, body: Vec<u8>) -> Origin {
        let encoding = encoding.map(|name| format!("content-encoding: {name}\r\n")).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{encoding}connection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let answer = Arc::new([head.into_bytes(), body].concat());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answer = Arc::clone(&answer);
                thread::spawn(move || respond(stream, &answer));
            }
        });
        Origin { url }
    }
}

/// Sends the answer; the client may disconnect before all of it is sent.
fn respond(mut stream: TcpStream, answer: &[u8]) {
    let head = BufReader::new(stream.try_clone().unwrap());
    head.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
    let _ = stream.write_all(answer);
}
