//! A program of a step with all its descendants, behind its supervisor. They end together.

use crate::halt::Halt;
use crate::inherited;
use crate::supervisor::{BEGAN, ENDED, GO, KILL, TERM};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio::time::{Instant, sleep_until};

/// Maximum time for killed processes to end. They end at once unless they hang in the kernel; then nothing more can be
/// done.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Time that is longer than every wait for a process to end by itself.
const GRACE_MAX_MS: u64 = 60 * 60 * 1000;

/// Connection of the worker to a supervisor. When it is dropped, the supervisor kills all processes.
#[derive(Debug)]
pub(crate) struct SupervisedProcess {
    orders: OwnedWriteHalf,
    reports: Lines<BufReader<OwnedReadHalf>>,
    /// Process group of the program.
    program: Option<Pid>,
}

impl SupervisedProcess {
    /// Creates a connection, and returns its other end as the supervisor's standard input.
    pub(crate) fn connect() -> io::Result<(SupervisedProcess, Stdio)> {
        let (own, other) = std::os::unix::net::UnixStream::pair()?;
        own.set_nonblocking(true)?;
        let (reports, orders) = UnixStream::from_std(own)?.into_split();
        let reports = BufReader::new(reports).lines();
        Ok((SupervisedProcess { orders, reports, program: None }, Stdio::from(OwnedFd::from(other))))
    }

    pub(crate) async fn begin(&mut self) -> io::Result<()> {
        self.order(&format!("{GO}{}", inherited::described())).await
    }

    /// Returns whether the program was started.
    pub(crate) fn has_begun(&self) -> bool {
        self.program.is_some()
    }

    /// Waits until the program and all its descendants have ended. Processes that the program leaves behind get TERM,
    /// and KILL after `grace_ms`. When the halt is pulled, all processes do, with the grace of the halt.
    pub(crate) async fn ended(
        &mut self,
        supervisor: &mut Child,
        halt: &mut Halt,
        grace_ms: u64,
    ) -> io::Result<ExitStatus> {
        let (mut status, mut ending, mut hears) = (None, Ending::NotAsked, true);
        loop {
            tokio::select! {
                report = self.reports.next_line(), if hears => match report {
                    Ok(Some(report)) => if let Some(ended) = self.heard(&report) {
                        status = Some(ended);
                        ending = self.ask(ending, grace_ms).await;
                    },
                    // Closed, or reset because an order arrived when it had ended.
                    Ok(None) | Err(_) => hears = false,
                },
                // All its messages are read first.
                exit = supervisor.wait(), if !hears => return self.over(status, exit?),
                grace_ms = halt.requested() => ending = self.ask(ending, grace_ms).await,
                () = ending.due() => ending = self.kill().await,
                () = ending.hopeless() => {
                    supervisor.start_kill()?;
                    return status.ok_or_else(|| io::Error::other("it was killed and does not end"));
                }
            }
        }
    }

    fn heard(&mut self, report: &str) -> Option<ExitStatus> {
        if let Some(pid) = report.strip_prefix(BEGAN) {
            self.program = pid.parse().ok().and_then(Pid::from_raw);
        }
        report.strip_prefix(ENDED)?.parse().ok().map(ExitStatus::from_raw)
    }

    /// Returns the status of the program. A supervisor that ended without a message was killed, and its processes have
    /// another parent.
    fn over(&self, status: Option<ExitStatus>, exit: ExitStatus) -> io::Result<ExitStatus> {
        if let Some(status) = status {
            return Ok(status);
        }
        if let Some(program) = self.program {
            // Processes that have ended need no signal.
            let _ = kill_process_group(program, Signal::KILL);
        }
        Err(io::Error::other(format!("its supervisor ended before it: {exit}")))
    }

    /// Requests the end of all processes. A later request can only make the grace shorter.
    async fn ask(&mut self, ending: Ending, grace_ms: u64) -> Ending {
        let kill_at = Instant::now() + Duration::from_millis(grace_ms.min(GRACE_MAX_MS));
        match ending {
            Ending::Killed(at) => Ending::Killed(at),
            Ending::NotAsked if grace_ms == 0 => self.kill().await,
            Ending::NotAsked => {
                // A supervisor that has ended needs no order.
                let _ = self.order(TERM).await;
                Ending::Asked { kill_at }
            }
            Ending::Asked { kill_at: earlier } => Ending::Asked { kill_at: kill_at.min(earlier) },
        }
    }

    async fn kill(&mut self) -> Ending {
        let _ = self.order(KILL).await;
        Ending::Killed(Instant::now())
    }

    async fn order(&mut self, order: &str) -> io::Result<()> {
        self.orders.write_all(format!("{order}\n").as_bytes()).await
    }
}

#[derive(Clone, Copy)]
enum Ending {
    NotAsked,
    Asked { kill_at: Instant },
    Killed(Instant),
}

impl Ending {
    async fn due(&self) {
        match self {
            Ending::Asked { kill_at } => sleep_until(*kill_at).await,
            Ending::NotAsked | Ending::Killed(_) => std::future::pending().await,
        }
    }

    async fn hopeless(&self) {
        match self {
            Ending::Killed(at) => sleep_until(*at + GONE_WITHIN).await,
            Ending::NotAsked | Ending::Asked { .. } => std::future::pending().await,
        }
    }
}
