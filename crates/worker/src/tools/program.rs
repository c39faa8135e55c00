//! One program with its group, from its start to the end of its descendants; shared by `shell` and `python`.

use super::source::blocking;
use super::{GRACE_MS, ToolContext};
use crate::command::OwnCommand;
use crate::failure::{self, failure, shown};
use crate::folder::{Folder, PRIVATE};
use crate::halt::Halt;
use crate::keeper::LARGE;
use crate::process::SupervisedProcess;
use crate::stream::{Splitter, TAIL_MAX, Tail};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::panic::resume_unwind;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};
use windlass_protocol::{Failure, FailureCode, Stream, codes};
use windlass_secrets::withheld_variables;

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

/// Maximum bytes of the copy of a stream. People do not read more, and a program that writes endlessly must not fill the
/// disk. The end of a longer stream is kept.
const COPY_MAX: u64 = 1 << 30;
/// Bytes that are written to a copy at once.
const COPY_PIECE: usize = 256 * 1024;

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
    /// Folder for copies of the streams, `stdout` and `stderr`.
    pub(super) copies: Option<&'p Folder>,
}

pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) out: Tail,
    pub(super) err: Tail,
}

impl Program<'_> {
    pub(super) async fn run(&self, cx: &ToolContext, halt: Halt) -> Result<Ended, Box<Failure>> {
        let (mut child, mut family) = self.spawn(cx)?;
        let copies = Copies::open(self.copies).map_err(|error| self.cannot_start(&error))?;
        let ended = follow(&mut child, &mut family, copies, cx, halt).await;
        ended.map_err(|error| match family.has_begun() {
            true => self.end_unknown(&error),
            false => self.cannot_start(&error),
        })
    }

    /// Starts the supervisor. The program begins when it is ordered to: before that, it ends with the worker without
    /// an effect.
    fn spawn(&self, cx: &ToolContext) -> Result<(Child, SupervisedProcess), Box<Failure>> {
        let (family, stdin) = SupervisedProcess::connect().map_err(|error| self.cannot_start(&error))?;
        let OwnCommand { program, args } = &cx.kit.supervisor;
        let mut command = Command::new(program);
        command.args(args).arg("--").args(&self.argv);
        for variable in withheld_variables().chain(self.unset.iter().copied()) {
            command.env_remove(variable);
        }
        command.envs(self.env).envs(cx.names.iter().map(|(name, value)| (*name, value)));
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

    /// Returns the failure of a program that ran, and whose end was not seen. Its effects are unknown, so the policy of the
    /// definition decides about another try.
    fn end_unknown(&self, error: &io::Error) -> Box<Failure> {
        let message = format!("the command of {} ran, and its result is unknown: {error}", self.tool);
        failure(codes::RESULT_UNKNOWN, message)
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
    cx: &ToolContext,
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
        capture(stdout, Stream::Out, copies.out, cx, is_gone.clone()),
        capture(stderr, Stream::Err, copies.err, cx, is_gone),
    );
    Ok(Ended { status: status?, out, err })
}

/// Reads to the end. If the log is slower than the command, the pipe fills and the command waits.
async fn capture(
    mut pipe: impl AsyncRead + Unpin,
    stream: Stream,
    copy: Option<StreamCopy>,
    cx: &ToolContext,
    mut gone: watch::Receiver<bool>,
) -> Tail {
    let mut output = Output::new(cx, copy);
    let mut buffer = vec![0; READ_BYTES];
    let mut left = LAST_BYTES;
    loop {
        let read = tokio::select! {
            biased;
            () = output.due() => {
                let lines = output.release().await;
                cx.lines.pass(stream, lines).await;
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
        cx.lines.pass(stream, lines).await;
        if left == 0 {
            break;
        }
    }
    let lines = output.end().await;
    cx.lines.pass(stream, lines).await;
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
    fn new(cx: &ToolContext, copy: Option<StreamCopy>) -> Output {
        let redacted = windlass_secrets::Stream::new(cx.kit.keeper.redactor());
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
        self.split(&given).await
    }

    async fn release(&mut self) -> Vec<String> {
        self.held_since = None;
        let given = self.search(windlass_secrets::Stream::release).await;
        self.split(&given).await
    }

    async fn end(&mut self) -> Vec<String> {
        let given = self.search(windlass_secrets::Stream::end).await;
        let mut texts = self.split(&given).await;
        self.splitter.end(&mut texts);
        if let Some(copy) = &mut self.copy {
            copy.end(&self.tail).await;
        }
        texts
    }

    /// Takes the held output, on another thread than the pool's if there is much to search.
    async fn search(&mut self, take: fn(&mut windlass_secrets::Stream) -> Vec<u8>) -> Vec<u8> {
        if self.redacted.held() < LARGE {
            return take(&mut self.redacted);
        }
        let nothing = windlass_secrets::Stream::new(Arc::default());
        let mut stream = mem::replace(&mut self.redacted, nothing);
        let searched = spawn_blocking(move || {
            let given = take(&mut stream);
            (stream, given)
        });
        // A panic of the search fails this unit only, as it would on this thread.
        let (stream, given) = searched.await.unwrap_or_else(|error| resume_unwind(error.into_panic()));
        self.redacted = stream;
        given
    }

    async fn split(&mut self, given: &[u8]) -> Vec<String> {
        let mut texts = Vec::new();
        self.tail.push(given);
        if let Some(copy) = &mut self.copy {
            copy.write(given).await;
        }
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
    fn open(folder: Option<&Folder>) -> io::Result<Copies> {
        let Some(folder) = folder else { return Ok(Copies::default()) };
        let open = |name| folder.create_file(name, PRIVATE).map(|file| Some(StreamCopy::new(file, COPY_MAX)));
        Ok(Copies { out: open("stdout")?, err: open("stderr")? })
    }
}

/// A file with the output of a program on one stream, after secrets were removed: its begin up to a limit, and its end.
struct StreamCopy {
    file: Arc<File>,
    /// Bytes that are not written yet.
    held: Vec<u8>,
    /// Bytes that the begin may still get.
    left: u64,
    /// Bytes after the begin.
    over: u64,
}

impl StreamCopy {
    fn new(file: File, max: u64) -> StreamCopy {
        let left = max.saturating_sub(TAIL_MAX as u64);
        StreamCopy { file: Arc::new(file), held: Vec::new(), left, over: 0 }
    }

    async fn write(&mut self, given: &[u8]) {
        let fits = usize::try_from(self.left).unwrap_or(usize::MAX).min(given.len());
        self.held.extend_from_slice(&given[..fits]);
        self.left -= fits as u64;
        self.over += (given.len() - fits) as u64;
        if self.held.len() >= COPY_PIECE {
            self.flush().await;
        }
    }

    /// Writes the held bytes. If that fails, the copy has no more than its begin and its end, and the program continues.
    async fn flush(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let (file, piece) = (Arc::clone(&self.file), mem::take(&mut self.held));
        let length = piece.len() as u64;
        let written = blocking(move || (&*file).write_all(&piece)).await;
        if written.is_err() {
            self.left = 0;
            self.over += length;
        }
    }

    /// Adds the end of a stream that was longer than the limit, after the number of bytes between them.
    async fn end(&mut self, tail: &Tail) {
        self.flush().await;
        if self.over > 0 {
            let end = tail.last(usize::try_from(self.over).unwrap_or(usize::MAX));
            let omitted = self.over - end.len() as u64;
            if omitted > 0 {
                self.held = format!("\n[… {omitted} bytes omitted …]\n").into_bytes();
            }
            self.held.extend(end);
            self.flush().await;
        }
    }
}

async fn silence(gone: &mut watch::Receiver<bool>) {
    // A dropped sender means the same: nothing runs any more.
    let _ = gone.wait_for(|gone| *gone).await;
    sleep(LAST_READ).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies a stream of `bytes` bytes with a limit, and returns the copy.
    async fn copied(bytes: usize, max: u64) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = Folder::open(folder.path()).unwrap().create_file("stdout", PRIVATE).unwrap();
        let (mut copy, mut tail) = (StreamCopy::new(file, max), Tail::default());
        let stream: Vec<u8> = b"0123456789".iter().copied().cycle().take(bytes).collect();
        for piece in stream.chunks(READ_BYTES) {
            tail.push(piece);
            copy.write(piece).await;
            assert!(copy.held.len() < COPY_PIECE, "memory does not grow with the stream");
        }
        copy.end(&tail).await;
        std::fs::read_to_string(folder.path().join("stdout")).unwrap()
    }

    #[tokio::test]
    async fn a_copy_has_the_whole_stream_up_to_its_limit_and_then_a_mark_and_the_end() {
        let max = 1_000_000;
        for bytes in [0, 10, COPY_PIECE, 999_990, 1_000_000] {
            let text = copied(bytes, max).await;
            assert!(text.len() == bytes && !text.contains('…'), "{bytes}: {}", text.len());
        }
        let text = copied(3_000_007, max).await;
        let begin = 1_000_000 - TAIL_MAX;
        let (begin, end) = (text.get(..begin).unwrap(), text.get(begin..).unwrap());
        assert!(begin.starts_with("0123456789012"));
        let mark = "\n[… 2000007 bytes omitted …]\n";
        assert!(end.starts_with(mark), "{}", &end[..40]);
        assert!(end.len() == mark.len() + TAIL_MAX && end.ends_with("7890123456"));
    }
}
