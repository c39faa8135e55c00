//! A server that speaks chat completions: it calls the first tool it is offered, and is done when it has heard its result.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Where it is, as `baseUrl`.
pub fn model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let head: Vec<String> =
        reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let length =
        head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if reader.read_exact(&mut body).is_err() || body.is_empty() {
        return;
    }
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let heard = asked["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool");
    let message = match heard {
        true => json!({ "role": "assistant", "content": "it is done" }),
        false => {
            let function = json!({ "name": asked["tools"][0]["function"]["name"], "arguments": "{}" });
            json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "c1", "type": "function", "function": function }] })
        }
    };
    let body =
        json!({ "choices": [{ "message": message, "finish_reason": "stop" }], "usage": { "total_tokens": 5 } })
            .to_string();
    let length = body.len();
    // Whoever asked may be gone.
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
}
