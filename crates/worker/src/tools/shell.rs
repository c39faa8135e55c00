//! Commands of the system's shell.
//!
//! | field | meaning |
//! |---|---|
//! | `command` or `cmds` | the script; a list is joined line by line and ends at the first command that fails (`set -e`) |
//! | `shell` | the program that gets it with `-c`; `sh` by default |
//! | `env` | laid over the worker's environment; what is no text is written as JSON |
//! | `cwd` | the directory; the worker's by default |
//! | `timeout_seconds` | as `spec.timeout` |
//! | `args`, `input` | for templates of the other fields |
//!
//! The result is `{exit_code, stdout, stderr}`, the streams' last 64 KiB as text, with `truncated: true` when that is not
//! all of it; the log has every line. Another exit code than 0 is an error.

mod config;

use super::{Desk, GRACE_MS};
use crate::failure::{self, failure, shown};
use crate::halt::Halt;
use crate::pool::Lines;
use crate::process::Group;
use crate::stream::{Splitter, TAIL_MAX, Tail};
use config::Script;
use serde_json::{Map, Value, json};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::sleep;
use windlass_protocol::{Failure, Stream};

/// What an error holds of each stream; errors are stored and sent far more often than results.
const ERROR_TAIL_MAX: usize = 4 * 1024;

/// Taken from a pipe at once.
const READ_BYTES: usize = 16 * 1024;

/// After the group is gone, its last output is in the pipe already. Who still holds the pipe open left the group, and
/// its output is no longer the step's.
const LAST_READ: Duration = Duration::from_millis(500);
/// The largest pipe the system makes.
const LAST_BYTES: usize = 1024 * 1024;

/// Lets the command begin only when the guard knows of it: a worker that dies before writes no line, and the command
/// never was. Then nothing reads what is typed: input is empty.
const GATE: &str = "read -r windlass_gate_ || exit 125; exec \"$@\" </dev/null";

pub(super) async fn run(config: &Map<String, Value>, desk: &Desk, halt: Halt) -> Result<Value, Box<Failure>> {
    let script = Script::read(config)?;
    let mut child = spawn(&script, desk)?;
    let group = Group::of(&child, &desk.guard).map_err(|error| cannot_start(&error))?;
    let Some(group) = group else { return Err(cannot_start(&"it ended at once")) };
    let ended = follow(&mut child, &group, desk, halt).await;
    let (status, out, err) = ended.map_err(|error| cannot_start(&error))?;
    told(status, out, err)
}

fn spawn(script: &Script, desk: &Desk) -> Result<Child, Box<Failure>> {
    let mut command = Command::new("sh");
    command.args(["-c", GATE, "sh", &script.shell, "-c", &script.text]);
    command.envs(&script.env).envs(desk.names.iter().map(|(name, value)| (*name, value)));
    if let Some(cwd) = &script.cwd {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    command.spawn().map_err(|error| script.refused(&error))
}

type Ended = (ExitStatus, Tail, Tail);

async fn follow(child: &mut Child, group: &Group, desk: &Desk, mut halt: Halt) -> io::Result<Ended> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut gate), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(io::Error::other("its streams are not there"));
    };
    if !halt.is_pulled() {
        gate.write_all(b"go\n").await?;
    }
    drop(gate);
    let (gone, is_gone) = watch::channel(false);
    let life = async {
        let status = group.ended(child, &mut halt, GRACE_MS).await;
        gone.send_replace(true);
        status
    };
    let (status, out, err) = tokio::join!(
        life,
        capture(stdout, Stream::Out, &desk.lines, is_gone.clone()),
        capture(stderr, Stream::Err, &desk.lines, is_gone),
    );
    Ok((status?, out, err))
}

/// Reads to the end. The log can be slower than the command: then the pipe fills and the command waits.
async fn capture(
    mut pipe: impl AsyncRead + Unpin,
    stream: Stream,
    lines: &Lines,
    mut gone: watch::Receiver<bool>,
) -> Tail {
    let (mut tail, mut splitter) = (Tail::default(), Splitter::default());
    let mut buffer = vec![0; READ_BYTES];
    let mut left = LAST_BYTES;
    loop {
        let read = tokio::select! {
            biased;
            read = pipe.read(&mut buffer) => read,
            () = silence(&mut gone) => break,
        };
        let Ok(length @ 1..) = read else { break };
        if *gone.borrow() {
            left = left.saturating_sub(length);
        }
        tail.push(&buffer[..length]);
        let mut texts = Vec::new();
        splitter.push(&buffer[..length], &mut texts);
        lines.send(stream, texts).await;
        if left == 0 {
            break;
        }
    }
    let mut texts = Vec::new();
    splitter.end(&mut texts);
    lines.send(stream, texts).await;
    tail
}

async fn silence(gone: &mut watch::Receiver<bool>) {
    // A sender that is gone is as good: nothing runs any more.
    let _ = gone.wait_for(|gone| *gone).await;
    sleep(LAST_READ).await;
}

fn told(status: ExitStatus, mut out: Tail, mut err: Tail) -> Result<Value, Box<Failure>> {
    let max = if status.success() { TAIL_MAX } else { ERROR_TAIL_MAX };
    let ((stdout, cut_out), (stderr, cut_err)) = (out.text(max), err.text(max));
    let last_words = stderr.lines().rev().find(|line| !line.trim().is_empty()).map(shown);
    let mut told = json!({ "exit_code": status.code(), "stdout": stdout, "stderr": stderr });
    if cut_out || cut_err {
        told["truncated"] = json!(true);
    }
    if status.success() {
        return Ok(told);
    }
    let mut failure = match (status.code(), status.signal()) {
        (Some(code), _) => exited(code),
        (None, signal) => {
            told["signal"] = json!(signal);
            killed(signal)
        }
    };
    if let Some(words) = last_words {
        failure.message = format!("{}: {words}", failure.message);
    }
    failure.details = told;
    Err(failure)
}

fn exited(code: i32) -> Box<Failure> {
    let message = match code {
        126 => "a command cannot be executed (exit code 126)".to_owned(),
        127 => "a command was not found (exit code 127)".to_owned(),
        code => format!("the command ended with exit code {code}"),
    };
    failure("unknown", "SHELL_EXIT", message)
}

fn killed(signal: Option<i32>) -> Box<Failure> {
    let signal = signal.map_or_else(|| "an unknown signal".to_owned(), |signal| format!("signal {signal}"));
    failure("unknown", "SHELL_SIGNAL", format!("the command was killed by {signal}"))
}

/// The system's trouble, not the definition's: another try may do better.
fn cannot_start(error: &dyn std::fmt::Display) -> Box<Failure> {
    let mut failed =
        failure("unknown", "SHELL_NOT_STARTED", format!("the command could not be started: {error}"));
    failed.retryable = Some(true);
    failed
}

impl Script {
    fn refused(&self, error: &io::Error) -> Box<Failure> {
        match (&self.cwd, error.kind()) {
            (Some(cwd), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                failure::invalid(format!("`cwd` of the shell is no directory: `{}`", shown(cwd)))
            }
            (_, io::ErrorKind::ArgumentListTooLong) => failure::invalid(
                "the command and its environment are longer than the system allows; use a file",
            ),
            (_, io::ErrorKind::InvalidInput) => {
                failure::invalid("the command or its environment holds a NUL character or a bad name")
            }
            _ => cannot_start(error),
        }
    }
}
