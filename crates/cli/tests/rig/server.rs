//! A server in a process of its own, and a client that says what it expects.

use super::program::{PATIENCE, Running, until};
use reqwest::blocking::{Client, RequestBuilder, Response};
use reqwest::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// A server that listens. Dropping it kills it.
pub struct Server {
    running: Running,
    url: String,
    token: String,
    client: Client,
}

impl Server {
    /// Waits until it listens and is ready, or says that its disk is full.
    pub fn start(command: Command, data: &Path) -> Server {
        let mut running = Running::start(command);
        let line = running.until_says("listening on ");
        let url = line.trim().strip_prefix("listening on ").expect("its address").to_owned();
        let token = std::fs::read_to_string(data.join("owner.token")).expect("a token").trim().to_owned();
        let client = Client::builder().danger_accept_invalid_certs(true).timeout(PATIENCE).build();
        let server = Server { running, url, token, client: client.expect("a client") };
        until("the server is ready", || {
            let ready = server.get("/readyz");
            let is_up =
                ready.status() == StatusCode::OK || ready.text().is_ok_and(|text| text.contains("DISK_FULL"));
            is_up.then_some(())
        });
        server
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").expect("no TLS")
    }

    pub fn process(&self) -> u32 {
        self.running.pid()
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// A request without a token.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// A request of the owner.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(&self.token)
    }

    pub fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().expect("an answer")
    }

    /// A body, and the answer's status and JSON.
    pub fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        read_answer(self.request(Method::POST, path).json(body).send().expect("an answer"))
    }

    /// Registers a definition; its id.
    #[track_caller]
    pub fn define(&self, text: &str) -> String {
        let request =
            self.request(Method::POST, "/api/v1/workflows").header("Content-Type", "application/yaml");
        let (status, made) = read_answer(request.body(text.to_owned()).send().expect("an answer"));
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made["id"].as_str().expect("an id").to_owned()
    }

    /// Reads what the server says until those words come.
    pub fn until_said(&mut self, words: &str) {
        self.running.until_says(words);
    }

    /// Asks it to end, and waits; what it said in its life.
    pub fn stop(self) -> (ExitStatus, String) {
        self.running.signal(Signal::TERM);
        let (status, _, said) = self.running.ended();
        (status, said)
    }

    /// Waits until it ends by itself; what it said in its life.
    pub fn ended(self) -> (ExitStatus, String) {
        let (status, _, said) = self.running.ended();
        (status, said)
    }

    /// Kills the server without warning, like a power failure.
    pub fn kill(self) {
        self.running.signal(Signal::KILL);
        self.running.ended();
    }
}

#[track_caller]
pub fn read_answer(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let text = response.text().expect("a text");
    let output = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{status}: {error}: {text}"));
    (status, output)
}
