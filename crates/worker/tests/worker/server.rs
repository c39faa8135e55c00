//! A server for one test: the test receives each request and sends the answer, byte by byte.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::engine::PATIENCE;

#[derive(Debug, Clone)]
pub struct Seen {
    /// `GET /path?query`
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

type Answer = dyn Fn(&Seen) -> Vec<u8> + Send + Sync;

pub struct Server {
    pub port: u16,
    seen: Receiver<Option<Seen>>,
}

impl Server {
    /// Starts a server. If `answer` returns no bytes, the server waits until the client disconnects.
    pub fn start(answer: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, seen) = channel();
        let answer: Arc<Answer> = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (sender, answer) = (sender.clone(), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &sender, &answer));
            }
        });
        Server { port, seen }
    }

    pub fn answering(answer: &str) -> Server {
        let answer = answer.to_owned().into_bytes();
        Server::start(move |_| answer.clone())
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The next request.
    pub fn request(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).unwrap().expect("a request, not a hang-up")
    }

    /// Waits until a client disconnects that was not answered.
    pub fn hung_up(&self) {
        assert!(self.seen.recv_timeout(PATIENCE).unwrap().is_none());
    }

    /// Requests that came and were not looked at.
    pub fn others(&self) -> usize {
        self.seen.try_iter().count()
    }

    /// Takes the requests that came and were not looked at.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.try_iter().flatten().collect()
    }
}

pub fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

fn serve(mut stream: TcpStream, sender: &Sender<Option<Seen>>, answer: &Arc<Answer>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = (&mut reader).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let Some(first) = lines.next() else { return };
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": ").map(|(k, v)| (k.to_lowercase(), v.to_owned())))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let line = first.rsplit_once(' ').unwrap().0.to_owned();
    let seen = Seen { line, headers, body: String::from_utf8(body).unwrap() };
    let bytes = answer(&seen);
    let _ = sender.send(Some(seen));
    if bytes.is_empty() {
        let _ = reader.read(&mut [0]);
        let _ = sender.send(None);
    }
    // Who has enough hangs up.
    let _ = stream.write_all(&bytes);
}
