//! The program: run to its end, or held while it runs.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Asks again until there is an answer.
#[track_caller]
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

/// Returns the program: the one of this build, or another build that `WINDLASS_BIN` names, for measurements.
pub fn binary() -> std::ffi::OsString {
    std::env::var_os("WINDLASS_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_windlass").into())
}

/// The program, without settings of the user who runs the tests.
pub fn windlass() -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WINDLASS_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Output and status of a program that has ended.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    pub fn of(mut command: Command) -> CommandOutput {
        CommandOutput::from(command.output().expect("the program runs"))
    }

    /// Runs a command with these bytes on standard input.
    pub fn given(mut command: Command, input: &[u8]) -> CommandOutput {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program runs");
        // A program that does not read it may have ended.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        CommandOutput::from(child.wait_with_output().expect("it ends"))
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> CommandOutput {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn says(self, part: &str) -> CommandOutput {
        assert!(self.err.contains(part), "`{part}` is missing in:\n{}", self.err);
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> CommandOutput {
        let text = |bytes| String::from_utf8(bytes).expect("the output is text");
        CommandOutput {
            code: output.status.code().expect("an exit code"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

/// The program while it runs; killed at the end of a test that forgets it.
pub struct Running {
    child: Child,
    stdout: ChildStdout,
    /// Read by its own thread, because a program whose output is not read blocks.
    lines: Receiver<String>,
    /// Lines on stderr so far.
    seen: Vec<String>,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        let mut child = command.spawn().expect("the program runs");
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdout = child.stdout.take().expect("a pipe");
        Running { child, stdout, lines, seen: Vec::new() }
    }

    /// Waits for a line on stderr with this in it.
    #[track_caller]
    pub fn until_says(&mut self, part: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(_) => panic!("`{part}` was not said, but:\n{}", self.seen.join("\n")),
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the signal is sent");
    }

    /// Waits for its end; the code is None when a signal ended it.
    pub fn end(self) -> (Option<i32>, String, String) {
        let (status, out, err) = self.ended();
        (status.code(), out, err)
    }

    pub fn ended(mut self) -> (ExitStatus, String, String) {
        let mut out = String::new();
        self.stdout.read_to_string(&mut out).expect("the output is text");
        let status = self.child.wait().expect("it ends");
        self.seen.extend(self.lines.iter());
        (status, out, self.seen.join("\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid).is_err()
}
