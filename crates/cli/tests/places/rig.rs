//! The program in a folder, beside a server.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Told {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Told {
    #[track_caller]
    pub fn expect(self, code: i32) -> Told {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn says(self, part: &str) -> Told {
        assert!(self.err.contains(part), "`{part}` is missing in:\n{}", self.err);
        self
    }
}

/// A folder with files, and where the commands in it work.
pub struct Place {
    dir: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Place {
    pub fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    /// Commands ask this server, as its owner.
    pub fn at(self, server: &Server) -> Place {
        self.with("WINDLASS_URL", server.url()).with("WINDLASS_TOKEN", &server.token())
    }

    pub fn with(mut self, variable: &'static str, value: &str) -> Place {
        self.variables.push((variable, value.to_owned()));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Works in the folder, without settings of whoever runs the tests.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WINDLASS_") {
                command.env_remove(name);
            }
        }
        command.args(args).current_dir(self.dir.path()).env("NO_COLOR", "1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn windlass(&self, args: &[&str]) -> Told {
        self.given(args, "")
    }

    /// With this on standard input.
    pub fn given(&self, args: &[&str], input: &str) -> Told {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // A program that does not read it may have ended.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let told = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Told { code: told.status.code().unwrap(), out: text(told.stdout), err: text(told.stderr) }
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running::of(self.command(args).spawn().unwrap())
    }

    /// A server over the folder `.windlass` here.
    pub fn serve(&self) -> Server {
        self.serve_on("127.0.0.1:0")
    }

    pub fn serve_on(&self, address: &str) -> Server {
        let mut running = Running::of(self.command(&["serve", "--listen", address]).spawn().unwrap());
        let line = running.until_says("listening on ");
        let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Server { running, url, token: self.path(".windlass/owner.token") }
    }
}

pub struct Server {
    running: Running,
    url: String,
    token: PathBuf,
}

impl Server {
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub fn token(&self) -> String {
        fs::read_to_string(&self.token).unwrap().trim().to_owned()
    }

    /// As if the machine had lost its power.
    pub fn kill(self) {
        self.running.signal(Signal::KILL);
        self.running.end();
    }
}

/// The program while it runs; killed at the end of a test that forgets it.
pub struct Running {
    child: Child,
    words: BufReader<ChildStderr>,
    seen: String,
}

impl Running {
    fn of(mut child: Child) -> Running {
        let words = BufReader::new(child.stderr.take().unwrap());
        Running { child, words, seen: String::new() }
    }

    /// Waits for a line on stderr with this in it.
    #[track_caller]
    pub fn until_says(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(
                self.words.read_line(&mut line).unwrap() > 0,
                "`{part}` was not said, but:\n{}",
                self.seen
            );
            self.seen.push_str(&line);
            if line.contains(part) {
                return line;
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; the code is None when a signal ended it.
    pub fn end(mut self) -> (Option<i32>, String, String) {
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.words.read_to_string(&mut rest).unwrap();
        self.seen.push_str(&rest);
        (status.code(), out, std::mem::take(&mut self.seen))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A playbook of these steps.
pub fn playbook(name: &str, steps: &str) -> String {
    format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}, path: {name}}}\n{steps}")
}
