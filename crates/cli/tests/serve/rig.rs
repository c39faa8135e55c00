//! A server in a process of its own, and a client that says what it expects.

use reqwest::blocking::{Client, RequestBuilder, Response};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// A folder of data, and the flags its servers get.
pub struct Place {
    folder: TempDir,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
}

/// A server that listens. Dropping it kills it.
pub struct Server {
    child: Child,
    words: BufReader<ChildStderr>,
    url: String,
    token: String,
    client: Client,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap(), flags: Vec::new(), variables: Vec::new() }
    }

    pub fn with(mut self, flags: &[&str]) -> Place {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Place {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn command(&self) -> Command {
        let mut command = windlass();
        command
            .env("WINDLASS_LISTEN", "127.0.0.1:0")
            .args(["serve", "--data"])
            .arg(self.data())
            .args(&self.flags);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Starts a server and waits until it listens and is ready.
    pub fn serve(&self) -> Server {
        let mut child = self.command().spawn().unwrap();
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let url = listening(&mut words);
        let token = std::fs::read_to_string(self.data().join("owner.token")).unwrap().trim().to_owned();
        let client = Client::builder().danger_accept_invalid_certs(true).build().unwrap();
        let server = Server { child, words, url, token, client };
        while server.get("/readyz").status() != StatusCode::OK {
            std::thread::yield_now();
        }
        server
    }

    /// Starts a server that does not come to listen; what it says before it ends.
    pub fn refuse(&self) -> (ExitStatus, String) {
        let output = self.command().output().unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    }
}

/// The program, without settings of whoever runs the tests.
pub fn windlass() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WINDLASS_") {
            command.env_remove(name);
        }
    }
    command
}

fn listening(words: &mut impl BufRead) -> String {
    let mut said = String::new();
    loop {
        let mut line = String::new();
        assert!(words.read_line(&mut line).unwrap() > 0, "the server ended before it listened: {said}");
        if let Some(url) = line.trim().strip_prefix("listening on ") {
            return url.to_owned();
        }
        said.push_str(&line);
    }
}

impl Server {
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn process(&self) -> u32 {
        self.child.id()
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
        self.request(Method::GET, path).send().unwrap()
    }

    /// A body, and the answer's status and JSON.
    pub fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        told(self.request(Method::POST, path).json(body).send().unwrap())
    }

    /// Registers a definition; its id.
    pub fn define(&self, text: &str) -> String {
        let request =
            self.request(Method::POST, "/api/v1/workflows").header("Content-Type", "application/yaml");
        let (status, made) = told(request.body(text.to_owned()).send().unwrap());
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    /// Reads what the server says until those words come.
    pub fn until_said(&mut self, words: &str) {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert!(
                self.words.read_line(&mut line).unwrap() > 0,
                "the server ended and did not say `{words}`"
            );
        }
    }

    /// Asks it to end, and waits; what it said meanwhile.
    pub fn stop(mut self) -> (ExitStatus, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.words.read_to_string(&mut said).unwrap();
        (status, said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn told(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let text = response.text().unwrap();
    let told = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{status}: {error}: {text}"));
    (status, told)
}

/// Every file under a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
