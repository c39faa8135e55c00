//! The worker's side of a sandbox process.

use super::process::{DONE, FAILED};
use super::{Job, Limits};
use crate::command::OwnCommand;
use crate::failure::{self, failure};
use crate::halt::Halt;
use rustix::process::Signal;
use std::io;
use std::num::NonZero;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use windlass_protocol::{Failure, codes};

/// Maximum number of processes of one tenant at a time: enough to use the cores, and a bound on the memory that one
/// tenant can take. Further ones of the tenant wait.
const PLACES_MIN: usize = 2;

/// Size of a failure, in addition to the result.
const FAILURE_BYTES_MAX: usize = 64 * 1024;

/// Starts sandbox processes.
#[derive(Debug)]
pub(crate) struct Sandbox {
    command: OwnCommand,
}

/// Permits for the processes of one tenant.
#[derive(Debug)]
pub(crate) struct Places(Semaphore);

impl Default for Places {
    fn default() -> Places {
        Places(Semaphore::new(available_parallelism().map_or(1, NonZero::get).max(PLACES_MIN)))
    }
}

/// Limits of one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Name of the job in messages, as in "the statement".
    pub(crate) what: &'static str,
    pub(crate) limits: Limits,
    /// Maximum time from the start of the process to its end.
    pub(crate) time: Duration,
    pub(crate) result_bytes_max: usize,
}

impl Sandbox {
    pub(crate) fn new(command: OwnCommand) -> Sandbox {
        Sandbox { command }
    }

    /// Runs the job in its own process and returns the result as JSON text. The process has ended when this returns.
    pub(crate) async fn run(
        &self,
        places: &Places,
        job: Job,
        bounds: &Bounds,
        mut halt: Halt,
    ) -> Result<Vec<u8>, Box<Failure>> {
        let stopped = || failure::stopped(bounds.what);
        let place = tokio::select! {
            biased;
            _ = halt.requested() => return Err(stopped()),
            place = places.0.acquire() => place.map_err(|error| defect(bounds, &error))?,
        };
        // A large job takes time to write, and its values take time to drop.
        let request = spawn_blocking(move || request(&job)).await;
        let request = request.map_err(io::Error::other).and_then(|request| request);
        let mut child = self.spawn().map_err(|error| not_started(bounds, &error))?;
        let request = request.map_err(|error| defect(bounds, &error))?;
        let ended = tokio::select! {
            biased;
            _ = halt.requested() => Err(stopped()),
            ended = timeout(bounds.time, ended(&mut child, bounds, request)) => match ended {
                Ok(ended) => ended.map_err(|error| defect(bounds, &error)),
                Err(_) => Err(too_long(bounds)),
            },
        };
        // The process always ends before its permit is returned.
        let _ = child.start_kill();
        let _ = child.wait().await;
        drop(place);
        judge(ended?, bounds)
    }

    fn spawn(&self) -> io::Result<Child> {
        Command::new(&self.command.program)
            .args(&self.command.args)
            .env_clear()
            // The allocator would reserve a gibibyte at once, which a limit on memory could not reclaim.
            .env("MIMALLOC_ARENA_RESERVE", "0")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }
}

fn request(job: &Job) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(job)?)
}

struct Ended {
    status: ExitStatus,
    answer: Vec<u8>,
}

/// Sends limits and job, and reads the answer up to its maximum size. A process that ends before it has read its job
/// breaks the pipe; its status has the reason.
async fn ended(child: &mut Child, bounds: &Bounds, request: Vec<u8>) -> io::Result<Ended> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("its streams are not there"));
    };
    let mut limits = serde_json::to_vec(&bounds.limits)?;
    limits.push(b'\n');
    let asked = async move {
        if stdin.write_all(&limits).await.is_ok() {
            let _ = stdin.write_all(&request).await;
        }
    };
    let answer_max = bounds.result_bytes_max.max(FAILURE_BYTES_MAX) + 1;
    let answered = async move {
        let mut answer = Vec::new();
        // One byte more than the maximum shows that the answer is too large.
        stdout.take(answer_max as u64 + 1).read_to_end(&mut answer).await.map(|_| answer)
    };
    let ((), answer) = tokio::join!(asked, answered);
    let answer = answer?;
    if answer.len() > answer_max {
        child.start_kill()?;
    }
    Ok(Ended { status: child.wait().await?, answer })
}

fn judge(ended: Ended, bounds: &Bounds) -> Result<Vec<u8>, Box<Failure>> {
    let Ended { status, mut answer } = ended;
    if answer.len() > bounds.result_bytes_max + 1 {
        return Err(too_large(bounds));
    }
    if !status.success() {
        return Err(by_status(status, bounds));
    }
    match answer.first() {
        Some(&DONE) => {
            answer.remove(0);
            Ok(answer)
        }
        Some(&FAILED) => match serde_json::from_slice(&answer[1..]) {
            Ok(failure) => Err(Box::new(failure)),
            Err(error) => Err(defect(bounds, &error)),
        },
        _ => Err(defect(bounds, &"its process gave no answer")),
    }
}

/// Describes the end of a process. The system ends a process that exceeds a limit, or denies it memory, and then the
/// program aborts. A stack overflow means that a text is nested too deep.
fn by_status(status: ExitStatus, bounds: &Bounds) -> Box<Failure> {
    let Bounds { what, limits, .. } = bounds;
    let signal = status.signal().and_then(Signal::from_named_raw);
    let message = match signal {
        Some(Signal::XCPU) => {
            format!("{what} used more than {} s of CPU time; reduce its work", limits.cpu_seconds)
        }
        Some(Signal::XFSZ) => {
            format!(
                "{what} wrote a file larger than {} bytes; write less data",
                limits.file_bytes.unwrap_or_default()
            )
        }
        Some(Signal::ABORT | Signal::KILL) => {
            format!(
                "{what} needed more than {} MiB of memory; process less data at a time",
                limits.memory_bytes >> 20
            )
        }
        Some(signal) => {
            format!("{what} crashed its process (signal {}); it may be nested too deep", signal.as_raw())
        }
        None => return defect(bounds, &status),
    };
    failure(codes::LIMIT_EXCEEDED, message)
}

fn too_long(bounds: &Bounds) -> Box<Failure> {
    let message = format!(
        "{} took longer than {} s and was stopped; reduce its work",
        bounds.what,
        bounds.time.as_secs()
    );
    failure(codes::LIMIT_EXCEEDED, message)
}

fn too_large(bounds: &Bounds) -> Box<Failure> {
    let message = format!(
        "{} has a result of more than {} bytes; request less data",
        bounds.what, bounds.result_bytes_max
    );
    failure(codes::RESULT_TOO_LARGE, message)
}

/// Returns the failure of a start: the system's fault, so another try may succeed.
fn not_started(bounds: &Bounds, error: &dyn std::fmt::Display) -> Box<Failure> {
    let message = format!("the process for {} could not be started: {error}", bounds.what);
    let mut failed = failure(codes::SANDBOX_NOT_STARTED, message);
    failed.retryable = Some(true);
    failed
}

fn defect(bounds: &Bounds, error: &dyn std::fmt::Display) -> Box<Failure> {
    failure(codes::WORKER_DEFECT, format!("the process for {} failed: {error}", bounds.what))
}
