//! One program with its group, from its start to the end of its descendants; shared by `shell` and `python`.

use super::{Desk, GRACE_MS};
use crate::command::OwnCommand;
use crate::failure::{self, failure, shown};
use crate::halt::Halt;
use crate::keeper::LARGE;
use crate::process::SupervisedProcess;
use crate::stream::{Splitter, Tail};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};
use windlass_protocol::{Failure, FailureCode, Stream};
use windlass_secrets::ENGINE_VARIABLES;

/// Maximum bytes of each stream in an error; errors are stored and sent far more often than results.
pub(super) const ERROR_TAIL_MAX: usize = 4 * 1024;

/// Bytes that are read from a pipe at once.
const READ_BYTES: usize = 16 * 1024;

/// Time to read the rest. After the program and its descendants have ended, their last output is already in the pipe.
/// Another process that still has the pipe open inherited it, and its output is not part of the step.
const LAST_READ: Duration = Duration::from_millis(500);
/// Maximum size of a pipe on the system.
const LAST_BYTES: usize = 1024 * 1024;

/// Pause that ends a piece. Output of a step with secrets is searched in pieces. Output with shorter pauses is one
/// piece, so that a value on several lines is found; the log gathers as long.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum wait: a program without pauses is still logged line by line.
const HELD_FOR: Duration = Duration::from_secs(1);

/// Maximum bytes of the copy of a stream.
const COPY_MAX: usize = 32 << 20;

/// Program to start, and its name in messages.
#[derive(Debug)]
pub(super) struct Program<'p> {
    /// Name in messages, as in "`cwd` of shell".
    pub(super) tool: &'static str,
    pub(super) not_started: FailureCode,
    pub(super) argv: Vec<&'p OsStr>,
    pub(super) env: &'p BTreeMap<String, String>,
    /// Variables of the worker that the program does not inherit.
    pub(super) unset: &'static [&'static str],
    pub(super) cwd: Option<&'p str>,
    /// Folder for whole copies of the streams, `stdout` and `stderr`.
    pub(super) copies: Option<&'p Path>,
}

pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) out: Tail,
    pub(super) err: Tail,
}

impl Program<'_> {
    pub(super) async fn run(&self, desk: &Desk, halt: Halt) -> Result<Ended, Box<Failure>> {
        let (mut child, mut family) = self.spawn(desk)?;
        let copies = Copies::open(self.copies).map_err(|error| self.cannot_start(&error))?;
        let ended = follow(&mut child, &mut family, copies, desk, halt).await;
        ended.map_err(|error| self.cannot_start(&error))
    }

    /// Starts the supervisor. The program begins when it is ordered to: before that, it ends with the worker without
    /// an effect.
    fn spawn(&self, desk: &Desk) -> Result<(Child, SupervisedProcess), Box<Failure>> {
        let (family, stdin) = SupervisedProcess::connect().map_err(|error| self.cannot_start(&error))?;
        let OwnCommand { program, args } = &desk.kit.supervisor;
        let mut command = Command::new(program);
        command.args(args).arg("--").args(&self.argv);
        for variable in ENGINE_VARIABLES.iter().chain(self.unset) {
            command.env_remove(variable);
        }
        command.envs(self.env).envs(desk.names.iter().map(|(name, value)| (*name, value)));
        if let Some(cwd) = self.cwd {
            command.current_dir(cwd);
        }
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Not killed on drop: the supervisor kills its processes and ends when the connection is closed.
        command.process_group(0);
        let child = command.spawn().map_err(|error| self.refused(&error))?;
        Ok((child, family))
    }

    /// Returns the failure of a start: the system's fault, not the definition's, so another try may succeed.
    pub(super) fn cannot_start(&self, error: &dyn std::fmt::Display) -> Box<Failure> {
        let message = format!("the command of {} could not be started: {error}", self.tool);
        let mut failed = failure(self.not_started, message);
        failed.retryable = Some(true);
        failed
    }

    fn refused(&self, error: &io::Error) -> Box<Failure> {
        let tool = self.tool;
        match (self.cwd, error.kind()) {
            (Some(cwd), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                failure::invalid(format!("`cwd` of {tool} is no directory: `{}`", shown(cwd)))
            }
            (_, io::ErrorKind::ArgumentListTooLong) => failure::invalid(
                "the command and its environment are longer than the system allows; use a file",
            ),
            (_, io::ErrorKind::InvalidInput) => {
                failure::invalid("the command or its environment holds a NUL character or a bad name")
            }
            _ => self.cannot_start(error),
        }
    }
}

async fn follow(
    child: &mut Child,
    family: &mut SupervisedProcess,
    copies: Copies,
    desk: &Desk,
    mut halt: Halt,
) -> io::Result<Ended> {
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("its streams are not there"));
    };
    if !halt.is_requested() {
        family.begin().await?;
    }
    let (gone, is_gone) = watch::channel(false);
    let life = async {
        let status = family.ended(child, &mut halt, GRACE_MS).await;
        gone.send_replace(true);
        status
    };
    let (status, out, err) = tokio::join!(
        // Output of a program that is ready on both streams is logged in one order.
        biased;
        life,
        capture(stdout, Stream::Out, copies.out, desk, is_gone.clone()),
        capture(stderr, Stream::Err, copies.err, desk, is_gone),
    );
    Ok(Ended { status: status?, out, err })
}

/// Reads to the end. If the log is slower than the command, the pipe fills and the command waits.
async fn capture(
    mut pipe: impl AsyncRead + Unpin,
    stream: Stream,
    copy: Option<StreamCopy>,
    desk: &Desk,
    mut gone: watch::Receiver<bool>,
) -> Tail {
    let mut output = Output::new(desk, copy);
    let mut buffer = vec![0; READ_BYTES];
    let mut left = LAST_BYTES;
    loop {
        let read = tokio::select! {
            biased;
            () = output.due() => {
                let lines = output.release().await;
                desk.lines.pass(stream, lines).await;
                continue;
            }
            read = pipe.read(&mut buffer) => read,
            () = silence(&mut gone) => break,
        };
        let Ok(length @ 1..) = read else { break };
        if *gone.borrow() {
            left = left.saturating_sub(length);
        }
        let lines = output.push(&buffer[..length]).await;
        desk.lines.pass(stream, lines).await;
        if left == 0 {
            break;
        }
    }
    let lines = output.end().await;
    desk.lines.pass(stream, lines).await;
    output.tail
}

/// A stream that is copied to the log and the result. Values are removed before it is split into lines, because a value
/// may have several.
struct Output {
    redacted: windlass_secrets::Stream,
    /// Time at which the oldest held line arrived.
    held_since: Option<Instant>,
    last_read: Instant,
    tail: Tail,
    splitter: Splitter,
    copy: Option<StreamCopy>,
}

impl Output {
    fn new(desk: &Desk, copy: Option<StreamCopy>) -> Output {
        let redacted = windlass_secrets::Stream::new(desk.kit.keeper.redactor());
        let (tail, splitter) = (Tail::default(), Splitter::default());
        Output { redacted, held_since: None, last_read: Instant::now(), tail, splitter, copy }
    }

    /// Completes when the held lines have waited long enough. The time depends on the pace of the output, never on its
    /// content or on the values.
    async fn due(&self) {
        match self.held_since {
            Some(since) => sleep_until((self.last_read + PAUSE).min(since + HELD_FOR)).await,
            None => std::future::pending().await,
        }
    }

    /// Returns the complete lines.
    async fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut given = self.redacted.push(bytes);
        if self.redacted.is_full() {
            given = self.search(windlass_secrets::Stream::spill).await;
        }
        self.last_read = Instant::now();
        if self.held_since.is_none() && self.redacted.has_lines() {
            self.held_since = Some(self.last_read);
        }
        self.split(&given)
    }

    async fn release(&mut self) -> Vec<String> {
        self.held_since = None;
        let given = self.search(windlass_secrets::Stream::release).await;
        self.split(&given)
    }

    async fn end(&mut self) -> Vec<String> {
        let given = self.search(windlass_secrets::Stream::end).await;
        let mut texts = self.split(&given);
        self.splitter.end(&mut texts);
        texts
    }

    /// Takes the held output, on another thread than the pool's if there is much to search.
    async fn search(&mut self, take: fn(&mut windlass_secrets::Stream) -> Vec<u8>) -> Vec<u8> {
        if self.redacted.held() < LARGE {
            return take(&mut self.redacted);
        }
        let nothing = windlass_secrets::Stream::new(Arc::default());
        let mut stream = std::mem::replace(&mut self.redacted, nothing);
        let searched = spawn_blocking(move || {
            let given = take(&mut stream);
            (stream, given)
        });
        // A panic of the search fails this unit only, as it would on this thread.
        let (stream, given) = searched.await.unwrap_or_else(|error| resume_unwind(error.into_panic()));
        self.redacted = stream;
        given
    }

    fn split(&mut self, given: &[u8]) -> Vec<String> {
        let mut texts = Vec::new();
        self.tail.push(given);
        self.copy.iter_mut().for_each(|copy| copy.write(given));
        self.splitter.push(given, &mut texts);
        texts
    }
}

/// Copies of both streams, if they are wanted.
#[derive(Default)]
struct Copies {
    out: Option<StreamCopy>,
    err: Option<StreamCopy>,
}

impl Copies {
    fn open(folder: Option<&Path>) -> io::Result<Copies> {
        let Some(folder) = folder else { return Ok(Copies::default()) };
        let open = |name| StreamCopy::open(&folder.join(name)).map(Some);
        Ok(Copies { out: open("stdout")?, err: open("stderr")? })
    }
}

/// A file with the output of a program on one stream, after secrets were removed. It is short enough to be read whole.
struct StreamCopy {
    file: File,
    left: usize,
}

impl StreamCopy {
    fn open(path: &Path) -> io::Result<StreamCopy> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(StreamCopy { file, left: COPY_MAX })
    }

    /// Writes to the copy. The log has every line, so a copy that cannot be written is truncated, and the program continues.
    fn write(&mut self, given: &[u8]) {
        let part = &given[..given.len().min(self.left)];
        self.left = if self.file.write_all(part).is_ok() { self.left - part.len() } else { 0 };
    }
}

async fn silence(gone: &mut watch::Receiver<bool>) {
    // A dropped sender means the same: nothing runs any more.
    let _ = gone.wait_for(|gone| *gone).await;
    sleep(LAST_READ).await;
}
