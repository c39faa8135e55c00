//! A server that speaks chat completions, says what it is reported to, and keeps what it was asked.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub const TOKENS_PER_ANSWER: u64 = 5;

/// One request.
#[derive(Debug, Clone)]
pub struct Asked {
    pub body: Value,
    /// The header of that name.
    pub authorization: Option<String>,
}

impl Asked {
    /// Returns the results of earlier tool calls, as the model receives them.
    pub fn results(&self) -> Vec<Value> {
        let messages = self.body["messages"].as_array().unwrap().iter();
        let answer = messages.filter(|message| message["role"] == "tool");
        answer.map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap()).collect()
    }
}

/// Reply to one request.
pub enum Reply {
    /// A message of the assistant.
    Says(Value),
    /// Anything else: status, headers, body.
    Other(&'static str, &'static str, String),
    /// Nothing, and the connection is closed.
    Nothing,
}

pub fn text(words: &str) -> Reply {
    Reply::Says(json!({ "role": "assistant", "content": words }))
}

pub fn calls(tool: &str, arguments: &Value) -> Reply {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    Reply::Says(json!({ "role": "assistant", "content": null,
        "tool_calls": [{ "id": "c1", "type": "function", "function": function }] }))
}

pub fn busy(status: &'static str, retry_after: &'static str) -> Reply {
    Reply::Other(status, retry_after, json!({ "error": { "message": "come back later" } }).to_string())
}

pub struct Model {
    /// URL of the server, for `baseUrl`.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Model {
    /// `answer` gets the number of the request, from 0, and the request. It may take its time: each has its own thread.
    pub fn start(answer: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (heard, answer) = (Arc::clone(&heard), Arc::clone(&answer));
                std::thread::spawn(move || meet(stream.unwrap(), &heard, &*answer));
            }
        });
        Model { url, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// One that calls the first tool it is offered, and is done when it has heard its result.
pub fn model() -> String {
    let answer = |_, asked: &Asked| match asked.results().is_empty() {
        true => calls(asked.body["tools"][0]["function"]["name"].as_str().unwrap(), &json!({})),
        false => text("it is done"),
    };
    Model::start(answer).url
}

fn meet(mut stream: TcpStream, heard: &Mutex<Vec<Asked>>, answer: &dyn Fn(usize, &Asked) -> Reply) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let head: Vec<String> =
        reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        let mut fields = head.iter().filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    if reader.read_exact(&mut body).is_err() || body.is_empty() {
        return;
    }
    let body = serde_json::from_slice(&body).unwrap();
    let asked = Asked { body, authorization: header("authorization") };
    let number = {
        let mut heard = heard.lock().unwrap();
        heard.push(asked.clone());
        heard.len() - 1
    };
    let (status, more, body) = match answer(number, &asked) {
        Reply::Says(message) => {
            let usage = json!({ "total_tokens": TOKENS_PER_ANSWER });
            let answer =
                json!({ "choices": [{ "message": message, "finish_reason": "stop" }], "usage": usage });
            ("200 OK", "content-type: application/json\r\n", answer.to_string())
        }
        Reply::Other(status, headers, body) => (status, headers, body),
        Reply::Nothing => return,
    };
    let length = body.len();
    // The client may be gone.
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{more}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
}
