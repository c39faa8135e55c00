//! A receiver of webhooks: a plain HTTP server that keeps what it was sent.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Long enough for a slow machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn event(&self) -> String {
        self.json()["event"].as_str().unwrap().to_owned()
    }
}

type Answer = dyn Fn(usize, &Received) -> String + Send + Sync;

/// Requests that arrived, in their order.
pub struct Receiver {
    pub url: String,
    kept: Arc<(Mutex<Vec<Received>>, Condvar)>,
}

impl Receiver {
    /// Takes everything.
    pub fn new() -> Receiver {
        Receiver::answering(|_, _| "200 OK".to_owned())
    }

    /// `answer` says the status, and may add headers, by how many came before.
    pub fn answering(answer: impl Fn(usize, &Received) -> String + Send + Sync + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let kept: Arc<(Mutex<Vec<Received>>, Condvar)> = Arc::default();
        let (keeping, answer): (_, Arc<Answer>) = (kept.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, keeping, answer) = (stream.unwrap(), keeping.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &keeping, &*answer));
            }
        });
        Receiver { url, kept }
    }

    pub fn all(&self) -> Vec<Received> {
        self.kept.0.lock().unwrap().clone()
    }

    /// Waits until what came is enough.
    pub fn until(&self, is_enough: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let (kept, bell) = &*self.kept;
        let locked = kept.lock().unwrap();
        let (locked, waited) =
            bell.wait_timeout_while(locked, PATIENCE, |received| !is_enough(received)).unwrap();
        let came: Vec<String> = locked.iter().map(Received::event).collect();
        assert!(!waited.timed_out(), "only this came: {came:?}");
        locked.clone()
    }
}

fn serve(stream: TcpStream, kept: &(Mutex<Vec<Received>>, Condvar), answer: &Answer) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(received) = request(&mut reader) {
        let before = {
            let mut all = kept.0.lock().unwrap();
            all.push(received.clone());
            kept.1.notify_all();
            all.len() - 1
        };
        let answer = answer(before, &received);
        if write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// None: the other side is gone.
fn request(reader: &mut impl BufRead) -> Option<Received> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length: usize = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received { path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
