//! The program in a folder of its own.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "{what} did not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A playbook of these steps.
pub fn playbook(steps: &str) -> String {
    format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: tested, path: t}}\n{steps}")
}

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

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// A folder with a definition, and data beside it.
pub struct Place {
    dir: TempDir,
}

impl Place {
    /// With this definition in `play.yaml`.
    pub fn new(steps: &str) -> Place {
        let place = Place { dir: tempfile::tempdir().expect("a folder") };
        place.write("play.yaml", &playbook(steps));
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the file is written");
    }

    /// Lines of a file that steps append to; none while it is not there.
    pub fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Works in the folder, with its data in `data`.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(args).current_dir(self.dir.path()).env("WINDLASS_DATA", "data").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[track_caller]
    pub fn windlass(&self, args: &[&str]) -> Told {
        self.told(self.command(args))
    }

    #[track_caller]
    pub fn told(&self, mut command: Command) -> Told {
        let told = command.output().expect("the program runs");
        let text = |bytes| String::from_utf8(bytes).expect("the output is text");
        Told {
            code: told.status.code().expect("an exit code"),
            out: text(told.stdout),
            err: text(told.stderr),
        }
    }

    /// Runs `play.yaml` with `--json` until it rests.
    #[track_caller]
    pub fn run(&self, args: &[&str], code: i32) -> Value {
        let all = [&["run", "play.yaml", "--json"], args].concat();
        self.windlass(&all).expect(code).json()
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running::of(self.command(args).spawn().expect("the program runs"))
    }
}

/// The program while it runs; killed at the end of a test that forgets it.
pub struct Running {
    child: Child,
    stdout: ChildStdout,
    lines: Receiver<String>,
    /// What came on stderr so far.
    seen: Vec<String>,
}

impl Running {
    fn of(mut child: Child) -> Running {
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        thread::spawn(move || {
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
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id")).expect("a process id");
        kill_process(pid, signal).expect("the signal is sent");
    }

    /// Waits for its end; the code is None when a signal ended it.
    pub fn end(mut self) -> (Option<i32>, String, String) {
        let mut out = String::new();
        self.stdout.read_to_string(&mut out).expect("the output is text");
        let status = self.child.wait().expect("it ends");
        let rest: Vec<String> = self.lines.iter().collect();
        self.seen.extend(rest);
        (status.code(), out, self.seen.join("\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process whose number a step wrote to a file.
pub fn process_of(place: &Place, file: &str) -> Pid {
    until("a step writes its process id", || {
        let number = place.lines(file).first()?.trim().parse().ok()?;
        Pid::from_raw(number)
    })
}

pub fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid).is_err()
}
